"""What says why Spark computes an operator: an expression, or DataFusion, which refuses a query."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.pushdown.computed import ANSI, grouped, scan_of
from tests.pushdown.stated_nodes import call_of, output_of, sort_key_of

from pennon.execution import Query, Relation
from pennon.grouping.resolve.resolved_join import derive_keys
from pennon.plan import Group, Limit, Opaque, Pass, Plan, PlanNode
from pennon.predicate.condition import Declined
from pennon.pushdown import Candidate, FragmentQuery, choose, divide
from pennon.pushdown.query import fragment_query
from pennon.worker.plans.fragment_planner import check_planned
from pennon.worker.wire.tokens import ScanToken

SCHEMA = pa.schema([("c1", pa.int64()), ("c2", pa.int64())])


def refused(candidate: Candidate) -> str:
    raise Declined(why=f"what is at {candidate.root}")


def test_why_a_candidate_was_refused_is_kept_for_its_root() -> None:
    counted = call_of(11, "sum", "`c2`", pa.int64())
    plan = Plan((scan_of(SCHEMA), grouped(0, [output_of(10, "`c1`", pa.int64())], [counted])))
    keys = derive_keys(plan)
    division = divide(plan, keys, ANSI, one_task_bytes=0, replicated_bytes=0)
    _, declined = choose(division, ANSI, refused)
    assert declined == {1: "what is at 1"}


@pytest.mark.parametrize(
    ("sql", "kind", "why"),
    [
        ("SELECT `c3` AS `c1` FROM `r0`", pa.int64(), "refuses: .*No field named c3"),
        (
            "SELECT CAST('x' AS INT) AS `c1` FROM `r0`",
            pa.int32(),
            "refuses: .*the text 'x' is no INT",
        ),
        ("SELECT `c1` FROM `r0`", pa.int32(), "of type int32 that DataFusion makes int64"),
    ],
)
def test_what_datafusion_does_not_take_is_told(sql: str, kind: pa.DataType, why: str) -> None:
    query = FragmentQuery(Query(sql, pa.schema([("c1", kind)])), (0,))
    with pytest.raises(Declined, match=why):
        check_planned(query, [ScanToken(Relation("/lake/t", (), SCHEMA, SCHEMA))])


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (Opaque((), "LocalRelation"), r"rows of no table of Pennon \(LocalRelation\)"),
        (Opaque((0,), "Range"), "the operator Range"),
        (Pass(0, "explode"), "the operator explode"),
        (Group(0, unknown="percentile"), "the aggregate function percentile"),
        (
            Limit(0, 5, (sort_key_of("`c1`", is_ascending=True, is_nulls_first=True),)),
            "first rows by",
        ),
    ],
)
def test_an_operator_that_stays_in_spark_has_the_name_that_users_know(
    node: PlanNode, why: str
) -> None:
    above = Group(1, keys=(), calls=(), outputs=())
    with pytest.raises(Declined, match=why):
        fragment_query([scan_of(SCHEMA), node, above], 2, ANSI)
