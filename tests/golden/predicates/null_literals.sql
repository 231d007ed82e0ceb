-- What is compared with NULL is never true, nor is its NOT.

a = NULL
FALSE
FALSE

NOT (a = NULL)
FALSE
FALSE

NULL < a
FALSE
FALSE

NULL
FALSE
FALSE

NOT NULL
FALSE
FALSE

a = 1 OR NULL
EQ(`a`, 1)
`a` = 1

a = 1 AND NULL
FALSE
FALSE

NOT (a = 1 AND NULL)
NEQ(`a`, 1)
`a` <> 1
