-- The literal stands on the right.

5 > a
LT(`a`, 5)
`a` < 5

1 = a
EQ(`a`, 1)
`a` = 1

2 <= a AND 7 > a
And(GTE(`a`, 2), LT(`a`, 7))
`a` >= 2 AND `a` < 7

NOT 5 <= a
LT(`a`, 5)
`a` < 5

a < b
LT(`a`, `b`)
`a` < `b`

a = a
EQ(`a`, `a`)
`a` = `a`
