year(d)
quarter(d)
month(d)
day(d)
dayofmonth(d)
dayofweek(d)
weekday(d)
dayofyear(d)
weekofyear(d)
extract(YEAR FROM d)
extract(MONTH FROM ntz)
extract(DAY FROM ts)
extract(DOW FROM d)
extract(WEEK FROM ts)
date_part('QUARTER', ts)
year(ts)
month(ntz)
hour(ts)
minute(ts)
second(ts)
hour(ntz)
minute(ntz)
second(ntz)
date_trunc('YEAR', ts)
date_trunc('QUARTER', ts)
date_trunc('MONTH', ts)
date_trunc('WEEK', ts)
date_trunc('DAY', ts)
date_trunc('HOUR', ts)
date_trunc('MINUTE', ts)
date_trunc('SECOND', ts)
date_trunc('MILLISECOND', ts)
date_trunc('MICROSECOND', ts)
date_trunc('MONTH', ntz)
date_trunc('DAY', ntz)
date_trunc('MONTH', d)
date_trunc('year', d)
trunc(d, 'YEAR')
trunc(d, 'QUARTER')
trunc(d, 'MM')
trunc(d, 'month')
trunc(d, 'WEEK')
trunc(ntz, 'MONTH')
date_add(d, 30)
date_add(d, i16)
date_sub(d, 1)
date_sub(d, i16)
d + 3
d - 3
d + INTERVAL 3 DAYS
d - INTERVAL '90' DAY
d + INTERVAL '3' MONTH
d - INTERVAL '1' MONTH
d + INTERVAL '1' YEAR
d - INTERVAL '13' MONTH
add_months(d, 1)
add_months(d, -1)
ntz + INTERVAL '1' DAY
ntz - INTERVAL '36' HOUR
ntz + INTERVAL '1' MONTH
ts + INTERVAL '2' HOUR
ts - INTERVAL '1' MONTH
ts + INTERVAL '3 02:00:01.5' DAY TO SECOND
d + INTERVAL '2' HOUR
datediff(d, DATE '2000-01-01')
datediff(DATE '1970-01-01', d)
datediff(ntz, d)
last_day(d)
unix_date(d)
to_date(ntz)
make_date(2020, 2, 29)
d = DATE '2000-02-29'
d < DATE '1970-01-01'
d >= '1970-01-01'
d BETWEEN DATE '1582-10-04' AND DATE '1998-12-01' - INTERVAL '90' DAY
d IN (DATE '1970-01-01', DATE '2000-02-29')
ntz > TIMESTAMP_NTZ '1970-01-01 00:00:00'
ts <= TIMESTAMP '1970-01-01 00:00:00'
CASE WHEN year(d) = 1995 THEN i32 ELSE 0 END
greatest(d, DATE '1970-01-01')
coalesce(d, DATE '1970-01-01')
year(d) = 2000
year(d + INTERVAL '1' MONTH) - year(d)
next_day(d, 'MON')
next_day(d, 'Sunday')
next_day(d, 'th')
unix_timestamp(ts)
unix_seconds(ts)
unix_millis(ts)
unix_micros(ts)
date_from_unix_date(i32)
date_format(d, 'yyyy-MM')
date_format(d, 'yyyyMMdd')
date_format(d, 'dd.MM.yyyy')
date_format(ts, 'yyyy-MM-dd HH:mm:ss')
date_format(ntz, 'HH:mm')
-- declined: extract(SECOND FROM ntz)
-- declined: unix_timestamp(ntz)
-- declined: date_trunc('fortnight', ts)
-- declined: trunc(d, 'DAY')
-- declined: add_months(d, i16)
-- declined: d - DATE '2000-01-01'
-- declined: months_between(d, ntz)
-- declined: date_format(d, 'y-MM')
-- declined: date_format(d, 'yyyyy')
-- declined: date_format(d, 'MMM')
-- declined: date_format(d, "yyyy'T'")
-- declined: date_format(d, '--')
