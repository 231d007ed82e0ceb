"""The operators of a query as messages from the JVM, which ``derive_keys`` carries.

``plans/plan_outline.py`` makes the plan tree of them, and looks up what its scans read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_type
from pennon.catalog.configured_catalog import Catalog
from pennon.errors import PennonError
from pennon.leaf.schema.reconciliation import stream_type
from pennon.plan import (
    AggregateCall,
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
    Project,
    Side,
    SortKey,
    Union,
    Window,
    WindowCall,
    WindowFrame,
)
from pennon.predicate.parse import column_path
from pennon.predicate.typed import SparkExpression, is_carried
from pennon.spec.functions import ColumnComparison, ComparedColumn

# The expressions in the operators of a query, made of what the JVM says of them.
#
# A text is Spark SQL over columns named ``c<attribute>``; one that is None could not be written.

# By the names of Spark's classes: in SQL some of them have several.
_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "Min": "min",
        "Max": "max",
        "MinBy": "min_by",
        "MaxBy": "max_by",
        "BitAndAgg": "bit_and",
        "BitOrAgg": "bit_or",
        "BitXorAgg": "bit_xor",
        "VarianceSamp": "var_samp",
        "VariancePop": "var_pop",
        "StddevSamp": "stddev_samp",
        "StddevPop": "stddev_pop",
        "Corr": "corr",
        "CovSample": "covar_samp",
        "CovPopulation": "covar_pop",
        "Percentile": "percentile",
        "PercentileReversed": "percentile_reversed",
    }
)


@dataclass(frozen=True, slots=True)
class SortKeyMessage:
    """What rows are ordered by, and how."""

    text: str | None
    ascending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class AggregateCallMessage:
    """A function of an aggregate; ``others`` are its arguments behind the first one."""

    attribute: int
    name: str
    argument: str | None
    argument_type: object
    type: object
    others: tuple[str | None, ...]

    def call(self) -> AggregateCall:
        """Make the call."""
        name = _FUNCTIONS.get(self.name, self.name)
        value = SparkExpression(self.argument, type_of(self.argument_type))
        others = expressions_of(self.others)
        return AggregateCall(self.attribute, name, value, type_of(self.type), others)


@dataclass(frozen=True, slots=True)
class FrameMessage:
    """The rows that a function over a window sees, in Spark's words."""

    unit: str
    lower: str
    upper: str


@dataclass(frozen=True, slots=True)
class WindowCallMessage:
    """A function over the rows of a window; the name is None where it is not known."""

    attribute: int
    name: str | None
    ignores_nulls: bool
    arguments: tuple[str | None, ...]
    frame: FrameMessage | None
    type: object

    def call(self) -> WindowCall:
        """Make the call."""
        ends = self.frame
        frame = None if ends is None else WindowFrame(ends.unit, ends.lower, ends.upper)
        arguments = expressions_of(self.arguments)
        return WindowCall(
            self.attribute, self.name, arguments, frame, type_of(self.type), self.ignores_nulls
        )


def outputs_of(outputs: Sequence[Any]) -> tuple[Output, ...]:
    """Make columns, each of an attribute, a text and a type."""
    return tuple(
        Output(number, SparkExpression(text, type_of(data_type)))
        for number, text, data_type in outputs
    )


def condition_of(text: str | None) -> SparkExpression:
    """Make a condition."""
    return SparkExpression(text, pa.bool_())


def expressions_of(
    texts: Iterable[str | None], data_type: pa.DataType | None = None
) -> tuple[SparkExpression, ...]:
    """Make expressions of one type, or of types that the JVM does not state."""
    return tuple(SparkExpression(text, data_type) for text in texts)


def order_of(order: Iterable[SortKeyMessage]) -> tuple[SortKey, ...]:
    """Make an order."""
    return tuple(
        SortKey(SparkExpression(key.text), key.ascending, key.nulls_first) for key in order
    )


def type_of(data_type: object) -> pa.DataType | None:
    """Make the type of a column; None where the workers compute with none such."""
    try:
        made = stream_type(arrow_type(data_type, "a column"))
    except PennonError:
        return None
    return None if pa.types.is_time(made) else made


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

    def of(self, text: str | None) -> int | None:
        """Number what a text names; None where it is no column and no field of one."""
        column, *names = column_path(text or "") or ("",)
        number = _COLUMN.fullmatch(column)
        return None if number is None else self._number(int(number[1]), tuple(names))

    def all_of(self, texts: Iterable[str | None]) -> frozenset[int]:
        """Number those of some texts that name a column, or a field of one."""
        return frozenset(number for text in texts if (number := self.of(text)) is not None)

    def path(self, number: int) -> tuple[int, _Names]:
        """Give the attribute that has a number, and the names that lead to a field in it."""
        return self._paths.get(number, (number, ()))

    def fields(self, attribute: int, data_type: object) -> Iterator[tuple[int, _Names]]:
        """Number all fields in a column, with the names that lead to each.

        Args:
            attribute: The column.
            data_type: Its type, as Spark writes it in JSON.
        """
        for names in _fields(data_type):
            yield self._number(attribute, names), names

    def renamed(self, expressions: Iterable[Sequence[Any]]) -> tuple[tuple[int, int], ...]:
        """Pair each of some columns that takes a column or a field, and its fields, with these.

        Args:
            expressions: Attribute, text and type of each.
        """
        return tuple(pair for expression in expressions for pair in self._pairs(*expression))

    def _pairs(
        self, attribute: int, text: str | None, data_type: object
    ) -> Iterator[tuple[int, int]]:
        taken = self.of(text)
        if taken is not None:
            yield attribute, taken
            column, names = self.path(taken)
            for below in _fields(data_type):
                yield self._number(attribute, below), self._number(column, names + below)

    def _number(self, attribute: int, names: _Names) -> int:
        if not names:
            return attribute
        path = (attribute, names)
        number = self._numbers.setdefault(path, -1 - len(self._numbers))
        self._paths[number] = path
        return number


def _fields(data_type: object) -> Iterator[_Names]:
    """List the names that lead to each field in a struct, those above a field before it."""
    if isinstance(data_type, Mapping) and data_type["type"] == "struct":
        for field in data_type["fields"]:
            yield (field["name"],)
            yield from ((field["name"], *names) for names in _fields(field["type"]))


_Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ScanColumnMessage:
    """``type``: that of a nested column, as Spark reads it: perhaps without some fields.

    Of others it is None: the table has their types.
    """

    attribute: int
    name: str
    type: object


@dataclass(frozen=True, slots=True)
class ScanMessage:
    """A scan and the columns that it gives."""

    catalog: Catalog
    plan: str
    table: str
    columns: tuple[ScanColumnMessage, ...]

    def nested_types(self) -> dict[str, pa.DataType | None]:
        """Give the types of nested columns as Spark reads them: perhaps without some fields."""
        types = {
            column.name: type_of(column.type)
            for column in self.columns
            if isinstance(column.type, Mapping)
        }
        return {name: kind for name, kind in types.items() if is_carried(kind)}


@dataclass(frozen=True, slots=True)
class OneRowMessage:
    """One row without columns."""

    def node(self, _numbers: ColumnNumbers) -> OneRow:
        """Make the node."""
        return OneRow()


@dataclass(frozen=True, slots=True)
class PruningMessage:
    """A filter by values of another table, of ``columns`` there: for any join, or a broadcast."""

    id: int
    in_broadcast: bool
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FilterMessage:
    """A condition, or None; and its prunings, which the condition is without."""

    child: int
    condition: str | None
    prunings: tuple[PruningMessage, ...]

    def node(self, _numbers: ColumnNumbers) -> Filter:
        """Make the node."""
        return Filter(self.child, condition_of(self.condition))


@dataclass(frozen=True, slots=True)
class ProjectMessage:
    """``expressions``: attribute, text, type."""

    child: int
    expressions: tuple[_Values, ...]

    def node(self, numbers: ColumnNumbers) -> Project:
        """Make the node."""
        renamed = numbers.renamed(self.expressions)
        return Project(self.child, outputs_of(self.expressions), renamed)


@dataclass(frozen=True, slots=True)
class ComparedMessage:
    """A column under casts: its types from the column's own on; whether zones are UTC."""

    column: str | None
    types: tuple[str, ...]
    utc: bool

    def compared(self, numbers: ColumnNumbers) -> ComparedColumn | None:
        """Make the column; None where it cannot be written."""
        column = numbers.of(self.column)
        return None if column is None else ComparedColumn(column, self.types, self.utc)


@dataclass(frozen=True, slots=True)
class ComparisonMessage:
    """Two columns that a join equates; None for a side that is no column."""

    left: ComparedMessage | None
    right: ComparedMessage | None


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
    broadcast: str | None
    exists: int | None

    def node(self, numbers: ColumnNumbers) -> Join:
        """Make the node."""
        pairs = [(it.left, it.right) for it in self.compared if it.left and it.right]
        sides = ((left.compared(numbers), right.compared(numbers)) for left, right in pairs)
        comparisons = [ColumnComparison(left, right) for left, right in sides if left and right]
        equated = [comparison for comparison in comparisons if comparison.equates]
        return Join(
            self.left,
            self.right,
            JoinType(self.type),
            condition_of(self.condition),
            equated=tuple(comparison.attributes for comparison in equated),
            is_null_safe=self.null_safe,
            has_casts=any(comparison.has_casts for comparison in equated),
            dates=frozenset(
                comparison.attributes for comparison in equated if comparison.is_of_midnights
            ),
            broadcast=None if self.broadcast is None else Side(self.broadcast),
            text=self.text,
            exists=self.exists,
        )

    def columns(self, numbers: ColumnNumbers) -> frozenset[int] | None:
        """List the columns of either side that it compares; None where one cannot be written."""
        sides = [side for it in self.compared for side in (it.left, it.right) if side is not None]
        columns = [side.compared(numbers) for side in sides]
        known = frozenset(column.attribute for column in columns if column is not None)
        return None if None in columns else known


@dataclass(frozen=True, slots=True)
class ScalarMessage:
    """Rows beside the one value of a subquery."""

    rows: int
    value: int

    def node(self, _numbers: ColumnNumbers) -> Join:
        """Make the node."""
        text = "a scalar subquery"
        return Join(self.rows, self.value, JoinType.SCALAR, broadcast=Side.RIGHT, text=text)


@dataclass(frozen=True, slots=True)
class GroupMessage:
    """``keys``: what it groups by; ``columns``: what it gives of its input: attribute, text, type.

    ``grouping``: text, type, attribute.

    It, ``functions`` and ``outputs`` are None where the aggregate cannot be computed in parts:
    ``unknown`` names what of it cannot.
    """

    child: int
    keys: tuple[str | None, ...]
    columns: tuple[_Values, ...]
    functions: tuple[AggregateCallMessage, ...] | None
    grouping: tuple[_Values, ...] | None
    outputs: tuple[_Values, ...] | None
    unknown: str | None

    def node(self, numbers: ColumnNumbers) -> Group:
        """Make the node."""
        keys = calls = None
        if self.functions is not None and self.grouping is not None:
            keys = outputs_of(
                [(number, text, data_type) for text, data_type, number in self.grouping]
            )
            calls = tuple(function.call() for function in self.functions)
        outputs = None if self.outputs is None else outputs_of(self.outputs)
        group_by, columns = numbers.all_of(self.keys), numbers.renamed(self.columns)
        return Group(self.child, group_by, columns, keys, calls, outputs, self.unknown)


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """Functions over the rows of a window, and what is made of them."""

    child: int
    partition: tuple[str | None, ...]
    order: tuple[SortKeyMessage, ...]
    functions: tuple[WindowCallMessage, ...]
    outputs: tuple[_Values, ...]

    def node(self, numbers: ColumnNumbers) -> Window:
        """Make the node."""
        calls = tuple(function.call() for function in self.functions)
        of = expressions_of(self.partition), order_of(self.order)
        outputs = outputs_of(self.outputs)
        return Window(self.child, numbers.all_of(self.partition), *of, calls, outputs)


@dataclass(frozen=True, slots=True)
class GroupLimitMessage:
    """The first rows of each group: a window group limit."""

    child: int
    partition: tuple[str | None, ...]

    def node(self, numbers: ColumnNumbers) -> Window:
        """Make the node."""
        return Window(self.child, numbers.all_of(self.partition))


@dataclass(frozen=True, slots=True)
class UnionMessage:
    """``columns``: the output attribute, then that of each input."""

    children: tuple[int, ...]
    columns: tuple[_Values, ...]
    keyed: bool

    def node(self, _numbers: ColumnNumbers) -> Union:
        """Make the node."""
        taken: list[Any] = [(new, tuple(old)) for new, *old in self.columns]
        return Union(self.children, tuple(taken), self.keyed)


@dataclass(frozen=True, slots=True)
class ExpandMessage:
    """``expressions``: attribute, its texts, its type."""

    child: int
    expressions: tuple[_Values, ...]

    def node(self, numbers: ColumnNumbers) -> Expand:
        """Make the node."""
        stated: list[Any] = list(self.expressions)
        outputs = tuple(
            Expanded(number, expressions_of(texts, type_of(data_type)))
            for number, texts, data_type in stated
        )
        same = [(number, texts[0], kind) for number, texts, kind in stated if len({*texts}) == 1]
        return Expand(self.child, numbers.renamed(same), outputs)


@dataclass(frozen=True, slots=True)
class LimitMessage:
    """So many rows of each task, or of the whole, or all but so many: ``name`` is Spark's."""

    child: int
    count: int
    name: str

    def node(self, _numbers: ColumnNumbers) -> Limit | Offset:
        """Make the node."""
        if self.name == "Offset":
            return Offset(self.child, self.count)
        return Limit(self.child, self.count, is_whole=self.name == "GlobalLimit")


@dataclass(frozen=True, slots=True)
class TopMessage:
    """The first rows of each task."""

    child: int
    count: int | None
    order: tuple[SortKeyMessage, ...]

    def node(self, _numbers: ColumnNumbers) -> Limit:
        """Make the node."""
        return Limit(self.child, self.count, order_of(self.order))


@dataclass(frozen=True, slots=True)
class PassMessage:
    """What leaves rows and attributes where they are, and what people know it by."""

    child: int
    name: str

    def node(self, _numbers: ColumnNumbers) -> Pass:
        """Make the node."""
        return Pass(self.child, self.name)


@dataclass(frozen=True, slots=True)
class OpaqueMessage:
    """Anything else, and what people know it by.

    ``of_groups``: whether it wants rows of equal keys in one task, as Python's functions do.
    """

    children: tuple[int, ...]
    name: str
    of_groups: bool

    def node(self, _numbers: ColumnNumbers) -> Opaque:
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
