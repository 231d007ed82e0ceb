-- BETWEEN is two comparisons.

a BETWEEN 1 AND 5
And(GTE(`a`, 1), LTE(`a`, 5))
`a` >= 1 AND `a` <= 5

a NOT BETWEEN 1 AND 5
Or(LT(`a`, 1), GT(`a`, 5))
`a` < 1 OR `a` > 5

NOT (a BETWEEN 1 AND 5)
Or(LT(`a`, 1), GT(`a`, 5))
`a` < 1 OR `a` > 5

a BETWEEN 5 AND 1
And(GTE(`a`, 5), LTE(`a`, 1))
`a` >= 5 AND `a` <= 1

a BETWEEN b AND 5
And(GTE(`a`, `b`), LTE(`a`, 5))
`a` >= `b` AND `a` <= 5

a BETWEEN NULL AND 5
FALSE
FALSE

a NOT BETWEEN NULL AND 5
GT(`a`, 5)
`a` > 5

5 BETWEEN a AND 7
And(LTE(`a`, 5), LTE(5, 7))
`a` <= 5 AND 5 <= 7
