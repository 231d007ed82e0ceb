"""Every row of a split has the split's key by the function that Spark evaluates.

The keys are those that a scan reports, and the derived ones, of random specs with a history, for
every function to which the scan may be reduced. The rows are read by Lance, the functions are
evaluated by Spark; neither knows what the manifest says.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from tests.spark.joins.join_sides import Sides
from tests.spark.statement_results import location_of
from tests.torture.functions import key

from pennon.grouping.key_grouping import surrogates
from pennon.manifest import Snapshot
from pennon.spec.evolution import spec_of
from pennon.spec.functions import GroupingFunction, Layout, LayoutFunction, layout_of
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.epoch import Epoch, EpochUnit
from pennon.transforms.registry import from_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEEDS = range(40 if "PENNON_EXHAUSTIVE" in os.environ else 8)
HASHED = ["id", "a", "b", "s", "ts", "tsn", "d", "i8", "i16", "i32", "dec", "bin", "flag"]
# Function, parameters; the finer ones of a column reduce to the coarser ones.
CALLS: list[tuple[str, int | None, tuple[str, ...]]] = [
    *(("bucket", count, (column,)) for column in HASHED for count in (3, 4, 6, 12)),
    *(("truncate", width, (column,)) for column in ("id", "i32") for width in (2, 4, 6, 12)),
    *(("truncate", width, ("s",)) for width in (1, 2, 3)),
    ("truncate", 1, ("dec",)),
    *((unit, None, (c,)) for c in ("ts", "tsn") for unit in ("years", "months", "days", "hours")),
    *((unit, None, ("d",)) for unit in ("years", "months", "days")),
    *(("identity", None, (column,)) for column in ("id", "region", "dep", "s", "d", "flag", "dec")),
    *(("multi_bucket", count, ("a", "b")) for count in (3, 6)),
]


def spelled(call: tuple[str, int | None, tuple[str, ...]]) -> str:
    name, parameter, columns = call
    if name == "identity":
        return columns[0]
    arguments = [*([] if parameter is None else [str(parameter)]), *columns]
    return f"{name}({', '.join(arguments)})"


def make_table(sides: Sides, rng: random.Random) -> str:
    """Make a table of a random spec; half of them then change it and get the other rows."""
    few = rng.sample(CALLS, k=rng.randint(1, 2))
    chosen = list({call[2]: call for call in few}.values())
    name = sides.fresh("l", *map(spelled, chosen), where="v % 2 = 0")
    coarser = [call for call in CALLS if call[2] == chosen[0][2] and call != chosen[0]]
    if coarser and rng.random() < 0.6:
        change = f"{spelled(chosen[0])} WITH {spelled(rng.choice(coarser))}"
        sides.spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD {change}")
    sides.spark.sql(f"INSERT INTO {name} SELECT * FROM l_plain WHERE v % 2 <> 0")
    return name


def rows_of(snapshot: Snapshot, leaves: pa.Table) -> pa.Table:
    """Read all leaves by Lance alone; the column ``leaf`` is the row's position in ``leaves``."""
    tables = []
    for position, leaf in enumerate(leaves.to_pylist()):
        uri = f"{snapshot.location}/{leaf['location']}"
        rows = lance.dataset(uri, version=leaf["read_version"]).to_table()
        at = pa.array([position] * len(rows), pa.int32())
        tables.append(rows.append_column("leaf", at).replace_schema_metadata())
    return pa.concat_tables(tables, promote_options="permissive")


def reductions(layout: Layout, snapshot: Snapshot) -> list[LayoutFunction]:
    """List the layout's functions, and all to which they reduce together with another call."""
    found = list(layout.functions)
    for name, parameter, columns in CALLS:
        arguments: list[dict[str, object]] = [{"column": [column]} for column in columns]
        if parameter is not None:
            arguments.insert(0, {"literal": parameter})
        (field, *_) = spec_of(snapshot.schema, [from_sql(name, arguments)]).fields
        types = tuple(kind for kind in field.source_types(snapshot.schema) if kind is not None)
        assert field.transform is not None
        transform = Epoch(EpochUnit(name)) if name in list(EpochUnit) else field.transform
        other = GroupingFunction(transform, types)
        for function in layout.functions:
            if function.source_ids == field.source_ids:
                common = function.grouping.common_reduction(other)
                if common is not None:
                    found.append(LayoutFunction(common, function.source_ids))
    return list(dict.fromkeys(found))


def component(
    function: LayoutFunction, snapshot: Snapshot, frame: DataFrame
) -> tuple[str, int, list[str], list[str]]:
    """Name a function as the rule in the JVM gets it, with its columns and their types."""
    transform = function.grouping.transform
    count = transform.num_buckets if isinstance(transform, Bucket | MultiBucket) else 0
    fields = [snapshot.schema.field_by_id(source) for source in function.source_ids]
    columns = [str(field) for field in fields]
    kinds = [frame.schema[column].dataType.simpleString() for column in columns]
    return (function.grouping.spark_name or transform.type, count, columns, kinds)


def evaluated(parts: tuple[str, int, list[str], list[str]]) -> Column | None:
    """Give Spark's call of a function of one column."""
    from pyspark.sql import functions as sql

    name, count, columns, _ = parts
    if name in ("identity", "multi_bucket"):
        return sql.col(columns[0]) if name == "identity" else None
    arguments = f"{count}, {columns[0]}" if count else columns[0]
    return sql.expr(f"lance.{name}({arguments})")


@pytest.mark.spec("Storage Partitioned Join 1", "Transform Compatibility 1")
@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_of_a_leaf_has_its_keys(sides: Sides, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it has to repeat
    snapshot = Snapshot.open(location_of(sides.spark, make_table(sides, rng)))
    leaves = snapshot.leaves().table
    layout = layout_of(snapshot.specs, snapshot.schema, leaves)
    functions = reductions(layout, snapshot)
    frame = sides.spark.createDataFrame(rows_of(snapshot, leaves))
    parts = [component(function, snapshot, frame) for function in functions]
    reported: list[pa.Array] = []
    columns: list[Column] = []
    for function, part in zip(functions, parts, strict=True):
        own = evaluated(part)
        if own is not None:
            reported.append(layout.values(function, leaves))
            columns.append(own)
        reported.append(surrogates(layout, [function], leaves))
        columns.append(key(sides.spark, [part]))
    if layout.functions:
        whole = parts[: len(layout.functions)]
        reported.append(surrogates(layout, layout.functions, leaves))
        columns.append(key(sides.spark, whole))
    named = [column.alias(f"k{number}") for number, column in enumerate(columns)]
    found = frame.select("leaf", *named).toArrow()
    for number, keys in enumerate(reported):
        of_rows = found.column(f"k{number}").cast(keys.type)
        expected = keys.take(found.column("leaf").combine_chunks())
        assert of_rows.combine_chunks().equals(expected), str(columns[number])
