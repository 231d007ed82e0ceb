"""The text of a write order: what it means, how it is written back, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import WriteOrderColumnNotFound, WriteOrderSyntax, WriteOrderTypeNotSupported
from pennon.spec import NamespaceSchema
from pennon.spec.write_properties import OrderColumn, WriteOrder

SCHEMA = NamespaceSchema.with_fresh_ids(
    pa.schema(
        {
            "id": pa.int64(),
            "ts": pa.timestamp("us", "UTC"),
            "a`b, desc": pa.utf8(),
            "all": pa.float64(),
            "l": pa.list_(pa.int8()),
            "s": pa.struct({"x": pa.int8()}),
            "ns": pa.timestamp("ns"),
        }
    )
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("id", "id ASC NULLS FIRST"),
        ("ID desc", "id DESC NULLS LAST"),
        ("ts DESC NULLS FIRST, id nulls last", "ts DESC NULLS FIRST, id ASC NULLS LAST"),
        ("`a``b, desc` desc", "`a``b, desc` DESC NULLS LAST"),
        ("`all`", "`all` ASC NULLS FIRST"),
    ],
)
def test_an_order_is_written_in_full_words_and_read_back(text: str, wanted: str) -> None:
    order = WriteOrder.parse(text, SCHEMA)
    assert str(order) == wanted
    assert WriteOrder.parse(wanted, SCHEMA) == order


@pytest.mark.parametrize(
    "text",
    ["", "s.x", "bucket(4, id)", "id id2", "1", "id, ID", "id; drop", "`id", "id limit 3", "*"],
)
def test_what_is_no_list_of_columns_is_refused(text: str) -> None:
    with pytest.raises(WriteOrderSyntax, match="WRITE_ORDER_SYNTAX.*Cannot read"):
        WriteOrder.parse(text, SCHEMA)


def test_an_unknown_column_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(WriteOrderColumnNotFound, match="no column nope. The columns are id, ts"):
        WriteOrder.parse("id, nope", SCHEMA)


@pytest.mark.parametrize("name", ["l", "s", "ns"])
def test_a_type_whose_order_is_not_that_of_spark_is_refused(name: str) -> None:
    with pytest.raises(WriteOrderTypeNotSupported, match=f"column {name} is"):
        WriteOrder.parse(name, SCHEMA)


def test_a_renamed_column_keeps_its_place_and_a_dropped_one_ends_the_order() -> None:
    order = WriteOrder.parse("ts DESC, id", SCHEMA)
    names = ["key" if name == "id" else name for name in SCHEMA.arrow.names]
    columns = [field.with_name(name) for field, name in zip(SCHEMA.arrow, names, strict=True)]
    renamed = SCHEMA.evolved(pa.schema(columns))
    followed = order.renamed(renamed)
    assert str(followed) == "ts DESC NULLS LAST, key ASC NULLS FIRST"
    assert followed is not None
    assert followed.identity == order.identity
    assert order.renamed(SCHEMA.evolved(SCHEMA.arrow.remove(0))) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.booleans())
def test_any_name_is_read_back(name: str, is_one: object) -> None:
    schema = NamespaceSchema.with_fresh_ids(pa.schema({name: pa.int64()}))
    column = OrderColumn(name, is_descending=bool(is_one), nulls_first=bool(is_one))
    assert WriteOrder.parse(str(column), schema).columns == (column,)
