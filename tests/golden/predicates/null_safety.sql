-- `<=>` is IS NULL for NULL; its NOT takes the NULLs.

a <=> NULL
Is(`a`, NULL)
`a` IS NULL

NOT (a <=> NULL)
Not(Is(`a`, NULL))
NOT `a` IS NULL

a <=> 5
NullSafeEQ(`a`, 5)
(`a` IS NOT DISTINCT FROM 5)

5 <=> a
NullSafeEQ(`a`, 5)
(`a` IS NOT DISTINCT FROM 5)

NOT (a <=> 5)
Or(NEQ(`a`, 5), Is(`a`, NULL))
`a` <> 5 OR `a` IS NULL

a <=> b
NullSafeEQ(`a`, `b`)
(`a` IS NOT DISTINCT FROM `b`)

NOT (a <=> b)
NullSafeNEQ(`a`, `b`)
(`a` IS DISTINCT FROM `b`)

a IS NULL OR a = 1
Or(Is(`a`, NULL), EQ(`a`, 1))
`a` IS NULL OR `a` = 1
