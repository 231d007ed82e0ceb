"""The texts that Spark carries around: each is read as it was written, or refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pennon.catalog.configured_catalog import WriteMode
from pennon.errors import MalformedMessage
from pennon.execution import Fragment, LeafPruning, LeafRead, Query, Relation, RowFilter
from pennon.leaf import WriteTarget
from pennon.manifest.table_layout import TableLayout
from pennon.spec.write_properties import OrderColumn
from pennon.transforms.bucket import Bucket
from pennon.worker.wire.tokens import (
    FragmentToken,
    MetadataToken,
    PartToken,
    PlanToken,
    ScanToken,
    TableToken,
    Token,
    WriteToken,
    leaf_reads,
    split_column,
    splits_of,
)

ID = pa.field("id", pa.int64(), nullable=False, metadata={"lance:field_id": "1"})
SCHEMA = pa.schema([ID, pa.field("é", pa.list_(pa.timestamp("us", "UTC")))])
TABLE = TableToken("a.b", "s3://lake/b", 2**63 + 5, TableLayout.PARTITIONED, "x\ny")
ORDER = (OrderColumn("id", is_descending=True, nulls_first=False),)
RELATION = Relation("s3://lake/b", (), SCHEMA, SCHEMA, {"key": "secret"}, ORDER, "x")
SCAN = ScanToken(RELATION, ("id > 5", ""))
SPLIT = split_column(pa.table({"location": ['a"\\é'], "read_version": [7], "residual": [-1]}))[0]
QUERY = Query("SELECT 1", SCHEMA)
SHARED = Fragment(
    (),
    QUERY,
    prunings=(LeafPruning(0, 0, ("c1",), Bucket(8)),),
    filters=(RowFilter(0, "id", 0, "c1", 40),),
    num_threads=2,
)
TARGET = WriteTarget("s3://lake/b", 3, 2, {"key": "secret"})
TOKENS: list[Token] = [
    TABLE,
    MetadataToken("partitions", TABLE),
    PlanToken(TABLE, ("a = 1", "b"), "UTC", 2**64),
    SCAN,
    WriteToken(TABLE, TARGET, SCHEMA, WriteMode.MERGE, ("a",)),
    FragmentToken((SCAN,), SHARED, (PartToken("q", (SCAN,), (SPLIT.as_py(),), QUERY),)),
]


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: type(token).__name__)
def test_a_token_is_read_as_it_was_written(token: Token) -> None:
    assert type(token).from_json(token.to_json()) == token


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: type(token).__name__)
def test_a_token_of_another_version_is_refused(token: Token) -> None:
    stored = json.loads(token.to_json())
    changed = [{**stored, "new": 1}, [stored], "{"]
    changed += [{key: value for key, value in stored.items() if key != name} for name in stored]
    changed += [
        {**stored, name: {"of": "another type"}} for name in stored if name != "storage_options"
    ]
    for text in (
        partition if isinstance(partition, str) else json.dumps(partition) for partition in changed
    ):
        with pytest.raises(MalformedMessage) as refused:
            type(token).from_json(text)
        assert "secret" not in str(refused.value)


def test_a_split_is_read_strictly_too() -> None:
    text = SPLIT.as_py()
    assert leaf_reads(splits_of(text), ()) == (LeafRead('a"\\é', 7),)
    part = text[:-1] + ',"fragments":[1,3]}'
    assert leaf_reads(splits_of(f"[{text},{part}]"), ())[1].fragments == (1, 3)
    for other in (text.replace("residual", "filter"), part.replace("3]", "3,4]"), "{}", "5", "["):
        with pytest.raises(MalformedMessage):
            leaf_reads(splits_of(other), ("a > 1",))


def test_what_the_tasks_of_a_fragment_share_is_put_together_once() -> None:
    text = FragmentToken(
        (SCAN,), SHARED, (PartToken("q", (SCAN,), (f"[{SPLIT.as_py()}]",), QUERY),)
    ).to_json()
    task = f'{{"relations":[[{SPLIT.as_py()}]],"keys":[[7]]}}'
    first, second = (FragmentToken.from_json(text).fragment(task) for _ in range(2))
    assert first == second
    assert first.parts[0] is second.parts[0]
