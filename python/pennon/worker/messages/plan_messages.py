"""The operators of a query as messages from the JVM, which ``derive_keys`` carries.

``plans/plan_outline.py`` makes the plan tree of them, and looks up what its scans read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_type
from pennon.catalog.configured_catalog import Catalog
from pennon.errors import PennonError
from pennon.leaf.schema.promotion import stream_type
from pennon.plan import (
    AggregateCall,
    Expand,
    Expanded,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    OneRow,
    Opaque,
    Output,
    Pass,
    Project,
    Side,
    SortKey,
    Union,
    Window,
    WindowCall,
    WindowFrame,
)
from pennon.predicate.typed import is_carried
from pennon.spec.functions.compared_columns import ColumnComparison, ComparedColumn

_Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ScanMessage:
    """``columns``: attribute, name, the type of a nested one; ``fields``: number, names of fields.

    Of the other columns the table has the types.
    """

    catalog: Catalog
    plan: str
    table: str
    columns: tuple[_Values, ...]
    fields: tuple[_Values, ...]

    def nested_types(self) -> dict[str, pa.DataType | None]:
        """Give the types of nested columns as Spark reads them: perhaps without some fields."""
        types = {
            str(name): _type(kind)
            for _, name, *kinds in self.columns
            for kind in kinds
            if isinstance(kind, Mapping)
        }
        return {name: kind for name, kind in types.items() if is_carried(kind)}


@dataclass(frozen=True, slots=True)
class OneRowMessage:
    """One row without columns."""

    def node(self) -> OneRow:
        """Make the node."""
        return OneRow()


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
            ColumnComparison(comparison.left.compared(), comparison.right.compared())
            for comparison in self.compared
        ]
        equated = [comparison for comparison in comparisons if comparison.equates]
        return Join(
            self.left,
            self.right,
            JoinType(self.type),
            self.condition,
            frozenset(self.implied),
            tuple(comparison.attributes for comparison in equated),
            self.null_safe,
            any(comparison.has_casts for comparison in equated),
            frozenset(
                comparison.attributes for comparison in equated if comparison.is_of_midnights
            ),
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

    They, and ``outputs``, are None where the aggregate cannot be computed in parts: ``unknown``
    names what of it cannot.
    """

    child: int
    keys: tuple[int, ...]
    columns: tuple[_Values, ...]
    functions: tuple[_Values, ...] | None
    grouping: tuple[_Values, ...] | None
    outputs: tuple[_Values, ...] | None
    unknown: str | None

    def node(self) -> Group:
        """Make the node."""
        keys = calls = None
        if self.functions is not None and self.grouping is not None:
            keys = _outputs(
                [(number, text, data_type) for text, data_type, number in self.grouping]
            )
            calls = tuple(map(_call, self.functions))
        outputs = None if self.outputs is None else _outputs(self.outputs)
        group_by, columns = frozenset(self.keys), _pairs(self.columns)
        return Group(self.child, group_by, columns, keys, calls, outputs, self.unknown)


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
        stated: list[Any] = list(self.expressions)
        outputs = tuple(
            Expanded(number, tuple(texts), _type(data_type)) for number, texts, data_type in stated
        )
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


@dataclass(frozen=True, slots=True)
class PassMessage:
    """What leaves rows and attributes where they are, and what people know it by."""

    child: int
    name: str

    def node(self) -> Pass:
        """Make the node."""
        return Pass(self.child, self.name)


@dataclass(frozen=True, slots=True)
class OpaqueMessage:
    """Anything else, and what people know it by."""

    children: tuple[int, ...]
    name: str

    def node(self) -> Opaque:
        """Make the node."""
        return Opaque(self.children, self.name)


OPERATORS: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "scan": ScanMessage,
        "one_row": OneRowMessage,
        "filter": FilterMessage,
        "project": ProjectMessage,
        "join": JoinMessage,
        "scalar": ScalarMessage,
        "group": GroupMessage,
        "window": WindowMessage,
        "group_limit": GroupLimitMessage,
        "union": UnionMessage,
        "expand": ExpandMessage,
        "limit": LimitMessage,
        "top": TopMessage,
        "pass": PassMessage,
        "opaque": OpaqueMessage,
    }
)
"""The message of each kind, by what its ``node`` says."""


def _outputs(outputs: Sequence[Any]) -> tuple[Output, ...]:
    return tuple(Output(number, text, _type(data_type)) for number, text, data_type in outputs)


def _order(order: Sequence[Any]) -> tuple[SortKey, ...]:
    return tuple(SortKey(*key) for key in order)


def _call(function: Any) -> AggregateCall:
    number, name, argument, argument_type, data_type = function
    return AggregateCall(number, name, argument, _type(data_type), _type(argument_type))


def _window_call(function: Any) -> WindowCall:
    number, name, arguments, frame, data_type = function
    frame = WindowFrame(*frame) if frame else None
    return WindowCall(number, name, tuple(arguments), frame, _type(data_type))


def _type(data_type: object) -> pa.DataType | None:
    try:
        return stream_type(arrow_type(data_type, "a column"))
    except PennonError:
        return None


def _pairs(pairs: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    return tuple((first, second) for first, second in pairs)
