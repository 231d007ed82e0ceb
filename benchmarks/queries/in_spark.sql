-- Queries over TPC-H of which Spark computes most itself: what the workers give it are rows.

-- a set per supplier
SELECT l_suppkey, sort_array(collect_set(l_shipmode)) FROM lineitem GROUP BY l_suppkey;

-- a list per customer
SELECT o_custkey, listagg(o_orderstatus, ',') WITHIN GROUP (ORDER BY o_orderdate, o_orderkey)
FROM orders GROUP BY o_custkey;

-- a window by values
SELECT max(quantity) FROM (
  SELECT sum(l_quantity) OVER (
    PARTITION BY l_suppkey ORDER BY l_extendedprice RANGE BETWEEN 30 PRECEDING AND CURRENT ROW
  ) AS quantity FROM lineitem
);

-- a window without NULLs
SELECT count(later) FROM (
  SELECT lead(o_clerk, 2) IGNORE NULLS OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS later
  FROM orders
);

-- groups by initcap
SELECT initcap(o_clerk), count(*), sum(o_totalprice) FROM orders GROUP BY 1;

-- groups by width_bucket
SELECT width_bucket(o_totalprice, 0, 500000, 10), count(*) FROM orders GROUP BY 1;

-- groups by to_json
SELECT to_json(struct(o_orderstatus, o_orderpriority)), count(*) FROM orders GROUP BY 1;

-- groups by hash
SELECT pmod(hash(l_comment), 10), count(*), sum(l_tax) FROM lineitem GROUP BY 1;

-- an approximate percentile
SELECT l_shipmode, percentile_approx(l_quantity, 0.5) FROM lineitem GROUP BY l_shipmode;

-- an approximate count
SELECT l_returnflag, approx_count_distinct(l_partkey) FROM lineitem GROUP BY l_returnflag;

-- skewness
SELECT l_linestatus, round(skewness(l_quantity), 6) FROM lineitem GROUP BY l_linestatus;

-- rows out of an array
SELECT explode(array(l_returnflag, l_linestatus)), count(*) FROM lineitem GROUP BY 1;
