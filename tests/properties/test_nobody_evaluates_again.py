# ruff: noqa: S311 - odd letters, and a generator that is the same in every run
"""Predicates that Spark is spared: every row that the leaves' exact filters give satisfies them.

Partition values or leaf filters evaluate them; nothing behind them does. The oracle is SQL's logic
in plain Python over the rows that were written.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.strategies.predicates import TYPES, Row, predicates
from tests.strategies.predicates import VALUES as KNOWN

import pennon
from pennon.namespace import PartitionedNamespace
from pennon.planning import plan_scan
from pennon.planning.leaf_constants import Evaluation, evaluations

SCHEMA = pa.schema({"id": pa.int64(), **TYPES})
LAYOUTS = {
    "values": ["identity(i)", "identity(o)"],
    "texts": ["truncate(1, s)", "identity(m)"],
    "negative": ["truncate(10, i)", "truncate(1, m)"],
    "days": ["identity(d)", "years(n)"],
    "times": ["months(ts)", "hours(ts)"],
    "buckets": ["bucket(4, l)", "identity(x)"],
    "floats": ["identity(f)"],
}
# Beside those of the strategies: blanks that count, signs of zero, and texts of one look.
VALUES = {**KNOWN, "s": [*KNOWN["s"], "a ", " a", "a\x00", "e\u0301", "A"]}
VALUES["m"] = [*KNOWN["m"], Decimal("-0.00"), Decimal("-0.99"), Decimal("-10.01")]


def _rows(count: int = 90) -> list[Row]:
    random = Random(16)
    return [
        {
            "id": number,
            **{
                name: None if random.random() < 0.15 else random.choice(known)
                for name, known in VALUES.items()
            },
        }
        for number in range(count)
    ]


ROWS = _rows()
BY_ID = {row["id"]: row for row in ROWS}


@pytest.fixture(scope="module", params=LAYOUTS)
def table(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> PartitionedNamespace:
    location = str(tmp_path_factory.mktemp(request.param) / "t")
    made = pennon.create(location, SCHEMA, LAYOUTS[request.param])
    made.append(pa.Table.from_pylist([dict(row) for row in ROWS[:45]], SCHEMA))
    made.add_partition_field("bucket(2, id)")
    made.append(pa.Table.from_pylist([dict(row) for row in ROWS[45:]], SCHEMA))
    return made


def _rows_given(table: PartitionedNamespace, sql: str) -> tuple[Evaluation, Counter[object]]:
    """Read a predicate's leaves as executors do: with the exact conjuncts alone."""
    plan = plan_scan(table.snapshot, [sql])
    found: Counter[object] = Counter()
    for leaf in plan.table.select(["location", "read_version", "residual"]).to_pylist():
        dataset = lance.dataset(
            f"{table.snapshot.location}/{leaf['location']}", version=leaf["read_version"]
        )
        residual = None if leaf["residual"] < 0 else plan.residuals[leaf["residual"]]
        found.update(dataset.to_table(columns=["id"], filter=residual)["id"].to_pylist())
    [evaluation] = evaluations(plan)
    return evaluation, found


@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(st.data())
def test_what_spark_is_spared_holds_for_every_row(
    table: PartitionedNamespace, asked: st.DataObject
) -> None:
    for predicate in asked.draw(st.lists(predicates(sorted(TYPES)), min_size=4, max_size=8)):
        evaluation, found = _rows_given(table, predicate.sql)
        matching = Counter(row["id"] for row in ROWS if predicate.oracle(row) is True)
        assert not matching - found, f"{predicate.sql} lost rows"
        if evaluation is not Evaluation.NONE:
            extra = [BY_ID[number] for number in (found - matching)]
            assert not extra, f"{predicate.sql} by {evaluation.value} gives {extra[:3]}"
