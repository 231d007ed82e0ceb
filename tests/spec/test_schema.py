"""Namespace schema: Appendix A word for word, ids that are never reused, unknown keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pennon.errors import CorruptJson, InvalidNamespaceSchema
from pennon.spec import NamespaceSchema

APPENDIX_A = json.loads(
    (Path(__file__).parent.parent / "golden" / "appendix_a.json").read_text(encoding="utf-8")
)


@pytest.mark.spec("Appendix A 2", "Schema 3")
def test_appendix_a_is_read_and_written_back() -> None:
    schema = NamespaceSchema.from_json(json.dumps(APPENDIX_A["schema"]))
    assert json.loads(schema.to_json()) == APPENDIX_A["schema"]
    plain = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("event_date", pa.date32()),
            pa.field("country", pa.utf8()),
        ]
    )
    assert schema.arrow.equals(plain)
    assert schema == NamespaceSchema.with_fresh_ids(plain)
    assert str(schema.field_by_id(2)) == "country"
    assert schema.field_by_id(3) is None


@pytest.mark.spec("Schema 4")
def test_ids_are_never_given_again_even_when_the_highest_was_dropped() -> None:
    first = NamespaceSchema.with_fresh_ids(
        pa.schema({"a": pa.int8(), "s": pa.struct({"x": pa.int8()})})
    )
    assert [field.id for field in first.fields] == [0, 1, 2]
    only_a = first.evolved(pa.schema([first.arrow.field("a")]))
    reopened = NamespaceSchema.from_json(only_a.to_json())
    assert json.loads(reopened.to_json())["metadata"] == {"pennon:highest_field_id": "2"}
    again = reopened.evolved(
        pa.schema([*reopened.arrow, pa.field("s", pa.map_(pa.utf8(), pa.int8()))])
    )
    assert [(str(field), field.id) for field in again.fields] == [
        ("a", 0),
        ("s", 3),
        ("s.key", 5),
        ("s.value", 6),
    ]
    dropped = NamespaceSchema.from_json(
        again.evolved(pa.schema([again.arrow.field("a")])).to_json()
    )
    assert dropped.highest_id == 6


@pytest.mark.spec("reading 12")
def test_a_map_of_the_highest_id_keeps_its_hidden_level() -> None:
    # A map's "entries" level has an id between the map's and its key's.
    first = NamespaceSchema.with_fresh_ids(pa.schema({"m": pa.map_(pa.utf8(), pa.int8())}))
    added = first.evolved(pa.schema([*first.arrow, pa.field("b", pa.int8())]))
    assert added.field_by_path(["b"]) is not None
    assert [field.id for field in added.fields] == [0, 2, 3, 4]


@pytest.mark.spec("Schema 6", "Source Field IDs 1", "Source Field IDs 2")
def test_renamed_and_retyped_fields_keep_their_ids() -> None:
    first = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int32(), "b": pa.utf8()}))
    renamed = first.arrow.field("a").with_name("z").with_type(pa.int64())
    second = first.evolved(pa.schema([first.arrow.field("b"), renamed]))
    found = second.field_by_id(0)
    assert found is not None
    assert (found.path, found.field.type) == (("z",), pa.int64())


def test_names_are_found_exactly_and_else_without_case_when_unique() -> None:
    schema = NamespaceSchema.with_fresh_ids(
        pa.schema(
            {"Id": pa.int8(), "a": pa.int8(), "A": pa.int16(), "s": pa.struct({"X": pa.int8()})}
        )
    )
    assert str(schema.field_by_path(["id"])) == "Id"
    assert str(schema.field_by_path(["S", "x"])) == "s.X"
    exact = schema.field_by_path(["A"])
    assert exact is not None
    assert exact.field.type == pa.int16()
    doubled = NamespaceSchema.with_fresh_ids(pa.schema({"aa": pa.int8(), "aA": pa.int8()}))
    assert doubled.field_by_path(["AA"]) is None


def test_keys_that_are_not_known_survive_at_every_depth() -> None:
    written: dict[str, Any] = {
        "fields": [
            {
                "name": "s",
                "nullable": True,
                "type": {
                    "type": "struct",
                    "fields": [
                        {
                            "name": "x",
                            "nullable": True,
                            "type": {"type": "int8"},
                            "metadata": {"lance:field_id": "1", "comment": "inner"},
                            "collation": "de",
                        }
                    ],
                },
                "metadata": {"lance:field_id": "0"},
                "tags": ["pii"],
            }
        ],
        "metadata": {"owner": "x"},
        "generation": 7,
    }
    schema = NamespaceSchema.from_json(json.dumps(written))
    assert json.loads(schema.to_json()) == written
    evolved = schema.evolved(pa.schema([*schema.arrow, pa.field("n", pa.int8())]))
    kept = json.loads(evolved.to_json())
    assert kept["generation"] == 7
    assert kept["fields"][0] == written["fields"][0]


@pytest.mark.spec("Schema 3")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ([{"name": "a", "nullable": True, "type": {"type": "int8"}}], "'a' has no lance:field_id"),
        (
            [
                {
                    "name": n,
                    "nullable": True,
                    "type": {"type": "int8"},
                    "metadata": {"lance:field_id": "1"},
                }
                for n in "ab"
            ],
            "'b' has lance:field_id 1, also the id of 'a'",
        ),
        (
            [
                {
                    "name": "a",
                    "nullable": True,
                    "type": {"type": "int8"},
                    "metadata": {"lance:field_id": "-1"},
                }
            ],
            "lance:field_id '-1'",
        ),
        ("none", "schema.fields has 'none'"),
    ],
)
def test_a_schema_that_breaks_a_rule_names_field_and_value(fields: object, named: str) -> None:
    with pytest.raises(InvalidNamespaceSchema, match=named):
        NamespaceSchema.from_json(json.dumps({"fields": fields}))


def test_corrupt_json_is_named_with_its_position() -> None:
    with pytest.raises(CorruptJson, match="key schema .* line 3, column 1"):
        NamespaceSchema.from_json('{"fields":\n[\n')
    with pytest.raises(CorruptJson, match="expected an object"):
        NamespaceSchema.from_json("[]")
