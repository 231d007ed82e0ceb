"""Partition columns of Arrow types that Spark lacks, as Python and pandas make them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.assert_join import WITHOUT_BROADCASTS, conf
from tests.spark.statement_results import sorted_rows

import pennon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOMENTS = [dt.datetime.fromisoformat(text) for text in ("1969-12-31 23:00", "2024-05-06 07:08:09")]
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "uint8": (pa.uint8(), [1, 200]),
    "uint32": (pa.uint32(), [1, 1 << 31]),
    "uint64": (pa.uint64(), [17, 1 << 63]),
    "seconds": (pa.timestamp("s"), MOMENTS),
    "nanoseconds": (pa.timestamp("ns"), MOMENTS),
    "date64": (pa.date64(), [moment.date() for moment in MOMENTS]),
    "bytes": (pa.binary(1), [b"a", b"z"]),
}
LAYOUTS = {
    "c": set(TYPES),
    "bucket(4, c)": set(TYPES),
    "truncate(10, c)": {"uint8", "uint32", "uint64"},
    "days(c)": {"seconds", "nanoseconds", "date64"},
}
CASES = [(kind, layout) for layout, kinds in LAYOUTS.items() for kind in sorted(kinds)]


@pytest.mark.parametrize("case", CASES, ids=", ".join)
def test_rows_meet_those_of_files(
    spark: SparkSession, lake: Path, namespace: str, tmp_path: Path, case: tuple[str, str]
) -> None:
    """UINT64 is DECIMAL for Spark, which has another hash; of the rest it has no Arrow vectors."""
    kind, layout = case
    data_type, values = TYPES[kind]
    schema = pa.schema({"id": pa.int32(), "c": data_type, "v": pa.string()})
    table = pennon.connect(lake).create_table(
        f"{namespace.partition('.')[2]}.t", schema, partition_by=[layout]
    )
    column = [*values, None]
    table.append(pa.table([range(1, 4), pa.array(column, data_type), list("abc")], schema=schema))
    name, path = f"{namespace}.t", str(tmp_path / "other")
    spark.table(name).write.parquet(path)
    other = f"parquet.`{path}`"
    joined = f"SELECT a.id, b.id FROM {name} a JOIN {other} b ON a.c = b.c"
    assert sorted_rows(spark.sql(joined)) == [(1, 1), (2, 2)]
    with conf(spark, WITHOUT_BROADCASTS):
        assert sorted_rows(spark.sql(joined)) == [(1, 1), (2, 2)]
        assert sorted_rows(spark.sql(joined.replace(other, name))) == [(1, 1), (2, 2)]
    among = f"SELECT id FROM {name} WHERE c IN (SELECT c FROM {other} WHERE id = 2)"
    assert sorted_rows(spark.sql(among)) == [(2,)]
    assert sorted_rows(spark.sql(f"SELECT id FROM {name} WHERE hash(c) <> 5")) == [(1,), (2,), (3,)]
    spark.sql(
        f"MERGE INTO {name} t USING {other} s ON t.c = s.c"
        " WHEN MATCHED THEN UPDATE SET v = upper(s.v) WHEN NOT MATCHED THEN INSERT *"
    )
    assert sorted(row.v for row in spark.table(name).collect()) == ["A", "B", "c", "c"]


@pytest.mark.parametrize("transform", ["bucket", "truncate"])
def test_a_transform_that_spark_computes_is_the_same_in_a_filter(
    spark: SparkSession, lake: Path, namespace: str, transform: str
) -> None:
    schema = pa.schema({"c": pa.uint64()})
    table = pennon.connect(lake).create_table(
        f"{namespace.partition('.')[2]}.t", schema, partition_by=[f"{transform}(4, c)"]
    )
    table.append(pa.table({"c": pa.array(range(20), pa.uint64())}))
    call = f"lance.system.{transform}(4, c)"
    counts = spark.sql(f"SELECT {call}, count(*) FROM {namespace}.t GROUP BY 1").collect()
    assert sum(count for _, count in counts) == 20
    for value, count in counts:
        kept = spark.sql(f"SELECT c FROM {namespace}.t WHERE {call} = {value}").collect()
        assert len(kept) == count
