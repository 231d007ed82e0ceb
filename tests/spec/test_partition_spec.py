"""Partition specs: Appendix A and E word for word, every rule broken once, unknown keys."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from pennon.errors import CorruptJson, InvalidArrowJson, InvalidPartitionSpec
from pennon.spec import NamespaceSchema, PartitionSpec
from pennon.transforms.bucket import Bucket
from pennon.transforms.calendar import Year

GOLDEN = Path(__file__).parent.parent / "golden"
APPENDIX_A = json.loads((GOLDEN / "appendix_a.json").read_text(encoding="utf-8"))
APPENDIX_E = json.loads((GOLDEN / "appendix_e.json").read_text(encoding="utf-8"))

SCHEMA = NamespaceSchema.with_fresh_ids(
    pa.schema(
        {
            "id": pa.int64(),
            "event_date": pa.date32(),
            "country": pa.utf8(),
            "price": pa.float64(),
            "s": pa.struct({"x": pa.int32()}),
        }
    )
)


def field(**changes: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "field_id": "f",
        "source_ids": [0],
        "transform": {"type": "identity"},
        "result_type": {"type": "int64"},
    }
    return {name: value for name, value in {**plain, **changes}.items() if value is not ...}


def text(*fields: object, spec_version: object = 1, **extra: object) -> str:
    return json.dumps({"id": spec_version, "fields": fields, **extra})


def read(*fields: object, **extra: object) -> PartitionSpec:
    return PartitionSpec.from_json(text(*fields, **extra), "partition_spec_v1")


@pytest.mark.spec(
    "Appendix A 1",
    "Partition Spec Schema 1",
    "Partition Spec Schema 2",
    "Partition Field Schema 2",
    "Partition Field ID 2",
)
def test_both_specs_of_appendix_a_are_read_and_written_back() -> None:
    for number in (1, 2):
        key = f"partition_spec_v{number}"
        spec = PartitionSpec.from_json(json.dumps(APPENDIX_A[key]), key)
        assert json.loads(spec.to_json()) == APPENDIX_A[key]
        spec.check(NamespaceSchema.from_json(json.dumps(APPENDIX_A["schema"])))
    year, country = spec.fields
    assert (year.column, year.transform, year.result_type) == (
        "partition_field_event_year",
        Year(),
        pa.int32(),
    )
    assert country.source_ids == (2,)


@pytest.mark.spec("Appendix E 1")
def test_the_text_is_that_of_appendix_e_to_the_byte() -> None:
    spec = PartitionSpec.from_json(json.dumps(APPENDIX_A["partition_spec_v1"]))
    assert spec.to_json() == APPENDIX_E[0]["properties"]["partition_spec"]


@pytest.mark.spec(
    "Transform vs Expression 1",
    "Partition Field Schema 1",
    "Partition Field Schema 2",
    "Partition Field Schema 3",
    "Partition Field Schema 4",
    "Transform Schema 1",
    "Transform Schema 2",
    "Transform Schema 3",
    "reading 16",
)
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ([field(transform=...)], r"'f' has neither transform nor expression"),
        ([field(expression="col0")], r"'f' has both transform and expression"),
        ([field(transform=None)], "neither transform nor expression"),
        ([field(transform="identity")], r"transform of fields\[0\] 'f' has 'identity'"),
        ([field(transform={"type": "zorder"})], r"zorder.*identity"),
        ([field(transform={"type": "bucket"})], "num_buckets"),
        ([field(transform={"type": "bucket", "num_buckets": 0})], "bucket"),
        ([field(transform={"type": "truncate"})], "width"),
        ([field(transform=..., expression=5)], r"expression of fields\[0\] 'f' has 5"),
        ([field(result_type=...)], r"result_type of fields\[0\] 'f' has nothing"),
        ([field(source_ids="0")], r"source_ids of fields\[0\] 'f' has '0'"),
        ([field(source_ids=[])], r"source_ids of fields\[0\] 'f' has \[\]"),
        ([field(source_ids=[True])], "source_ids"),
        ([field(field_id="")], r"fields\[0\]\.field_id has ''"),
        ([field(field_id=7)], r"fields\[0\]\.field_id has 7"),
        ([field(), field()], "field_id of field 'f' has f, expected an id of its own"),
        ([field(), field(field_id="g")], "'g' has the derivation of field 'f'"),
        ([None], r"fields\[0\] has None"),
    ],
)
def test_a_broken_rule_names_key_field_and_value(fields: list[object], named: str) -> None:
    with pytest.raises(InvalidPartitionSpec, match=rf"Cannot use partition_spec_v1: .*{named}"):
        read(*fields)


@pytest.mark.spec("Field ID Reuse 1", "reading 17")
def test_equal_expressions_are_one_derivation_however_they_are_written() -> None:
    one = field(transform=..., expression="lower(col0)")
    other = field(transform=..., expression="LOWER( col0 )", field_id="g")
    with pytest.raises(InvalidPartitionSpec, match="'g' has the derivation of field 'f'"):
        read(one, other)


@pytest.mark.spec("Partition Field Schema 5")
def test_a_bad_result_type_names_its_field() -> None:
    with pytest.raises(InvalidArrowJson, match=r"partition_spec_v1: result_type of .*'f'.*int33"):
        read(field(result_type={"type": "int33"}))


@pytest.mark.spec("Partition Spec Schema 1")
@pytest.mark.parametrize("spec_version", [2, "1", None, True])
def test_an_id_that_is_not_the_keys_is_refused(spec_version: object) -> None:
    with pytest.raises(InvalidPartitionSpec, match="partition_spec_v1: id has"):
        read(spec_version=spec_version)


def test_corrupt_json_names_line_and_column() -> None:
    with pytest.raises(CorruptJson, match=r"partition_spec_v1 .* line 2, column 3"):
        PartitionSpec.from_json('{"id": 1,\n  fields: []}', "partition_spec_v1")


@pytest.mark.spec("Partition Field Schema 5", "Partition Expression 9")
@pytest.mark.parametrize(
    ("declared", "natural"),
    [
        (field(result_type={"type": "utf8"}), "int64"),
        (
            field(transform={"type": "bucket", "num_buckets": 4}, result_type={"type": "utf8"}),
            "int32",
        ),
        (field(transform={"type": "year"}), "takes|year"),
        (field(source_ids=[3], transform={"type": "bucket", "num_buckets": 4}), "double|float"),
        (field(transform=..., expression="lower(col0)", source_ids=[2]), "string"),
        (field(transform=..., expression="no_such_function(col0)"), "no_such_function"),
        (field(transform=..., expression="col1"), "col1"),
    ],
)
def test_a_result_type_that_the_transform_does_not_give_is_refused(
    declared: dict[str, object], natural: str
) -> None:
    spec = read(declared)
    with pytest.raises(InvalidPartitionSpec, match=rf"of field 'f'.*({natural})"):
        spec.check(SCHEMA)


@pytest.mark.spec("Partition Expression 7", "reading 18", "reading 21", "reading 40")
@pytest.mark.parametrize(
    "legal",
    [
        # The column was promoted, the spec is older.
        field(result_type={"type": "int32"}),
        field(transform={"type": "bucket", "num_buckets": 4}, result_type={"type": "int32"}),
        # A dropped column is a column of NULLs.
        field(source_ids=[77], transform={"type": "year"}, result_type={"type": "int32"}),
        field(source_ids=[0, 77], transform={"type": "multi_bucket", "num_buckets": 4},
              result_type={"type": "int32"}),
        # A field inside a struct.
        field(source_ids=[5], result_type={"type": "int32"}),
        field(source_ids=[2], transform=..., expression="lower(col0)",
              result_type={"type": "utf8"}),
    ],
)  # fmt: skip
def test_what_promotion_removal_and_nesting_leave_is_legal(legal: dict[str, object]) -> None:
    read(legal).check(SCHEMA)


@pytest.mark.spec("reading 15")
def test_no_field_at_all_is_legal() -> None:
    assert read().fields == ()


@pytest.mark.spec("reading 20")
def test_unknown_keys_survive_in_spec_field_and_transform() -> None:
    written = {
        "id": 1,
        "fields": [
            {
                "field_id": "b",
                "source_ids": [0],
                "transform": {"type": "bucket", "num_buckets": 16, "hash": "murmur3"},
                "result_type": {"type": "int32"},
                "comment": {"by": "other"},
            }
        ],
        "sort": ["b"],
    }
    spec = PartitionSpec.from_json(json.dumps(written), "partition_spec_v1")
    assert spec.fields[0].transform == Bucket(16)
    assert json.loads(spec.to_json()) == written


@pytest.mark.spec("reading 20")
def test_a_null_transform_is_an_absent_one() -> None:
    spec = read(field(transform=None, expression="col0 + 1"))
    assert spec.fields[0].derivation.apply([pa.array([1, None])]).to_pylist() == [2, None]
    assert "transform" not in json.loads(spec.to_json())["fields"][0]
