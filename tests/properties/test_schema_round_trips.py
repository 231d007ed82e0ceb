# ruff: noqa: RUF001, S311 - zone-less times, odd letters, a generator to be repeated
"""Schemas of every type that Lance stores: as JSON, through upstream's model, with real rows."""

from __future__ import annotations

import copy
import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from random import Random

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_namespace_urllib3_client.models import JsonArrowSchema
from tests.present import present
from tests.spec.test_arrow_json import TYPES
from tests.transaction.lake import append, latest, make

from pennon.namespace import Scan
from pennon.spec import NamespaceSchema
from pennon.spec.arrow_json import field_from_json

_NAMES = st.text(st.sampled_from("abcé𝒳 .$_"), min_size=1, max_size=4)
_PLAIN = [kind for kind in TYPES if not pa.types.is_nested(kind)]


def _fields(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.Field]:
    # Arrow takes no NOT NULL of the null type
    return st.builds(
        lambda name, kind, nullable: pa.field(name, kind, nullable or pa.types.is_null(kind)),
        _NAMES,
        types,
        st.booleans(),
    )


def _nested(below: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    structs = st.lists(_fields(below), min_size=1, max_size=3, unique_by=lambda field: field.name)
    return st.one_of(
        structs.map(pa.struct),
        _fields(below).map(pa.list_),
        _fields(below).map(pa.large_list),
        st.builds(pa.list_, _fields(below), st.integers(1, 8)),
        st.builds(pa.map_, st.sampled_from([pa.utf8(), pa.int32()]), below),
    )


_types = st.recursive(st.sampled_from(_PLAIN), _nested, max_leaves=5)
_schemas = st.lists(
    _fields(_types), min_size=1, max_size=5, unique_by=lambda field: field.name.lower()
).map(pa.schema)
_unknown = st.dictionaries(
    st.sampled_from(["collation", "tags", "doc", "x-é"]),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists),
    max_size=2,
)


@settings(max_examples=60, deadline=None)
@given(_schemas)
def test_every_schema_is_read_back_with_its_ids(schema: pa.Schema) -> None:
    numbered = NamespaceSchema.with_fresh_ids(schema)
    back = NamespaceSchema.from_json(numbered.to_json())
    assert back.arrow.equals(numbered.arrow, check_metadata=True)
    assert len({field.id for field in back.fields}) == len(back.fields)
    through = JsonArrowSchema.from_dict(json.loads(numbered.to_json()))
    assert through is not None
    fields = [field_from_json(field) for field in through.to_dict()["fields"]]
    assert pa.schema(fields).equals(numbered.arrow.remove_metadata(), check_metadata=True)
    added = pa.field("another one", pa.int8())
    evolved = numbered.evolved(pa.schema([*numbered.arrow][1:]).append(added))
    assert present(evolved.field_by_path(["another one"])).id == numbered.highest_id + 1


@settings(max_examples=60, deadline=None)
@given(_schemas, st.data())
def test_unknown_keys_of_fields_and_types_survive_a_rewrite(
    schema: pa.Schema, asked: st.DataObject
) -> None:
    written = json.loads(NamespaceSchema.with_fresh_ids(schema).to_json())
    written.update(asked.draw(_unknown))
    for column in written["fields"]:
        _mark(column, asked)
    rewritten = NamespaceSchema.from_json(json.dumps(written))
    assert json.loads(rewritten.to_json()) == written
    # a renamed column keeps them, and so do the others
    first = rewritten.arrow.field(0).with_name("renamed now")
    renamed = rewritten.evolved(pa.schema([first, *list(rewritten.arrow)[1:]]))
    wanted = copy.deepcopy(written)
    wanted["fields"][0]["name"] = "renamed now"
    assert json.loads(renamed.to_json())["fields"] == wanted["fields"]


def _mark(written: dict[str, object], asked: st.DataObject) -> None:
    written.update(asked.draw(_unknown))
    data_type = written["type"]
    assert isinstance(data_type, dict)
    data_type.update(asked.draw(_unknown))
    for child in data_type.get("fields", ()):
        _mark(child, asked)


_STORED = [
    *(kind for kind in TYPES if kind != pa.struct([])),
    pa.dictionary(pa.int8(), pa.utf8()),
    pa.struct([("d", pa.dictionary(pa.int16(), pa.int64()))]),
    pa.list_(pa.dictionary(pa.int8(), pa.utf8())),
    pa.list_(pa.float16(), 8),
    pa.list_(pa.list_(pa.float32(), 4)),
    pa.list_(pa.list_(pa.float32(), 4), 2),
    pa.struct([("v", pa.list_(pa.float32(), 3)), ("m", pa.map_(pa.utf8(), pa.int8()))]),
    pa.list_(pa.struct([("a", pa.list_(pa.struct([("b", pa.timestamp("ns", "Asia/Tokyo"))])))])),
    pa.map_(pa.int32(), pa.list_(pa.decimal128(5, 1))),
    pa.large_list(pa.list_(pa.int8())),
]


@pytest.mark.spec("Schema 1", "Metadata Definition 3", "reading 12", "reading 14")
def test_rows_of_every_type_that_lance_stores_come_back(tmp_path: Path) -> None:
    random = Random(4)
    columns = {f"c{at}": kind for at, kind in enumerate(_STORED)}
    schema = pa.schema([("id", pa.int64()), ("region", pa.utf8()), *columns.items()])
    arrays = [pa.array([_value(kind, random) for _ in range(4)] + [None], kind) for kind in _STORED]
    ids, regions = pa.array(range(5), pa.int64()), pa.array(["eu", "us", None, "eu", "us"])
    rows = pa.RecordBatch.from_arrays([ids, regions, *arrays], schema=schema)
    snapshot = latest(append(make(tmp_path, schema), rows))
    assert snapshot.schema == NamespaceSchema.with_fresh_ids(schema)
    found = Scan(snapshot).to_arrow().sort_by("id")
    for name in schema.names:
        assert found[name].to_pylist() == rows.column(name).to_pylist(), schema.field(name)
    # another client that knows nothing of the namespace sees the same rows in the leaves
    leaves = [
        lance.dataset(f"{snapshot.location}/{leaf['location']}", version=leaf["read_version"])
        for leaf in snapshot.leaves().table.to_pylist()
    ]
    alone = pa.concat_tables([leaf.to_table() for leaf in leaves]).sort_by("id")
    for name in schema.names:
        assert alone[name].to_pylist() == rows.column(name).to_pylist(), schema.field(name)
    for leaf in leaves:
        for stated, wanted in zip(leaf.schema, snapshot.schema.arrow, strict=True):
            assert stated.metadata == wanted.metadata, wanted


def _value(kind: pa.DataType, random: Random) -> object:
    is_type, number = pa.types, random.randrange(100)
    if is_type.is_null(kind):
        return None
    if is_type.is_boolean(kind):
        return number % 2 == 0
    if is_type.is_integer(kind):
        return number
    if is_type.is_float16(kind):
        return np.float16(number)
    if is_type.is_floating(kind):
        return number / 4
    if is_type.is_decimal(kind):
        return Decimal(number)
    if is_type.is_date(kind):
        return dt.date(1970, 1, 1) - dt.timedelta(days=number)
    if is_type.is_time(kind):
        return dt.time(number % 24, 5)
    if is_type.is_timestamp(kind):
        return dt.datetime(1969, 12, 31, number % 24, tzinfo=dt.UTC if kind.tz else None)
    if is_type.is_duration(kind):
        return dt.timedelta(seconds=number)
    if is_type.is_dictionary(kind):
        return _value(kind.value_type, random)
    if is_type.is_fixed_size_list(kind):
        return [_value(kind.value_type, random) for _ in range(kind.list_size)]
    if is_type.is_map(kind):
        return [(_value(kind.key_type, random), _value(kind.item_type, random))]
    if is_type.is_struct(kind):
        return {field.name: _value(field.type, random) for field in kind}
    if is_type.is_nested(kind):
        return [_value(kind.value_type, random) for _ in range(number % 3)]
    if is_type.is_fixed_size_binary(kind):
        return bytes([number] * kind.byte_width)
    text = f"{number} 𝒳"
    is_text = is_type.is_string(kind) or is_type.is_large_string(kind)
    return text if is_text else text.encode()
