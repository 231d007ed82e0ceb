-- What PARTITIONED BY takes: a column, parts of a time, buckets, prefixes and ranges.

DROP NAMESPACE IF EXISTS lance.example2 CASCADE;
CREATE NAMESPACE lance.example2;

-- months(t): a partition per calendar month. bucket(4, device): by a hash, for joins.
CREATE TABLE lance.example2.readings (device STRING, t TIMESTAMP, value DOUBLE)
PARTITIONED BY (months(t), bucket(4, device));

-- truncate(2, code): by the first two characters; truncate(10, n): by steps of ten.
CREATE TABLE lance.example2.codes (code STRING, n INT)
PARTITIONED BY (truncate(2, code), truncate(10, n));

-- A column as it stands.
CREATE TABLE lance.example2.sales (region STRING, amount INT)
PARTITIONED BY (region);

INSERT INTO lance.example2.readings VALUES
    ('a', TIMESTAMP '2025-01-15 00:00:00', 1.5),
    ('b', TIMESTAMP '2025-01-31 23:59:59', 2.5),
    ('a', TIMESTAMP '2025-02-01 00:00:00', 3.5);
INSERT INTO lance.example2.codes VALUES ('AB1', 3), ('AB2', 17), ('CD1', -3), (NULL, NULL);
INSERT INTO lance.example2.sales VALUES ('north', 1), ('south', 2), ('north', 3), (NULL, 4);

SELECT device, value FROM lance.example2.readings
WHERE t BETWEEN TIMESTAMP '2025-01-01 00:00:00' AND TIMESTAMP '2025-01-31 23:59:59'
ORDER BY device;
--> a | 1.5
--> b | 2.5

SELECT code FROM lance.example2.codes WHERE code LIKE 'AB%' ORDER BY code;
--> AB1
--> AB2

SELECT code FROM lance.example2.codes WHERE n < 0;
--> CD1

SELECT region, sum(amount) FROM lance.example2.sales WHERE region <=> NULL GROUP BY region;
--> NULL | 4

-- A transform that does not exist is refused with the list of those that do.
CREATE TABLE lance.example2.wrong (id INT) PARTITIONED BY (weeks(id));
--! UNKNOWN_TRANSFORM

DROP NAMESPACE lance.example2 CASCADE;
