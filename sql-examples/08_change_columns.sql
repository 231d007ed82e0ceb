-- Columns change by metadata alone: rows that are there are found by the columns' ids.

DROP NAMESPACE IF EXISTS lance.example8 CASCADE;
CREATE NAMESPACE lance.example8;

CREATE TABLE lance.example8.readings (id INT, site STRUCT<name: STRING, floor: INT>, value FLOAT)
PARTITIONED BY (bucket(2, id));
INSERT INTO lance.example8.readings VALUES
    (1, named_struct('name', 'north', 'floor', 1), 0.5),
    (2, named_struct('name', 'south', 'floor', 2), 1.5);

-- Rows that are there have the default; what is written later has it when nothing is given.
ALTER TABLE lance.example8.readings ADD COLUMN unit STRING NOT NULL DEFAULT 'K' AFTER id;
ALTER TABLE lance.example8.readings ALTER COLUMN unit SET DEFAULT 'C';

ALTER TABLE lance.example8.readings RENAME COLUMN site.name TO wing;
ALTER TABLE lance.example8.readings ADD COLUMN site.room STRING AFTER wing;
ALTER TABLE lance.example8.readings DROP COLUMN site.floor;
ALTER TABLE lance.example8.readings ALTER COLUMN value TYPE DOUBLE;

INSERT INTO lance.example8.readings (id, site, value)
VALUES (3, named_struct('wing', 'north', 'room', 'N1'), 1e300);

SELECT id, unit, site.wing, site.room, value FROM lance.example8.readings ORDER BY id;
--> 1 | K | north | NULL | 0.5
--> 2 | K | south | NULL | 1.5
--> 3 | C | north | N1 | 1e+300

SELECT id FROM lance.example8.readings WHERE unit = 'K' AND site.room IS NULL ORDER BY id;
--> 1
--> 2

-- Rows that are there would be NULL.
ALTER TABLE lance.example8.readings ADD COLUMN sensor INT NOT NULL;
--! UNSUPPORTED_TABLE_CHANGE

DROP NAMESPACE lance.example8 CASCADE;
