length(s)
char_length(s)
octet_length(s)
substring(s, 1, 2)
substring(s, 0, 2)
substring(s, 2)
substring(s, -2)
substring(s, -2, 1)
substring(s, -100, 99)
substring(s, -3, 2)
substring(s, 3, 0)
substring(s, 3, -1)
substring(s, 100, 5)
substring(s, 2147483647, 2147483647)
substring(s, -2147483648, 2147483647)
substring(s, i32)
substring(s, i16, i8)
substring(s, 1, i16)
left(s, 2)
left(s, 0)
left(s, -1)
right(s, 2)
right(s, 0)
trim(s)
ltrim(s)
rtrim(s)
trim(BOTH 'ax' FROM s)
trim(LEADING 'é' FROM s)
trim(TRAILING ' b' FROM s)
btrim(s)
concat(s, s2)
s || '-' || s2
concat(s, CAST(i32 AS STRING))
concat('x')
replace(s, 'a', 'bb')
replace(s, 'é')
instr(s, 'b')
instr(s, 'b', 1, 1)
-- declined: instr(s, 'b', 1, 2)
-- declined: instr(s, 'b', 2)
position('é' IN s)
locate('b', s)
s LIKE 'a%'
s LIKE '%b'
s LIKE '%é%'
s LIKE 'ab'
s LIKE ''
s LIKE '%'
s LIKE '%%'
s LIKE '_'
s LIKE '__'
s LIKE 'a_'
s LIKE '_%_'
s LIKE '%a%b%'
s LIKE 'a%b'
s LIKE '%special%requests%'
s LIKE 'a\\%%'
s LIKE '%\\_%'
s LIKE '%\\\\%'
s LIKE 'a|%b' ESCAPE '|'
s LIKE '%||%' ESCAPE '|'
s LIKE 'A%'
s LIKE '%\n%'
s LIKE 'a%\n_'
s LIKE '%.%'
s LIKE '_(%'
s NOT LIKE '%a%b%'
NOT s LIKE 'a%'
s LIKE ANY ('a%', '%b')
s LIKE ALL ('a%', '%b%')
startswith(s, s2)
contains(s, s2)
endswith(s, '')
s = s2
s < s2
s >= 'ab'
s <=> s2
s IN ('ab', 'é', '')
s BETWEEN 'a' AND 'b'
greatest(s, s2)
least(s, 'b', s2)
coalesce(s, s2, '')
nullif(s, '')
CASE WHEN s LIKE 'a%' THEN upper('x') ELSE s2 END
CASE WHEN s IN ('ab', 'é') THEN 1 ELSE 0 END
s = 'ab' AND (s2 = 'x' OR s2 IS NULL)
s IS NULL
s IS NOT NULL AND NOT s = 'ab'
s ILIKE 'A%'
upper(s)
lower(s)
lpad(s, 3, 'x')
rpad(s, 3, 'x')
lpad(s, 5, 'éx')
rpad(s, 4)
lpad(s, -1, 'x')
lpad(s, 0, 'x')
reverse(s)
concat_ws('-', s, s2)
concat_ws(s2, s, s)
concat_ws(',', CAST(i32 AS STRING), s)
repeat(s, 3)
repeat(s, 0)
repeat(s, -2)
-- declined: right(s, i16)
-- declined: s LIKE s2
s RLIKE 'a.*'
s RLIKE '^a.b$'
s RLIKE '^(a|x|é)(b|%)?'
s RLIKE '(b|x)$'
s RLIKE 'b$'
s RLIKE '^$'
s RLIKE '[^a]x?'
s RLIKE '(a|é)+x'
s RLIKE '^[a-c]{1,2}?[^/]'
s RLIKE '\\d|\\s'
s RLIKE '^\\w+$'
s RLIKE '\\S\\W\\D'
s RLIKE '.'
s RLIKE '😀|𝒳'
s RLIKE '\\.\\('
s RLIKE '[-_%]'
s RLIKE 'a%b'
s RLIKE 'a_b'
s RLIKE '^a_b$'
s RLIKE '^(ab|a%b)$'
-- declined: s RLIKE 'a\\\\b'
s RLIKE '%b|_b'
s RLIKE '^a'
s RLIKE '^é$'
s RLIKE ''
concat(s, '\n') RLIKE 'b$'
concat(s, '\r\n') RLIKE 'b$'
concat(s, '\u2028') RLIKE '.b$'
concat(s, '\r') RLIKE 'a.'
concat(s, '\n\n') RLIKE '^[a-z]+$'
regexp_like(s, 'a+b*')
regexp_replace(s, 'a', 'b')
regexp_replace(s, 'a+', '<$0>')
regexp_replace(s, '(a)(x|b)?', '[$2$1]')
regexp_replace(s, '[^a-zé]', '')
regexp_replace(s, '^a([a-z]+).*$', '$1!')
regexp_replace(concat(s, '\n'), '^(.)(.*)$', '$2$1')
regexp_replace(concat(s, '\r\n'), '^(.)(.*)$', '$2$1')
regexp_replace(concat('https://www.', s, '.org/', s), '^https?://(?:www\\.)?([^/]+)/.*$', '$1')
regexp_replace(s, ' +', '_')
-- declined: s RLIKE s2
-- declined: s RLIKE '^a|b$'
-- declined: s RLIKE '^(a|b)c|d'
-- declined: regexp_replace(s, '(a|b)+', '$1')
-- declined: regexp_replace(s, '^a([^/]+).*$', '$1!')
-- declined: s RLIKE '[^a]$'
-- declined: s RLIKE 'a\\b'
-- declined: s RLIKE '(?i)a'
-- declined: s RLIKE 'a++'
-- declined: s RLIKE '(a*)*'
-- declined: s RLIKE '[a&&b]'
-- declined: regexp_replace(s, 'a*', 'b')
-- declined: regexp_replace(s, 'a$', 'b')
-- declined: regexp_replace(s, 'a', '\\\\')
-- declined: regexp_replace(s, 'a', s2)
regexp_extract(s, '(a)(b)?', 1)
regexp_extract(s, '(a)(b)?', 2)
regexp_extract(s, 'a+', 0)
regexp_extract(s, '^(.)a.*$')
regexp_extract(concat(s, '\n'), '(.)$', 1)
-- declined: regexp_extract(s, '(a)+', 1)
-- declined: regexp_extract(s, s2, 0)
split(s, 'a')[0]
split(s, '\\|')[0]
split(s, '\\.')[0]
split(s, 'ax')[0]
element_at(split(s, 'é'), 1)
-- declined: split(s, 'a', 1)[0]
split(s, '[a]')[0]
-- declined: split(s, '[ab]')[0]
-- declined: split(s, '')[0]
-- declined: initcap(s)
-- declined: lpad(s, i8, 'x')
-- declined: lpad(s, 3, '')
-- declined: repeat(s, i8)
translate(s, 'a', 'b')
translate(s, 'abx', 'é')
translate(s, 'aba', 'xyz')
translate(s, '', 'z')
-- declined: translate(s, 'ab', 'ba')
-- declined: translate(s, s2, 'b')
ascii(s)
ascii(substring(s, 2))
md5(s)
sha2(s, 256)
sha2(s, 0)
sha2(s, 224)
sha2(concat(s, 'ß'), 384)
sha2(s, 512)
-- declined: sha2(s, 100)
-- declined: sha1(s)
substring_index(s, 'a', 1)
substring_index(s, 'a', 2)
substring_index(s, 'a', -1)
substring_index(s, 'a', -2)
substring_index(s, 'x', 0)
substring_index(s, '😀', 9)
-- declined: substring_index(s, 'aa', 1)
-- declined: substring_index(s, '', 1)
concat_ws('', s, CAST(NULL AS STRING), s2)
element_at(split(s, 'b'), -1)
split(s, 'a')[1]
split(s, 'é')[3]
split(s, ' ')[2] = 'requestsb'
CASE WHEN s LIKE '%|%' THEN split(s, '[|]')[1] END
CASE WHEN contains(s, 'xx') THEN split(s, 'xx')[1] END
-- declined: element_at(split(s, ' '), -2)
-- declined: element_at(split(s, 'aa'), -1)
get(split(s, 'a'), 1)
get(split(s, 'é'), 2)
try_element_at(split(s, 'a'), 2)
try_element_at(split(s, ' '), -2)
split_part(s, 'a', 2)
split_part(s, '.', 2)
split_part(s, ' ', -2)
split_part(s, 'aa', 2)
-- declined: split_part(s, s2, 1)
