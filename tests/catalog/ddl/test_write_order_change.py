"""The property ``write.order`` under changes of columns, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.catalog.ddl.alter import checked_order, followed_order
from pennon.errors import UnsupportedTableChange, WriteOrderColumnNotFound
from pennon.spec import NamespaceSchema

SCHEMA = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int32(), "day": pa.date32()}))
STORED = {"write.order": "day DESC NULLS LAST", "owner": "ops"}


def renamed(old: str, new: str) -> NamespaceSchema:
    columns = [field.with_name(new) if field.name == old else field for field in SCHEMA.arrow]
    return SCHEMA.evolved(pa.schema(columns))


def test_a_property_is_written_in_full_words_and_others_stay() -> None:
    given = {"write.order": "ID", "owner": "ops"}
    assert checked_order(given, SCHEMA) == {"write.order": "id ASC NULLS FIRST", "owner": "ops"}
    assert checked_order({"owner": "ops"}, SCHEMA) == {"owner": "ops"}
    with pytest.raises(WriteOrderColumnNotFound):
        checked_order({"write.order": "moment"}, SCHEMA)


def test_a_rename_is_followed_and_other_changes_leave_the_order() -> None:
    changed = followed_order("t", STORED, SCHEMA, renamed("day", "a day"))
    assert changed == {"write.order": "`a day` DESC NULLS LAST"}
    assert followed_order("t", STORED, SCHEMA, renamed("id", "key")) == {}
    assert followed_order("t", {"owner": "ops"}, SCHEMA, renamed("day", "a day")) == {}


def test_a_column_of_the_order_is_not_dropped() -> None:
    without = SCHEMA.evolved(pa.schema([SCHEMA.arrow.field("id")]))
    with pytest.raises(UnsupportedTableChange, match="drop column day of table t: writes are"):
        followed_order("t", STORED, SCHEMA, without)
    assert followed_order("t", {"write.order": "made up("}, SCHEMA, without) == {}
