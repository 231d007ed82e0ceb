-- AND and OR are flat; one within the other is in parentheses.

(a = 1 OR b = 5) AND o
And(Or(EQ(`a`, 1), EQ(`b`, 5)), EQ(`o`, TRUE))
(`a` = 1 OR `b` = 5) AND `o` = TRUE

a = 1 AND (b = 5 AND (o AND s = 'p'))
And(EQ(`a`, 1), EQ(`b`, 5), EQ(`o`, TRUE), EQ(`s`, 'p'))
`a` = 1 AND `b` = 5 AND `o` = TRUE AND `s` = 'p'

a = 1 OR (b = 5 OR (o OR s = 'p'))
Or(EQ(`a`, 1), EQ(`b`, 5), EQ(`o`, TRUE), EQ(`s`, 'p'))
`a` = 1 OR `b` = 5 OR `o` = TRUE OR `s` = 'p'

(a = 1 AND b = 5) OR (a = 2 AND o)
Or(And(EQ(`a`, 1), EQ(`b`, 5)), And(EQ(`a`, 2), EQ(`o`, TRUE)))
(`a` = 1 AND `b` = 5) OR (`a` = 2 AND `o` = TRUE)
