"""Chooses the join sides that every worker evaluates for itself, and divides the others.

A side that is small and made of Pennon's scans alone is *replicated*: each worker process that
needs it evaluates it whole, once per query, so that the other side may be divided in any way. That
keeps the rows of a join what they are where no row of the replicated side comes out without a
partner: another task may have its partner.

NULL rules: a replicated side has all of its rows in every task, so a join sees what it would see
undivided; ``NOT IN`` finds the NULLs of all partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennon.grouping.resolve.resolved_join import derive_keys
from pennon.plan import (
    Expand,
    Group,
    Join,
    JoinType,
    Opaque,
    Pass,
    Side,
    Union,
    Window,
    is_repeatable,
)
from pennon.pushdown.partners import MOST_PAIRS, PASSES, equal_pairs, input_of, other_side, sizes_of
from pennon.pushdown.query import is_computed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pennon.grouping.resolve.group_tree import DerivedKeys, KeyGroup
    from pennon.plan import Plan, PlanNode
    from pennon.predicate.condition import Semantics
    from pennon.pushdown.partners import Size


@dataclass(frozen=True, slots=True)
class Division:
    """How the inputs of a query are divided among tasks.

    Args:
        plan: The query.
        view: The same with a ``Pass`` through the divided side in the place of each join of which
            the other one is replicated.
        keys: The keys of the view, those that Spark would find by itself included.
        replicated: For each such join the replicated side.
        sizes: What is known of each operator.
        is_one_task: Whether all of the query is so small that one task computes it.
        replicated_bytes: The most bytes of a replicated side's inputs.
    """

    plan: Plan
    view: Plan
    keys: DerivedKeys
    replicated: Mapping[int, int]
    sizes: tuple[Size, ...]
    is_one_task: bool = False
    replicated_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A query as Spark sees it around a fragment whose key it knows.

    Args:
        root: The fragment's uppermost node.
        scans: The scans that it divides.
        operators: Its operators that need a key, or carry one.
        nodes: What stands in the place of the fragment's own nodes: no join with a replicated side.
        view: The query with them.
        keys: The keys of the view.
    """

    root: int
    scans: frozenset[int]
    operators: frozenset[int]
    nodes: Mapping[int, PlanNode]
    view: Plan
    keys: DerivedKeys

    @classmethod
    def of(cls, division: Division, root: int) -> Surroundings:
        """See a query around a subtree.

        Args:
            division: The query.
            root: The subtree's uppermost node.
        """
        inside = division.view.subtree(root)
        keyed = Join | Group | Window | Union | Expand
        operators = frozenset(at for at in inside if isinstance(division.view[at], keyed))
        nodes: dict[int, PlanNode] = {}
        for join, side in division.replicated.items():
            if join in inside:
                nodes |= dict.fromkeys(division.plan.subtree(side), Opaque())
                nodes[join] = division.view[join]
        view, scans = division.plan.replaced(nodes), frozenset(division.view.scans(root))
        return cls(root, scans, operators, nodes, view, derived_for(view, scans))

    @property
    def needs_key(self) -> bool:
        """Whether an operator outside needs the partitioning that Spark would see at the root."""
        return any(
            not self.scans.isdisjoint(group.scans) and not group.operators <= self.operators
            for group in self.keys.groups
        )

    @property
    def group(self) -> KeyGroup | None:
        """The key that serves all operators of the fragment and one outside; None without one."""
        return next(
            (
                group
                for group in self.keys.groups
                if self.scans.issubset(group.scans) and self.operators < group.operators
            ),
            None,
        )


def derived_for(plan: Plan, scans: AbstractSet[int]) -> DerivedKeys:
    """Derive keys, also such as Spark would find by itself, if they are those of some scans.

    Args:
        plan: The query.
        scans: Those that fragments divide which report their keys.
    """
    keys = derive_keys(plan)
    for reported in keys.reported:
        if scans >= set(reported.group.scans):
            keys = keys.using(reported)
    return keys


def is_replicable(division: Division, position: int, semantics: Semantics) -> bool:
    """Whether every worker can evaluate an operator for itself.

    Args:
        division: The query.
        position: The operator's.
        semantics: The session's.
    """
    most_bytes = division.replicated_bytes
    return _Chooser(division.plan, division.sizes, semantics, most_bytes).is_small(position)


def divide(
    plan: Plan,
    keys: DerivedKeys,
    semantics: Semantics,
    *,
    one_task_bytes: int,
    replicated_bytes: int,
) -> Division:
    """Choose the replicated sides of a query.

    A side that Spark would broadcast comes first. A join that a key serves needs none.

    Args:
        plan: The query.
        keys: The keys that it allows.
        semantics: The session's.
        one_task_bytes: The most bytes of all inputs that one task computes; 0 for none.
        replicated_bytes: The most bytes of a replicated side's inputs; 0 for none.
    """
    plan = with_small_values(plan, semantics, replicated_bytes)
    sizes = sizes_of(plan)
    if _is_one_task(plan, sizes, one_task_bytes):
        return Division(
            plan, plan, keys, {}, sizes, is_one_task=True, replicated_bytes=replicated_bytes
        )
    chooser = _Chooser(plan, sizes, semantics, replicated_bytes)
    replicated = {
        position: side
        for position, node in enumerate(plan)
        if isinstance(node, Join)
        and node.broadcast is not None
        and (side := chooser.side(position, node)) is not None
    }
    view = plan
    for _ in range(len(plan)):
        if replicated:
            view = _viewed(plan, replicated)
            keys = derive_keys(view)
        served = keys
        for reported in served.reported:
            served = served.using(reported)
        unserved = chooser.lowest_unserved(view, served, replicated)
        if unserved is None:
            return Division(
                plan, view, served, replicated, sizes, replicated_bytes=replicated_bytes
            )
        replicated = {**replicated, **unserved}
    return Division(plan, view, keys, replicated, sizes, replicated_bytes=replicated_bytes)


def with_small_values(plan: Plan, semantics: Semantics, most_bytes: int) -> Plan:
    """Leave the subqueries of one value to Spark that a worker does not evaluate for itself."""
    chooser = _Chooser(plan, sizes_of(plan), semantics, most_bytes)
    left = [
        position for position in plan.scalars if not chooser.is_small(plan.children(position)[1])
    ]
    return plan.without_values(left)


def _is_one_task(plan: Plan, sizes: tuple[Size, ...], most_bytes: int) -> bool:
    if most_bytes <= 0 or not plan.is_of_tables(len(plan) - 1):
        return False
    return sizes[-1].read_bytes <= most_bytes and sizes[-1].pairs <= MOST_PAIRS


def _viewed(plan: Plan, replicated: Mapping[int, int]) -> Plan:
    nodes = {}
    for position, side in replicated.items():
        (divided,) = (child for child in plan.children(position) if child != side)
        join = plan[position]
        equal: Sequence[tuple[int, int]] = ()
        if isinstance(join, Join) and join.join_type is JoinType.INNER:
            equal = equal_pairs(join, Side.LEFT if divided == join.left else Side.RIGHT)
        nodes[position] = Pass(divided, equal=tuple(equal))
    return plan.replaced(nodes)


@dataclass(frozen=True, slots=True)
class _Chooser:
    plan: Plan
    sizes: tuple[Size, ...]
    semantics: Semantics
    most_bytes: float

    def side(self, position: int, join: Join) -> int | None:
        """Choose the side of a join that is replicated; None where neither can be.

        Of a join with other tables no worker could make a fragment: its key may serve it instead.
        """
        if not self.plan.is_of_tables(position):
            return None
        possible = [
            side
            for side in (Side.RIGHT, Side.LEFT)
            if join.join_type in PASSES[other_side(side)] and self.is_small(input_of(join, side))
        ]
        if not possible or self.sizes[position].pairs > MOST_PAIRS:
            return None
        if join.broadcast in possible:
            return input_of(join, join.broadcast)
        return min((input_of(join, side) for side in possible), key=self.read_bytes)

    def read_bytes(self, position: int) -> float:
        return self.sizes[position].read_bytes

    def is_small(self, position: int) -> bool:
        """Whether a side can be evaluated by every worker, and is."""
        return (
            self.read_bytes(position) <= self.most_bytes
            and self.plan.is_of_tables(position)
            and is_repeatable(self.plan, position)
            and is_computed(self.plan, position, self.semantics)
        )

    def lowest_unserved(
        self, view: Plan, keys: DerivedKeys, replicated: Mapping[int, int]
    ) -> dict[int, int] | None:
        """Find the lowest join that no key serves, and a side of it that is replicated."""
        inside = {position for side in replicated.values() for position in self.plan.subtree(side)}
        # What Spark computes the key of one side for, it shuffles.
        served = keys.served.difference(*(group.computed for group in keys.groups))
        for position, node in enumerate(view):
            if not isinstance(node, Join) or position in served or position in inside:
                continue
            side = self.side(position, node)
            if side is not None:
                return {position: side}
        return None
