"""Which scans of a query share one derived key, and which operators it serves (design §5).

A group is a set of scans that are co-partitioned by one tuple of functions. A join whose equated
attributes carry a common reduction of both sides' functions unites their groups; each further
join, aggregate or window of the group can only narrow the tuple, and every member follows. A
join that is not served ends the groups below it: its shuffle loses their partitioning.

NULL rules: the key is never NULL (NULL is hashed as a value of its own), so ``=`` and ``<=>``
are served alike; the real conjuncts stay in the join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import assert_never

from pennon.grouping.functions.grouping_function import GroupingFunction
from pennon.grouping.functions.partition_layout import LayoutFunction
from pennon.grouping.resolve.key_group import DerivedKeys, KeyGroup, SpareGroup
from pennon.grouping.resolve.meeting_functions import meeting_functions, shared_functions
from pennon.grouping.resolve.offer import Offer, OfferedFunction, renamed
from pennon.grouping.resolve.verdict import Verdict, grouping_verdict, join_verdict, not_comparable
from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    Limit,
    Opaque,
    Pass,
    Plan,
    PlanNode,
    Project,
    Scan,
    Union,
    Window,
)


def derive_keys(nodes: Sequence[PlanNode]) -> DerivedKeys:
    """Find the scans that get a derived key, and the operators that use it.

    Args:
        nodes: The plan in post-order.

    Spec: "Storage Partitioned Join".
    """
    plan = nodes if isinstance(nodes, Plan) else Plan(tuple(nodes))
    resolver = _resolved(plan, {})
    for position, stays_left in list(resolver.stays_left.items()):
        # The side with fewer bytes may be the one that the joins above can use.
        other = _resolved(plan, {**resolver.stays_left, position: not stays_left})
        if other.num_shuffled_bytes < resolver.num_shuffled_bytes:
            resolver = other
    return DerivedKeys(
        resolver.scans,
        frozenset(resolver.served),
        resolver.computed,
        resolver.verdicts,
        tuple(resolver.groups),
        tuple(resolver.spare),
        frozenset(resolver.moved),
    )


def _resolved(nodes: Plan, stays_left: Mapping[int, bool]) -> _Resolver:
    resolver = _Resolver(nodes, stays_left)
    for position in range(len(nodes)):
        resolver.offers.append(resolver.offer_of(position))
    for offer in resolver.unfinished():
        resolver.finish(offer)
    return resolver


class _Resolver:
    """Walks the plan bottom-up; an offer that is taken or lost is not offered again."""

    def __init__(self, nodes: Plan, stays_left: Mapping[int, bool]) -> None:
        self.nodes = nodes
        self.wanted = stays_left
        self.stays_left: dict[int, bool] = {}  # joins of which one side stays: whether the left one
        self.num_shuffled_bytes = 0
        self.offers: list[Offer | None] = []
        self.scans: dict[int, tuple[LayoutFunction, ...]] = {}
        self.served: set[int] = set()
        self.computed: dict[int, tuple[LayoutFunction, ...]] = {}
        self.verdicts: dict[int, Verdict] = {}
        self.unseen: set[int] = set()  # joins that Spark's own matching does not see through
        self.groups: list[KeyGroup] = []
        self.spare: list[SpareGroup] = []
        self.moved: set[int] = set()
        self.num_computed: dict[int, int] = {}  # functions of which a join's side is computed

    def take(self, position: int) -> Offer | None:
        offer, self.offers[position] = self.offers[position], None
        return offer

    def unfinished(self) -> list[Offer]:
        return [offer for offer in self.offers if offer is not None]

    def offer_of(self, position: int) -> Offer | None:
        match self.nodes[position]:
            case Scan() as scan:
                return _scan_offer(position, scan)
            case Project() as project:
                return renamed(self.take(project.child), project.renamed)
            case Filter(child=child) | Pass(child=child) | Limit(child=child, order=()):
                return self.take(child)
            case Join(streamed=int(child)):
                # The other side is sent to where these rows are.
                return self.take(child)
            case Join(equated=()) as join:
                sides = [self.offers[each] for each in (join.left, join.right)]
                self.verdicts[position] = not_comparable(self.nodes, sides, join.text)
                return None
            case Join() as join:
                return self.join_offer(position, join)
            case Union() as union:
                inputs = [
                    (child, tuple((new, old[at]) for new, old in union.columns))
                    for at, child in enumerate(union.children)
                ]
                return self.carried_offer(position, inputs)
            case Expand() as expand:
                return self.carried_offer(position, [(expand.child, expand.columns)])
            case Group(keys=()) | Limit() | Opaque():
                return None
            case Group() as group:
                return self.grouped_offer(position, group.child, group.group_by, group.columns)
            case Window() as window:
                return self.grouped_offer(position, window.child, window.keys, None)
            case unknown:
                assert_never(unknown)

    def join_offer(self, position: int, join: Join) -> Offer | None:
        left, right = offered = self.take(join.left), self.take(join.right)
        if left is None and right is not None:
            left = _computed(position, join, right, is_left=False)
        elif right is None and left is not None:
            right = _computed(position, join, left, is_left=True)
        common = (
            ()
            if left is None or right is None
            else self.computable(meeting_functions(left, right, join))
        )
        is_one_sided = None not in offered and not common
        if left is not None and right is not None and is_one_sided:
            left, right, common = self.one_sided(position, join, left, right)
        for child, side in ((join.left, left), (join.right, right)):
            if side is None or position in side.members or not common:
                self.num_shuffled_bytes += self.nodes.num_read(child)[0]
        self.verdicts[position] = join_verdict(
            self.nodes, *offered, common, join.equated, is_one_sided=is_one_sided and bool(common)
        )
        if left is not None and right is not None and common:
            strict = replace(join, is_null_safe=True)
            if join.is_null_safe or not meeting_functions(left, right, strict):
                self.unseen.add(position)
            self.num_computed[position] = len(common)
            return Offer(
                common,
                (*left.joins, *right.joins, position),
                (*left.groupings, *right.groupings),
                (*left.carriers, *right.carriers),
            )
        for offer in (left, right):
            if offer is not None and position not in offer.members:
                self.finish(offer)
        return None

    def one_sided(
        self, position: int, join: Join, left: Offer, right: Offer
    ) -> tuple[Offer, Offer, tuple[OfferedFunction, ...]]:
        """Let one side of two that have nothing in common stay: the one that reads more bytes.

        The other one is shuffled onto it, as one without partitioning is.
        """
        is_larger = self.nodes.num_read(join.left) >= self.nodes.num_read(join.right)
        first = self.wanted.get(position, is_larger)
        for stays_left in (first, not first):
            stays, moves = (left, right) if stays_left else (right, left)
            computed = _computed(position, join, stays, is_left=stays_left)
            if computed is None:
                continue
            sides = (left, computed) if stays_left else (computed, right)
            common = self.computable(meeting_functions(*sides, join))
            if common:
                self.finish(moves, is_moved=True)
                self.stays_left[position] = stays_left
                return (*sides, common)
        return left, right, ()

    def grouped_offer(
        self,
        position: int,
        child: int,
        keys: frozenset[int],
        columns: tuple[tuple[int, int], ...] | None,
    ) -> Offer | None:
        operator = "window" if columns is None else "aggregate"
        offer = self.take(child)
        if offer is None:
            self.verdicts[position] = grouping_verdict(self.nodes, operator, None, ())
            self.num_shuffled_bytes += self.nodes.num_read(child)[0]
            return None
        covered = tuple(
            function
            for function in offer.functions
            if all(not keys.isdisjoint(slot) for slot in function.slots)
        )
        self.verdicts[position] = grouping_verdict(self.nodes, operator, offer, covered)
        if not covered:
            self.num_shuffled_bytes += self.nodes.num_read(child)[0]
            self.finish(offer)
            return None
        groupings = (*offer.groupings, position)
        narrowed = replace(offer, functions=covered, groupings=groupings, parts=())
        return narrowed if columns is None else renamed(narrowed, columns)

    def carried_offer(
        self, position: int, inputs: Sequence[tuple[int, Sequence[tuple[int, int]]]]
    ) -> Offer | None:
        """See what all inputs of a union, or the one of an expansion, are grouped by."""
        offers = [self.take(child) for child, _ in inputs]
        parts = tuple(offer for offer in offers if offer is not None)
        columns = [each for _, each in inputs]
        seen = list(map(renamed, offers, columns))
        functions = self.computable(
            reduce(shared_functions, [each.functions if each else () for each in seen])
        )
        if not functions:
            for part in parts:
                self.finish(part)
            return None
        return Offer(
            functions,
            tuple(join for part in parts for join in part.joins),
            tuple(grouping for part in parts for grouping in part.groupings),
            (*(carrier for part in parts for carrier in part.carriers), position),
            parts,
        )

    def computable(self, functions: tuple[OfferedFunction, ...]) -> tuple[OfferedFunction, ...]:
        """Leave out what Spark would have to compute for a member and cannot."""
        return tuple(
            function
            for function in functions
            if function.grouping.is_known_to_jvm
            or all(isinstance(self.nodes[member], Scan) for member in function.sources)
        )

    def finish(self, offer: Offer, *, is_moved: bool = False) -> None:
        """Settle a group that grows no further.

        Args:
            offer: The group.
            is_moved: Whether it is shuffled onto another. It may report nothing that Spark knows
                then: Spark would rather move the other one, if that has fewer partitions.
        """
        for part in offer.parts:
            self.finish(part, is_moved=is_moved)
        if offer.parts:
            return
        scans = sorted(each for each in offer.members if isinstance(self.nodes[each], Scan))
        if not offer.joins and not offer.groupings:
            if is_moved:
                self.moved.update(scans)
            return
        computed = sorted(offer.members.difference(scans))
        group = KeyGroup(
            tuple(scans), offer.joins, offer.groupings, tuple(computed), offer.carriers
        )
        is_narrowed = any(self.num_computed[join] > len(offer.functions) for join in computed)
        hides = is_moved or is_narrowed or offer.carriers
        is_seen = not hides and self.unseen.isdisjoint(offer.joins)
        if len(scans) == 1 and is_seen and self.spark_serves(offer, scans[0]):
            own = tuple(self.bound(function, scans[0]) for function in offer.functions)
            self.spare.append(SpareGroup(group, own))
            return
        for member in offer.members:
            functions = tuple(self.bound(function, member) for function in offer.functions)
            (self.scans if member in scans else self.computed)[member] = functions
        self.served.update(group.operators)
        self.groups.append(group)

    def bound(self, function: OfferedFunction, member: int) -> LayoutFunction:
        """See a function of the group on the columns, and the widths of integers, of a member."""
        node, source_ids = self.nodes[member], function.sources[member]
        types = function.grouping.source_types
        if isinstance(node, Scan):
            own = {
                source: kind
                for each in (node.layout.functions if node.layout else ())
                for source, kind in zip(each.source_ids, each.grouping.source_types, strict=True)
            }
            types = tuple(own[source] for source in source_ids)
        return LayoutFunction(GroupingFunction(function.grouping.transform, types), source_ids)

    def spark_serves(self, offer: Offer, scan: int) -> bool:
        """Whether Spark's own matching serves a group of one scan."""
        node = self.nodes[scan]
        joins = (self.nodes[position] for position in offer.joins)
        if any(isinstance(join, Join) and join.has_casts for join in joins):
            return False
        return isinstance(node, Scan) and any(
            self.bound(function, scan) in node.reported for function in offer.functions
        )


def _scan_offer(position: int, scan: Scan) -> Offer | None:
    functions = tuple(
        OfferedFunction(
            function.grouping,
            tuple(scan.attributes.get(source, frozenset()) for source in function.source_ids),
            {position: function.source_ids},
        )
        for function in (scan.layout.functions if scan.layout else ())
        if function.grouping.is_constant_for_spark
    )
    return Offer(functions) if functions else None


def _computed(position: int, join: Join, other: Offer, *, is_left: bool) -> Offer | None:
    """Offer the functions that Spark can compute for a side without partitioning.

    Args:
        position: The join, which stands for that side among the members.
        join: The same.
        other: The partitioned side.
        is_left: Whether that is the left one.
    """
    alike = [pair for pair in join.equated if pair not in join.dates]
    pairs = alike if is_left else [(mine, its) for its, mine in alike]
    functions: list[OfferedFunction] = []
    for function in other.functions:
        partners = [
            next((mine for its, mine in pairs if its in slot), None)
            for slot in function.compared(is_null_safe=join.is_null_safe)
        ]
        attributes = tuple(each for each in partners if each is not None)
        if len(attributes) == len(partners) and function.grouping.is_known_to_jvm:
            slots = tuple(frozenset({each}) for each in attributes)
            functions.append(OfferedFunction(function.grouping, slots, {position: attributes}))
    return Offer(tuple(functions)) if functions else None
