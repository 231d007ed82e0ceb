-- Small tables of TPC-H's shape, in which each of its queries has something to find.

-- region:
SELECT CAST(id AS BIGINT) AS r_regionkey,
       element_at(array('AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'), CAST(id + 1 AS INT)) AS r_name,
       concat('about ', id) AS r_comment
FROM range(5);

-- nation:
SELECT CAST(id AS BIGINT) AS n_nationkey,
       element_at(array('ALGERIA', 'ARGENTINA', 'BRAZIL', 'CANADA', 'EGYPT', 'ETHIOPIA', 'FRANCE', 'GERMANY', 'INDIA',
                        'INDONESIA', 'IRAN', 'IRAQ', 'JAPAN', 'JORDAN', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'PERU',
                        'CHINA', 'ROMANIA', 'SAUDI ARABIA', 'VIETNAM', 'RUSSIA', 'UNITED KINGDOM', 'UNITED STATES'),
                  CAST(id + 1 AS INT)) AS n_name,
       CAST(element_at(array(0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1),
                       CAST(id + 1 AS INT)) AS BIGINT) AS n_regionkey,
       concat('about ', id) AS n_comment
FROM range(25);

-- supplier:
SELECT id AS s_suppkey, concat('Supplier#', lpad(id, 9, '0')) AS s_name, concat('street ', id) AS s_address,
       pmod(id, 25) AS s_nationkey, concat(10 + pmod(id, 25), '-555-', id) AS s_phone,
       CAST(pmod(hash(id, 1), 1000000) / 100 - 1000 AS DECIMAL(15, 2)) AS s_acctbal,
       CASE WHEN pmod(id, 9) = 0 THEN 'the Customer had Complaints' ELSE 'quick deposits' END AS s_comment
FROM range(60);

-- customer: bucket(4, c_custkey)
SELECT id AS c_custkey, concat('Customer#', lpad(id, 9, '0')) AS c_name, concat('road ', id) AS c_address,
       pmod(hash(id, 2), 25) + 0L AS c_nationkey, concat(10 + pmod(hash(id, 2), 25), '-555-', id) AS c_phone,
       CAST(pmod(hash(id, 3), 1000000) / 100 - 1000 AS DECIMAL(15, 2)) AS c_acctbal,
       element_at(array('BUILDING', 'AUTOMOBILE', 'MACHINERY', 'HOUSEHOLD', 'FURNITURE'), CAST(1 + pmod(id, 5) AS INT)) AS c_mktsegment,
       concat('about ', id) AS c_comment
FROM range(300);

-- part: bucket(4, p_partkey)
SELECT id AS p_partkey,
       concat(element_at(array('forest', 'green', 'blue'), CAST(1 + pmod(id, 3) AS INT)), ' ',
              element_at(array('green', 'rose', 'plum', 'linen'), CAST(1 + pmod(id, 4) AS INT))) AS p_name,
       concat('Manufacturer#', 1 + pmod(id, 5)) AS p_mfgr,
       element_at(array('Brand#12', 'Brand#23', 'Brand#34', 'Brand#45', 'Brand#51'), CAST(1 + pmod(id, 5) AS INT)) AS p_brand,
       element_at(array('ECONOMY ANODIZED STEEL', 'PROMO PLATED BRASS', 'MEDIUM POLISHED TIN', 'STANDARD BRUSHED BRASS'),
                  CAST(1 + pmod(hash(id, 4), 4) AS INT)) AS p_type,
       CAST(element_at(array(15, 49, 14, 23, 5, 3, 9, 1), CAST(1 + pmod(hash(id, 5), 8) AS INT)) AS INT) AS p_size,
       element_at(array('SM CASE', 'MED BOX', 'LG BOX', 'SM BOX', 'MED BAG', 'LG CASE'), CAST(1 + pmod(hash(id, 6), 6) AS INT)) AS p_container,
       CAST(900 + pmod(id, 200) AS DECIMAL(15, 2)) AS p_retailprice, concat('about ', id) AS p_comment
FROM range(200);

-- partsupp: bucket(4, ps_partkey)
SELECT id div 4 AS ps_partkey, pmod(id div 4 + pmod(id, 4) * 15, 60) AS ps_suppkey,
       CAST(1 + pmod(hash(id, 7), 999) AS INT) AS ps_availqty,
       CAST(1 + pmod(hash(id, 8), 99900) / 100 AS DECIMAL(15, 2)) AS ps_supplycost, concat('about ', id) AS ps_comment
FROM range(800);

-- orders: bucket(8, o_orderkey)
SELECT id AS o_orderkey, pmod(hash(id, 9), 200) + 0L AS o_custkey,
       element_at(array('F', 'O', 'P'), CAST(1 + pmod(hash(id, 10), 3) AS INT)) AS o_orderstatus,
       CAST(1000 + pmod(hash(id, 11), 40000000) / 100 AS DECIMAL(15, 2)) AS o_totalprice,
       date_add(DATE '1992-01-01', CAST(pmod(hash(id, 12), 2400) AS INT)) AS o_orderdate,
       element_at(array('1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'), CAST(1 + pmod(hash(id, 13), 5) AS INT)) AS o_orderpriority,
       concat('Clerk#', pmod(id, 10)) AS o_clerk, CAST(0 AS INT) AS o_shippriority,
       CASE WHEN pmod(id, 7) = 0 THEN 'some special hidden requests' ELSE 'plain words' END AS o_comment
FROM range(1500);

-- lineitem: bucket(8, l_orderkey)
SELECT id div 4 AS l_orderkey, pmod(hash(id, 14), 200) + 0L AS l_partkey,
       pmod(pmod(hash(id, 14), 200) + pmod(hash(id, 15), 4) * 15, 60) + 0L AS l_suppkey,
       CAST(1 + pmod(id, 4) AS INT) AS l_linenumber,
       CAST(CASE WHEN pmod(id div 4, 50) = 0 THEN 80 ELSE 1 + pmod(hash(id, 16), 50) END AS DECIMAL(15, 2)) AS l_quantity,
       CAST(900 + pmod(hash(id, 17), 9000000) / 100 AS DECIMAL(15, 2)) AS l_extendedprice,
       CAST(pmod(hash(id, 18), 11) / 100 AS DECIMAL(15, 2)) AS l_discount, CAST(pmod(hash(id, 19), 9) / 100 AS DECIMAL(15, 2)) AS l_tax,
       element_at(array('R', 'A', 'N'), CAST(1 + pmod(hash(id, 20), 3) AS INT)) AS l_returnflag,
       element_at(array('O', 'F'), CAST(1 + pmod(hash(id, 21), 2) AS INT)) AS l_linestatus,
       date_add(DATE '1992-01-01', CAST(pmod(hash(id div 4, 12), 2400) + pmod(hash(id, 22), 120) AS INT)) AS l_shipdate,
       date_add(DATE '1992-01-01', CAST(pmod(hash(id div 4, 12), 2400) + 30 + pmod(hash(id, 23), 60) AS INT)) AS l_commitdate,
       date_add(DATE '1992-01-01', CAST(pmod(hash(id div 4, 12), 2400) + pmod(hash(id, 22), 120) + 1 + pmod(hash(id, 24), 30) AS INT)) AS l_receiptdate,
       element_at(array('DELIVER IN PERSON', 'NONE'), CAST(1 + pmod(hash(id, 25), 2) AS INT)) AS l_shipinstruct,
       element_at(array('AIR', 'MAIL', 'SHIP', 'AIR REG'), CAST(1 + pmod(hash(id, 26), 4) AS INT)) AS l_shipmode,
       concat('about ', id) AS l_comment
FROM range(6000);
