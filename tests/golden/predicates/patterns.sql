-- LIKE that asks for a start, an end or a part is that test; other escapes become backslashes.

s LIKE 'p%'
StartsWith(`s`, 'p')
starts_with(`s`, 'p')

s NOT LIKE 'p%'
Not(StartsWith(`s`, 'p'))
NOT starts_with(`s`, 'p')

s LIKE '%p'
EndsWith(`s`, 'p')
ends_with(`s`, 'p')

s NOT LIKE '%p'
Not(EndsWith(`s`, 'p'))
NOT ends_with(`s`, 'p')

s LIKE '%p%'
Contains(`s`, 'p')
contains(`s`, 'p')

s NOT LIKE '%p%'
Not(Contains(`s`, 'p'))
NOT contains(`s`, 'p')

s LIKE 'p'
EQ(`s`, 'p')
`s` = 'p'

s NOT LIKE 'p'
NEQ(`s`, 'p')
`s` <> 'p'

s LIKE ''
EQ(`s`, '')
`s` = ''

s LIKE '%'
Not(Is(`s`, NULL))
NOT `s` IS NULL

s NOT LIKE '%'
FALSE
FALSE

s LIKE 'a!%b' ESCAPE '!'
EQ(`s`, 'a%b')
`s` = 'a%b'

s LIKE 'a!_' ESCAPE '!'
EQ(`s`, 'a_')
`s` = 'a_'

s LIKE 'a!%%' ESCAPE '!'
StartsWith(`s`, 'a%')
starts_with(`s`, 'a%')

s LIKE 'p_'
Like(`s`, 'p_')
`s` LIKE 'p_'

s NOT LIKE '_p'
Not(Like(`s`, '_p'))
NOT `s` LIKE '_p'

s LIKE 'a\\%b'
EQ(`s`, 'a%b')
`s` = 'a%b'

s LIKE NULL
FALSE
FALSE

NOT (s LIKE NULL)
FALSE
FALSE

startswith(s, 'p')
StartsWith(`s`, 'p')
starts_with(`s`, 'p')

NOT startswith(s, '')
FALSE
FALSE

NOT endswith(s, 'p')
Not(EndsWith(`s`, 'p'))
NOT ends_with(`s`, 'p')

contains(s, '')
Not(Is(`s`, NULL))
NOT `s` IS NULL
