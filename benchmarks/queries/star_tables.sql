-- The tables of star.sql: {rows} sales of two years, the rest in proportion.

-- sales: months(sold_on)
SELECT id AS sale_id, date_add(DATE '2023-01-01', CAST(pmod(hash(id, 1), 731) AS INT)) AS sold_on,
       CAST(pmod(hash(id, 2), 40) AS INT) AS store_id, CAST(pmod(hash(id, 3), 2000) AS BIGINT) AS item_id,
       CAST(pmod(hash(id, 4), 20000) AS BIGINT) AS customer_id,
       CASE WHEN pmod(hash(id, 5), 4) = 0 THEN CAST(pmod(hash(id, 6), 30) AS INT) END AS promotion_id,
       CAST(1 + pmod(hash(id, 7), 10) AS INT) AS quantity,
       CAST(pmod(hash(id, 8), 10000) / 100 AS DECIMAL(10, 2)) AS price,
       CAST(pmod(hash(id, 8), 10000) / 100 * (1 + pmod(hash(id, 7), 10)) AS DECIMAL(12, 2)) AS amount
FROM range({rows});

-- returns: months(returned_on)
SELECT id * 25 AS sale_id, CAST(pmod(hash(id * 25, 3), 2000) AS BIGINT) AS item_id,
       CAST(pmod(hash(id * 25, 4), 20000) AS BIGINT) AS customer_id,
       date_add(DATE '2023-01-01', CAST(pmod(hash(id * 25, 1), 731) + pmod(hash(id, 9), 30) AS INT)) AS returned_on,
       CAST(pmod(hash(id, 10), 9000) / 100 AS DECIMAL(12, 2)) AS amount
FROM range({rows} div 25);

-- items: bucket(2, item_id)
SELECT id AS item_id, concat('item ', id) AS item_name, concat('brand ', pmod(id, 12)) AS brand,
       CAST(pmod(id, 9) AS INT) AS category_id FROM range(2000);

-- categories:
SELECT CAST(id AS INT) AS category_id, concat('category ', id) AS category FROM range(9);

-- customers: bucket(4, customer_id)
SELECT id AS customer_id, concat('customer ', id) AS customer_name,
       CASE pmod(hash(id, 11), 4) WHEN 0 THEN 'gold' WHEN 1 THEN 'silver' WHEN 2 THEN 'plain' END AS segment,
       CAST(pmod(hash(id, 12), 100) AS INT) AS city_id FROM range(20000);

-- stores:
SELECT CAST(id AS INT) AS store_id, concat('store ', id) AS store_name,
       CASE pmod(id, 3) WHEN 0 THEN 'kiosk' WHEN 1 THEN 'market' END AS kind,
       CAST(pmod(id * 7, 100) AS INT) AS city_id FROM range(40);

-- cities:
SELECT CAST(id AS INT) AS city_id, concat('city ', id) AS city, CAST(pmod(id, 5) AS INT) AS region_id FROM range(100);

-- regions:
SELECT CAST(id AS INT) AS region_id, element_at(array('north', 'south', 'east', 'west', 'middle'), CAST(id + 1 AS INT)) AS region FROM range(5);

-- promotions:
SELECT CAST(id AS INT) AS promotion_id, concat('promotion ', id) AS promotion FROM range(35);

-- dates:
SELECT date_add(DATE '2023-01-01', CAST(id AS INT)) AS day, year(date_add(DATE '2023-01-01', CAST(id AS INT))) AS year,
       month(date_add(DATE '2023-01-01', CAST(id AS INT))) AS month, quarter(date_add(DATE '2023-01-01', CAST(id AS INT))) AS quarter,
       dayofweek(date_add(DATE '2023-01-01', CAST(id AS INT))) IN (1, 7) AS is_weekend FROM range(761);
