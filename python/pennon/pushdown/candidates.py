"""Finds the subtrees of a plan that can be fragments: the highest that divide among tasks.

The rows of a subtree are divided as those of its *divided* scans are: by the key that all of them
share, or, where they meet in unions only, in any way. All other inputs are replicated
(``division.py``). A join of two divided inputs and an aggregate below the root need the key; an
aggregate at the root may be put together by Spark. Where an operator above needs the key, the
fragment reports it, and is divided as all of that key's scans are; where it cannot, there is no
fragment.

Below a limit each task gives only as many rows, the first ones by its order; Spark takes the first
of all tasks' rows. So there an aggregate's groups have to be whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from pennon.execution.batches import row_bytes
from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    Offset,
    OneRow,
    Project,
    Scan,
    Side,
    Union,
    Window,
    children_of,
)
from pennon.predicate.condition import Declined
from pennon.pushdown.division import Division, Surroundings, is_replicable, with_small_values
from pennon.pushdown.partners import (
    HASH_TABLE_EXPANSION,
    MOST_PAIRS,
    PASSES,
    WANTS_PARTNERS,
    Restriction,
    equal_pairs,
    holds_rows,
    input_of,
    other_side,
    sizes_of,
)
from pennon.pushdown.query import FragmentQuery, fragment_query
from pennon.pushdown.runtime_pruning import pruning_sides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.grouping.resolve.group_tree import DerivedKeys, KeyGroup
    from pennon.plan import Plan
    from pennon.predicate.condition import Semantics
    from pennon.pushdown.partners import Size

# Restricts an aggregate to the groups that a join above it needs: the keys of a small side.
#
# A correlated subquery is such an aggregate after Spark's rewrite: it has a group for every key,
# and the join with the rows around it wants a few of them. Where every key that the join can want
# is one of a small side, as a filtered dimension has them, each worker evaluates that side and
# aggregates no other rows. The groups that are left are whole: their key is one of the grouping
# keys.
#
# NULL rules: a join by ``=`` wants no group of NULL; one by ``<=>`` restricts nothing.

# A side that reads more than this share of what is aggregated costs more than it saves.
_LARGEST_SHARE: Final = 0.25


def restriction_of(division: Division, root: int, semantics: Semantics) -> Restriction | None:
    """Find what restricts an aggregate that is a fragment.

    Args:
        division: The query.
        root: Position of the aggregate.
        semantics: The session's.

    Returns:
        The restriction by the smallest side; None where nothing restricts it.
    """
    plan = division.plan
    restrictions = [
        Restriction(key, part, column)
        for key, position, attribute in _equated_above(plan, root)
        for part, column in _places(plan, position, attribute)
        if plan.is_filtered(part)
        and not plan.is_limited(part)
        and is_replicable(division, part, semantics)
    ]
    most = _LARGEST_SHARE * division.sizes[root].read_bytes
    small = (
        restriction
        for restriction in restrictions
        if division.sizes[restriction.part].read_bytes <= most
    )
    return min(small, key=lambda one: division.sizes[one.part].read_bytes, default=None)


def _equated_above(plan: Plan, root: int) -> Iterator[tuple[int, int, int]]:
    """List the keys that joins above equate: input attribute, the other side and its attribute."""
    group = plan[root]
    if not isinstance(group, Group):
        return
    keys = {new: old for new, old in group.columns if old in group.group_by}
    at, parent = root, plan.parents.get(root)
    while keys and parent is not None:
        node = plan[parent]
        match node:
            case Filter():
                pass
            case Project(renamed=pairs):
                keys = {new: keys[old] for new, old in pairs if old in keys}
            case Join():
                side = Side.LEFT if node.left == at else Side.RIGHT
                if node.join_type in WANTS_PARTNERS[side]:
                    other = input_of(node, other_side(side))
                    for mine, theirs in equal_pairs(node, side):
                        if mine in keys:
                            yield keys[mine], other, theirs
                if node.join_type not in PASSES[side]:
                    return
            case _:
                return
        at, parent = parent, plan.parents.get(parent)


def _places(plan: Plan, position: int, attribute: int) -> Iterator[tuple[int, int]]:
    """List the operators that have all values of an attribute but NULL, and its name there."""
    yield position, attribute
    match plan[position]:
        case Filter(child=child) | Limit(child=child):
            yield from _places(plan, child, attribute)
        case Project(child=child, renamed=pairs) | Expand(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
            if source is not None:
                yield from _places(plan, child, source)
        case Group(child=child, columns=pairs, group_by=keys):
            source = dict(pairs).get(attribute)
            if source is not None and source in keys:
                yield from _places(plan, child, source)
        case Join() as join:
            for side in Side:
                child, other = input_of(join, side), input_of(join, other_side(side))
                if side is Side.RIGHT and not join.join_type.gives_right:
                    continue
                if attribute not in plan.attributes(child):
                    continue
                yield from _places(plan, child, attribute)
                if join.join_type in (JoinType.INNER, JoinType.SEMI):
                    for mine, theirs in equal_pairs(join, side):
                        if mine == attribute:
                            yield from _places(plan, other, theirs)


_Accepted = TypeVar("_Accepted")
_COMPUTED: Final = (Join, Group, Filter, Project, Limit, Expand, Union, Window)


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
        is_one_task: Whether one task reads everything.
        restriction: Which groups are computed; None for all.
        surroundings: The query around a fragment that reports its key; None for one that does not.
    """

    root: int
    positions: tuple[int, ...]
    mode: FragmentMode
    query: FragmentQuery
    group: KeyGroup | None
    is_one_task: bool = False
    restriction: Restriction | None = None
    surroundings: Surroundings | None = None


def choose(
    division: Division,
    semantics: Semantics,
    accept: Callable[[Candidate], _Accepted | None],
    *,
    may_report: bool = True,
) -> tuple[list[_Accepted], Mapping[int, str]]:
    """Choose fragments from the root of a plan down.

    Args:
        division: The query, and how its inputs can be divided.
        semantics: The session's.
        accept: Plans a candidate; None where it does not pay. It may raise
            ``Declined``.
        may_report: Whether a fragment may report its key.

    Returns:
        What was made, of subtrees that do not overlap; and for operators that Spark has to compute
        because of an expression at or below them, which.
    """
    finder = _Finder(division, semantics, may_report=may_report)
    accepted: list[_Accepted] = []
    waiting = [len(division.plan) - 1]
    while waiting:
        position = waiting.pop()
        if position in division.plan.scalars:
            # Spark knows the subquery as a part of the condition above, and by itself.
            waiting.append(division.plan.children(position)[0])
            continue
        candidates = finder.at(position)
        made = next(filter(None, (finder.accepted(one, accept) for one in candidates)), None)
        if made is None:
            waiting += division.plan.children(position)
        else:
            accepted.append(made)
    return accepted, finder.declined


def candidate_in_one_task(division: Division, semantics: Semantics, root: int) -> Candidate | None:
    """Compute a subtree in one task that reads everything; None where DataFusion cannot.

    Args:
        division: The query, undivided.
        semantics: The session's.
        root: The uppermost node.
    """
    return next(_Finder(division, semantics).at(root), None)


class _Finder:
    def __init__(
        self, division: Division, semantics: Semantics, *, may_report: bool = False
    ) -> None:
        self.division = division
        self.may_report = may_report
        self.plan = division.plan
        self.semantics = semantics
        self.declined: dict[int, str] = {}
        self.seen: dict[int, Surroundings] = {}

    def at(self, root: int) -> Iterator[Candidate]:
        """List what can be computed of a subtree, the best way first."""
        top = self.plan[root]
        if not isinstance(top, _COMPUTED) or self.ends_in_a_limit(root):
            return
        positions = self.plan.subtree(root)
        # The first rows of a small table Spark finds as fast itself.
        is_top = isinstance(top, Limit) and top.order and not self.division.is_one_task
        if not is_top and not any(
            isinstance(self.plan[position], Join | Group | Window) for position in positions
        ):
            return
        if self.division.is_one_task:
            candidate = self.in_one_task(root, positions)
            if candidate is not None:
                yield candidate
            return
        divided = set(self.division.view.scans(root))
        for group in self.division.keys.groups:
            if divided.issubset(group.scans):
                candidate = self.divided(root, group)
                if candidate is not None:
                    yield candidate
        # Without a key, several scans meet in unions only.
        candidate = self.divided(root, None)
        if candidate is not None:
            yield candidate

    def accepted(
        self, candidate: Candidate, accept: Callable[[Candidate], _Accepted | None]
    ) -> _Accepted | None:
        """Make something of a candidate; None where that does not pay, or is declined."""
        try:
            return accept(candidate)
        except Declined as reason:
            self.declined.setdefault(candidate.root, str(reason))
            return None

    def ends_in_a_limit(self, root: int) -> bool:
        """Whether the rows are those of a limit, which Spark decides, and whose order it shows."""
        top = node = self.plan[root]
        if isinstance(top, Window):
            return top.is_limit
        while isinstance(node, Filter | Project | Limit):
            if isinstance(node, Limit) and (node.is_whole or node.order):
                return node.is_whole or node.count is None
            node = self.plan[node.child]
        return isinstance(node, Offset)

    def in_one_task(self, root: int, positions: tuple[int, ...]) -> Candidate | None:
        first = pruning_sides(self.division, root)
        query = self.query(root, first, None)
        if query is None:
            return None
        return Candidate(root, positions, self.undivided_mode(root), query, None, is_one_task=True)

    def divided(self, root: int, group: KeyGroup | None) -> Candidate | None:
        """Divide a subtree by the key of its scans, or each of its scans in any way."""
        view = self.division.view
        inside = view.subtree(root)
        if any(isinstance(view[number], OneRow) for number in inside):
            return None  # every task would have that row
        joins = {number for number in inside if isinstance(view[number], Join)}
        if not joins.issubset(() if group is None else group.joins):
            return None
        mode = self.mode(root, group, inside)
        if mode is None or any(self.division.sizes[number].pairs > MOST_PAIRS for number in inside):
            return None
        around = None
        if not self.keeps_keys(root, group, set(inside)):
            around = self.reporting(root, mode)
            if around is None:
                return None
            group = around.group
        replicated = frozenset(
            side for join, side in self.division.replicated.items() if join in inside
        )
        is_merged = mode is FragmentMode.PARTIAL
        for restriction in dict.fromkeys(
            (restriction_of(self.division, root, self.semantics), None)
        ):
            query = self.query(root, replicated, restriction, is_merged=is_merged)
            if query is not None:
                positions = self.plan.subtree(root)
                return Candidate(
                    root,
                    positions,
                    mode,
                    query,
                    group,
                    restriction=restriction,
                    surroundings=around,
                )
        return None

    def reporting(self, root: int, mode: FragmentMode) -> Surroundings | None:
        """See the query around a fragment that reports its key; None where it cannot."""
        is_whole = mode is not FragmentMode.PARTIAL and not isinstance(self.plan[root], Limit)
        if not (self.may_report and is_whole):
            return None
        around = self.surroundings(root)
        return None if around.group is None else around

    def surroundings(self, root: int) -> Surroundings:
        """See the query around a subtree."""
        if root not in self.seen:
            self.seen[root] = Surroundings.of(self.division, root)
        return self.seen[root]

    def keeps_keys(self, root: int, group: KeyGroup | None, inside: set[int]) -> bool:
        """Whether nothing outside of a subtree needs a key that ends at it."""
        scans = set(self.division.view.scans(root))
        if group is None:
            return all(
                key_group.operators <= inside
                for key_group in self.division.keys.groups
                if not scans.isdisjoint(key_group.scans)
            )
        if group.computed or scans != set(group.scans) or not group.operators <= inside:
            return False
        # Without it a join with a table that has no partitioning, of which Spark would shuffle only
        # that table, would shuffle both.
        return bool(group.joins) or not self.surroundings(root).needs_key

    def mode(
        self, root: int, group: KeyGroup | None, inside: tuple[int, ...]
    ) -> FragmentMode | None:
        """Say what Spark does with the rows; None where an aggregate would not be whole."""
        whole = set() if group is None else set(group.groupings)
        for position in inside:
            node = self.plan[position]
            if isinstance(node, Offset):
                self.declined.setdefault(root, "OFFSET, within a query of several tasks")
                return None
            if isinstance(node, Limit) and node.is_whole:
                return None
            if not isinstance(node, Group | Window) or position in whole:
                continue
            if position != root or isinstance(node, Window):
                return None
            return FragmentMode.PARTIAL
        return self.undivided_mode(root)

    def undivided_mode(self, root: int) -> FragmentMode:
        """Say what Spark does with rows of which no group is in two tasks."""
        top = self.plan[root]
        node = self.plan[top.child] if isinstance(top, Limit) else top
        return FragmentMode.COMPLETE if isinstance(node, Group) else FragmentMode.ROWS

    def query(
        self,
        root: int,
        replicated: frozenset[int],
        restriction: Restriction | None,
        *,
        is_merged: bool = False,
    ) -> FragmentQuery | None:
        try:
            return fragment_query(
                self.plan,
                root,
                self.semantics,
                replicated,
                is_merged=is_merged,
                restriction=restriction,
            )
        except Declined as reason:
            self.declined.setdefault(root, str(reason))
            return None


# A query that one executor computes as a whole: one task, with a thread for each of its cores.
#
# Where a session has no more than one executor, nothing is won by dividing a query among its tasks:
# DataFusion divides it among threads, and exchanges rows between them without writing them.
# Of several executors one is done sooner with what is not much for it (``sooner_in_one``).
# What Spark gets must be little, for one task hands it over, so only groups, first rows and rows
# of small tables qualify; and what joins hold in memory must fit the pool, for they do not
# spill. Small filtered sides are evaluated first where they may rule out leaves of the others
# (``runtime_pruning.py``). All other queries are divided (``division.py``).

# How many small queries a thread computes while the stages of a divided one start and end, and how
# often its CPU that takes: docs/benchmarks.md, "Several executors".
_SMALL_QUERIES: Final = 8
_CPU_OF_DIVIDED: Final = 4


def sooner_in_one(small_bytes: int, slots: int, parallelism: int) -> float:
    """Tell how many bytes one of several executors computes sooner than all of them together.

    A divided query that exchanges rows takes several times the CPU: up to as many executors win
    nothing. More of them win little where it is done before their stages are started and ended.

    Args:
        small_bytes: What is worth one thread only.
        slots: Tasks that an executor runs at once.
        parallelism: Tasks that all executors run at once.

    Example:
        >>> sooner_in_one(16, slots=4, parallelism=16), sooner_in_one(16, slots=4, parallelism=32)
        (inf, 1024.0)
    """
    won = 1 - _CPU_OF_DIVIDED * slots / parallelism
    return math.inf if won <= 0 else _SMALL_QUERIES * small_bytes * slots / won


def whole_query(
    plan: Plan,
    keys: DerivedKeys,
    semantics: Semantics,
    *,
    least_bytes: int,
    most_bytes: int,
    pool_bytes: int,
    replicated_bytes: int,
) -> tuple[Division, Candidate] | None:
    """Find the one fragment that reads all that a query reads.

    Args:
        plan: The query.
        keys: The keys that it allows.
        semantics: The session's.
        least_bytes: What reads no more is worth one thread only.
        most_bytes: The most bytes of all inputs that one executor reads.
        pool_bytes: The memory of a worker's queries.
        replicated_bytes: The most bytes of inputs of a side that is evaluated before the rest.

    Returns:
        The query undivided, and the fragment; None where it has to be divided.
    """
    plan = with_small_values(plan, semantics, most_bytes)
    root = len(plan) - 1
    sizes = sizes_of(plan)
    scans = plan.scans(root)
    if not scans or not plan.is_of_tables(root):
        return None
    read = [sizes[scan].read_bytes for scan in scans]
    held = sum(read) - (0 if holds_rows(plan, plan.subtree(root)) else max(read))
    if not least_bytes < sum(read) <= most_bytes or held * HASH_TABLE_EXPANSION > pool_bytes:
        return None
    if sizes[root].pairs > MOST_PAIRS:
        return None
    division = Division(
        plan, plan, keys, {}, sizes, is_one_task=True, replicated_bytes=replicated_bytes
    )
    for position in _upper(plan, scans):
        if not _is_little(plan, sizes, position, least_bytes):
            continue
        candidate = candidate_in_one_task(division, semantics, position)
        if candidate is not None and candidate.query.all_scans == set(scans):
            return division, candidate
    return None


def _upper(plan: Plan, scans: tuple[int, ...]) -> Iterator[int]:
    """Walk down from the root as long as all scans are below."""
    position: int | None = len(plan) - 1
    while position is not None:
        yield position
        below = (child for child in plan.children(position) if plan.scans(child) == scans)
        position = next(below, None)


def _is_little(plan: Plan, sizes: tuple[Size, ...], position: int, most_bytes: int) -> bool:
    """Whether an operator gives groups, or few rows, and not all those of a large table."""
    node = plan[position]
    match node:
        case Group() | Limit() | Window(is_limit=True):
            return True
        case Scan(columns=columns):
            width = row_bytes(column.type for column in columns)
            return sizes[position].rows * width <= most_bytes
        case Join(join_type=JoinType.SEMI | JoinType.ANTI | JoinType.EXISTENCE, left=left):
            return _is_little(plan, sizes, left, most_bytes)
        case _:
            below = children_of(node)
            return all(_is_little(plan, sizes, child, most_bytes) for child in below)
