-- Every type that a table may have, there and back.

DROP NAMESPACE IF EXISTS lance.example5 CASCADE;
CREATE NAMESPACE lance.example5;

CREATE TABLE lance.example5.everything (
    a TINYINT, b SMALLINT, c INT, d BIGINT,
    e FLOAT, f DOUBLE, g DECIMAL(38, 10),
    h STRING, i BINARY, j BOOLEAN,
    k DATE, l TIMESTAMP, m TIMESTAMP_NTZ,
    n ARRAY<INT>, o STRUCT<x: INT, y: STRING>, p MAP<STRING, INT>)
PARTITIONED BY (j, bucket(4, h));

INSERT INTO lance.example5.everything VALUES (
    -128, 32767, -2147483648, 9223372036854775807,
    1.5, -2.25, 1234567890123456789012345678.0123456789,
    'grün, 日本, 🙂', X'00FF', true,
    DATE '0001-01-01', TIMESTAMP '2025-12-10 01:02:03.456789', TIMESTAMP_NTZ '1969-12-31 23:59:59.999999',
    array(1, NULL, 3), named_struct('x', 7, 'y', 'seven'), map('one', 1, 'none', NULL));
INSERT INTO lance.example5.everything (j) VALUES (NULL);

SELECT a, b, c, d, e, f, g FROM lance.example5.everything WHERE j;
--> -128 | 32767 | -2147483648 | 9223372036854775807 | 1.5 | -2.25 | 1234567890123456789012345678.0123456789

SELECT h, hex(i), k, l, m FROM lance.example5.everything WHERE h = 'grün, 日本, 🙂';
--> grün, 日本, 🙂 | 00FF | 0001-01-01 | 2025-12-10 01:02:03.456789 | 1969-12-31 23:59:59.999999

SELECT n[2], size(n), o.y, p['one'], p['none'] FROM lance.example5.everything WHERE k IS NOT NULL;
--> 3 | 3 | seven | 1 | NULL

SELECT count(*), count(a), count(h), count(n) FROM lance.example5.everything;
--> 2 | 1 | 1 | 1

DROP NAMESPACE lance.example5 CASCADE;
