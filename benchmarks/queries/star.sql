-- A chain of shops: sales and returns by month, with dimensions and their own dimensions.

-- month totals
SELECT d.year, d.month, sum(s.amount) AS amount, count(*) AS n
FROM sales s JOIN dates d ON s.sold_on = d.day GROUP BY d.year, d.month ORDER BY 1, 2;

-- one month by category
SELECT c.category, sum(s.amount) AS amount, sum(s.quantity) AS quantity
FROM sales s JOIN items i ON s.item_id = i.item_id JOIN categories c ON i.category_id = c.category_id
WHERE s.sold_on BETWEEN DATE '2024-03-01' AND DATE '2024-03-31' GROUP BY c.category ORDER BY 1;

-- a quarter by region
SELECT r.region, d.quarter, sum(s.amount) AS amount
FROM sales s JOIN dates d ON s.sold_on = d.day JOIN stores t ON s.store_id = t.store_id
JOIN cities y ON t.city_id = y.city_id JOIN regions r ON y.region_id = r.region_id
WHERE d.year = 2024 AND d.quarter = 2 GROUP BY r.region, d.quarter ORDER BY 1;

-- weekends
SELECT t.store_name, sum(s.amount) AS amount FROM sales s JOIN dates d ON s.sold_on = d.day
JOIN stores t ON s.store_id = t.store_id WHERE d.is_weekend AND d.year = 2023
GROUP BY t.store_name ORDER BY amount DESC, t.store_name LIMIT 10;

-- brands of a segment
SELECT i.brand, avg(s.price) AS price, count(DISTINCT s.customer_id) AS customers
FROM sales s JOIN items i ON s.item_id = i.item_id JOIN customers c ON s.customer_id = c.customer_id
WHERE c.segment = 'gold' AND s.sold_on >= DATE '2024-06-01' GROUP BY i.brand ORDER BY 1;

-- large baskets
SELECT c.segment, count(*) AS n FROM (
  SELECT customer_id, sold_on, sum(amount) AS total FROM sales
  WHERE sold_on >= DATE '2024-10-01' GROUP BY customer_id, sold_on HAVING sum(amount) > 400) b
JOIN customers c ON b.customer_id = c.customer_id GROUP BY c.segment ORDER BY 1;

-- shares by CASE
SELECT d.year, sum(CASE WHEN c.segment = 'gold' THEN s.amount ELSE 0 END) / sum(s.amount) AS share
FROM sales s JOIN customers c ON s.customer_id = c.customer_id JOIN dates d ON s.sold_on = d.day
GROUP BY d.year ORDER BY 1;

-- items never returned
SELECT count(*) AS n FROM items i WHERE NOT EXISTS (SELECT 1 FROM returns r WHERE r.item_id = i.item_id);

-- customers with returns
SELECT c.segment, count(*) AS n FROM customers c
WHERE c.customer_id IN (SELECT customer_id FROM returns WHERE returned_on >= DATE '2024-01-01')
GROUP BY c.segment ORDER BY 1;

-- customers without a sale in a month
SELECT count(*) AS n FROM customers
WHERE customer_id NOT IN (SELECT customer_id FROM sales WHERE sold_on BETWEEN DATE '2024-02-01' AND DATE '2024-02-29');

-- returned share
SELECT c.category, sum(r.amount) AS returned, sum(s.amount) AS sold
FROM sales s LEFT JOIN returns r ON s.sale_id = r.sale_id
JOIN items i ON s.item_id = i.item_id JOIN categories c ON i.category_id = c.category_id
WHERE s.sold_on BETWEEN DATE '2024-01-01' AND DATE '2024-03-31' GROUP BY c.category ORDER BY 1;

-- full join of months
SELECT coalesce(a.m, b.m) AS m, a.n AS sold, b.n AS returned FROM
(SELECT month(sold_on) AS m, count(*) AS n FROM sales WHERE year(sold_on) = 2024 GROUP BY month(sold_on)) a
FULL JOIN (SELECT month(returned_on) AS m, count(*) AS n FROM returns WHERE year(returned_on) = 2024 GROUP BY month(returned_on)) b
ON a.m = b.m ORDER BY 1;

-- rank of brands in a category
SELECT * FROM (
  SELECT c.category, i.brand, sum(s.amount) AS amount,
         rank() OVER (PARTITION BY c.category ORDER BY sum(s.amount) DESC) AS place
  FROM sales s JOIN items i ON s.item_id = i.item_id JOIN categories c ON i.category_id = c.category_id
  WHERE s.sold_on >= DATE '2024-07-01' GROUP BY c.category, i.brand)
WHERE place <= 3 ORDER BY category, place, brand;

-- moving sums
SELECT year, month, amount, sum(amount) OVER (ORDER BY year, month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving
FROM (SELECT d.year, d.month, sum(s.amount) AS amount FROM sales s JOIN dates d ON s.sold_on = d.day GROUP BY d.year, d.month)
ORDER BY year, month;

-- growth over the year before
WITH m AS (SELECT d.year, d.month, sum(s.amount) AS amount FROM sales s JOIN dates d ON s.sold_on = d.day GROUP BY d.year, d.month)
SELECT a.year, a.month, a.amount, b.amount AS before, a.amount - b.amount AS growth
FROM m a JOIN m b ON a.year = b.year + 1 AND a.month = b.month ORDER BY 1, 2;

-- rollup of regions
SELECT r.region, y.city, sum(s.amount) AS amount FROM sales s JOIN stores t ON s.store_id = t.store_id
JOIN cities y ON t.city_id = y.city_id JOIN regions r ON y.region_id = r.region_id
WHERE s.sold_on >= DATE '2024-11-01' GROUP BY ROLLUP (r.region, y.city) ORDER BY 1, 2;

-- cube of segment and quarter
SELECT c.segment, d.quarter, count(*) AS n FROM sales s JOIN customers c ON s.customer_id = c.customer_id
JOIN dates d ON s.sold_on = d.day WHERE d.year = 2024 GROUP BY CUBE (c.segment, d.quarter) ORDER BY 1, 2;

-- grouping sets
SELECT i.brand, t.kind, sum(s.quantity) AS q FROM sales s JOIN items i ON s.item_id = i.item_id
JOIN stores t ON s.store_id = t.store_id WHERE s.sold_on >= DATE '2024-09-01'
GROUP BY GROUPING SETS ((i.brand), (t.kind), ()) ORDER BY 1, 2;

-- union of flows
SELECT flow, m, sum(amount) AS amount FROM (
  SELECT 'sale' AS flow, month(sold_on) AS m, amount FROM sales WHERE year(sold_on) = 2024
  UNION ALL SELECT 'return', month(returned_on), amount FROM returns WHERE year(returned_on) = 2024)
GROUP BY flow, m ORDER BY 1, 2;

-- intersect of buyers
SELECT count(*) AS n FROM (
  SELECT customer_id FROM sales WHERE sold_on BETWEEN DATE '2024-01-01' AND DATE '2024-01-31'
  INTERSECT SELECT customer_id FROM sales WHERE sold_on BETWEEN DATE '2024-12-01' AND DATE '2024-12-31');

-- except of buyers
SELECT count(*) AS n FROM (
  SELECT customer_id FROM sales WHERE sold_on BETWEEN DATE '2023-01-01' AND DATE '2023-03-31'
  EXCEPT SELECT customer_id FROM sales WHERE sold_on BETWEEN DATE '2024-01-01' AND DATE '2024-12-31');

-- distinct of two
SELECT DISTINCT i.brand, c.category FROM sales s JOIN items i ON s.item_id = i.item_id
JOIN categories c ON i.category_id = c.category_id WHERE s.sold_on = DATE '2024-05-05' ORDER BY 1, 2;

-- above the average of its category
SELECT c.category, count(*) AS n FROM sales s JOIN items i ON s.item_id = i.item_id
JOIN categories c ON i.category_id = c.category_id
WHERE s.sold_on BETWEEN DATE '2024-04-01' AND DATE '2024-04-30'
  AND s.amount > (SELECT avg(x.amount) FROM sales x JOIN items j ON x.item_id = j.item_id
                  WHERE j.category_id = c.category_id AND x.sold_on BETWEEN DATE '2024-04-01' AND DATE '2024-04-30')
GROUP BY c.category ORDER BY 1;

-- above the overall average
SELECT count(*) AS n, sum(amount) AS amount FROM sales
WHERE sold_on >= DATE '2024-08-01' AND amount > (SELECT avg(amount) FROM sales WHERE sold_on >= DATE '2024-08-01');

-- best day of each store
SELECT store_name, sold_on, amount FROM (
  SELECT t.store_name, s.sold_on, sum(s.amount) AS amount,
         row_number() OVER (PARTITION BY t.store_name ORDER BY sum(s.amount) DESC, s.sold_on) AS n
  FROM sales s JOIN stores t ON s.store_id = t.store_id WHERE s.sold_on >= DATE '2024-01-01'
  GROUP BY t.store_name, s.sold_on) WHERE n = 1 ORDER BY 1;

-- names and texts
SELECT upper(substring(i.item_name, 1, 4)) AS start, count(*) AS n FROM sales s JOIN items i ON s.item_id = i.item_id
WHERE i.item_name LIKE '%7%' AND s.sold_on >= DATE '2024-12-01' GROUP BY upper(substring(i.item_name, 1, 4)) ORDER BY 1;

-- coalesce and nullif
SELECT coalesce(nullif(t.kind, 'kiosk'), 'other') AS kind, sum(s.amount) AS amount FROM sales s
JOIN stores t ON s.store_id = t.store_id WHERE s.sold_on < DATE '2023-02-01'
GROUP BY coalesce(nullif(t.kind, 'kiosk'), 'other') ORDER BY 1;

-- date functions
SELECT date_trunc('MONTH', s.sold_on) AS m, count(*) AS n FROM sales s
WHERE s.sold_on >= DATE '2024-01-01' GROUP BY date_trunc('MONTH', s.sold_on) ORDER BY 1;

-- days until the return
SELECT datediff(r.returned_on, s.sold_on) AS days, count(*) AS n FROM returns r JOIN sales s ON r.sale_id = s.sale_id
GROUP BY datediff(r.returned_on, s.sold_on) ORDER BY 1;

-- null keys
SELECT s.promotion_id, count(*) AS n FROM sales s WHERE s.sold_on >= DATE '2024-06-01'
GROUP BY s.promotion_id ORDER BY n DESC, s.promotion_id LIMIT 5;

-- promotions, outer
SELECT p.promotion, count(s.sale_id) AS n, sum(s.amount) AS amount FROM promotions p
LEFT JOIN sales s ON p.promotion_id = s.promotion_id AND s.sold_on >= DATE '2024-06-01'
GROUP BY p.promotion ORDER BY 1;

-- promotions, right
SELECT p.promotion, sum(s.quantity) AS q FROM sales s RIGHT JOIN promotions p ON s.promotion_id = p.promotion_id
GROUP BY p.promotion ORDER BY 1;

-- not in with nulls
SELECT count(*) AS n FROM promotions WHERE promotion_id NOT IN (SELECT promotion_id FROM sales WHERE sold_on = DATE '2024-01-02');

-- existence in OR
SELECT count(*) AS n FROM customers c WHERE c.segment = 'gold'
OR EXISTS (SELECT 1 FROM returns r WHERE r.customer_id = c.customer_id AND r.amount > 50);

-- count of everything
SELECT count(*) AS n FROM sales;

-- least and most
SELECT min(sold_on) AS first, max(sold_on) AS last, min(amount) AS least, max(amount) AS most FROM sales;

-- a point
SELECT s.sale_id, s.amount, i.item_name FROM sales s JOIN items i ON s.item_id = i.item_id
WHERE s.sold_on = DATE '2024-07-07' AND s.store_id = 3 ORDER BY s.sale_id LIMIT 20;

-- small tables only
SELECT r.region, count(*) AS n FROM stores t JOIN cities y ON t.city_id = y.city_id
JOIN regions r ON y.region_id = r.region_id GROUP BY r.region ORDER BY 1;

-- top customers of a region
SELECT c.customer_id, sum(s.amount) AS amount FROM sales s JOIN customers c ON s.customer_id = c.customer_id
JOIN cities y ON c.city_id = y.city_id JOIN regions r ON y.region_id = r.region_id
WHERE r.region = 'north' AND s.sold_on >= DATE '2024-01-01'
GROUP BY c.customer_id ORDER BY amount DESC, c.customer_id LIMIT 10;

-- first and repeated sales
SELECT first_year, count(*) AS customers FROM (
  SELECT customer_id, min(year(sold_on)) AS first_year FROM sales GROUP BY customer_id)
GROUP BY first_year ORDER BY 1;

-- quarters side by side
SELECT i.brand, sum(CASE WHEN d.quarter = 1 THEN s.amount END) AS q1, sum(CASE WHEN d.quarter = 2 THEN s.amount END) AS q2,
       sum(CASE WHEN d.quarter = 3 THEN s.amount END) AS q3, sum(CASE WHEN d.quarter = 4 THEN s.amount END) AS q4
FROM sales s JOIN dates d ON s.sold_on = d.day JOIN items i ON s.item_id = i.item_id
WHERE d.year = 2023 GROUP BY i.brand ORDER BY 1;

-- all columns of a filter
SELECT * FROM sales WHERE sold_on = DATE '2023-08-15' AND quantity > 8 ORDER BY sale_id LIMIT 50;

-- semi join of a filtered dimension
SELECT count(*) AS n, sum(s.amount) AS amount FROM sales s
WHERE s.item_id IN (SELECT item_id FROM items WHERE brand = 'brand 3') AND s.sold_on >= DATE '2023-06-01';

-- cheap and dear sales of an item
SELECT i.brand, count(*) AS n, sum(s.price) AS price, avg(s.price) AS average
FROM sales s JOIN items i ON s.item_id = i.item_id
JOIN (SELECT item_id, avg(price) AS usual FROM sales GROUP BY item_id) u ON s.item_id = u.item_id
WHERE s.price > 1.5 * u.usual GROUP BY i.brand ORDER BY 1;

-- the month of a day
SELECT t.kind, count(*) AS n, sum(s.amount) AS amount FROM sales s JOIN stores t ON s.store_id = t.store_id
JOIN dates d ON s.sold_on = d.day
WHERE d.year * 12 + d.month = (SELECT DISTINCT year * 12 + month FROM dates WHERE day = DATE '2024-05-17')
GROUP BY t.kind ORDER BY 1;

-- stores that sell more than the first
SELECT t.store_name, sum(s.amount) AS amount FROM sales s JOIN stores t ON s.store_id = t.store_id
GROUP BY t.store_name
HAVING sum(s.amount) > 1.01 * (SELECT sum(amount) FROM sales WHERE store_id = 1 GROUP BY store_id) ORDER BY 1;

-- bands of quantities
SELECT r.region, CASE WHEN (SELECT count(*) FROM sales WHERE quantity BETWEEN 1 AND 3) > 1000
  THEN (SELECT avg(price) FROM sales WHERE quantity BETWEEN 1 AND 3)
  ELSE (SELECT avg(amount) FROM sales WHERE quantity BETWEEN 1 AND 3) END AS few,
  CASE WHEN (SELECT count(*) FROM sales WHERE quantity BETWEEN 4 AND 10) > 1000000
  THEN (SELECT avg(price) FROM sales WHERE quantity BETWEEN 4 AND 10)
  ELSE (SELECT avg(amount) FROM sales WHERE quantity BETWEEN 4 AND 10) END AS many
FROM regions r WHERE r.region_id = 1;

-- weeks a year apart
WITH weeks AS (
  SELECT datediff(sold_on, DATE '2023-01-01') div 7 AS week, sum(amount) AS amount FROM sales GROUP BY 1)
SELECT one.week, one.amount, other.amount AS later, other.amount / one.amount AS growth
FROM weeks one JOIN weeks other ON one.week = other.week - 52 ORDER BY 1;

-- months above their neighbours
WITH monthly AS (
  SELECT i.brand, year(s.sold_on) AS year, month(s.sold_on) AS month, sum(s.amount) AS amount
  FROM sales s JOIN items i ON s.item_id = i.item_id GROUP BY 1, 2, 3),
ranked AS (
  SELECT brand, year, month, amount, avg(amount) OVER (PARTITION BY brand, year) AS average,
         rank() OVER (PARTITION BY brand ORDER BY year, month) AS place FROM monthly)
SELECT one.brand, one.month, one.amount, before.amount AS before, after.amount AS after
FROM ranked one JOIN ranked before ON one.brand = before.brand AND one.place = before.place + 1
JOIN ranked after ON one.brand = after.brand AND one.place = after.place - 1
WHERE one.year = 2024 AND one.amount > 1.02 * one.average ORDER BY 1, 2 LIMIT 100;

-- segments of cities with the best stores
SELECT t.kind, y.city, sum(s.amount) AS amount, grouping(t.kind) + grouping(y.city) AS level,
       rank() OVER (PARTITION BY grouping(t.kind) + grouping(y.city) ORDER BY sum(s.amount) DESC) AS place
FROM sales s JOIN stores t ON s.store_id = t.store_id JOIN cities y ON t.city_id = y.city_id
WHERE y.city IN (
  SELECT city FROM (
    SELECT y2.city, rank() OVER (PARTITION BY y2.city ORDER BY sum(s2.amount) DESC) AS best
    FROM sales s2 JOIN stores t2 ON s2.store_id = t2.store_id JOIN cities y2 ON t2.city_id = y2.city_id
    GROUP BY y2.city) WHERE best <= 5)
GROUP BY ROLLUP (t.kind, y.city) ORDER BY level DESC, 1, 2, place;

-- cities by their first letters
SELECT count(*) AS n FROM (
  SELECT substr(y.city, 1, 6) AS place FROM cities y JOIN stores t ON t.city_id = y.city_id
  INTERSECT
  SELECT substr(y.city, 1, 6) FROM cities y JOIN customers c ON c.city_id = y.city_id
  JOIN sales s ON s.customer_id = c.customer_id WHERE s.sold_on >= DATE '2024-11-01');
