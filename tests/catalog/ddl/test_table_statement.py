"""The text of ALTER TABLE … PARTITION FIELD and … WRITE, read by Spark and by Pennon alike."""

from __future__ import annotations

import re

import pytest

from pennon.catalog.ddl.statements import STATEMENT, not_supported, rewritten
from pennon.catalog.ddl.table_statement import OrderChange, statement_of
from pennon.catalog.partitioning import FieldChange
from pennon.errors import PartitionFieldSyntax, WriteOrderSyntax


def call(function: str, *arguments: object) -> dict[str, object]:
    return {"function": function, "arguments": list(arguments)}


COLUMN_ID = {"column": ["id"]}
NAME = (
    "the name of a new field stands behind AS in SQL, and is the second argument of"
    " add_partition_field in Python"
)
MARKER = "parameter markers are not taken here, write the values themselves"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ADD PARTITION FIELD id", FieldChange("add", call("identity", COLUMN_ID))),
        (
            "add partition field bucket( 16, id ) AS `b 1`",
            FieldChange("add", call("bucket", {"literal": 16}, COLUMN_ID), name="b 1"),
        ),
        (
            "ADD PARTITION FIELD truncate(-1, `a``b`.c)",
            FieldChange("add", call("truncate", {"literal": -1}, {"column": ["a`b", "c"]})),
        ),
        (
            "ADD PARTITION FIELD expression(%27it%27%27s%27, date)",
            FieldChange("add", call("expression", {"literal": "it's"}, {"column": ["date"]})),
        ),
        (
            "DROP PARTITION FIELD st.a",
            FieldChange("drop", field=call("identity", {"column": ["st", "a"]})),
        ),
        (
            "REPLACE PARTITION FIELD bucket(8, id) WITH id AS n",
            FieldChange(
                "replace",
                call("identity", COLUMN_ID),
                call("bucket", {"literal": 8}, COLUMN_ID),
                "n",
            ),
        ),
        ("WRITE UNORDERED", OrderChange(None)),
        ("write distributed by partition unordered", OrderChange(None)),
        ("WRITE DISTRIBUTED BY PARTITION", OrderChange(None)),
        (
            "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id, `ts` DESC",
            OrderChange("id, `ts` DESC"),
        ),
    ],
)
def test_statements_are_read(text: str, expected: FieldChange | OrderChange) -> None:
    assert statement_of(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ADD PARTITION FIELD", "the field is missing"),
        ("ADD PARTITION FIELD 1 + 1", "1 + 1 is neither a column nor a literal"),
        ("ADD PARTITION FIELD id, s", "it is more than one field"),
        ("ADD PARTITION FIELD bucket(8, id", "the closing parenthesis is missing"),
        ("ADD PARTITION FIELD bucket(8, id))", "')' at its end is too much"),
        ("ADD PARTITION FIELD bucket(8, id)) AS b", "') AS b' at its end is too much"),
        ("ADD PARTITION FIELD bucket(8, id) b", f"'b' at its end is too much: {NAME}"),
        ("ADD PARTITION FIELD id `b c`", f"'`b c`' at its end is too much: {NAME}"),
        ("ADD PARTITION FIELD bucket(?, id)", MARKER),
        ("ADD PARTITION FIELD bucket(:n, id)", MARKER),
        ("ADD PARTITION FIELD %27id", "a quote is not closed"),
        ("ADD PARTITION FIELD id AS", "one name has to follow AS"),
        ("ADD PARTITION FIELD id AS a b", "one name has to follow AS"),
        ("REPLACE PARTITION FIELD id", "the word WITH and a field behind it are missing"),
    ],
)
def test_partition_field_that_is_none_is_refused_with_its_form(text: str, why: str) -> None:
    with pytest.raises(PartitionFieldSyntax, match=r"Write (ADD|DROP|REPLACE) PARTITION") as caught:
        statement_of(text)
    assert caught.value.parameters["why"] == why


@pytest.mark.parametrize("action", ["ADD", "DROP"])
def test_several_partition_fields_are_answered_with_the_statement_for_one(action: str) -> None:
    refused = not_supported([action, "PARTITION", "FIELDS", "id"], "lance", "lance.shop.orders")
    assert refused is not None
    advice = f"ALTER TABLE lance.shop.orders {action} PARTITION FIELD …, once for each"
    assert refused.parameters["advice"] == advice
    values = not_supported([action, "PARTITION"], "lance", "lance.shop.orders")
    assert values is not None
    assert "PARTITION FIELD" not in values.parameters["advice"]


@pytest.mark.parametrize(
    "text", ["WRITE", "WRITE SIDEWAYS", "WRITE ORDERED BY", "WRITE LOCALLY", "WRITE DISTRIBUTED"]
)
def test_write_without_an_order_is_refused(text: str) -> None:
    with pytest.raises(WriteOrderSyntax):
        statement_of(text)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("VACUUM a.b RETAIN 168 HOURS", [(0, 7, "a.b", "ALTER TABLE a.b SET {VACUUM}")]),
        (
            "BEGIN SHOW PARTITIONS t; ALTER TABLE `t` DROP TAG q1; END",
            [
                (1, 4, "t", "SELECT name AS partition FROM {}.partitions WHERE name IS NOT NULL"),
                (8, 11, "`t`", "SET {DROP%20TAG%20q1}"),
            ],
        ),
        ("CREATE INDEX i ON TABLE t (v)", [(0, 9, "t", "SET {CREATE%20INDEX%20i%20(v)}")]),
        ("SHOW PARTITIONS t PARTITION (k = f(1, -2), l == :x)", [(0, 20, "t", "")]),
        ("SHOW PARTITIONS t PARTITION ( k = 1 OR true )", []),
        ("SHOW PARTITIONS t PARTITION ( k = ( 1 )", []),
        ("ALTER TABLE t RENAME TO u", []),
        ("CREATE TABLE t ( VACUUM INT )", []),
        ("DESCRIBE t", []),
        ("ALTER TABLE", []),
        ("", []),
    ],
)
def test_statements_are_found_among_the_tokens_of_a_text(
    sql: str, expected: list[tuple[int, int, str, str]]
) -> None:
    tokens = re.findall(r"(\s?)\s*(==|\w+|`\w+`|\S)", sql)
    statements = rewritten([blank + token for blank, token in tokens])
    assert [(one.first, one.end, one.table) for one in statements] == [one[:3] for one in expected]
    for one, (*_, text) in zip(statements, expected, strict=True):
        clause = text.replace("{}", "NAME").replace("{", f"TBLPROPERTIES ('{STATEMENT}' = '")
        assert clause.replace("}", "')") in "NAME".join(one.pieces)
