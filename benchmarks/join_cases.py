"""What the join benchmark asks: the tables, their layouts, the queries."""

from __future__ import annotations

from dataclasses import dataclass

# The layouts of the order key: buckets of orders, buckets of lineitem.
LAYOUTS = ((16, 16), (16, 8))

_REVENUE = "sum(l_extendedprice * (1 - l_discount))"
_JOIN = "FROM {orders} JOIN {lineitem} ON o_orderkey = l_orderkey"
_WHERE = "WHERE o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'"
_TOP_ORDERS = (
    f"SELECT l_orderkey, o_orderdate, o_shippriority, {_REVENUE} AS revenue {_JOIN} {{where}} "
    "GROUP BY l_orderkey, o_orderdate, o_shippriority "
    "ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10"
)
_PRIORITIES = (
    f"SELECT o_orderpriority, count(*), {_REVENUE} {_JOIN} {{where}} "
    "GROUP BY o_orderpriority ORDER BY o_orderpriority"
)
_SUM = f"SELECT count(*), {_REVENUE} {_JOIN} {{where}}"

TPCH_QUERIES = {
    "sum": _SUM.replace("{where}", ""),
    "sum, predicate": _SUM.replace("{where}", _WHERE),
    "by priority": _PRIORITIES.replace("{where}", ""),
    "by priority, predicate": _PRIORITIES.replace("{where}", _WHERE),
    "by order, top 10": _TOP_ORDERS.replace("{where}", ""),
    "by order, top 10, predicate": _TOP_ORDERS.replace("{where}", _WHERE),
    "EXISTS by priority": (
        "SELECT o_orderpriority, count(*) FROM {orders} WHERE o_orderdate >= DATE '1993-07-01' "
        "AND o_orderdate < DATE '1993-10-01' AND EXISTS (SELECT 1 FROM {lineitem} "
        "WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) "
        "GROUP BY o_orderpriority ORDER BY o_orderpriority"
    ),
    # The checksum is a function that only Spark knows: every joined row reaches Spark.
    "joined rows to Spark": (
        "SELECT count(*), sum(xxhash64(o_orderkey, l_linenumber, o_orderdate, l_extendedprice) "
        f"% 1000003) {_JOIN} WHERE o_orderdate < DATE '1995-03-15'"
    ),
}
FLIGHTS_QUERIES = {
    "flights with planes": (
        "SELECT p.manufacturer, count(*), sum(f.distance) FROM {flights} f "
        "JOIN {planes} p ON f.tailnum = p.tailnum GROUP BY p.manufacturer ORDER BY 1"
    ),
    "flights with weather": (
        "SELECT f.origin, count(*), round(avg(w.temp), 6) FROM {flights} f JOIN {weather} w "
        "ON f.time_hour = w.time_hour AND f.origin = w.origin GROUP BY f.origin ORDER BY 1"
    ),
}
_COLUMNS = {
    "orders": (
        "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15, 2), "
        "o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, "
        "o_comment STRING"
    ),
    "lineitem": (
        "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, "
        "l_quantity DECIMAL(15, 2), l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), "
        "l_tax DECIMAL(15, 2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, "
        "l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, "
        "l_comment STRING"
    ),
}
_KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}


@dataclass(frozen=True, slots=True)
class Case:
    """One query over one layout.

    Args:
        name: Of the query.
        layout: ``16 / 8``, or nothing.
        sql: With a place for each table.
        tables: Place → name of the table of a partitioned side.
    """

    name: str
    layout: str
    sql: str
    tables: dict[str, str]

    @property
    def title(self) -> str:
        return f"{self.name}, {self.layout}" if self.layout else self.name

    def text(self, prefix: str, *, partitioned: bool) -> str:
        """Write the query for a side; one without partitioning has each table once."""
        names = {
            place: prefix + (name if partitioned else place) for place, name in self.tables.items()
        }
        return self.sql.format(**names)


def cases() -> list[Case]:
    """List every query over every layout."""
    tpch = [
        Case(
            name,
            f"{of_orders} / {of_lines}",
            sql,
            {"orders": f"orders_{of_orders}", "lineitem": f"lineitem_{of_lines}"},
        )
        for of_orders, of_lines in LAYOUTS
        for name, sql in TPCH_QUERIES.items()
    ]
    flights = [
        Case(name, "", sql, {place: place for place in ("flights", "planes", "weather")})
        for name, sql in FLIGHTS_QUERIES.items()
    ]
    return tpch + flights


def tpch_tables() -> list[tuple[str, str, str, str]]:
    """List the partitioned tables: name, source, columns, PARTITIONED BY."""
    wanted = dict.fromkeys(
        (source, buckets)
        for layout in LAYOUTS
        for source, buckets in zip(("orders", "lineitem"), layout, strict=True)
    )
    return [
        (f"{source}_{buckets}", source, _COLUMNS[source], f"bucket({buckets}, {_KEYS[source]})")
        for source, buckets in wanted
    ]
