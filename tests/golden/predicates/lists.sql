-- IN has neither NULLs nor duplicates; of one value it is `=`.

a IN (1, 2, 1)
In(`a`, 1, 2)
`a` IN (1, 2)

a IN (1, NULL, 1)
EQ(`a`, 1)
`a` = 1

a NOT IN (1, 2, 2)
Not(In(`a`, 1, 2))
NOT `a` IN (1, 2)

a NOT IN (1, NULL)
FALSE
FALSE

a IN (NULL)
FALSE
FALSE

NOT (a IN (2, 5) OR b IN (1))
And(Not(In(`a`, 2, 5)), NEQ(`b`, 1))
NOT `a` IN (2, 5) AND `b` <> 1

NULL IN (1, 2)
FALSE
FALSE

s IN ('p', 'pq', '')
In(`s`, 'p', 'pq', '')
`s` IN ('p', 'pq', '')
