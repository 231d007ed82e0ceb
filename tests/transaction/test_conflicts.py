"""Which changes stand after another commit, judged on values alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.leaf import StagedPartition
from pennon.spec import PartitionSpec
from pennon.transaction import Conflicted
from pennon.transaction.concurrency.conflicts import Rebased, check_layouts, rebase
from pennon.transaction.staging.staged import Append, Drop, LeafState, Replace

VALUES = pa.record_batch({"partition_field_region": ["eu"]})
PART = StagedPartition(1, "v1$a$dataset", "x_v1$a$dataset", VALUES, (), '[["0", 0, "int64"]]', 1, 1)
APPEND, REPLACE = Append((PART,)), Replace((PART,))


def state(version: int, location: str = PART.location) -> dict[str, LeafState]:
    values = {"region": pa.scalar("eu")}
    return {PART.object_id: LeafState(PART.object_id, location, version, values, 1, 1, 1)}


@pytest.mark.spec("Conflict Resolution 3")
@pytest.mark.parametrize("change", [APPEND, REPLACE, Drop()])
def test_change_of_an_untouched_leaf_stands(change):
    assert rebase({PART.object_id: change}, state(5), state(5)) == Rebased(frozenset())


@pytest.mark.spec("Conflict Resolution 4")
@pytest.mark.parametrize(
    ("before", "after"), [(state(5), state(6)), ({}, state(6)), (state(5), {})]
)
def test_append_is_made_again_on_what_is_there_now(before, after):
    verdict = rebase({PART.object_id: APPEND}, before, after)
    assert verdict == Rebased(frozenset({PART.object_id}))


@pytest.mark.spec("Conflict Resolution 2")
@pytest.mark.parametrize("change", [REPLACE, Drop()])
@pytest.mark.parametrize(
    ("before", "after"), [(state(5), state(6)), ({}, state(6)), (state(5), {})]
)
def test_whatever_replaces_rows_conflicts_with_any_change(change, before, after):
    verdict = rebase({PART.object_id: change}, before, after)
    assert isinstance(verdict, Conflicted)
    assert verdict.partition == "region=eu"


def test_leaf_made_meanwhile_in_another_directory_is_a_conflict():
    verdict = rebase({PART.object_id: APPEND}, {}, state(6, "elsewhere"))
    assert isinstance(verdict, Conflicted)


def test_rows_with_a_column_dropped_meanwhile_are_a_conflict_that_names_the_partition():
    field = pa.field("other", pa.int8(), metadata={"lance:field_id": "4"})
    verdict = check_layouts({PART.object_id: APPEND}, pa.schema([field]), {1: PartitionSpec(1, ())})
    assert isinstance(verdict, Conflicted)
    assert verdict.partition == "region=eu"
