"""The rows of the join tests: every kind of key, NULLs, non-ASCII text, boundaries of time."""

ROWS = """
SELECT
  IF(n % 23 = 0, NULL, n * {step} % 47 - 5) AS id,
  CAST(IF(n % 19 = 0, NULL, n % 7) AS INT) AS a,
  IF(n % 17 = 0, NULL, CONCAT('b', n % 5)) AS b,
  ELT(n % 3 + 1, 'eu', 'us', NULL) AS region,
  ELT(n % 3 + 1, {deps}) AS dep,
  IF(n % 29 = 0, NULL, CONCAT(ELT(n % 4 + 1, 'ab', 'ac', 'éx', 'Zz'), n % 3)) AS s,
  IF(n % 31 = 0, NULL,
     TIMESTAMP'2019-12-30 22:00:00' + MAKE_INTERVAL(0, 0, 0, n % 5, n % 7, 0, n % 2)) AS ts,
  IF(n % 31 = 0, NULL,
     TIMESTAMP_NTZ'2019-12-30 22:00:00' + MAKE_INTERVAL(0, 0, 0, n % 5, n % 7, 0, n % 2)) AS tsn,
  IF(n % 31 = 0, NULL, DATE'2019-12-29' + CAST(n % 6 AS INT)) AS d,
  CAST(n % 11 AS TINYINT) AS i8, CAST(n % 11 AS SMALLINT) AS i16, CAST(n % 11 AS INT) AS i32,
  CAST((n % 11 - 5) / 4 AS DECIMAL(20, 2)) AS dec,
  CAST(CONCAT('x', n % 9) AS BINARY) AS bin,
  n % 2 = 0 AS flag,
  CAST(n AS DOUBLE) AS v
FROM (SELECT id AS n FROM RANGE({rows}))
"""
