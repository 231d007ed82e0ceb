"""Spark's types in Arrow and back; the truth for Spark's own are Spark's own conversions."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type
from tests.present import present

from pennon.catalog.columns.projected_columns import column_paths, with_field_ids
from pennon.catalog.columns.spark_types import arrow_schema, arrow_type, spark_schema
from pennon.errors import UnknownColumn, UnsupportedColumnType
from pennon.spec.schema import NamespaceSchema

INNER = t.StructType(
    [t.StructField("x", t.DecimalType(20, 3)), t.StructField("y", t.StringType(), False)]
)
EVERY = [
    t.BooleanType(),
    t.ByteType(),
    t.ShortType(),
    t.IntegerType(),
    t.LongType(),
    t.FloatType(),
    t.DoubleType(),
    t.DecimalType(38, 18),
    t.StringType(),
    t.BinaryType(),
    t.DateType(),
    t.TimestampType(),
    t.TimestampNTZType(),
    INNER,
    t.ArrayType(INNER, False),
    t.MapType(t.StringType(), t.ArrayType(t.LongType()), True),
]


@pytest.mark.parametrize("kind", EVERY, ids=str)
def test_types_are_those_of_sparks_own_conversion_and_come_back(kind: t.DataType) -> None:
    struct = t.StructType([t.StructField("c", kind)])
    arrow = arrow_schema(struct.json())
    assert with_plain_names(arrow.field("c").type) == with_plain_names(
        to_arrow_type(kind, timezone="UTC")
    )
    assert t.StructType.fromJson(spark_schema(arrow)) == struct


def with_plain_names(kind: pa.DataType) -> str:
    return str(kind).replace("element:", "item:")


def test_metadata_survives_and_our_own_is_not_shown() -> None:
    metadata = {"comment": "c", "CURRENT_DEFAULT": "1", "n": 3, "o": {"p": [1]}}
    struct = {
        "type": "struct",
        "fields": [{"name": "a", "type": "long", "nullable": False, "metadata": metadata}],
    }
    schema = NamespaceSchema.from_json(
        NamespaceSchema.with_fresh_ids(arrow_schema(struct)).to_json()
    )
    assert spark_schema(schema.arrow) == struct


@pytest.mark.parametrize(
    "kind", ["variant", "interval day to second", "void", "time(1)", "geometry(4326)"]
)
def test_a_type_that_lance_does_not_store_names_its_column(kind: str) -> None:
    inner = {
        "type": "struct",
        "fields": [{"name": "b", "type": kind, "nullable": True, "metadata": {}}],
    }
    struct = {
        "type": "struct",
        "fields": [{"name": "a", "type": inner, "nullable": True, "metadata": {}}],
    }
    with pytest.raises(UnsupportedColumnType, match=r"a\.b"):
        arrow_schema(json.dumps(struct))


def test_types_of_other_writers_have_a_spark_type_or_name_their_column() -> None:
    arrow = pa.schema(
        {
            "u": pa.uint64(),
            "v": pa.list_(pa.float16(), 3),
            "d": pa.dictionary(pa.int8(), pa.large_utf8()),
            "ns": pa.timestamp("ns"),
        }
    )
    fields: Any = spark_schema(arrow)["fields"]
    kinds = [row["type"] for row in fields]
    assert kinds == [
        "decimal(20,0)",
        {"type": "array", "elementType": "float", "containsNull": True},
        "string",
        "timestamp_ntz",
    ]
    with pytest.raises(UnsupportedColumnType, match="column w"):
        spark_schema(pa.schema({"w": pa.duration("us")}))


@pytest.mark.parametrize("kind", [t.StringType("UTF8_LCASE"), t.ArrayType(t.StringType("UNICODE"))])
def test_collations_are_refused_and_that_of_bytes_is_text(kind: t.DataType) -> None:
    with pytest.raises(UnsupportedColumnType, match="COLLATE (UTF8_LCASE|UNICODE) has no"):
        arrow_schema(t.StructType([t.StructField("s", kind)]).json())
    with pytest.raises(UnsupportedColumnType, match="collate UTF8_LCASE"):
        arrow_type('"string collate UTF8_LCASE"', "s")
    assert arrow_type('"string collate UTF8_BINARY"', "s") == pa.utf8()


def test_a_pruned_schema_gets_the_ids_of_the_full_one() -> None:
    full = arrow_schema(
        t.StructType([t.StructField("a", INNER), t.StructField("b", t.ArrayType(INNER))]).json()
    )
    ids = NamespaceSchema.with_fresh_ids(full)
    pruned = pa.schema(
        {"b": pa.list_(pa.struct({"y": pa.utf8()})), "a": pa.struct({"y": pa.utf8()})}
    )
    wanted = with_field_ids(pruned, ids.arrow)
    assert (
        wanted.field("a").type.field("y").metadata
        == present(ids.field_by_path(["a", "y"])).field.metadata
    )
    inner = wanted.field("b").type.value_type.field("y")
    assert inner.metadata == full_inner(ids).metadata
    assert set(column_paths(wanted)) == {("b",), ("a",), ("a", "y")}
    with pytest.raises(UnknownColumn, match="a, b"):
        with_field_ids(pa.schema({"z": pa.int8()}), ids.arrow)


def full_inner(ids: NamespaceSchema) -> pa.Field:
    return ids.arrow.field("b").type.value_type.field("y")
