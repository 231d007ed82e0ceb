"""What a caller of Python hands over in another form, or by mistake: rows, names, addresses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import lance
import pandas as pd
import pyarrow as pa
import pytest

import pennon
from pennon.errors import (
    FragmentOverflow,
    SchemaNotUnderstood,
    SchemeNotSupported,
    TableWithoutColumns,
    TextNotUtf8,
    ValuesNotUnderstood,
    WriteColumnTwice,
    WriteColumnUnknown,
    WriteTypeMismatch,
)


def test_dicts_need_not_have_the_same_keys(tmp_path: Path) -> None:
    """Arrow takes the columns of the first one alone, and leaves out what only others have."""
    schema = pa.schema([("id", pa.int64()), ("customer", pa.string())])
    table = pennon.create(tmp_path / "t", schema, ["customer"])
    table.append([{"id": 1}, {"customer": "a", "id": 2}, {"customer": "b"}])
    found = table.scan().to_arrow().sort_by("customer").to_pylist()
    assert found == [
        {"id": 2, "customer": "a"},
        {"id": None, "customer": "b"},
        {"id": 1, "customer": None},
    ]
    with pytest.raises(WriteColumnUnknown, match="column custmer to"):
        table.append([{"id": 1}, {"id": 2, "custmer": "c"}])


NOT_UTF8 = pa.Array.from_buffers(
    pa.utf8(), 2, [None, pa.array([0, 4, 5], pa.int32()).buffers()[1], pa.py_buffer(b"caf\xe9a")]
)


@pytest.mark.parametrize(
    "texts",
    [
        NOT_UTF8,
        pa.StructArray.from_arrays([NOT_UTF8], ["s"]),
        pa.ListArray.from_arrays([0, 1, 2], NOT_UTF8),
        pa.FixedSizeListArray.from_arrays(NOT_UTF8, 1),
        pa.MapArray.from_arrays([0, 1, 2], pa.array(["a", "b"]), NOT_UTF8),
    ],
    ids=["text", "struct", "list", "list of one", "map"],
)
@pytest.mark.parametrize("is_partitioned", [True, False])
def test_texts_that_are_none_are_refused(
    tmp_path: Path, texts: pa.Array, *, is_partitioned: bool
) -> None:
    """Lance takes them, and no row of the leaf can be read afterwards."""
    rows = pa.table({"id": pa.array([1, 2]), "t": texts})
    partition_by = ["bucket(2, id)"] if is_partitioned else []
    table = pennon.connect(tmp_path).create_table("t", rows.schema, partition_by=partition_by)
    with pytest.raises(TextNotUtf8, match="column t"):
        table.append(rows)
    assert not table.scan().to_arrow().num_rows


def test_dicts_within_rows_are_maps_where_the_column_is_one(tmp_path: Path) -> None:
    """Arrow takes each dict for a struct, of which no map is made."""
    tags = pa.map_(pa.string(), pa.int32())
    deep = pa.list_(pa.struct({"name": pa.string(), "by_day": pa.map_(pa.date32(), tags)}))
    schema = pa.schema({"id": pa.int64(), "tags": tags, "deep": deep})
    table = pennon.create(tmp_path / "t", schema, ["id"])
    day = date(2025, 12, 10)
    inner = [{"name": "a", "by_day": {day: {"x": 1}}}, {"by_day": None}, None]
    table.append(
        [
            {"id": 1, "tags": {"a": 1, "b": None}, "deep": inner},
            {"id": 2, "tags": None, "deep": None},
            {"id": 3, "tags": {}, "deep": []},
        ]
    )
    table.append([{"id": 4, "TAGS": [("c", 3)]}])
    changes = table.merge([{"id": 2, "tags": {"d": 4}}], "id")
    changes.when_matched_update_all().execute()
    held = [
        {"name": "a", "by_day": [(day, [("x", 1)])]},
        {"name": None, "by_day": None},
        None,
    ]
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "tags": [("a", 1), ("b", None)], "deep": held},
        {"id": 2, "tags": [("d", 4)], "deep": None},
        {"id": 3, "tags": [], "deep": []},
        {"id": 4, "tags": [("c", 3)], "deep": None},
    ]
    for wrong, error in (
        ({"tags": 7}, ValuesNotUnderstood),
        ({"tags": {"a": "many"}}, WriteTypeMismatch),
        ({"tags": {None: 1}}, ValuesNotUnderstood),
        ({"deep": [{"nam": "a"}]}, WriteColumnUnknown),
        ({"deep": [{"by_day": {}}, "a"]}, ValuesNotUnderstood),
    ):
        with pytest.raises(error, match=rf"{next(iter(wrong))}"):
            table.append([wrong])


def test_tables_need_not_have_the_same_columns(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("customer", pa.string())])
    table = pennon.create(tmp_path / "t", schema, ["customer"])
    parts = [pa.table({"id": [1]}), pa.table({"customer": ["a"], "ID": [2]})]
    wanted = [{"id": 1, "customer": None}, {"id": 2, "customer": "a"}]
    table.append(parts)
    assert table.scan().to_arrow().sort_by("id").to_pylist() == wanted
    table.update({"customer": "'b'"})
    table.merge(parts, "id").when_matched_update_all().execute()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == wanted


@pytest.mark.parametrize("wrong", [2**70, "\ud800"])
def test_a_value_that_arrow_cannot_hold_is_told_by_its_column(
    tmp_path: Path, wrong: object
) -> None:
    table = pennon.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    with pytest.raises(ValuesNotUnderstood, match="Cannot read the values of id: "):
        table.append([{"id": wrong}])
    with pytest.raises(ValuesNotUnderstood, match="Cannot read the values of id: "):
        table.append([{"id": 1}, {"id": [1]}])


def test_one_name_stands_for_a_list_of_one(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("customer", pa.string())])
    table = pennon.create(tmp_path / "t", schema, "customer")
    table.append([{"id": 1, "customer": "a"}])
    assert [field.field_id for field in table.spec.fields] == ["customer"]
    assert table.scan(columns="id").to_arrow().to_pylist() == [{"id": 1}]


def test_a_schema_has_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(SchemaNotUnderstood, match="from builtins.dict: "):
        pennon.create(tmp_path / "t", {"id": "int"})  # type: ignore[arg-type]


def test_an_address_of_an_unknown_kind_is_not_called_damaged() -> None:
    with pytest.raises(SchemeNotSupported, match="no store of the scheme foo") as raised:
        pennon.open("foo://bucket/lake")
    assert "damaged" not in str(raised.value)


def test_rows_without_a_value_are_rows_all_the_same(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"region": pa.string()}), ["region"])
    table.append([{}, {}])
    assert table.scan().to_arrow().to_pylist() == [{"region": None}] * 2
    bare = pennon.create(tmp_path / "bare", pa.schema([]))
    with pytest.raises(TableWithoutColumns, match="Cannot write 2 rows"):
        bare.append([{}, {}])


def test_a_column_that_is_given_twice_is_said_to_be(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64(), "v": pa.int64()}))
    table.append([{"id": 1, "v": 1}])
    with pytest.raises(WriteColumnTwice, match="Cannot write column ID "):
        table.append([{"id": 1, "ID": 2}])
    with pytest.raises(WriteColumnTwice, match="Cannot write column V "):
        table.update({"v": 5, "V": 6})
    merge = table.merge([{"id": 1, "v": 7}], on=["id", "ID"]).when_matched_update_all()
    assert merge.execute().num_updated_rows == 1
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "v": 7}]


@pytest.mark.parametrize("layout", ["partitioned", "plain"])
def test_what_fails_while_rows_are_made_comes_to_the_caller_as_it_is(
    tmp_path: Path, layout: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("customer", pa.string())])
    if layout == "plain":
        lance.write_dataset(schema.empty_table(), str(tmp_path / "t"))
    else:
        pennon.create(tmp_path / "t", schema, ["customer"])
    table = pennon.open(tmp_path / "t")

    def breaking(rows: int) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([{"id": 1, "customer": "a"}] * rows, schema)
        raise KeyError("customer")

    for rows in (0, 1):
        with pytest.raises(KeyError, match="customer"):
            table.append(breaking(rows))
        with pytest.raises(KeyError, match="customer"):
            table.overwrite(breaking(rows))
    with pytest.raises(WriteColumnUnknown, match="column custmer to"):
        table.append([{"custmer": "c"}])
    with pytest.raises(WriteTypeMismatch, match="string to column id"):
        table.append([{"id": "one"}])
    table.append([{"id": 2**63 - 1, "customer": "a"}])
    with pytest.raises(FragmentOverflow):
        table.update({"id": "id + 1"})
    assert table.scan().to_arrow()["id"].to_pylist() == [2**63 - 1]


def test_what_pandas_reads_can_be_written_back(tmp_path: Path) -> None:
    counts = pa.map_(pa.string(), pa.int64())
    schema = pa.schema(
        {
            "id": pa.int64(),
            "tags": counts,
            "many": pa.list_(counts),
            "deep": pa.struct({"tags": counts, "n": pa.list_(pa.int64())}),
        }
    )
    table = pennon.create(tmp_path / "t", schema)
    rows = [
        {"id": 1, "tags": {"k": 1}, "many": [{"a": 2}, {}], "deep": {"tags": {"b": 3}, "n": [4]}},
        {"id": 2},
        {"id": 3, "tags": {}, "many": [], "deep": {"tags": None, "n": None}},
    ]
    table.append(rows)
    read = table.scan().to_arrow().sort_by("id")
    table.overwrite(table.scan().to_pandas())
    assert table.scan().to_arrow().sort_by("id").equals(read)
    frame = table.scan().to_pandas()[["tags", "id"]]
    frame.loc[frame["id"] == 2, "tags"] = float("nan")  # as a join of pandas leaves it
    table.overwrite(frame)
    expected = read.select(["tags"])
    assert table.scan(columns=["id", "tags"]).to_arrow().sort_by("id").select(["tags"]) == expected


def test_objects_of_pandas_of_no_one_type_are_told_by_their_column(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int64(), "tags": pa.map_(pa.string(), pa.int64())})
    table = pennon.create(tmp_path / "t", schema)
    for column, values in {"id": [1, "a"], "tags": [7, {}], "other": [1, b"x"]}.items():
        frame = pd.DataFrame({"x": [1, 2], column: values})
        with pytest.raises(ValuesNotUnderstood, match=f"Cannot read the values of {column}: "):
            table.append(frame)
    frame = pd.DataFrame({"id": [1, "a"], "tags": [{}, {}]})
    with pytest.raises(ValuesNotUnderstood, match="Cannot read the values of id: "):
        table.append(frame)
