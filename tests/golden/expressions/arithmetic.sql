-- Expressions of Spark over a table of edge values; after "declined:" those that stay in Spark.
i8 + i8
i16 * CAST(2 AS SMALLINT)
i32 + 1
i32 - i16
i64 * 3
i64 + i32
-i32
positive(i16)
abs(i16)
i32 & 12
i32 | n32
i64 ^ 7
i8 & i8
~i16
~i64 & n64
i32 & 3 = 1
i32 % 7
i64 % n32
i32 % n32
f64 % 3
i32 div 7
i64 div n64
i64 div 3
i32 / 2
i32 / 7
i64 / n32
f64 / 3
f64 / nf
f64 % nf
f64 * 2 + 1
f32 * f32
dec + dec
dec - 1
dec * dec
dec * (1 - dec2) * (1 + dec2)
dec / 7
dec / dec2
dec / 0.07
dec / n32
dec % 7
dec % dec2
wide + wide
wide * 2
wide / 3
wide / dec2
round(dec, 1)
round(dec, 0)
round(dec, 5)
round(dec)
round(i32, 2)
abs(dec)
-dec
abs(f64)
-f64
i32 + dec
i64 * dec2
dec + 100000000
i32 = dec
i64 < f64
i32 <=> i16
i32 BETWEEN -5 AND i64
i32 IN (1, -7, 2147483647, NULL)
i64 IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -9223372036854775807, 2147483648)
dec IN (1.5, -0.01, 100)
f64 IN (nf, 1.5D)
i32 IN (n32, 5)
i32 IN (2, nf)
NOT (f64 IN (nf, f64)) AND i32 > 2
CASE WHEN i32 > 5 THEN 5 ELSE i32 END IN (CASE WHEN n32 > 5 THEN 5 ELSE n32 END, 3)
greatest(i32, 5)
least(dec, dec2)
f64 = 0
f64 < 1
f64 >= double('NaN')
f64 <=> double('NaN')
f64 IN (0D, 1.5D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, double('NaN'))
isnan(f64)
f32 = f64
i32 <> 0 AND 10 / i32 > 1
i32 = 0 OR 10 % i32 = 1
CASE WHEN i32 <> 0 THEN 10 % i32 ELSE -1 END
CASE WHEN i32 <> 0 THEN 10 % i32 = 1 ELSE flag END
if(dec2 = 0, 0, dec / dec2)
nullif(i32, 0)
10 / nullif(i32, 0)
coalesce(i32, i16, 0)
coalesce(dec, 0)
coalesce(f64, 0)
ifnull(i64, -1)
nvl2(i32, dec, dec2)
CASE i32 WHEN 0 THEN 'zero' WHEN 7 THEN 'seven' END
CASE WHEN flag THEN 1 WHEN NOT flag THEN 0 END
CASE WHEN i32 > 0 THEN i32 ELSE 0 END
sign(i32)
signum(f64)
sign(dec)
pmod(i32, 7)
pmod(i64, 3)
pmod(i8, CAST(100 AS TINYINT))
pmod(i32, n32)
pmod(i64, n64)
pmod(n64, i64)
pmod(i8, CAST(-100 AS TINYINT))
pmod(i16, CAST(-32768 AS SMALLINT))
floor(dec)
ceil(dec)
floor(wide)
ceil(wide)
ceiling(i64)
sqrt(f64)
sqrt(i32)
sqrt(dec)
round(f64)
round(f64, 1)
round(f64 / 3, 2)
round(i64 / 700000D, 3)
round(f64, 2) = 0.1
-- declined: round(f32, 1)
-- declined: round(f64, -1)
-- declined: floor(dec, 1)
-- declined: ln(f64)
-- declined: exp(f64)
floor(CASE WHEN abs(f64) < 100 THEN f64 END)
ceil(CASE WHEN abs(f64) < 100 THEN f64 END)
floor(i32 / 7)
floor(CASE WHEN isnan(f64) THEN f64 END)
ceiling(CASE WHEN abs(f64) < 9.3E18D THEN f64 * 0.3D END)
floor(CASE WHEN abs(f32) < 9 THEN f32 END) = 1
floor(i64 * 1D)
-- declined: i32 ^ n32
-- declined: i32 ^ i32
f64 > DOUBLE('NaN')
f64 >= DOUBLE('NaN')
f32 <= FLOAT('NaN')
f64 < DOUBLE('NaN')
(f32 > FLOAT('NaN')) IS NULL
DOUBLE('NaN') < f64
shiftleft(i32, 2)
shiftleft(i32, 31)
i64 << 40
shiftright(i32, 3)
i64 >> 63
shiftright(i16, 1)
-- declined: shiftleft(i32, 32)
-- declined: shiftleft(i32, i8)
-- declined: shiftrightunsigned(i32, 2)
nanvl(f64, 1D)
nanvl(f64, nf)
nanvl(f32, f32)
greatest(f64, 1D)
greatest(f64, nf)
greatest(nf, f64, CAST(f32 AS DOUBLE))
greatest(-0D, f64, 0D)
least(f64, 0D)
least(f64, nf, 2D)
least(f32, CAST('NaN' AS FLOAT))
-- declined: greatest(f64, nf, 1D, 2D)
-- declined: -(CAST(wide AS DECIMAL(38, 17)) + CAST(0.00000000000000001 AS DECIMAL(38, 17)))
-- declined: abs(CAST(wide AS DECIMAL(38, 17)) + CAST(0.00000000000000001 AS DECIMAL(38, 17)))
power(f64, 2)
pow(i32, 2)
power(f64, 0.5)
power(nf, -1)
pow(f64, 1)
-- declined: power(f64, 3)
-- declined: power(f64, nf)
try_add(i32, 1)
try_subtract(i64, i32)
try_multiply(i64, n64)
try_multiply(i32, n32) > 7
try_add(dec, dec2)
try_multiply(wide, wide)
try_subtract(CAST(wide AS DECIMAL(38, 10)), wide)
try_divide(i32, i16)
try_divide(f64, nf)
try_divide(dec, dec2)
try_mod(i64, n64)
try_mod(dec, dec2)
-- declined: try_add(d, i16)

-- Numbers that leave their type: an error, or without ANSI what wraps or is NULL.
i8 - i8
i8 * i8
i16 + i16
i16 - i16
i16 * i16
i32 + i32
i32 - i32
i32 * i32
i64 + i64
i64 - i64
i64 * i64
-(i8)
abs(i8)
-(i32)
abs(i32)
-(i64)
abs(i64)
CAST(i64 AS SMALLINT)
CAST(i64 AS TINYINT)
CAST(i32 AS SMALLINT)
CAST(i32 AS TINYINT)
CAST(i64 AS INT)
CAST(i16 AS TINYINT) = -1
i64 * n64 + i32
i32 * n32 > 5
CAST(i64 AS INT) + 1 < 7
CAST(i64 AS DECIMAL(10, 2))
wide * wide
wide * wide IS NULL
wide * wide + wide
wide / dec
CAST(wide AS DECIMAL(12, 3))
CAST(dec AS DECIMAL(4, 1)) > 7
floor(f64)
floor(f64 * 1E19D)
floor(nf)
ceil(f64)
ceil(f64 * 1E19D)
ceil(nf)
CAST(f64 AS INT)
CAST(f64 AS BIGINT)
CAST(i64 * 9D AS INT)
CAST(i64 * 9D AS BIGINT)
i64 - 1
CAST(dec AS SMALLINT)
CAST(dec AS DECIMAL(4, 1))
CAST(s AS INT)
CAST(s AS BIGINT) > 3
CAST(s AS DATE)
to_date(s, 'yyyy-MM-dd')
split(s, ':')[2]
i32 / i8
i32 div n32
