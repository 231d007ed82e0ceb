"""Joins of tables whose key columns have different Arrow types, of which Spark makes one type."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.assert_join import WITHOUT_BROADCASTS, conf, execute

import pennon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]
MOMENTS = [dt.datetime.fromisoformat(f"{day}T23:59:59") for day in DAYS]
TEXTS = ["", "é", "a longer text than sixteen letters"]
KINDS: dict[str, tuple[pa.DataType, pa.DataType, list[Any]]] = {
    "dates": (pa.date64(), pa.date32(), DAYS),
    "texts": (pa.large_string(), pa.string(), TEXTS),
    "milliseconds": (pa.timestamp("ms"), pa.timestamp("us"), MOMENTS),
    "zoned seconds": (pa.timestamp("s", "UTC"), pa.timestamp("us", "UTC"), MOMENTS),
    "nanoseconds": (pa.timestamp("ns"), pa.timestamp("us"), MOMENTS),
    "bytes": (pa.binary(1), pa.binary(), [b"a", b"b", b"\x00"]),
}
LAYOUTS = [
    ("c", "c"),
    ("c", "bucket(4, c)"),
    ("bucket(8, c)", "bucket(4, c)"),
]


def _create(lake: Path, name: str, data_type: pa.DataType, values: list[Any], by: str) -> None:
    schema = pa.schema({"id": pa.int32(), "c": data_type})
    table = pennon.connect(lake).create_table(name, schema, partition_by=[by])
    keys = [*values, *values[1:], None]
    table.append(pa.table([range(len(keys)), pa.array(keys, data_type)], schema=schema))


@pytest.mark.parametrize("kind", KINDS)
def test_equal_values_of_two_arrow_types_meet_without_a_shuffle(
    spark: SparkSession, lake: Path, namespace: str, tmp_path: Path, kind: str
) -> None:
    """Broadcasts are off, for one of so small a table would hide that its key is not known."""
    one, other, values = KINDS[kind]
    inside = namespace.partition(".")[2]
    joined = "SELECT a.id, b.id, a.c FROM {} a LEFT JOIN {} b ON a.c = b.c"
    for at, (mine, theirs) in enumerate(LAYOUTS):
        names = [f"{namespace}.{side}{at}" for side in "ab"]
        _create(lake, f"{inside}.a{at}", one, values[:-1], mine)
        _create(lake, f"{inside}.b{at}", other, values[1:], theirs)
        files = []
        for name in names:
            files.append(f"parquet.`{tmp_path}/{name}`")
            spark.table(name).write.parquet(f"{tmp_path}/{name}")
        with conf(spark, WITHOUT_BROADCASTS):
            for tables in (names, names[::-1]):
                assert execute(spark, joined.format(*tables)).shuffles == 0, (kind, mine, theirs)
            shuffled = execute(spark, joined.format(*files))
            assert shuffled.shuffles == 2
            assert execute(spark, joined.format(*names)).rows == shuffled.rows
