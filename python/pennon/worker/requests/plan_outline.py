"""The outline of a query as the JVM sends it → the plan tree: decoded here and nowhere else.

Every message is declared; a key that is missing or of a wrong type is a ``MalformedMessage``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_schema, arrow_type, spark_schema
from pennon.catalog.configured_catalog import Catalog
from pennon.errors import MalformedMessage, PennonError
from pennon.grouping.functions.compared_columns import ComparedColumn, Comparison
from pennon.grouping.functions.partition_layout import layout_of
from pennon.grouping.key_grouping import reported_functions
from pennon.leaf.schema.promotion import stream_schema, stream_type
from pennon.plan import (
    AggregateCall,
    Column,
    Expand,
    Expanded,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    Opaque,
    Output,
    Pass,
    Plan,
    PlanNode,
    Project,
    Scan,
    Side,
    SortKey,
    Union,
    Window,
    WindowCall,
    WindowFrame,
)
from pennon.worker.requests.kept_plans import find_plan
from pennon.worker.wire.json_fields import decode

if TYPE_CHECKING:
    from pennon.planning import ScanPlan

_Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ScanMessage:
    """``columns``: attribute and name of each; ``fields``: number and names of struct fields."""

    catalog: Catalog
    plan: str
    table: str
    columns: tuple[_Values, ...]
    fields: tuple[_Values, ...]


@dataclass(frozen=True, slots=True)
class FilterMessage:
    """A condition, or None; and the prunings that a join above implies."""

    child: int
    condition: str | None
    prunings: tuple[int, ...]

    def node(self) -> Filter:
        """Make the node."""
        return Filter(self.child, self.condition, frozenset(self.prunings))


@dataclass(frozen=True, slots=True)
class ProjectMessage:
    """``columns``: new and old attribute; ``expressions``: attribute, text, type."""

    child: int
    columns: tuple[_Values, ...]
    expressions: tuple[_Values, ...]

    def node(self) -> Project:
        """Make the node."""
        return Project(self.child, _outputs(self.expressions), _pairs(self.columns))


@dataclass(frozen=True, slots=True)
class ComparedMessage:
    """A column under casts: its types from the column's own on; whether zones are UTC."""

    column: int
    types: tuple[str, ...]
    utc: bool

    def compared(self) -> ComparedColumn:
        """Make the column."""
        return ComparedColumn(self.column, self.types, self.utc)


@dataclass(frozen=True, slots=True)
class ComparisonMessage:
    """Two columns that a join equates."""

    left: ComparedMessage
    right: ComparedMessage


@dataclass(frozen=True, slots=True)
class JoinMessage:
    """``text``: for people; ``broadcast``: the side that Spark would; ``exists``: what it adds."""

    left: int
    right: int
    type: str
    text: str
    compared: tuple[ComparisonMessage, ...]
    null_safe: bool
    condition: str | None
    implied: tuple[int, ...]
    broadcast: str | None
    exists: int | None

    def node(self) -> Join:
        """Make the node."""
        comparisons = [
            Comparison(each.left.compared(), each.right.compared()) for each in self.compared
        ]
        equated = [comparison for comparison in comparisons if comparison.equates]
        return Join(
            self.left,
            self.right,
            JoinType(self.type),
            self.condition,
            frozenset(self.implied),
            tuple(each.attributes for each in equated),
            self.null_safe,
            any(each.has_casts for each in equated),
            frozenset(each.attributes for each in equated if each.is_of_midnights),
            None if self.broadcast is None else Side(self.broadcast),
            self.text,
            self.exists,
        )


@dataclass(frozen=True, slots=True)
class ScalarMessage:
    """Rows beside the one value of a subquery."""

    rows: int
    value: int

    def node(self) -> Join:
        """Make the node."""
        text = "a scalar subquery"
        return Join(self.rows, self.value, JoinType.SCALAR, broadcast=Side.RIGHT, text=text)


@dataclass(frozen=True, slots=True)
class GroupMessage:
    """``grouping``: text, type, attribute; ``functions``: attribute, name, text, types.

    They, and ``outputs``, are None where the aggregate cannot be computed in parts.
    """

    child: int
    keys: tuple[int, ...]
    columns: tuple[_Values, ...]
    functions: tuple[_Values, ...] | None
    grouping: tuple[_Values, ...] | None
    outputs: tuple[_Values, ...] | None

    def node(self) -> Group:
        """Make the node."""
        keys = calls = None
        if self.functions is not None and self.grouping is not None:
            keys = _outputs([(number, text, kind) for text, kind, number in self.grouping])
            calls = tuple(map(_call, self.functions))
        outputs = None if self.outputs is None else _outputs(self.outputs)
        group_by, columns = frozenset(self.keys), _pairs(self.columns)
        return Group(self.child, group_by, columns, keys, calls, outputs)


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """``keys``: the partitioning attributes, ``partition`` its expressions.

    ``order``: as a top's. ``functions``: attribute, name, arguments, unit and ends of frame, type.
    """

    child: int
    keys: tuple[int, ...]
    partition: tuple[str | None, ...]
    order: tuple[_Values, ...]
    functions: tuple[_Values, ...]
    outputs: tuple[_Values, ...]

    def node(self) -> Window:
        """Make the node."""
        calls = tuple(map(_window_call, self.functions))
        of, outputs = (self.partition, _order(self.order)), _outputs(self.outputs)
        return Window(self.child, frozenset(self.keys), *of, calls, outputs)


@dataclass(frozen=True, slots=True)
class GroupLimitMessage:
    """The first rows of each group: a window group limit, by its partitioning attributes."""

    child: int
    keys: tuple[int, ...]

    def node(self) -> Window:
        """Make the node."""
        return Window(self.child, frozenset(self.keys))


@dataclass(frozen=True, slots=True)
class UnionMessage:
    """``columns``: the output attribute, then that of each input."""

    children: tuple[int, ...]
    columns: tuple[_Values, ...]
    keyed: bool

    def node(self) -> Union:
        """Make the node."""
        taken: list[Any] = [(new, tuple(old)) for new, *old in self.columns]
        return Union(self.children, tuple(taken), self.keyed)


@dataclass(frozen=True, slots=True)
class ExpandMessage:
    """``columns``: new and old attribute of what is the same in all projections.

    ``expressions``: attribute, its texts, its type.
    """

    child: int
    columns: tuple[_Values, ...]
    expressions: tuple[_Values, ...]

    def node(self) -> Expand:
        """Make the node."""
        told: list[Any] = list(self.expressions)
        outputs = tuple(Expanded(number, tuple(texts), _type(kind)) for number, texts, kind in told)
        return Expand(self.child, _pairs(self.columns), outputs)


@dataclass(frozen=True, slots=True)
class LimitMessage:
    """So many rows of each task, or of the whole."""

    child: int
    count: int
    whole: bool

    def node(self) -> Limit:
        """Make the node."""
        return Limit(self.child, self.count, is_whole=self.whole)


@dataclass(frozen=True, slots=True)
class TopMessage:
    """The first rows of each task; ``order``: text, whether ascending, whether NULLs are first."""

    child: int
    count: int
    order: tuple[_Values, ...]

    def node(self) -> Limit:
        """Make the node."""
        return Limit(self.child, self.count, _order(self.order))


_MESSAGES: Final[Mapping[str, Callable[[Mapping[str, object]], PlanNode]]] = {
    "filter": lambda message: decode(FilterMessage, message).node(),
    "project": lambda message: decode(ProjectMessage, message).node(),
    "join": lambda message: decode(JoinMessage, message).node(),
    "scalar": lambda message: decode(ScalarMessage, message).node(),
    "group": lambda message: decode(GroupMessage, message).node(),
    "window": lambda message: decode(WindowMessage, message).node(),
    "group_limit": lambda message: decode(GroupLimitMessage, message).node(),
    "union": lambda message: decode(UnionMessage, message).node(),
    "expand": lambda message: decode(ExpandMessage, message).node(),
    "limit": lambda message: decode(LimitMessage, message).node(),
    "top": lambda message: decode(TopMessage, message).node(),
    "pass": lambda message: decode(Pass, message),
    "opaque": lambda message: decode(Opaque, message),
}


def plan_of(messages: Sequence[Mapping[str, object]]) -> tuple[Plan, dict[int, ScanPlan]]:
    """Decode the nodes of ``derive_keys``.

    Args:
        messages: The nodes in post-order.

    Returns:
        The plan, and what each of its scans reads.

    Raises:
        MalformedMessage: A node is of no known kind, or a key is missing.
    """
    plans: dict[int, ScanPlan] = {}
    nodes: list[PlanNode] = []
    for position, tagged in enumerate(messages):
        kind, message = tagged.get("node"), {k: v for k, v in tagged.items() if k != "node"}
        if kind == "scan":
            scan = decode(ScanMessage, message)
            plans[position] = find_plan(scan.catalog, scan.plan)
            nodes.append(_scan(scan, plans[position]))
            continue
        decoded = _MESSAGES.get(str(kind))
        if decoded is None:
            raise MalformedMessage(why=f"a plan node has the unknown kind {kind}")
        try:
            nodes.append(decoded(message))
        except (TypeError, ValueError) as error:
            raise MalformedMessage(why=f"a plan node of kind {kind}: {error}") from error
    return Plan(tuple(nodes)), plans


def _scan(message: ScanMessage, plan: ScanPlan) -> Scan:
    columns: list[Any] = list(message.columns)
    fields: list[Any] = list(message.fields)
    schema = plan.snapshot.schema
    layout = layout_of(plan.snapshot.specs, schema, plan.table, plan.fixed)
    attributes: dict[int, frozenset[int]] = {}
    for attribute, path in [*((number, (name,)) for number, name in columns), *fields]:
        column = schema.field_by_path(path)
        if column is not None:
            attributes[column.id] = attributes.get(column.id, frozenset()) | {attribute}
    types = _column_types(plan, {name for _, name in columns})
    return Scan(
        tuple(Column(number, name, types.get(name)) for number, name in columns),
        layout,
        attributes,
        reported_functions(layout, schema, frozenset((name,) for _, name in columns)),
        message.table,
        {each.id: str(each) for each in schema.fields},
        plan.num_bytes or 0,
        plan.num_rows,
        plan.is_filtered,
    )


def _column_types(plan: ScanPlan, names: set[str]) -> dict[str, pa.DataType]:
    """The types of columns that Spark sees; those of types that it does not have are left out."""
    types: dict[str, pa.DataType] = {}
    for field in plan.snapshot.schema.arrow:
        if field.name not in names:
            continue
        try:
            seen = arrow_schema(spark_schema(pa.schema([field])))
        except PennonError:
            continue
        types[field.name] = stream_schema(seen).field(0).type
    return types


def _outputs(outputs: Sequence[Any]) -> tuple[Output, ...]:
    return tuple(Output(number, text, _type(kind)) for number, text, kind in outputs)


def _order(order: Sequence[Any]) -> tuple[SortKey, ...]:
    return tuple(SortKey(*key) for key in order)


def _call(function: Any) -> AggregateCall:
    number, name, argument, argument_type, kind = function
    return AggregateCall(number, name, argument, _type(kind), _type(argument_type))


def _window_call(function: Any) -> WindowCall:
    number, name, arguments, frame, kind = function
    frame = WindowFrame(*frame) if frame else None
    return WindowCall(number, name, tuple(arguments), frame, _type(kind))


def _type(kind: object) -> pa.DataType | None:
    try:
        return stream_type(arrow_type(kind, "a column"))
    except PennonError:
        return None


def _pairs(pairs: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    return tuple((first, second) for first, second in pairs)
