-- The partitioning of a table changes without rewriting a row: old rows stay in the partitions of
-- the spec that they were written with, new rows follow the new spec, queries read both.

DROP NAMESPACE IF EXISTS lance.example4 CASCADE;
CREATE NAMESPACE lance.example4;

CREATE TABLE lance.example4.events (id BIGINT, country STRING, at TIMESTAMP)
PARTITIONED BY (months(at));
INSERT INTO lance.example4.events VALUES
    (1, 'NL', TIMESTAMP '2025-11-03 10:00:00'),
    (2, 'BE', TIMESTAMP '2025-12-24 18:00:00');

ALTER TABLE lance.example4.events ADD PARTITION FIELD country;
INSERT INTO lance.example4.events VALUES
    (3, 'NL', TIMESTAMP '2025-12-26 09:00:00'),
    (4, 'BE', TIMESTAMP '2025-12-27 09:00:00');

-- The first spec has no country: its partition of December is kept, and filtered row by row.
SELECT id FROM lance.example4.events
WHERE country = 'BE' AND at >= TIMESTAMP '2025-12-01 00:00:00' ORDER BY id;
--> 2
--> 4

ALTER TABLE lance.example4.events REPLACE PARTITION FIELD country WITH bucket(8, id) AS id_bucket;
INSERT INTO lance.example4.events VALUES (5, 'DE', TIMESTAMP '2026-01-01 00:00:00');

ALTER TABLE lance.example4.events DROP PARTITION FIELD id_bucket;
INSERT INTO lance.example4.events VALUES (6, 'DE', TIMESTAMP '2026-01-02 00:00:00');

SELECT id, country FROM lance.example4.events ORDER BY id;
--> 1 | NL
--> 2 | BE
--> 3 | NL
--> 4 | BE
--> 5 | DE
--> 6 | DE

-- What is not there cannot be dropped; the message lists what is.
ALTER TABLE lance.example4.events DROP PARTITION FIELD country;
--! PARTITION_FIELD_NOT_FOUND

DROP NAMESPACE lance.example4 CASCADE;
