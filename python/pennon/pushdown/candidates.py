"""Which subtrees of a plan can be fragments: the largest ones that one key group serves.

A fragment joins relations that one key serves, and may aggregate the result; or it aggregates one
relation, which needs no key. Nothing above a fragment sees its key, so an operator that needs the
key has to be inside, or there is no fragment.

Below a limit each task gives only as many rows, the first ones by its order; Spark takes the first
of all tasks' rows. So there an aggregate's groups have to be whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pennon.plan import Filter, Group, Join, Limit, Plan, Project, Scan
from pennon.predicate.expressions.semantics import Declined
from pennon.pushdown.query import FragmentQuery, fragment_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.grouping.resolve.key_group import DerivedKeys, KeyGroup
    from pennon.plan import PlanNode
    from pennon.predicate.expressions.semantics import Semantics


_INSIDE: Final = Filter | Project | Group | Limit


class FragmentMode(StrEnum):
    """What Spark still does with a fragment's rows."""

    ROWS = "rows"
    PARTIAL = "partial"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subtree that DataFusion computes as Spark would.

    Args:
        root: Its uppermost node.
        positions: All of its nodes.
        mode: What Spark still does.
        query: What is computed.
        group: What is read under one key is computed by one task; None where any split will do.
    """

    root: int
    positions: tuple[int, ...]
    mode: FragmentMode
    query: FragmentQuery
    group: KeyGroup | None


def candidates(
    nodes: Sequence[PlanNode], keys: DerivedKeys, semantics: Semantics
) -> Iterator[tuple[Candidate, ...]]:
    """Find the subtrees that can be fragments.

    Args:
        nodes: The plan.
        keys: The keys of its scans, those that Spark would find by itself included.
        semantics: The session's.

    Yields:
        For each place of the plan the fragments that are possible there, the best one first.
    """
    finder = _Finder(nodes if isinstance(nodes, Plan) else Plan(tuple(nodes)), semantics)
    grouped: set[int] = set()
    for group in keys.groups:
        found = tuple(finder.of_group(group))
        if found:
            yield found
        grouped.update(group.groupings)
    for position, node in enumerate(nodes):
        if isinstance(node, Group) and position not in grouped:
            found = tuple(finder.of_one_relation(position))
            if found:
                yield found


class _Finder:
    def __init__(self, nodes: Plan, semantics: Semantics) -> None:
        self.nodes = nodes
        self.semantics = semantics
        self.parents: Mapping[int, int] = nodes.parents

    def of_group(self, group: KeyGroup) -> Iterator[Candidate]:
        """Try the nodes from the highest that can be inside down to the uppermost join."""
        if group.computed or (not group.joins and self.feeds_a_join(max(group.groupings))):
            return
        lowest = max(group.joins) if group.joins else max(group.groupings)
        roots = [lowest]
        while (parent := self.parents.get(roots[-1])) is not None:
            inside = Limit if isinstance(self.nodes[roots[-1]], Group) else _INSIDE
            if not isinstance(self.nodes[parent], inside):
                break
            roots.append(parent)
            if isinstance(self.nodes[parent], Limit):
                break
        for root in reversed(roots):
            found = self.candidate(root, group)
            if found is not None:
                yield found
                break
        if not group.joins and len(group.groupings) == 1:
            # Only where nothing else is served: what Spark merges, it shuffles.
            yield from self.of_one_relation(group.groupings[0])

    def feeds_a_join(self, position: int) -> bool:
        """Whether a join may want the partitioning that Spark would see at a node.

        A fragment reports none: a join with a table that has no partitioning, of which Spark would
        shuffle only that table, would shuffle both.
        """
        parent = self.parents.get(position)
        while parent is not None and not isinstance(self.nodes[parent], Join):
            parent = self.parents.get(parent)
        return parent is not None

    def of_one_relation(self, position: int) -> Iterator[Candidate]:
        """Aggregate one relation in parts that Spark puts together."""
        positions = self.nodes.subtree(position)
        below = [self.nodes[each] for each in positions if each != position]
        if isinstance(self.nodes[position], Group) and all(
            isinstance(each, Scan | Filter | Project) for each in below
        ):
            query = self.query(position)
            if query is not None:
                yield Candidate(position, positions, FragmentMode.PARTIAL, query, None)

    def candidate(self, root: int, group: KeyGroup) -> Candidate | None:
        positions = self.nodes.subtree(root)
        inside = set(positions)
        top = self.nodes[root]
        unlimited = top.child if isinstance(top, Limit) else root
        scans = tuple(each for each in positions if isinstance(self.nodes[each], Scan))
        joins = {each for each in positions if isinstance(self.nodes[each], Join)}
        if (
            set(scans) != set(group.scans)
            or not joins.issubset(group.joins)
            or not inside.issuperset(group.groupings)
            or any(each != unlimited for each in group.groupings)
        ):
            return None
        is_group = isinstance(self.nodes[unlimited], Group)
        is_whole = unlimited in group.groupings
        if not (joins or is_group) or (is_group and not is_whole and unlimited != root):
            return None
        query = self.query(root)
        if query is None:
            return None
        mode = FragmentMode.PARTIAL if is_group else FragmentMode.ROWS
        if is_whole:
            mode = FragmentMode.COMPLETE
        return Candidate(root, positions, mode, query, group)

    def query(self, root: int) -> FragmentQuery | None:
        try:
            return fragment_query(self.nodes, root, self.semantics)
        except Declined:
            return None
