"""Each type of Arrow and Lance works through the life of a table, or is refused when it is made."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from lance.arrow import BFloat16Type
from lance.blob import Blob, blob_array, blob_field

import pennon
from pennon.errors import UnsupportedColumnType, UnsupportedTableChange, WriteTypeMismatch

if TYPE_CHECKING:
    from pathlib import Path

_BLOB = {"lance-encoding:blob": "true"}
_BIG = b"z" * 100_000
_PLAIN = [
    pa.list_(pa.float32(), 2),
    pa.list_(pa.float64(), 2),
    pa.list_(pa.float16(), 2),
    pa.list_(pa.uint8(), 2),
    pa.list_(pa.int8(), 2),
    pa.list_(pa.list_(pa.float32(), 2)),
    pa.struct([("v", pa.list_(pa.float32(), 2))]),
    pa.map_(pa.string(), pa.list_(pa.float32(), 2)),
    pa.list_(pa.float32()),
    pa.large_list(pa.int32()),
    pa.list_view(pa.int8()),
    pa.string_view(),
    pa.large_string(),
    pa.binary(3),
    pa.decimal32(5, 2),
    pa.decimal256(30, 2),
    pa.decimal256(50, 2),
    pa.time32("ms"),
    pa.time64("us"),
    pa.duration("us"),
    pa.timestamp("ns", "UTC"),
    pa.dictionary(pa.int8(), pa.string()),
]
_VALUES: dict[str, Any] = {
    "list": [1, 2],
    "list<item: list": [[1, 2]],
    "struct": {"v": [1, 2]},
    "map": [("a", [1.0, 2.0])],
    "decimal": Decimal("1.50"),
    "time3": dt.time(1),
    "time6": dt.time(1),
    "timestamp": dt.datetime(2025, 12, 10, tzinfo=dt.UTC),
    "duration": dt.timedelta(1),
    "fixed_size_binary": b"abc",
}


def _value(data_type: pa.DataType) -> Any:
    fitting = [
        start
        for start in _VALUES
        if str(data_type).replace("fixed_size_l", "l").replace("large_", "").startswith(start)
    ]
    return _VALUES[max(fitting, key=len)] if fitting else "a"


def _stored_by(kind: pa.BaseExtensionType, value: object) -> tuple[pa.Field, pa.Array, object]:
    values = pa.array([value, value, None], kind.storage_type)
    return pa.field("x", kind), pa.ExtensionArray.from_storage(kind, values), value


def _cases() -> dict[str, tuple[pa.Field, pa.Array, object]]:
    cases = {
        str(kind): (
            pa.field("x", kind),
            pa.array([_value(kind), _value(kind), None], kind),
            _value(kind),
        )
        for kind in _PLAIN
    }
    blobs = [_BIG, _BIG, None]
    return {
        **cases,
        "uuid": _stored_by(pa.uuid(), b"0123456789abcdef"),
        "json": _stored_by(pa.json_(), '{"a":1}'),
        "bool8": _stored_by(pa.bool8(), 1),
        "tensor": _stored_by(pa.fixed_shape_tensor(pa.float32(), [2, 1]), [1.0, 2.0]),
        "bfloat16": _stored_by(BFloat16Type(), b"\x80\x3f"),
        "opaque": _stored_by(pa.opaque(pa.int32(), "kind", "vendor"), 7),
        "blob v1": (pa.field("x", pa.large_binary(), metadata=_BLOB), pa.array(blobs), _BIG),
        "blob v1, small": (pa.field("x", pa.binary(), metadata=_BLOB), pa.array(blobs), _BIG),
        "blob v2": (blob_field("x"), blob_array(blobs), _BIG),
    }


_CASES = _cases()


_COPIED = (
    "uuid",
    "json",
    "tensor",
    "bfloat16",
    "blob v1",
    "blob v2",
    "fixed_size_list<item: float>[2]",
)
# Of these Lance itself makes no dataset.
_PENNONS = {"list_view<item: int8>", "string_view", "decimal32(5, 2)", "blob v1, small"}


@pytest.mark.parametrize(
    ("case", "mode"),
    [(case, "merge-on-read") for case in _CASES] + [(case, "copy-on-write") for case in _COPIED],
)
def test_a_column_lives_through_every_change(tmp_path: Path, case: str, mode: str) -> None:
    column, values, value = _CASES[case]
    columns = [pa.field("id", pa.int64()), pa.field("part", pa.string()), column]
    rows = pa.table([pa.array([1, 2, 3]), pa.array(["a", "b", "b"]), values], pa.schema(columns))
    path = tmp_path / "t"
    kept = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    table = pennon.create(path, rows.schema, ["part"], properties=kept)
    kind = table.schema.field("x").type
    table.append(rows)
    table.append(rows.slice(2))
    table.add_column("more", pa.int32())
    table.update({"part": "'c'"}, "id = 1")
    table.merge(rows.slice(1, 1), on="id").when_matched_update_all().execute()
    table.append(pa.table({"id": [4, 5], "part": ["b", "c"]}))
    table.delete("id = 4")
    assert table.scan("x IS NOT NULL").to_arrow().num_rows == 2
    assert table.scan("x IS NULL AND part = 'b'").to_arrow().num_rows == 2
    table.maintenance.compact()
    found = table.scan().to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [1, 2, 3, 3, 5]
    assert found["x"].to_pylist() == [value, value, None, None, None]
    told = table.scan().to_datafusion().to_arrow_table().sort_by("id")
    assert told["x"].to_pylist() == found["x"].to_pylist()
    assert pennon.open(path).schema.field("x").type == kind
    assert table.maintenance.check().is_valid
    late = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    table.maintenance.vacuum(older_than=late)
    table.maintenance.expire_snapshots(older_than=late, retain_last=1)
    table.maintenance.vacuum(older_than=late)
    assert table.scan().to_arrow().sort_by("id")["x"].to_pylist() == found["x"].to_pylist()


@pytest.mark.parametrize("case", [case for case in _CASES if case not in _PENNONS])
def test_a_plain_dataset_is_read_adopted_and_written(tmp_path: Path, case: str) -> None:
    column, values, value = _CASES[case]
    rows = pa.table([pa.array([1, 2, 3]), values], pa.schema([pa.field("id", pa.int64()), column]))
    lance.write_dataset(rows, tmp_path / "plain")
    plain = pennon.open(tmp_path / "plain")
    plain.append(rows.slice(2))
    plain.delete("id = 2")
    found = plain.scan().to_arrow().sort_by("id")
    assert found["x"].to_pylist() == [value, None, None]
    assert plain.scan("x IS NOT NULL").to_arrow()["id"].to_pylist() == [1]


_REFUSED = {
    "interval": pa.month_day_nano_interval(),
    "run ends": pa.run_end_encoded(pa.int32(), pa.string()),  # type: ignore[attr-defined]
    "union": pa.dense_union([pa.field("a", pa.int8())]),  # type: ignore[attr-defined]
    "a blob inside": pa.struct([blob_field("b")]),
}


@pytest.mark.parametrize("case", _REFUSED)
def test_a_type_without_counterpart_is_refused_at_the_making(tmp_path: Path, case: str) -> None:
    with pytest.raises(UnsupportedColumnType, match="column x: type .* has no counterpart"):
        pennon.create(tmp_path / "t", pa.schema([("x", _REFUSED[case])]))
    assert not (tmp_path / "t").exists()


def test_conditions_on_blobs_and_json_are_computed_on_their_values(tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("j", pa.json_()), blob_field("b")])
    table = pennon.create(tmp_path / "t", columns)
    texts = pa.array(['{"a":1}', "[]", None, '"x"'], pa.string())
    json = pa.ExtensionArray.from_storage(pa.json_(), texts)
    blobs = blob_array([_BIG, b"", None, b"q"])
    table.append(pa.table([pa.array([1, 2, 3, 4]), json, blobs], columns))
    for condition, ids in {
        "b = X'71'": [4],
        "b = X'71' OR id = 1": [1, 4],
        "b > X'71' AND id < 9": [1],
        "j = '[]'": [2],
        "j LIKE '%a%'": [1],
        "j IS NULL OR b = X''": [2, 3],
        "b IS NOT NULL AND id > 1": [2, 4],
    }.items():
        assert sorted(table.scan(condition).to_arrow()["id"].to_pylist()) == ids, condition
        assert table.scan(condition, columns=["j"]).to_arrow().num_rows == len(ids)


def test_a_blob_by_its_address_is_refused(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema([blob_field("b")]))
    with pytest.raises(WriteTypeMismatch, match="only bytes are stored"):
        table.append(pa.table({"b": blob_array([Blob.from_uri(f"file://{tmp_path}/image")])}))


def test_a_vector_of_another_length_names_both(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema([("v", pa.list_(pa.float32(), 3))]))
    for given in (pa.list_(pa.float32()), pa.list_(pa.float64(), 2)):
        rows = pa.table({"v": pa.array([None, [1.0, 2.0]], given)})
        with pytest.raises(WriteTypeMismatch, match="column v .* of 2 values is none of 3"):
            table.append(rows)


def test_an_added_column_becomes_a_vector_before_rows_have_it(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.add_column("v", pa.list_(pa.float32()))
    half = {"v.arrow.fixed-size-list.size": "2", "v.arrow.float16": "true"}
    table.set_properties(half)
    table.append(pa.table({"id": [2], "v": [[1.0, 2.0]]}))
    table.set_properties({**half, "team": "search"})
    table.maintenance.compact()
    assert table.schema.field("v").type == pa.list_(pa.float16(), 2)
    assert table.scan().to_arrow().sort_by("id")["v"].to_pylist() == [None, [1.0, 2.0]]
    with pytest.raises(UnsupportedTableChange, match=r"rows that have it as fixed_size_list"):
        table.set_properties({"v.arrow.fixed-size-list.size": "3"})
    with pytest.raises(UnsupportedTableChange, match="remove the property"):
        table.set_properties({"v.arrow.float16": None})
    table.add_column("w", pa.list_(pa.float32()))
    table.append(pa.table({"id": [3], "w": [[1.0]]}))
    with pytest.raises(UnsupportedTableChange, match="rows that have it as list"):
        table.set_properties({"w.arrow.fixed-size-list.size": "1"})


def test_vectors_and_blobs_are_added_to_a_table(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.add_column("v", pa.list_(pa.float16(), 2))
    table.add_column("b", blob_field("b").type)
    blob = os.urandom(70_000)
    rows = pa.table({"id": [2], "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32())), "b": [blob]})
    table.append(rows)
    assert table.schema.field("v").type == pa.list_(pa.float16(), 2)
    table.maintenance.compact()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "v": None, "b": None},
        {"id": 2, "v": [1.0, 2.0], "b": blob},
    ]
