"""The scans whose partitioning no operator of a query uses, so that any leaves are read together.

Spark matches what a scan reports with the keys of the operators above it. An aggregate or a window
that the resolver could not serve Spark cannot either, but where an operator is between them that
the resolver does not know. Of joins Spark serves some by shuffling one side onto the other: what is
beside the scan may be another source's table, or compared under an expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.plan import Join, JoinType, Opaque, Plan, Project, Scan, Union

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pennon.grouping.resolve.key_group import DerivedKeys

ComparedColumns = frozenset[int] | None
"""The attributes by which a join meets; None where that is not known, or it is no join."""


def ungrouped_scans(
    plan: Plan,
    keys: DerivedKeys,
    shuffling: Mapping[int, ComparedColumns],
    inside: Collection[int] = (),
) -> frozenset[int]:
    """Find the scans that neither a derived key nor Spark's own matching makes use of.

    Args:
        plan: The query.
        keys: What is derived for it.
        shuffling: The operators that want rows of equal keys in one task, by their positions.
        inside: Positions of what the workers compute.
    """
    groups = (*keys.groups, *(reported.group for reported in keys.reported))
    used = {scan for group in groups for scan in group.scans}
    return frozenset(
        at
        for at, node in enumerate(plan)
        if isinstance(node, Scan)
        and at not in used
        and at not in inside
        and not (node.reported and _may_be_matched(plan, at, node, shuffling))
    )


def _may_be_matched(
    plan: Plan, position: int, scan: Scan, shuffling: Mapping[int, ComparedColumns]
) -> bool:
    """Whether Spark may use what a scan reports at an operator that the resolver cannot judge."""
    carrying = [
        [set(scan.attributes.get(source, ())) for source in function.source_ids]
        for function in scan.reported
    ]
    # What becomes of a column is followed, and not what becomes of a field of a struct.
    columns = {column.id for column in scan.columns}
    is_hidden = any(not source <= columns for one in carrying for source in one)
    while (above := plan.parents.get(position)) is not None:
        match plan[above]:
            case Join(join_type=JoinType.SCALAR, right=value) if position == value:
                # Spark decides about the plan of a subquery by itself.
                return False
            case Join() if above in shuffling:
                compared = shuffling[above]
                is_hidden |= compared is None or any(
                    all(not compared.isdisjoint(source) for source in one) for one in carrying
                )
            case Project(renamed=renamed):
                for source in (source for one in carrying for source in one):
                    source |= {output for output, of in renamed if of in source}
            case Opaque() | Union():
                is_hidden = True
        if is_hidden and above in shuffling:
            return True
        position = above
    return False
