-- Two tables in different numbers of buckets join partition by partition: 16 and 8 reduce to 8.

DROP NAMESPACE IF EXISTS lance.example3 CASCADE;
CREATE NAMESPACE lance.example3;

CREATE TABLE lance.example3.orders (order_id INT, customer_id BIGINT, amount INT)
PARTITIONED BY (bucket(16, customer_id));
CREATE TABLE lance.example3.customers (id BIGINT, name STRING)
PARTITIONED BY (bucket(8, id));

INSERT INTO lance.example3.orders
SELECT CAST(id AS INT), id % 100, CAST(id % 7 AS INT) FROM range(1000);
INSERT INTO lance.example3.customers
SELECT id, concat('customer ', id) FROM range(100);

-- EXPLAIN shows no Exchange under this join.
SELECT c.name, count(*) AS orders, sum(o.amount) AS amount
FROM lance.example3.orders o JOIN lance.example3.customers c ON o.customer_id = c.id
GROUP BY c.name ORDER BY c.name LIMIT 3;
--> customer 0 | 10 | 27
--> customer 1 | 10 | 30
--> customer 10 | 10 | 29

-- Customers without orders keep their row.
INSERT INTO lance.example3.customers VALUES (1000, 'customer 1000');
SELECT c.name, o.order_id
FROM lance.example3.customers c LEFT JOIN lance.example3.orders o ON o.customer_id = c.id
WHERE c.id >= 1000;
--> customer 1000 | NULL

DROP NAMESPACE lance.example3 CASCADE;
