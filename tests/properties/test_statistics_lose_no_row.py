"""Whatever the rows, the writes and the predicate: statistics drop no leaf with a matching row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.strategies.predicates import SCHEMA, TYPES, Predicate, Row, order_key, predicates, rows

from pennon.leaf.write.incoming_rows import ColumnCounting
from pennon.manifest.format.column_statistics import (
    COLUMN_STATISTICS,
    LeafStatistics,
    is_counted_type,
    read_statistics,
)
from pennon.planning.binding.bind import bind
from pennon.planning.binding.bound_predicate import conjuncts
from pennon.planning.statistics_pruning import has_possible_row
from pennon.predicate.parse import parse_predicate

_FIELDS: dict[tuple[str, ...], tuple[int, pa.DataType]] = {
    (name,): (number, kind)
    for number, (name, kind) in enumerate(TYPES.items())
    if is_counted_type(kind)
}
_TYPES = dict(_FIELDS.values())
# Most predicates of text are near the ends of bounds that are cut.
_LONG = "a text of a length " * 2


@dataclass(frozen=True)
class Leaves:
    num_leaves: int


def counted_leaf(written: Sequence[Row]) -> LeafStatistics:
    """Count a leaf as several writers do, each of whom reports a text."""
    reports = []
    for first in range(0, len(written), 5):
        counting = ColumnCounting(_FIELDS)
        for row in written[first : first + 5]:
            counting.observe(pa.RecordBatch.from_pylist([dict(row)], pa.schema(TYPES.items())))
        report = read_statistics(counting.statistics.to_json())
        assert report is not None
        reports.append(report)
    return reports[0].merged(reports[1:], _TYPES)


def manifest_rows(leaves: Sequence[LeafStatistics | None]) -> pa.Table:
    texts = [
        "{}"
        if leaf is None
        else json.dumps({"counted_version": "7", COLUMN_STATISTICS: leaf.to_json(7)})
        for leaf in leaves
    ]
    return pa.table({"metadata": texts, "is_counted": [leaf is not None for leaf in leaves]})


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
@given(rows, st.sampled_from(sorted(TYPES)), st.data())
def test_a_pruned_leaf_has_no_matching_row(
    given_rows: list[Row], sorted_by: str, asked: st.DataObject
) -> None:
    long = [
        {**row, "s": _LONG + str(row["s"]) if at % 9 == 0 else row["s"]}
        for at, row in enumerate(given_rows)
    ]
    ordered = sorted(long, key=lambda row: (row[sorted_by] is None, order_key(row[sorted_by])))
    groups = [ordered[at : at + 6] for at in range(0, len(ordered), 6)]
    counted: list[LeafStatistics | None] = [counted_leaf(group) for group in groups]
    for at, group in enumerate(groups):  # some rows go, and one leaf was written by others
        known = counted[at]
        if at % 3 == 0 and known is not None:
            del group[at % len(group)]
            counted[at] = replace(known, is_exact=False)
    counted[-1] = None
    leaves = manifest_rows(counted)
    trees: list[Predicate] = asked.draw(
        st.lists(predicates(sorted(TYPES)), min_size=5, max_size=15)
    )
    for predicate in trees:
        parts = conjuncts(bind(parse_predicate(predicate.sql), SCHEMA))
        kept = has_possible_row(Leaves(len(groups)), leaves, parts)  # type: ignore[arg-type]
        for at, group in enumerate(groups):
            matching = [row for row in group if predicate.oracle(row) is True]
            assert kept[at].as_py() or not matching, f"{predicate.sql} lost {matching}"
