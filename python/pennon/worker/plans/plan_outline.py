"""Decodes the JVM's outline of a query into the plan tree; nothing else does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_schema, arrow_type, spark_schema
from pennon.catalog.configured_catalog import Catalog
from pennon.errors import MalformedMessage, PennonError
from pennon.execution.engine import result_schema
from pennon.grouping.key_grouping import reported_functions
from pennon.leaf.schema.reconciliation import stream_schema, stream_type
from pennon.plan import (
    Column,
    Expand,
    Expanded,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    Offset,
    OneRow,
    Opaque,
    Output,
    Pass,
    Plan,
    PlanNode,
    Project,
    Pruning,
    Scan,
    SortKey,
    Union,
    Window,
)
from pennon.planning.reports.column_summaries import most_values, number_bounds
from pennon.predicate.parse import column_path
from pennon.predicate.typed import UNWRITTEN, SparkExpression, is_carried
from pennon.worker.plans.plan_cache import find_plan
from pennon.worker.wire.json_fields import SPELLINGS, Spelling, decode

if TYPE_CHECKING:
    from pennon.grouping.resolve.group_tree import ComparedColumns
    from pennon.planning import ScanPlan
    from pennon.spec.functions import ColumnComparison
    from pennon.worker.plans.plan_cache import CachedPlan

__all__ = ["planned_types"]

# The types of a query's columns, planned once for queries that are asked again.
#
# Planning a query takes DataFusion a fifth of what the whole query is planned in.

_KEPT_QUERIES: Final = 256
_LONGEST_KEPT: Final = 50_000


def planned_types(
    relations: tuple[pa.Schema, ...],
    sql: str,
    parts: tuple[pa.Schema, ...] = (),
    zone_offsets: tuple[int, ...] = (),
) -> tuple[pa.DataType, ...]:
    """Give the types of a query's columns, in their order.

    Args:
        relations: The columns of ``r0``, ``r1`` and so on.
        sql: The query.
        parts: The columns of ``p0``, ``p1`` and so on.
        zone_offsets: As a ``Query`` has them.

    Raises:
        FragmentFailed: As ``result_schema``, and so are all others.
        FragmentOverflow: A value does not fit its type.
        FragmentDivision: There is a division by zero.
        FragmentText: A text is no value of the type that it is cast to.

    Example:
        >>> import pyarrow as pa
        >>> columns = (pa.schema({"id": pa.int64()}),)
        >>> planned_types(columns, "SELECT `id` AS `c7` FROM `r0`")
        (DataType(int64),)
    """
    plan = result_schema if len(sql) > _LONGEST_KEPT else _kept_schema
    return tuple(plan(relations, sql, parts, zone_offsets).types)


_kept_schema = lru_cache(maxsize=_KEPT_QUERIES)(result_schema)


# The numbers by which a plan's nodes name columns, and the fields of struct columns.

_COLUMN: Final = re.compile(r"c(\d+)")

_Names = tuple[str, ...]


class ColumnNumbers:
    """The numbers of the columns of one plan, by their texts.

    A column has the number of its attribute; a field of a struct, which is no attribute, a negative
    number.

    Example:
        >>> numbers = ColumnNumbers()
        >>> numbers.of("`c5`"), numbers.of("`c5`.`city`"), numbers.of("(`c5` + 1)")
        (5, -1, None)
        >>> numbers.path(-1)
        (5, ('city',))
    """

    def __init__(self) -> None:
        """Start with a plan of which nothing is known."""
        self._numbers: dict[tuple[int, _Names], int] = {}
        self._paths: dict[int, tuple[int, _Names]] = {}

    def of(self, source: object) -> int | None:
        """Number what a text names; None where it is no column and no field of one."""
        column, *names = column_path(source if isinstance(source, str) else "") or ("",)
        number = _COLUMN.fullmatch(column)
        return None if number is None else self._number(int(number[1]), tuple(names))

    def all_of(self, expressions: Iterable[SparkExpression]) -> frozenset[int]:
        """Number those of some expressions that name a column, or a field of one."""
        numbers = (self.of(expression.source) for expression in expressions)
        return frozenset(number for number in numbers if number is not None)

    def path(self, number: int) -> tuple[int, _Names]:
        """Give the attribute that has a number, and the names that lead to a field in it."""
        return self._paths.get(number, (number, ()))

    def fields(self, attribute: int, data_type: pa.DataType | None) -> Iterator[tuple[int, _Names]]:
        """Number all fields in a column, with the names that lead to each.

        Args:
            attribute: The column.
            data_type: Its type.
        """
        for names in _fields(data_type):
            yield self._number(attribute, names), names

    def renamed(self, outputs: Iterable[Output]) -> tuple[tuple[int, int], ...]:
        """Pair each of some columns that takes a column or a field, and its fields, with these."""
        return tuple(pair for output in outputs for pair in self._pairs(output))

    def _pairs(self, output: Output) -> Iterator[tuple[int, int]]:
        taken = self.of(output.value.source)
        if taken is not None:
            yield output.id, taken
            column, names = self.path(taken)
            for below in _fields(output.type):
                yield self._number(output.id, below), self._number(column, names + below)

    def _number(self, attribute: int, names: _Names) -> int:
        if not names:
            return attribute
        path = (attribute, names)
        number = self._numbers.setdefault(path, -1 - len(self._numbers))
        self._paths[number] = path
        return number


def _fields(data_type: pa.DataType | None) -> Iterator[_Names]:
    """List the names that lead to each field in a struct, those above a field before it."""
    if data_type is not None and pa.types.is_struct(data_type):
        for field in data_type:
            yield (field.name,)
            yield from ((field.name, *names) for names in _fields(field.type))


# What the JVM tells, and how it spells what stands in it.


def type_of(data_type: object) -> pa.DataType | None:
    """Make the type of a column; None where the workers compute with none such."""
    try:
        made = stream_type(arrow_type(data_type, "a column"))
    except PennonError:
        return None
    return None if pa.types.is_time(made) else made


def _output(values: Sequence[Any]) -> Output:
    number, text, data_type = values
    return Output(number, SparkExpression(text, type_of(data_type)))


def _expanded(values: Sequence[Any]) -> Expanded:
    number, texts, data_type = values
    kind = type_of(data_type)
    return Expanded(number, tuple(SparkExpression(text, kind) for text in texts))


SPELLINGS.update(
    {
        SparkExpression: Spelling("string?", SparkExpression),
        pa.DataType: Spelling("any", type_of),
        Output: Spelling("any[]", _output),
        Expanded: Spelling("any[]", _expanded),
    }
)


@dataclass(frozen=True, slots=True)
class ScanMessage:
    """A scan by its plan, and the columns that it gives.

    A nested column has its type as Spark reads it: perhaps without some fields. Of others it is
    None: the table has their types.
    """

    catalog: Catalog
    plan: str
    table: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class ScalarMessage:
    """Rows beside the one value of a subquery."""

    rows: int
    value: int

    def node(self) -> Join:
        """Make the node."""
        return Join(self.rows, self.value, JoinType.SCALAR)


@dataclass(frozen=True, slots=True)
class GroupLimitMessage:
    """The first rows of each group: a window group limit."""

    child: int
    partition: tuple[SparkExpression, ...]

    def node(self) -> Window:
        """Make the node."""
        return Window(self.child, partition=self.partition)


@dataclass(frozen=True, slots=True)
class LimitMessage:
    """So many rows of each task, or of the whole, or all but so many: ``name`` is Spark's."""

    child: int
    count: int
    name: str

    def node(self) -> Limit | Offset:
        """Make the node."""
        if self.name == "Offset":
            return Offset(self.child, self.count)
        return Limit(self.child, self.count, is_whole=self.name == "GlobalLimit")


@dataclass(frozen=True, slots=True)
class TopMessage:
    """The first rows of each task."""

    child: int
    count: int | None
    order: tuple[SortKey, ...]

    def node(self) -> Limit:
        """Make the node."""
        return Limit(self.child, self.count, self.order)


OPERATORS: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "scan": ScanMessage,
        "one_row": OneRow,
        "filter": Filter,
        "project": Project,
        "join": Join,
        "scalar": ScalarMessage,
        "group": Group,
        "window": Window,
        "group_limit": GroupLimitMessage,
        "union": Union,
        "expand": Expand,
        "limit": LimitMessage,
        "top": TopMessage,
        "pass": Pass,
        "opaque": Opaque,
    }
)
"""What each kind of node is read as: an operator, or what Spark says of one otherwise."""


# Filters by the values of a join's other side, which Spark puts below the join.
#
# Where the workers compute the join together with them, they leave out nothing that it would not.


def with_implied_prunings(plan: Plan) -> Plan:
    """See each join with the prunings below it that it implies.

    A filter with another one has an unwritten condition: Spark evaluates it.

    Args:
        plan: The query; its filters' conditions are without prunings.
    """
    nodes: dict[int, PlanNode] = {}
    for position, node in enumerate(plan):
        if not isinstance(node, Filter) or not node.prunings:
            continue
        implied: list[Pruning] = []
        condition = node.condition
        for pruning in node.prunings:
            implying = _implying_join(plan, position, pruning)
            if implying is None:
                condition = UNWRITTEN
                continue
            join = nodes.get(implying, plan[implying])
            # Spark itself drops those that are for broadcasts only where the join is none.
            if isinstance(join, Join) and (join.broadcast or not pruning.in_broadcast):
                nodes[implying] = replace(join, implied=join.implied | {pruning.id})
                implied.append(pruning)
        nodes[position] = replace(node, condition=condition, prunings=tuple(implied))
    return plan.replaced(nodes) if nodes else plan


def _implying_join(plan: Plan, position: int, pruning: Pruning) -> int | None:
    """Find the next join above whose other side has the pruning's values."""
    below = position
    while (above := plan.parents.get(below)) is not None:
        join = plan[above]
        if isinstance(join, Join) and join.join_type is not JoinType.SCALAR:
            partner = join.right if below == join.left else join.left
            if not _scanned(plan, partner).isdisjoint(pruning.columns):
                return above
        below = above
    return None


def _scanned(plan: Plan, position: int) -> frozenset[int]:
    """List what the scans at or below a node give: attributes are unique in a query."""
    scans = (plan[at] for at in plan.scans(position))
    return frozenset(
        column.id for scan in scans if isinstance(scan, Scan) for column in scan.columns
    )


# What values of another form than a message's docstring says raise, as the JSON of a type does.
_MALFORMED: Final = (TypeError, ValueError, LookupError, AttributeError)
_SAID_OTHERWISE: Final = (ScalarMessage, GroupLimitMessage, LimitMessage, TopMessage)


@dataclass(frozen=True, slots=True)
class DecodedPlan:
    """A query as it was told.

    Args:
        plan: The plan.
        scans: What each of its scans reads.
        catalogs: Their catalogs.
        columns: The numbers of its columns.
        shuffling: The operators that want rows of equal keys in one task, by their positions, and
            the attributes that a join compares, where they are known.
    """

    plan: Plan
    scans: Mapping[int, ScanPlan]
    catalogs: frozenset[str]
    columns: ColumnNumbers
    shuffling: Mapping[int, ComparedColumns]


def decoded_plan(messages: Sequence[Mapping[str, object]]) -> DecodedPlan:
    """Decode the nodes of ``derive_keys``.

    Args:
        messages: The nodes in post-order.

    Raises:
        MalformedMessage: A node is of no known kind, or a key is missing.
    """
    plans: dict[int, ScanPlan] = {}
    catalogs: set[str] = set()
    numbers = ColumnNumbers()
    shuffling: dict[int, ComparedColumns] = {}
    nodes: list[PlanNode] = []
    for position, tagged in enumerate(messages):
        kind, fields = tagged.get("node"), {k: v for k, v in tagged.items() if k != "node"}
        operator = OPERATORS.get(str(kind))
        if operator is None:
            raise MalformedMessage(why=f"a plan node has the unknown kind {kind}")
        try:
            message = decode(operator, fields)
        except _MALFORMED as error:
            raise MalformedMessage(why=f"a plan node of kind {kind}: {error!r}") from error
        if isinstance(message, ScanMessage):
            cached = find_plan(message.catalog, message.plan)
            plans[position] = cached.plan
            catalogs.add(message.catalog.name)
            node: PlanNode = _scan(message, cached, numbers)
        else:
            said = message.node() if isinstance(message, _SAID_OTHERWISE) else message
            node = _numbered(said, numbers)
        if _wants_groups(node):
            shuffling[position] = _compared(node, numbers) if isinstance(node, Join) else None
        nodes.append(node)
    plan = with_implied_prunings(Plan(tuple(nodes)))
    return DecodedPlan(plan, plans, frozenset(catalogs), numbers, shuffling)


def _numbered(node: PlanNode, numbers: ColumnNumbers) -> PlanNode:
    """Find out what a node says of columns and of fields of structs, by their numbers."""
    match node:
        case Project(outputs=outputs):
            return replace(node, renamed=numbers.renamed(outputs or ()))
        case Join(compared=comparisons):
            pairs = [(_numbers_of(it, numbers), it) for it in comparisons if it.equates]
            equated = [
                ((left, right), it)
                for (left, right), it in pairs
                if left is not None and right is not None
            ]
            return replace(
                node,
                equated=tuple(pair for pair, _ in equated),
                has_casts=any(it.has_casts for _, it in equated),
                dates=frozenset(pair for pair, it in equated if it.is_of_midnights),
            )
        case Group(grouping=grouping, copied=copied):
            keys = None if node.calls is None else node.keys
            calls = None if keys is None else node.calls
            group_by, columns = numbers.all_of(grouping), numbers.renamed(copied)
            return replace(node, group_by=group_by, columns=columns, keys=keys, calls=calls)
        case Window(partition=partition):
            return replace(node, keys=numbers.all_of(partition))
        case Expand(outputs=expanded):
            same = [it for it in expanded or () if len({one.source for one in it.values}) == 1]
            columns = numbers.renamed(Output(it.id, it.values[0]) for it in same)
            return replace(node, columns=columns)
    return node


def _numbers_of(comparison: ColumnComparison, numbers: ColumnNumbers) -> list[int | None]:
    return [numbers.of(side.column.source) for side in comparison.columns]


def _compared(join: Join, numbers: ColumnNumbers) -> ComparedColumns:
    """List the columns of either side that a join compares; None where one cannot be written."""
    sides = {number for it in join.compared for number in _numbers_of(it, numbers)}
    known = frozenset(number for number in sides if number is not None)
    return None if None in sides else known


def _wants_groups(node: PlanNode) -> bool:
    """Whether an operator wants rows of equal keys in one task, for which Spark would shuffle."""
    match node:
        case Join(broadcast=None, compared=keys):
            # Spark shuffles the side that compares an expression onto the other one.
            return bool(keys)
        case Group(grouping=keys) | Window(partition=keys):
            return bool(keys)
        case Opaque(of_groups=True):
            return True
    return False


def _scan(message: ScanMessage, cached: CachedPlan, numbers: ColumnNumbers) -> Scan:
    plan, layout = cached.plan, cached.layout
    schema = plan.snapshot.schema
    attributes: dict[int, frozenset[int]] = {}
    for column in message.columns:
        below = numbers.fields(column.id, column.type)
        for number, path in [(column.id, ()), *below]:
            field = schema.field_by_path((column.name, *path))
            if field is not None:
                attributes[field.id] = attributes.get(field.id, frozenset()) | {number}
    names = {column.name for column in message.columns}
    types = _column_types(plan, names)
    return Scan(
        tuple(
            it if is_carried(it.type) else replace(it, type=types.get(it.name))
            for it in message.columns
        ),
        layout,
        attributes,
        reported_functions(layout, schema, frozenset((name,) for name in names)),
        message.table,
        {field.id: str(field) for field in schema.fields},
        plan.num_bytes or 0,
        plan.num_rows,
        plan.is_filtered,
        cache(partial(most_values, plan)),
        cache(partial(number_bounds, plan)),
    )


def _column_types(plan: ScanPlan, names: set[str]) -> dict[str, pa.DataType]:
    """The types of plain columns that Spark sees; those that it does not have are left out."""
    types: dict[str, pa.DataType] = {}
    for field in plan.snapshot.schema.arrow:
        is_plain = not (pa.types.is_nested(field.type) or pa.types.is_time(field.type))
        if field.name not in names or not is_plain:
            continue
        try:
            seen = arrow_schema(spark_schema(pa.schema([field])))
        except PennonError:
            continue
        types[field.name] = stream_schema(seen).field(0).type
    return types
