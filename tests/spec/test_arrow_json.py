"""JsonArrowSchema: upstream's own spellings, ours, and what is refused."""

from __future__ import annotations

from pathlib import Path

import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance.blob import blob_field
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, DescribeTableRequest
from lance_namespace_urllib3_client.models import JsonArrowDataType

from pennon.errors import InvalidArrowJson
from pennon.spec.arrow_json import (
    BLOB,
    field_from_json,
    field_to_json,
    type_from_json,
    type_to_json,
)

TYPES = [
    pa.null(),
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.utf8(), pa.large_utf8(), pa.binary(), pa.large_binary(), pa.binary(5)),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.timestamp("us", zone) for zone in ("UTC", "Europe/Berlin", "+05:30")),
    pa.duration("us"),
    *(pa.decimal128(38, 10), pa.decimal128(10, 0), pa.decimal256(76, 5)),
    pa.list_(pa.int32()),
    pa.large_list(pa.field("el", pa.utf8(), nullable=False)),
    pa.list_(pa.float32(), 4),
    pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.list_(pa.utf8()))]),
    pa.map_(pa.utf8(), pa.struct({"q": pa.timestamp("us", "UTC")})),
]


@pytest.mark.spec("Metadata Definition 3", "Partition Field Schema 5", "reading 14")
@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_every_type_survives_json_and_upstreams_model(data_type: pa.DataType) -> None:
    written = type_to_json(data_type)
    through = JsonArrowDataType.from_dict(written)
    assert through is not None
    assert type_from_json(written) == data_type
    assert type_from_json(through.to_dict()) == data_type


@pytest.mark.spec("reading 14")
def test_upstreams_own_words_are_read(tmp_path: Path) -> None:
    # Upstream loses units, zones and dictionaries: what it says is read as its default.
    zoneless = pa.map_(pa.utf8(), pa.struct({"q": pa.timestamp("us")}))
    lost = {
        str(len(TYPES) - 1): zoneless,
        "t32": pa.time32("ms"),
        "t64": pa.time64("us"),
        "tz": pa.timestamp("us"),
    }
    columns = {str(at): kind for at, kind in enumerate(TYPES) if not pa.types.is_temporal(kind)}
    columns |= {"d32": pa.date32(), "d64": pa.date64(), "ts": pa.timestamp("us")}
    columns |= {"t32": pa.time32("s"), "t64": pa.time64("us"), "tz": pa.timestamp("us", "UTC")}
    upstream = lance_namespace.connect("dir", {"root": str(tmp_path)})
    upstream.create_namespace(CreateNamespaceRequest(id=["n"]))
    location = upstream.declare_table(DeclareTableRequest(id=["n", "t"])).location
    lance.write_dataset(pa.schema(columns).empty_table(), location)

    request = DescribeTableRequest(id=["n", "t"], load_detailed_metadata=True)
    described = upstream.describe_table(request).var_schema.to_dict()

    found = {field["name"]: field_from_json(field).type for field in described["fields"]}
    assert found == columns | lost


@pytest.mark.spec("reading 14")
@pytest.mark.parametrize(
    ("spelling", "wanted"),
    [
        ("timestamp", pa.timestamp("us")),
        ("timestamp[us, tz=UTC]", pa.timestamp("us", "UTC")),
        ("timestamp(us, UTC)", pa.timestamp("us", "UTC")),
        ("timestamp[ns,tz=America/New_York]", pa.timestamp("ns", "America/New_York")),
        ('Timestamp(Microsecond, Some("UTC"))', pa.timestamp("us", "UTC")),
        ("Timestamp(Nanosecond, None)", pa.timestamp("ns")),
        ("timestamp_tz", pa.timestamp("us", "UTC")),
        ("decimal128(10, 2)", pa.decimal128(10, 2)),
        ("string", pa.utf8()),
        ("Utf8", pa.utf8()),
        ("boolean", pa.bool_()),
        ("double", pa.float64()),
        ("date32[day]", pa.date32()),
        ("Int64", pa.int64()),
    ],
)
def test_other_spellings_are_read(spelling: str, wanted: pa.DataType) -> None:
    assert type_from_json({"type": spelling}) == wanted
    assert type_from_json(spelling) == wanted


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ({"type": "int33"}, r"type: found 'int33'"),
        ({"type": 5}, r"found \{'type': 5\}"),
        (None, "found None"),
        ({"type": "list"}, r"type\.fields: found None"),
        ({"type": "list", "fields": []}, "0 fields"),
        ({"type": "decimal128"}, r"type\.length: found None"),
        ({"type": "decimal128", "length": 99002}, "precision 99, scale 2"),
        ({"type": "timestamp[weeks]"}, "'weeks'"),
        ({"type": "time32[ns]"}, "'ns'"),
        ({"type": "struct", "fields": [{"type": "int8"}]}, r"type\.fields\[0\]\.name: found None"),
    ],
)
def test_what_is_no_type_is_refused_by_place(written: object, named: str) -> None:
    with pytest.raises(InvalidArrowJson, match=named):
        type_from_json(written)


def test_field_metadata_and_nullability_survive() -> None:
    field = pa.field("a", pa.int8(), nullable=False, metadata={"lance:field_id": "3", "ü": "ß"})
    back = field_from_json(field_to_json(field))
    assert back.equals(field, check_metadata=True)
    with pytest.raises(InvalidArrowJson, match="nullable"):
        field_from_json({"name": "a", "nullable": "yes", "type": {"type": "int8"}})


def test_extension_types_are_their_storage_with_their_name() -> None:
    tensor = field_to_json(pa.field("t", pa.fixed_shape_tensor(pa.float32(), [2, 1])))
    assert tensor["type"] == type_to_json(pa.list_(pa.float32(), 2))
    assert tensor["metadata"] == {
        "ARROW:extension:name": "arrow.fixed_shape_tensor",
        "ARROW:extension:metadata": '{"shape":[2,1]}',
    }
    for blob in (blob_field("b"), pa.field("b", pa.binary(), metadata={BLOB: b"true"})):
        written = field_to_json(blob)
        assert written["type"] == {"type": "large_binary"}
        assert written["metadata"] == {"lance-encoding:blob": "true"}
    struct = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    named = {"ARROW:extension:name": "lance.blob.v2"}
    others = {**field_to_json(pa.field("b", struct)), "metadata": named}
    assert field_to_json(field_from_json(others)) == written
