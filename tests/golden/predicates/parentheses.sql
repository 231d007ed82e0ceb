-- Parentheses around a column or a literal go, those around a computed operand stay with it.

(a) > (5)
GT(`a`, 5)
`a` > 5

((5)) < ((a))
GT(`a`, 5)
`a` > 5

(a + 1) > 5
GT(Add(`a`, 1), 5)
(`a` + 1) > 5

5 < (a + 1)
GT(Add(`a`, 1), 5)
(`a` + 1) > 5

NOT ((a) + (1) <= (5))
GT(Add(`a`, 1), 5)
`a` + 1 > 5

(a + b) * 2 > (a * b)
GT(Mul(Add(`a`, `b`), 2), Mul(`a`, `b`))
(`a` + `b`) * 2 > (`a` * `b`)

(a) IN ((1), (5))
In(`a`, 1, 5)
`a` IN (1, 5)

(s) LIKE ('p%')
StartsWith(`s`, 'p')
starts_with(`s`, 'p')
