-- Operands that are an error where one that Spark computes before them is NULL; and errors compared.
i64 + i32 * i32
((i32 * i32 + i64 * n64) + i16 * i32) + n32 * i32
((i32 / i16 + n64 / i64) + i32 DIV n32) - i32 % i16
CAST(i32 * i32 AS BIGINT) + (i64 + CAST(n32 AS BIGINT)) * n64
i32 * i32 + i64
dec + i32 * i32
f64 * (i32 * i32)
(i64 + (i32 + 1)) * (n64 + 1)
(i32 * i32) / n32
(i32 * i32) / f64
(i32 * i32) % n32
(i32 * i32) DIV n32
i64 - (i32 DIV i16) > n64
i64 < i32 * i32
i64 = i32 * i32
i64 <=> i32 * i32
i64 BETWEEN i32 * i32 AND 5
flag = (i32 * i32 > 3)
nullif(i32, 10 DIV i16)
substring(s, i32 * i32)
substring(s, 1, length(s) - 1)
substring(s, i16, i32 + i32)
replace(s, 'a', CAST(10 DIV i16 AS STRING))
startswith(s, CAST(i32 * i32 AS STRING))
date_add(d, i32 * i32)
datediff(d, date_add(d, i32 * i32))
timestampdiff(DAY, ts, timestamp_seconds(i64))
months_between(ts, timestamp_seconds(i64))
concat(s, CAST(i32 * i32 AS STRING))
greatest(i32, i32 * i32)
try_divide(i32 * i32, i16)
try_add(i64, i32 * i32)
-- declined: i64 IN (i32 * i32, 1)
i32 * i32 > 3
-i32 > 3
CAST(i64 AS INT) > 3
CAST(i32 AS TINYINT) = 7
CAST(i64 AS SMALLINT) IN (1, 2, 3)
CAST(i32 AS TINYINT) <=> CAST(7 AS TINYINT)
CAST(i64 AS DECIMAL(5, 0)) > 3
timestamp_seconds(i64) > TIMESTAMP '2020-01-01 00:00:00'
