-- Changing what is there: partitions, single rows, tables.

DROP NAMESPACE IF EXISTS lance.example7 CASCADE;
CREATE NAMESPACE lance.example7;

CREATE TABLE lance.example7.readings PARTITIONED BY (station, months(day)) AS
SELECT * FROM VALUES
  ('a', DATE '2026-01-10', 1.0), ('a', DATE '2026-02-10', 2.0), ('b', DATE '2026-01-20', 3.0)
AS t(station, day, value);

-- One partition value.
INSERT OVERWRITE lance.example7.readings PARTITION (station = 'a')
SELECT DATE '2026-03-01', 9.0;
SELECT * FROM lance.example7.readings ORDER BY day;
--> b | 2026-01-20 | 3.0
--> a | 2026-03-01 | 9.0

-- Those partitions that the new rows fall into.
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE lance.example7.readings VALUES ('a', DATE '2026-03-31', 9.5);
RESET spark.sql.sources.partitionOverwriteMode;
SELECT * FROM lance.example7.readings ORDER BY day;
--> b | 2026-01-20 | 3.0
--> a | 2026-03-31 | 9.5

-- Whole months are deleted by name, without reading a row.
DELETE FROM lance.example7.readings WHERE day < DATE '2026-02-01';
SELECT count(*) FROM lance.example7.readings;
--> 1

-- Single rows, in one commit.
UPDATE lance.example7.readings SET value = 9.0 WHERE value > 5;
MERGE INTO lance.example7.readings AS r
USING (SELECT * FROM VALUES ('a', DATE '2026-03-31', 8.5), ('c', DATE '2026-04-01', 4.0) AS s(station, day, value)) AS s
ON r.station = s.station AND r.day = s.day
WHEN MATCHED THEN UPDATE SET value = s.value
WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM lance.example7.readings ORDER BY day;
--> a | 2026-03-31 | 8.5
--> c | 2026-04-01 | 4.0
DELETE FROM lance.example7.readings WHERE value < 5;

-- The table with its partitioning, replaced in one step, also by a query on itself.
CREATE OR REPLACE TABLE lance.example7.readings PARTITIONED BY (bucket(4, station)) AS
SELECT station, value FROM lance.example7.readings;
SELECT * FROM lance.example7.readings;
--> a | 8.5

CALL lance.system.check('example7.readings');

TRUNCATE TABLE lance.example7.readings;
SELECT count(*) FROM lance.example7.readings;
--> 0

DROP NAMESPACE lance.example7 CASCADE;
