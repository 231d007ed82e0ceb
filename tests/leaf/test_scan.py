"""Scans give exactly the namespace's columns, whatever the leaf stores."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

from pennon.errors import LeafMissing, LeafTypeMismatch, LeafValueMismatch
from pennon.leaf import LeafSource, LeafViews, open_leaf
from pennon.leaf.schema.reconciliation import leaf_fields, match_fields

if TYPE_CHECKING:
    from pathlib import Path

UTC_MICROS = pa.timestamp("us", "UTC")


def with_id(number: int, name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"lance:field_id": str(number)})


def stated(dataset: lance.LanceDataset, ids: dict[str, int]) -> lance.LanceDataset:
    dataset.update_field_metadata(
        {path: {"lance:field_id": str(number)} for path, number in ids.items()}
    )
    return dataset


def rows(dataset, wanted, *arguments, namespace_schema=None, **keywords) -> list[dict]:
    views = LeafViews(pa.schema(wanted), namespace_schema)
    batches = list(LeafSource(dataset).batches(views, *arguments, **keywords))
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def leaf(tmp_path: Path) -> lance.LanceDataset:
    table = pa.table(
        {
            "a": pa.array([1, 2, 3], pa.int32()),
            "old": pa.array(["x", None, "z"], pa.large_utf8()),
            "s": pa.array(
                [{"p": 1, "q": "u"}, None, {"p": None, "q": "w"}],
                pa.struct([("p", pa.int16()), ("q", pa.utf8())]),
            ),
        }
    )
    dataset = lance.write_dataset(table, str(tmp_path / "leaf"))
    return stated(dataset, {"a": 7, "old": 8, "s": 9, "s.p": 10, "s.q": 11})


@pytest.mark.spec("Schema 5", "Schema 6", "reading 9", "reading 11")
def test_columns_are_found_by_stated_id_not_by_name(leaf):
    wanted = [with_id(8, "a", pa.utf8()), with_id(7, "new", pa.int32())]
    assert rows(leaf, wanted) == [
        {"a": "x", "new": 1},
        {"a": None, "new": 2},
        {"a": "z", "new": 3},
    ]


@pytest.mark.spec("Schema 2", "reading 10")
def test_missing_columns_are_null_and_narrower_types_are_promoted_at_every_level(leaf):
    inner = [
        with_id(11, "q2", pa.utf8()),
        with_id(10, "p", pa.int64()),
        with_id(12, "n", UTC_MICROS),
    ]
    wanted = [with_id(9, "s", pa.struct(inner)), with_id(13, "m", pa.list_(pa.int8()))]
    assert rows(leaf, wanted) == [
        {"s": {"q2": "u", "p": 1, "n": None}, "m": None},
        {"s": None, "m": None},
        {"s": {"q2": "w", "p": None, "n": None}, "m": None},
    ]


@pytest.mark.spec("Schema 2", "reading 10")
def test_a_value_that_the_wider_type_lacks_is_told(tmp_path):
    """A time of nanoseconds is none of Spark's microseconds."""
    moments = pa.table({"t": pa.array([1_000, 1_500], pa.timestamp("ns"))})
    dataset = lance.write_dataset(moments, str(tmp_path / "leaf"))
    with pytest.raises(
        LeafValueMismatch, match=r"column t of leaf leaf: a .*\[ns\] value cannot be read as .*us"
    ):
        list(LeafSource(dataset).batches(pa.schema([("t", pa.timestamp("us"))])))


@pytest.mark.spec("Schema 2", "reading 10")
def test_type_that_does_not_promote_names_leaf_and_column(leaf):
    with pytest.raises(LeafTypeMismatch, match=r"column s\.q of leaf leaf.*string.*int32"):
        list(
            LeafSource(leaf).batches(
                pa.schema([with_id(9, "s", pa.struct([with_id(11, "q", pa.int32())]))])
            )
        )


@pytest.mark.spec("reading 9")
def test_leaf_without_stated_ids_that_numbers_from_zero_is_read_by_name(tmp_path):
    """The namespace numbers from 1, as the specification's appendix A does; pylance from 0."""
    dataset = lance.write_dataset(pa.table({"a": [1], "b": [2], "c": [3]}), str(tmp_path / "leaf"))
    wanted = [with_id(at + 1, name, pa.int64()) for at, name in enumerate("abc")]
    assert rows(dataset, wanted) == [{"a": 1, "b": 2, "c": 3}]


@pytest.mark.spec("reading 9")
def test_leaf_without_stated_ids_that_numbers_alike_is_read_by_number(tmp_path):
    """``a`` and ``b`` were renamed into each other, the others show that numbers are the same."""
    table = pa.table({name: [at] for at, name in enumerate("abcde")})
    dataset = lance.write_dataset(table, str(tmp_path / "leaf"))
    ids = {"a": 1, "b": 0, "c": 2, "d": 3, "e": 4}
    wanted = [with_id(at, name, pa.int64()) for name, at in ids.items()]
    assert rows(dataset, wanted) == [ids]
    everything = pa.schema(wanted)
    assert rows(dataset, wanted[:1], "`b` = 0", namespace_schema=everything) == [{"a": 1}]


@pytest.mark.spec("reading 9", "reading 10")
@pytest.mark.parametrize("there", ["cba", "acb", "ac", "bc", "c", "xac", "cxa"])
def test_leaf_without_ids_of_other_columns_is_read_by_name_whatever_is_asked(tmp_path, there):
    """Another order, or a column less in the middle: some numbers are those of other columns."""
    values = {"a": 1, "b": 2, "c": 3, "x": 9}
    table = pa.table({name: [values[name]] for name in there})
    dataset = lance.write_dataset(table, str(tmp_path / "leaf"))
    wanted = [with_id(at, name, pa.int64()) for at, name in enumerate("abc")]
    known = {"namespace_schema": pa.schema(wanted)}
    found = {name: values[name] if name in there else None for name in "abc"}
    assert rows(dataset, wanted) == [found]
    for at, name in enumerate("abc"):
        assert rows(dataset, wanted[at : at + 1], **known) == [{name: found[name]}]
        condition = f"`{name}` IS NULL" if found[name] is None else f"`{name}` = {found[name]}"
        assert rows(dataset, wanted[:1], condition, **known) == [{"a": found["a"]}]


def test_filter_is_in_the_namespaces_names_and_types(leaf):
    wanted = [with_id(7, "key", pa.int64())]
    everything = pa.schema([*wanted, with_id(8, "a", pa.utf8()), with_id(99, "gone", pa.int32())])
    known = {"namespace_schema": everything}
    assert rows(leaf, wanted, "`a` = 'z'", **known) == [{"key": 3}]
    assert rows(leaf, wanted, "`key` < 3000000000 AND `key` > 1", **known) == [
        {"key": 2},
        {"key": 3},
    ]
    assert rows(leaf, wanted, "`gone` IS NULL AND `key` = 1", **known) == [{"key": 1}]
    assert rows(leaf, wanted, "`gone` = 5", **known) == []
    assert rows(leaf, wanted, "`gone` <> 5 OR `key` = 2", **known) == [{"key": 2}]


def test_filter_reaches_into_structs_and_follows_renamed_fields(leaf):
    inner = pa.struct([with_id(11, "renamed", pa.utf8()), with_id(12, "gone", pa.utf8())])
    wanted = [with_id(7, "key", pa.int32()), with_id(9, "s", inner)]
    assert [row["key"] for row in rows(leaf, wanted, "`s`.`renamed` = 'w'")] == [3]
    assert [row["key"] for row in rows(leaf, wanted, "`s`.`gone` IS NULL")] == [1, 2, 3]


@pytest.mark.parametrize("wanted", [[], [with_id(0, "a", pa.int64())]], ids=len)
@pytest.mark.parametrize("condition", [None, "`a` > 1"])
def test_a_scan_ends_at_its_limit(leaf, wanted, condition):
    every = rows(leaf, wanted, condition)
    for limit in (1, 2, 5):
        assert rows(leaf, wanted, condition, limit=limit) == every[:limit]


def test_scan_without_columns_counts_rows(leaf):
    counted = [
        list(LeafSource(leaf).batches(pa.schema([]), condition)) for condition in (None, "`a` > 1")
    ]
    assert [sum(batch.num_rows for batch in batches) for batches in counted] == [3, 2]
    only_missing = list(LeafSource(leaf).batches(pa.schema([with_id(50, "n", pa.utf8())])))
    assert [batch.to_pydict() for batch in only_missing] == [{"n": [None, None, None]}]


def test_stream_has_no_large_view_dictionary_or_fixed_size_types(tmp_path):
    stored = pa.table(
        {
            "v": pa.array(["a", None], pa.large_utf8()),
            "d": pa.array(["b", "b"]).dictionary_encode(),
            "f": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
            "l": pa.array([[b"x"], []], pa.large_list(pa.large_binary())),
        }
    )
    dataset = lance.write_dataset(stored, str(tmp_path / "leaf"))
    wanted = pa.schema(
        [with_id(at, field.name, field.type) for at, field in enumerate(stored.schema)]
    )
    (batch,) = LeafSource(dataset).batches(wanted)
    assert batch.schema.types == [
        pa.utf8(),
        pa.utf8(),
        pa.list_(pa.float32()),
        pa.list_(pa.binary()),
    ]
    assert batch.to_pydict() == stored.to_pydict()


def test_sliced_nested_values_keep_their_place(tmp_path):
    """Small batches are slices of a page: offsets into lists and maps must survive conversion."""
    count = 1000
    table = pa.table(
        {
            "l": pa.array(
                [[at, None] if at % 3 else None for at in range(count)], pa.list_(pa.int32())
            ),
            "m": pa.array(
                [[(str(at), at)] if at % 5 else [] for at in range(count)],
                pa.map_(pa.utf8(), pa.int32()),
            ),
        }
    )
    dataset = lance.write_dataset(table, str(tmp_path / "leaf"))
    wanted = [
        with_id(0, "l", pa.list_(pa.int64())),
        with_id(2, "m", pa.map_(pa.utf8(), pa.int64())),
    ]
    assert rows(dataset, wanted, batch_size=7) == table.to_pylist()


def test_missing_leaf_names_leaf_and_table(tmp_path):
    with pytest.raises(LeafMissing, match=r"leaf gone of table .*at version 3"):
        open_leaf(str(tmp_path), "gone", 3)
    lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "leaf"))
    dataset = open_leaf(str(tmp_path), "leaf", None)
    for path in (tmp_path / "leaf" / "data").iterdir():
        path.unlink()
    with pytest.raises(LeafMissing, match="leaf leaf"):
        list(LeafSource(dataset).batches(pa.schema([with_id(0, "a", pa.int64())])))


def test_every_type_of_spark_survives(tmp_path):
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
    columns = {
        "bool": pa.array([True, None]),
        "tiny": pa.array([-128, None], pa.int8()),
        "small": pa.array([-(2**15), None], pa.int16()),
        "int": pa.array([-(2**31), None], pa.int32()),
        "long": pa.array([-(2**63), None], pa.int64()),
        "float": pa.array([float("inf"), None], pa.float32()),
        "double": pa.array([-0.0, None], pa.float64()),
        "dec": pa.array([Decimal("-99999999.99"), None], pa.decimal128(10, 2)),
        "wide": pa.array([Decimal(10) ** 37, None], pa.decimal128(38, 0)),
        "text": pa.array(["\U0001f600 é", None]),
        "bin": pa.array([b"\x00\xff", None]),
        "date": pa.array([dt.date(1, 1, 1), None]),
        "ts": pa.array([moment.replace(tzinfo=dt.UTC), None], UTC_MICROS),
        "ntz": pa.array([moment, None], pa.timestamp("us")),
        "list": pa.array([[["a"], None, []], None], pa.list_(pa.list_(pa.utf8()))),
        "map": pa.array([[("k", None)], None], pa.map_(pa.utf8(), pa.date32())),
        "struct": pa.array([{"x": {"y": None}}, None]).cast(
            pa.struct([("x", pa.struct([("y", pa.decimal128(5, 1))]))])
        ),
    }
    table = pa.table(columns)
    dataset = lance.write_dataset(table, str(tmp_path / "leaf"))
    numbers = {field.name(): field.id() for field in dataset.lance_schema.fields()}
    wanted = [with_id(numbers[field.name], field.name, field.type) for field in table.schema]
    (batch,) = LeafSource(dataset).batches(pa.schema(wanted))
    assert batch.to_pylist() == table.to_pylist()
    assert batch.schema.types == table.schema.types


MEMORY_PROBE = """
import resource, sys
import lance, pyarrow as pa
from pennon.leaf import LeafSource
dataset = lance.dataset(sys.argv[1])
fields = [
    pa.field(f.name, f.type, metadata={"lance:field_id": str(at)})
    for at, f in enumerate(dataset.schema)
]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = sum(batch.num_rows for batch in LeafSource(dataset).batches(pa.schema(fields)))
print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_stream_of_many_rows_stays_small_in_memory(tmp_path):
    """About 200 MB of columns; twenty million rows measured the same peak."""
    chunk = 100_000

    def batches():
        for at in range(50):
            numbers = np.arange(chunk) + at * chunk
            yield pa.record_batch(
                {
                    "id": pa.array(numbers),
                    "v": pa.array(numbers / 7),
                    "s": pa.array(np.char.add("name-", (numbers % 1000).astype(str))),
                    "d": pa.array((numbers % 9999).astype(np.int32)).cast(pa.date32()),
                }
            )

    first = next(batches())
    reader = pa.RecordBatchReader.from_batches(first.schema, batches())
    lance.write_dataset(reader, str(tmp_path / "leaf"))
    probe = [sys.executable, "-c", MEMORY_PROBE, str(tmp_path / "leaf")]
    counted, mebibytes = map(int, subprocess.check_output(probe, text=True).split())
    assert counted == 50 * chunk
    assert mebibytes < 260


def test_a_vector_column_of_the_namespace_matches_a_leafs(tmp_path: Path) -> None:
    vectors = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
    dataset = lance.write_dataset(pa.table({"v": vectors}), str(tmp_path / "leaf"))
    wanted = pa.field("v", vectors.type, metadata={"lance:field_id": "0"})
    (match,) = match_fields([wanted], leaf_fields(dataset), "leaf")
    assert match.is_same


def test_a_filter_gives_the_same_rows_whatever_is_fetched_late(tmp_path: Path):
    columns = {
        "key": pa.array(range(2000), pa.int64()),
        "price": pa.array([Decimal(n) / 4 for n in range(2000)], pa.decimal128(15, 2)),
        "Some text": [f"text {n}" for n in range(2000)],
        "vector": pa.array([[float(n)] * 3 for n in range(2000)], pa.list_(pa.float32(), 3)),
        **{f"wide {n}": pa.array(range(2000), pa.decimal128(30, 0)) for n in range(5)},
    }
    table = pa.table(columns)
    leaf = lance.write_dataset(table, tmp_path / "leaf")
    wanted = {
        name: with_id(n, name, table.schema.field(name).type) for n, name in enumerate(columns)
    }
    for names in (
        ["price"],
        ["price", "Some text"],
        ["Some text", "vector"],
        ["wide 1", "Some text"],
        [name for name in columns if name.startswith("wide")],
    ):
        for least in (-1, 1000, 1999, 5000):
            chosen = [wanted[name] for name in names]
            found = rows(
                leaf, chosen, f"`key` > {least}", namespace_schema=pa.schema(wanted.values())
            )
            assert found == table.select(names).slice(max(0, least + 1)).to_pylist()


@pytest.mark.parametrize("count", [1, 40, 5_000])
def test_few_rows_and_many_are_read_alike(tmp_path, count):
    """Few rows are read by their numbers, which count neither deleted rows nor files."""
    numbers = pa.table(
        {"a": range(count), "b": [None if row % 3 else f"{row}" for row in range(count)]}
    )
    dataset = lance.write_dataset(numbers, str(tmp_path / "leaf"), max_rows_per_file=1_000)
    dataset.insert(numbers)
    dataset.delete("a % 4 = 1")
    wanted = [with_id(1, "b", pa.utf8()), with_id(0, "a", pa.int64()), with_id(9, "c", pa.date32())]
    kept = [row for row in 2 * list(range(count)) if row % 4 != 1]
    expected = [{"b": None if row % 3 else f"{row}", "a": row, "c": None} for row in kept]
    assert rows(dataset, wanted) == expected
    assert rows(dataset, wanted, "`a` >= 0") == expected
    dataset.delete("true")
    assert rows(dataset, wanted) == []
