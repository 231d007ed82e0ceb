-- IS TRUE is what a filter asks anyway; constants disappear.

o
EQ(`o`, TRUE)
`o` = TRUE

o IS TRUE
EQ(`o`, TRUE)
`o` = TRUE

o IS NOT TRUE
Or(EQ(`o`, FALSE), Is(`o`, NULL))
`o` = FALSE OR `o` IS NULL

o IS FALSE
EQ(`o`, FALSE)
`o` = FALSE

o IS NOT FALSE
Or(EQ(`o`, TRUE), Is(`o`, NULL))
`o` = TRUE OR `o` IS NULL

(a = 1) IS NOT TRUE
Or(NEQ(`a`, 1), Is(EQ(`a`, 1), NULL))
`a` <> 1 OR (`a` = 1) IS NULL

TRUE
TRUE
TRUE

FALSE OR o
EQ(`o`, TRUE)
`o` = TRUE

TRUE AND (o OR FALSE)
EQ(`o`, TRUE)
`o` = TRUE

o AND FALSE
FALSE
FALSE

a = 1 OR TRUE
TRUE
TRUE
