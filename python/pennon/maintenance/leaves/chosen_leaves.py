"""The partitions that a procedure's condition chooses.

A query reads every partition of which a condition says nothing, and Spark filters the rows. A
procedure has no such filter: a condition that is not understood would choose the whole table.
"""

from __future__ import annotations

from pennon.maintenance.leaves.session_times import in_session_zone
from pennon.manifest import Snapshot
from pennon.planning import plan_scan
from pennon.planning.binding.bound_predicate import all_of, check_evaluable, conjuncts
from pennon.predicate.normalize import normalize
from pennon.predicate.parse import parse_expression
from pennon.predicate.semantics import is_utc_zone

__all__ = ["chosen_leaves"]


def chosen_leaves(snapshot: Snapshot, where: str | None, time_zone: str = "UTC") -> list[str]:
    """Give the object ids of the leaves that may have a row for which a condition is true.

    Args:
        snapshot: The namespace.
        where: Spark SQL; None for every leaf.
        time_zone: Of times without one that are compared with zoned columns.

    Raises:
        PredicateNotEvaluable: It is no condition on rows: a number, a subquery, an aggregate, an
            unknown function.
        PredicateSyntaxError: It is no expression.
        UnknownColumn: It names a column that the table does not have.
    """
    if where is None:
        rows = snapshot.leaves().table
    else:
        read = in_session_zone(
            parse_expression(where), snapshot.schema, time_zone, snapshot.location
        )
        condition = [normalize(read)]
        plan = plan_scan(snapshot, condition, time_zone=time_zone)
        # The hour of a time is a condition on rows in every zone, though partitions are chosen by
        # it in UTC alone.
        in_utc = plan if is_utc_zone(time_zone) else plan_scan(snapshot, condition)
        undecided = [part for part in conjuncts(in_utc.bound) if part not in in_utc.decided]
        check_evaluable(all_of(undecided), snapshot.location)
        rows = plan.table
    object_ids: list[str] = rows["object_id"].to_pylist()
    return object_ids
