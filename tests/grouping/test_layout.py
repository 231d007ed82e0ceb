"""The layout of a scan: every reduced value is what the function gives for the rows' own values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.grouping.key_grouping import reported_functions
from pennon.spec.evolution import spec_of
from pennon.spec.functions import Layout, layout_of
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.registry import from_sql

COLUMNS = pa.schema(
    {"id": pa.int64(), "s": pa.string(), "ts": pa.timestamp("us", "UTC"), "d": pa.date32()}
)
SCHEMA = NamespaceSchema.with_fresh_ids(COLUMNS)

CALLS = [
    *(("bucket", n, "id") for n in (2, 4, 6, 8, 16)),
    *(("truncate", w, "id") for w in (4, 6, 8)),
    *(("truncate", w, "s") for w in (1, 2, 3)),
    *((unit, "ts") for unit in ("years", "months", "days", "hours")),
    *((unit, "d") for unit in ("years", "months", "days")),
    *(("identity", column) for column in ("id", "s", "ts", "d")),
    *(("multi_bucket", n, "id", "s") for n in (4, 6)),
]


def spec(number: int, calls: Sequence[tuple[object, ...]]) -> PartitionSpec:
    made = spec_of(
        SCHEMA,
        [
            from_sql(
                str(name),
                [
                    {"literal": argument} if isinstance(argument, int) else {"column": [argument]}
                    for argument in arguments
                ],
            )
            for name, *arguments in calls
        ],
    )
    return PartitionSpec(number, made.fields)


def leaves_of(specs: Sequence[PartitionSpec], rows: pa.Table) -> pa.Table:
    """Make one leaf row per source row and spec version, by the transforms themselves."""
    tables = []
    for spec_ in specs:
        columns = {
            "object_id": pa.array([f"v{spec_.spec_version}${n}$dataset" for n in range(len(rows))])
        }
        for field in spec_.fields:
            found = [SCHEMA.field_by_id(source) for source in field.source_ids]
            sources = [rows[known.path[0]].combine_chunks() for known in found if known is not None]
            columns[field.column] = field.derivation.apply(sources).cast(field.result_type)
        tables.append(pa.table(columns))
    return pa.concat_tables(tables, promote_options="default")


instants = st.datetimes(dt.datetime(1581, 1, 1), dt.datetime(2300, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=dt.UTC)
)
row_lists = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20),
            "s": st.none() | st.text(max_size=4),
            "ts": st.none() | instants,
            "d": st.none() | st.dates(),
        }
    ),
    min_size=1,
    max_size=8,
)


def fits(calls: Sequence[tuple[object, ...]]) -> bool:
    try:
        spec(1, calls)
    except Exception:  # noqa: BLE001 - hypothesis draws specs that repeat a field
        return False
    return True


spec_calls = st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True).filter(fits)


@pytest.mark.spec("Storage Partitioned Join 4", "Storage Partitioned Join 5")
@settings(max_examples=150, deadline=None)
@given(first=spec_calls, second=spec_calls, rows=row_lists)
@pytest.mark.spec("Storage Partitioned Join")
def test_reduced_values_are_the_functions_of_the_rows(
    first: list[tuple[object, ...]],
    second: list[tuple[object, ...]],
    rows: list[dict[str, object]],
) -> None:
    specs = {1: spec(1, first), 2: spec(2, second)}
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    try:
        leaves = leaves_of(list(specs.values()), table)
    except Exception as error:  # truncating the smallest integers has no value
        if "overflow" in str(error).lower() or "fit" in str(error).lower():
            return
        raise
    layout = layout_of(specs, SCHEMA, leaves)
    for function in layout.functions:
        known = [SCHEMA.field_by_id(source) for source in function.source_ids]
        sources = [table[source.path[0]].combine_chunks() for source in known if source is not None]
        expected = function.grouping.apply(sources).to_pylist() * 2
        assert layout.values(function, leaves).to_pylist() == expected, str(function.grouping)


def named(layout: Layout) -> list[str]:
    return [str(function.grouping) for function in layout.functions]


NO_ROWS = pa.table({"object_id": pa.array([], pa.string())})


@pytest.mark.spec(
    "Transform Compatibility 1", "Transform Compatibility 2", "Transform Compatibility 3"
)
@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ([("bucket", 8, "id")], [("bucket", 16, "id")], ["bucket(8, col0)"]),
        ([("bucket", 6, "id")], [("bucket", 4, "id")], ["bucket(2, col0)"]),
        ([("bucket", 9, "id")], [("bucket", 4, "id")], []),
        ([("months", "ts")], [("days", "ts")], ["months(col0)"]),
        ([("identity", "id")], [("bucket", 4, "id")], ["bucket(4, col0)"]),
        ([("identity", "s")], [("identity", "s"), ("bucket", 8, "id")], ["col0"]),
        ([("truncate", 2, "s")], [("truncate", 3, "s")], ["truncate(2, col0)"]),
        (
            [("multi_bucket", 6, "id", "s")],
            [("multi_bucket", 4, "id", "s")],
            ["multi_bucket(2, col0, col1)"],
        ),
        (
            [("identity", "id"), ("identity", "s")],
            [("multi_bucket", 4, "id", "s")],
            ["multi_bucket(4, col0, col1)"],
        ),
    ],
)
def test_two_versions_group_by_their_finest_common_functions(
    first: list[tuple[object, ...]], second: list[tuple[object, ...]], common: list[str]
) -> None:
    rows = pa.Table.from_pylist([{"id": 1, "s": "a"}], schema=COLUMNS)
    specs = {1: spec(1, first), 2: spec(2, second)}
    layout = layout_of(specs, SCHEMA, leaves_of(list(specs.values()), rows))
    assert named(layout) == common


def test_only_the_versions_of_the_chosen_partitions_count() -> None:
    specs = {1: spec(1, []), 2: spec(2, [("bucket", 8, "id"), ("days", "ts")])}
    rows = pa.Table.from_pylist([{"id": 1}], schema=COLUMNS)
    assert named(layout_of(specs, SCHEMA, leaves_of(list(specs.values()), rows))) == []
    assert named(layout_of(specs, SCHEMA, leaves_of([specs[2]], rows))) == [
        "bucket(8, col0)",
        "days(col0)",
    ]
    assert named(layout_of(specs, SCHEMA, NO_ROWS)) == ["bucket(8, col0)", "days(col0)"]


def test_a_key_needs_its_column_in_the_output_and_one_column() -> None:
    specs = {
        1: spec(1, [("bucket", 8, "id"), ("multi_bucket", 4, "id", "s"), ("truncate", 2, "s")])
    }
    layout = layout_of(specs, SCHEMA, NO_ROWS)
    reported = reported_functions(layout, SCHEMA, {("id",)})
    assert [str(offered.grouping) for offered in reported] == ["bucket(8, col0)"]


def test_a_column_that_the_predicate_fixes_groups_where_a_version_has_no_field_of_it() -> None:
    specs = {1: PartitionSpec(1, ()), 2: spec(2, [("identity", "s"), ("bucket", 4, "id")])}
    s = SCHEMA.field_by_path(("s",))
    assert s is not None
    rows = pa.table({"id": [1, 2], "s": ["a", "a"]})
    leaves = leaves_of(list(specs.values()), rows)
    assert named(layout_of(specs, SCHEMA, leaves)) == []
    layout = layout_of(specs, SCHEMA, leaves, {s.id: pa.scalar("a"), 99: pa.scalar(1)})
    assert named(layout) == ["col0"]
    assert layout.values(layout.functions[0], leaves).to_pylist() == ["a"] * 4
    of_other_type = {s.id: pa.scalar(b"a")}
    assert named(layout_of(specs, SCHEMA, leaves, of_other_type)) == []


def test_a_column_that_the_predicate_fixes_counts_where_its_field_came_later() -> None:
    """Whatever versions are left: pruning may keep just the one that has no field of it."""
    specs = {1: spec(1, []), 2: spec(2, [("identity", "s")])}
    rows = pa.table({"s": ["k5"]})
    fixed = {SCHEMA.fields[1].id: pa.scalar("k5")}
    for kept in ([1], [2], [1, 2]):
        leaves = leaves_of([specs[version] for version in kept], rows)
        layout = layout_of(specs, SCHEMA, leaves, fixed)
        (function,) = layout.functions
        assert function.grouping.is_identity
        assert layout.values(function, leaves).to_pylist() == ["k5"] * len(kept)
    assert layout_of({1: specs[1]}, SCHEMA, leaves_of([specs[1]], rows), fixed).functions == ()
