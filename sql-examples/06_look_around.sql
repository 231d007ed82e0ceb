-- Namespaces, tables, their properties and their definition.

DROP NAMESPACE IF EXISTS lance.example6 CASCADE;
CREATE NAMESPACE lance.example6;

CREATE TABLE lance.example6.visits (page STRING COMMENT 'without the host', day DATE, visitors INT)
PARTITIONED BY (months(day))
COMMENT 'Visitors per page and day'
TBLPROPERTIES ('owner.team' = 'web');
CREATE TABLE lance.example6.pages AS SELECT '/' AS page, 'Home' AS title;

SHOW TABLES IN lance.example6;
--> example6 | pages | false
--> example6 | visits | false

SHOW TBLPROPERTIES lance.example6.visits ('owner.team');
--> owner.team | web

ALTER TABLE lance.example6.visits SET TBLPROPERTIES ('owner.team' = 'research');
SHOW TBLPROPERTIES lance.example6.visits ('owner.team');
--> owner.team | research

INSERT INTO lance.example6.visits VALUES ('/', DATE '2025-12-10', 12), ('/', DATE '2026-01-10', 30);
SELECT p.title, v.visitors FROM lance.example6.visits v JOIN lance.example6.pages p USING (page)
WHERE v.day < DATE '2026-01-01';
--> Home | 12

-- What the format tells of a spec version: its fields over which columns.
DESCRIBE NAMESPACE EXTENDED lance.example6.visits.v1;

-- Every version can be read; the first is the empty table.
SELECT count(*) FROM lance.example6.visits VERSION AS OF 1;
--> 0

-- A name that is not there.
SELECT * FROM lance.example6.visit;
--! TABLE_NOT_FOUND

DROP TABLE lance.example6.pages;
SHOW TABLES IN lance.example6;
--> example6 | visits | false

DROP NAMESPACE lance.example6 CASCADE;
