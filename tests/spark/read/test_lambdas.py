"""Functions with a lambda over arrays and maps of a table, NULLs among what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Two values of each type.
VALUES = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("1Y", "-3Y"),
    "SMALLINT": ("1S", "-3S"),
    "INT": ("1", "-3"),
    "BIGINT": ("1L", "-3L"),
    "FLOAT": ("1.5F", "float('NaN')"),
    "DOUBLE": ("1.5D", "-0.5D"),
    "DECIMAL(10,2)": ("1.50BD", "-3.25BD"),
    "DECIMAL(38,2)": ("1.50BD", "-123456789012345678901234.25BD"),
    "STRING": ("'ä'", "''"),
    "BINARY": ("X'00'", "X''"),
    "DATE": ("DATE '2024-02-29'", "DATE '1969-12-31'"),
    "TIMESTAMP": ("TIMESTAMP '2024-02-29 01:02:03.000004'", "TIMESTAMP '1900-01-01 00:00:00'"),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ '2024-02-29 01:02:03.000004'", "TIMESTAMP_NTZ '1900-01-01'"),
}
FUNCTIONS = [
    "transform(arr, x -> x)",
    "filter(arr, x -> x = {0})",
    "exists(arr, x -> x = {1})",
    "forall(arr, x -> x = {0})",
    "aggregate(arr, 0, (n, x) -> n + IF(x = {0}, 1, 10))",
    "array_compact(arr)",
    "transform(deep, xs -> transform(xs, x -> x = {0}))",
    "transform(st, s -> s.x)",
    "filter(map_values(m), x -> x = {1})",
    "transform_values(m, (k, x) -> x = {0})",
    "map_filter(m, (k, x) -> x = {1})",
]


@pytest.mark.parametrize("data_type", VALUES)
def test_nulls_within_a_value_are_told_from_others(
    spark: SparkSession, namespace: str, data_type: str
) -> None:
    """Spark's generated code reads an element before it asks whether it is NULL."""
    first, second = VALUES[data_type]
    spark.sql(
        f"""CREATE OR REPLACE TEMP VIEW plain AS
        SELECT id, IF(id % 5 = 4, NULL, ys) AS arr, array(ys, NULL, array(), array(y)) AS deep,
          array(named_struct('x', y), NULL, named_struct('x', {second})) AS st,
          map('a', y, 'b', NULL, 'c', {second}) AS m
        FROM (SELECT id, y, slice(array({first}, NULL, y, {second}), 1, CAST(id % 4 + 1 AS INT)) ys
          FROM (SELECT id, CAST(IF(id % 3 = 0, NULL, {first}) AS {data_type}) AS y FROM range(40)))
        """
    )
    table = f"{namespace}.lambdas"
    spark.sql(f"CREATE TABLE {table} AS SELECT * FROM plain")
    called = ", ".join(function.format(first, second) for function in FUNCTIONS)
    found, expected = (
        spark.sql(f"SELECT id, {called} FROM {name} WHERE id >= 0 ORDER BY id").collect()
        for name in (table, "plain")
    )
    assert list(map(repr, found)) == list(map(repr, expected))
