-- A first table: made, filled, read.
-- Run it:  pennon sql --root lake -f sql-examples/01_first_table.sql
-- Lines that begin with --> are the rows that the statement above them returns.

DROP NAMESPACE IF EXISTS lance.example1 CASCADE;
CREATE NAMESPACE lance.example1;

CREATE TABLE lance.example1.orders (
    id BIGINT NOT NULL,
    customer STRING,
    amount DECIMAL(10, 2),
    ordered_at TIMESTAMP)
PARTITIONED BY (days(ordered_at))
COMMENT 'What was ordered, one partition per day';

INSERT INTO lance.example1.orders VALUES
    (1, 'Ada', 12.50, TIMESTAMP '2025-12-10 09:15:00'),
    (2, 'Grace', 99.00, TIMESTAMP '2025-12-10 17:40:00'),
    (3, 'Ada', 7.25, TIMESTAMP '2025-12-11 08:05:00'),
    (4, NULL, 1.00, NULL);

SELECT count(*) FROM lance.example1.orders;
--> 4

-- Reads one partition of three (EXPLAIN shows it).
SELECT id, amount FROM lance.example1.orders
WHERE ordered_at >= TIMESTAMP '2025-12-11 00:00:00' ORDER BY id;
--> 3 | 7.25

-- Rows whose partition value is NULL are in a partition of their own.
SELECT id FROM lance.example1.orders WHERE ordered_at IS NULL;
--> 4

SELECT customer, sum(amount) AS total FROM lance.example1.orders
GROUP BY customer ORDER BY customer NULLS LAST;
--> Ada | 19.75
--> Grace | 99.00
--> NULL | 1.00

DROP NAMESPACE lance.example1 CASCADE;
