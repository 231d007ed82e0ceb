SELECT o.*, c.name
FROM orders o
JOIN customers c ON o.customer_id = c.id
