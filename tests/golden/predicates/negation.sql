-- NOT moves into what it negates: a filter takes NULL for FALSE, so both sides have the same NULLs.

NOT (a = 1 OR b <> 5)
And(NEQ(`a`, 1), EQ(`b`, 5))
`a` <> 1 AND `b` = 5

NOT (a < 2 AND NOT b >= 5)
Or(GTE(`a`, 2), GTE(`b`, 5))
`a` >= 2 OR `b` >= 5

NOT NOT o
EQ(`o`, TRUE)
`o` = TRUE

NOT o
EQ(`o`, FALSE)
`o` = FALSE

NOT (a IS NULL)
Not(Is(`a`, NULL))
NOT `a` IS NULL

NOT (a IN (1, 2) OR s LIKE 'p%')
And(Not(In(`a`, 1, 2)), Not(StartsWith(`s`, 'p')))
NOT `a` IN (1, 2) AND NOT starts_with(`s`, 'p')

NOT (NOT (a > 1 OR b IS NULL) AND s = 'p')
Or(GT(`a`, 1), Is(`b`, NULL), NEQ(`s`, 'p'))
`a` > 1 OR `b` IS NULL OR `s` <> 'p'
