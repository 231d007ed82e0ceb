SELECT * FROM partitioned_namespace
WHERE event_date = '2025-12-10' AND country = 'US'
