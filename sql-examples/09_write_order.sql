-- Rows sorted within each file, so that merge joins and windows need not sort them again.

CREATE NAMESPACE lance.example9;

CREATE TABLE lance.example9.readings (sensor BIGINT, ts TIMESTAMP, value DOUBLE)
PARTITIONED BY (bucket(4, sensor))
TBLPROPERTIES ('write.order' = 'sensor');

-- The newest reading of each sensor first.
ALTER TABLE lance.example9.readings WRITE ORDERED BY sensor, ts DESC;
SHOW TBLPROPERTIES lance.example9.readings ('write.order');
--> write.order | sensor ASC NULLS FIRST, ts DESC NULLS LAST

INSERT INTO lance.example9.readings VALUES
    (1, TIMESTAMP '2025-01-01 00:00:00', 0.5),
    (2, TIMESTAMP '2025-01-01 00:00:00', 1.0),
    (1, TIMESTAMP '2025-01-03 00:00:00', 2.5);
INSERT INTO lance.example9.readings VALUES (1, TIMESTAMP '2025-01-02 00:00:00', 1.5);

-- No shuffle, and no sort below the window: EXPLAIN shows "sorted by: …" at the scan.
SELECT sensor, value, row_number() OVER (PARTITION BY sensor ORDER BY ts DESC) AS age
FROM lance.example9.readings ORDER BY sensor, age;
--> 1 | 2.5 | 1
--> 1 | 1.5 | 2
--> 1 | 0.5 | 3
--> 2 | 1.0 | 1

-- The order goes with its columns.
ALTER TABLE lance.example9.readings RENAME COLUMN ts TO taken;
ALTER TABLE lance.example9.readings DROP COLUMN taken;
--! UNSUPPORTED_TABLE_CHANGE
ALTER TABLE lance.example9.readings WRITE ORDERED BY bucket(4, sensor);
--! WRITE_ORDER_SYNTAX

ALTER TABLE lance.example9.readings WRITE UNORDERED;
ALTER TABLE lance.example9.readings DROP COLUMN taken;

DROP NAMESPACE lance.example9 CASCADE;
