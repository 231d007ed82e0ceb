"""The operators of a query, each with its attributes and its expressions.

Nodes stand in post-order and name each other by position. An attribute is the number of a column
in the query; a negative one is that of a field of a struct.

The JVM tells them as they are declared here (``json_fields.py``), with Spark SQL for expressions
and Spark's JSON for types. Only what is ``DERIVED`` is found out when the plan is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.typed import UNWRITTEN, SparkExpression
from pennon.spec.functions import ColumnComparison

if TYPE_CHECKING:
    from pennon.spec.functions import Layout, LayoutFunction

DERIVED: Final[Mapping[str, Any]] = MappingProxyType({"key": None})
"""The metadata of a field that no message has."""

# The functions over the rows of a group.

# By the names of Spark's classes: in SQL some of them have several.
_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
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


def _function(name: str) -> str:
    return _FUNCTIONS.get(name, name)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """``sum``, ``count``, ``min``, ``max``, ``bit_and``, a variance, ``corr``, and the like.

    Args:
        output: Attribute of the result.
        name: The function; ``count_distinct`` and ``sum_distinct`` are of different values.
        argument: Its argument.
        type: Type of the result; None if unknown.
        others: Its other arguments.
        argument_type: Type of its argument; None if unknown.
    """

    output: int = field(metadata={"key": "attribute"})
    name: str = field(metadata={"type": "string", "read": _function})
    argument: SparkExpression
    type: pa.DataType | None
    others: tuple[SparkExpression, ...] = ()
    argument_type: pa.DataType | None = None

    @property
    def counts_rows(self) -> bool:
        """Whether it is ``count(*)``, which Spark writes as a count of ones."""
        counted = self.argument.tree
        return self.name == "count" and isinstance(counted, exp.Literal) and counted.this == "1"

    @property
    def is_distinct(self) -> bool:
        """Whether the parts of a group give the whole's result by their values only."""
        return self.name in ("count_distinct", "sum_distinct")


# The functions over the rows of a window, and which rows each one sees.


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """Which rows around one a function sees.

    Args:
        unit: ``ROWS``, or ``RANGE``: peers by the order come in together.
        lower: Where it begins, as Spark writes it: ``UNBOUNDED PRECEDING``, ``CURRENT ROW``, or a
            number of rows, a negative one before the row.
        upper: Where it ends.
    """

    unit: str
    lower: str
    upper: str

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole partition."""
        return (self.lower, self.upper) == ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING")


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function over the rows of a window.

    Args:
        output: Attribute of the result.
        name: The function; None where it is not known.
        arguments: Its arguments.
        frame: The rows that it sees; None where it has a frame of its own.
        type: Type of the result; None if unknown.
        ignores_nulls: Whether it looks for values that are not NULL.
    """

    output: int = field(metadata={"key": "attribute"})
    name: str | None
    arguments: tuple[SparkExpression, ...]
    frame: WindowFrame | None
    type: pa.DataType | None
    ignores_nulls: bool = False

    @property
    def depends_on_ties(self) -> bool:
        """Whether rows that the order holds equal may get each other's results."""
        if self.name in ("rank", "dense_rank", "percent_rank", "cume_dist"):
            return False
        return self.frame is None or not (self.frame.is_whole or self.frame.unit == "RANGE")


class JoinType(StrEnum):
    """Join types by which sides keep their rows' attributes and grouping above the join.

    The right side of a scalar one is a subquery of one value, which every row of the left side gets
    beside its own: NULL where the subquery has no row.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    EXISTENCE = "existence"
    SCALAR = "scalar"

    @property
    def keeps_left(self) -> bool:
        """Whether rows of the left side come out under their own key."""
        return self not in (JoinType.RIGHT, JoinType.FULL)

    @property
    def keeps_right(self) -> bool:
        """Whether rows of the right side come out under their own key."""
        return self in (JoinType.INNER, JoinType.RIGHT)

    @property
    def gives_right(self) -> bool:
        """Whether attributes of the right side come out.

        Where they end, they stand above for another use of a DataFrame.
        """
        return self in (JoinType.INNER, JoinType.LEFT, JoinType.RIGHT, JoinType.FULL)


class Side(StrEnum):
    """A side of a join."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a scan: its attribute, its name in the table, its type; None if unknown."""

    id: int = field(metadata={"key": "attribute"})
    name: str
    type: pa.DataType | None


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a node makes: its attribute, and what it is; a list with its type, told."""

    id: int
    value: SparkExpression

    @property
    def type(self) -> pa.DataType | None:
        """Its type; None if unknown."""
        return self.value.type

    @classmethod
    def of_attribute(cls, attribute: int, data_type: pa.DataType | None) -> Output:
        """Make a column that stays what it is."""
        return cls(attribute, SparkExpression.of_column(f"c{attribute}", data_type))


Bounds = tuple[int | Decimal, int | Decimal]
"""The least and the greatest number that a column may have."""


def _nothing_known(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of a namespace.

    Args:
        columns: Its output, in order.
        layout: How its chosen partitions can be grouped; None where nothing asks for it.
        attributes: Field id of a column → attributes that carry it.
        reported: The functions that the scan reports to Spark as keys.
        table: The table's name, for people.
        names: Field id of a column → its name, for people.
        num_bytes: Bytes of the chosen partitions, as far as they are known.
        num_rows: Rows of them; None where they are not known.
        is_filtered: Whether a condition on its rows is more than that a column is not NULL.
        most_values: The most values, NULL among them, that a column can have, by its name; None
            where nothing is known. It may read statistics.
        bounds: Numbers that no value of a column is below, and above, by its name; None where not
            both are known, and of other types. It may read statistics.
    """

    columns: tuple[Column, ...] = ()
    layout: Layout | None = None
    attributes: Mapping[int, frozenset[int]] = field(default_factory=dict)
    reported: tuple[LayoutFunction, ...] = ()
    table: str = ""
    names: Mapping[int, str] = field(default_factory=dict)
    num_bytes: int = 0
    num_rows: int | None = None
    is_filtered: bool = False
    most_values: Callable[[str], int | None] = field(default=_nothing_known, compare=False)
    bounds: Callable[[str], Bounds | None] = field(default=_nothing_known, compare=False)


@dataclass(frozen=True, slots=True)
class OneRow:
    """One row without columns, of a SELECT without FROM: a projection gives it its columns."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """A filter by values of another table, of ``columns`` there: for any join, or a broadcast."""

    id: int
    in_broadcast: bool
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the condition is true.

    Args:
        child: Its input.
        condition: The condition, without the prunings; unwritten where no join implies one.
        prunings: Filters by the values of another table.
    """

    child: int
    condition: SparkExpression
    prunings: tuple[Pruning, ...] = ()

    @property
    def leaves_out_rows(self) -> bool:
        """Whether there is a condition; one of prunings alone has none beside them."""
        condition = self.condition.tree
        return not (isinstance(condition, exp.Boolean) and condition.this)


@dataclass(frozen=True, slots=True)
class Project:
    """A projection.

    Args:
        child: Its input.
        outputs: Its columns; None where the outline does not contain them.
        renamed: For each output attribute that is one of the input, that one.
    """

    child: int
    outputs: tuple[Output, ...] | None = field(default=None, metadata={"key": "expressions"})
    renamed: tuple[tuple[int, int], ...] = field(default=(), metadata=DERIVED)


@dataclass(frozen=True, slots=True)
class Join:
    """A join of two inputs.

    Args:
        left: One input.
        right: The other.
        join_type: What becomes of rows without partner.
        condition: The whole of its condition; none is written of a join with one value.
        implied: Ids of the prunings below that leave out nothing that this join would not.
        equated: Pairs of attributes that it compares by ``=`` or ``<=>``, left first.
        is_null_safe: Whether some are equated by ``<=>``, which Spark's own matching does not see
            through.
        has_casts: Whether one of them is compared under a cast, behind which Spark sees no
            partitioning.
        dates: The pairs of a DATE and a timestamp, which compares midnights: only days and coarser
            fit.
        broadcast: The side that Spark would broadcast; None where it would shuffle.
        text: The condition as people read it.
        exists: Attribute of an existence join that says whether a row has a partner.
        compared: All that it compares by ``=`` or ``<=>``.
    """

    left: int
    right: int
    join_type: JoinType = field(metadata={"key": "type"})
    condition: SparkExpression = UNWRITTEN
    implied: frozenset[int] = field(default=frozenset(), metadata=DERIVED)
    equated: tuple[tuple[int, int], ...] = field(default=(), metadata=DERIVED)
    is_null_safe: bool = field(default=False, metadata={"key": "null_safe"})
    has_casts: bool = field(default=False, metadata=DERIVED)
    dates: frozenset[tuple[int, int]] = field(default=frozenset(), metadata=DERIVED)
    broadcast: Side | None = None
    text: str = ""
    exists: int | None = None
    compared: tuple[ColumnComparison, ...] = ()

    @property
    def streamed(self) -> int | None:
        """The input whose rows a broadcast leaves where they are; None where Spark shuffles."""
        if self.broadcast is None:
            return None
        return self.right if self.broadcast is Side.LEFT else self.left


@dataclass(frozen=True, slots=True)
class Group:
    """An aggregate (or DISTINCT).

    Args:
        child: Its input.
        group_by: Its grouping attributes.
        columns: For each output attribute that is one of the input, that one.
        keys: The grouping expressions and the attributes that they get; None where the aggregate
            cannot be stated in parts.
        calls: The functions; None where one of them is not known.
        outputs: The aggregate's own output over the keys' and the functions' attributes.
        unknown: What of it cannot be stated in parts, as people know it.
        grouping: All grouping expressions.
        copied: Its columns that are one of the input, or a field of one.
    """

    child: int
    group_by: frozenset[int] = field(default=frozenset(), metadata=DERIVED)
    columns: tuple[tuple[int, int], ...] = field(default=(), metadata=DERIVED)
    keys: tuple[Output, ...] | None = None
    calls: tuple[AggregateCall, ...] | None = field(default=None, metadata={"key": "functions"})
    outputs: tuple[Output, ...] | None = None
    unknown: str | None = None
    grouping: tuple[SparkExpression, ...] = ()
    copied: tuple[Output, ...] = field(default=(), metadata={"key": "columns"})


@dataclass(frozen=True, slots=True)
class SortKey:
    """By what rows are ordered: an expression, its direction, and where its NULLs stand."""

    value: SparkExpression = field(metadata={"key": "text"})
    is_ascending: bool = field(metadata={"key": "ascending"})
    is_nulls_first: bool = field(metadata={"key": "nulls_first"})


@dataclass(frozen=True, slots=True)
class Window:
    """A window, or a window group limit: that leaves out rows which a filter above leaves out, too.

    Args:
        child: Its input.
        keys: Its partitioning attributes.
        partition: The partitioning expressions.
        order: What the rows of a partition are ordered by.
        calls: The functions; None for a window group limit.
        outputs: What it adds to its input's columns, over the attributes of the functions.
    """

    child: int
    keys: frozenset[int] = field(default=frozenset(), metadata=DERIVED)
    partition: tuple[SparkExpression, ...] = ()
    order: tuple[SortKey, ...] = ()
    calls: tuple[WindowCall, ...] | None = field(default=None, metadata={"key": "functions"})
    outputs: tuple[Output, ...] = ()

    @property
    def is_limit(self) -> bool:
        """Whether it adds no column, and may pass all rows."""
        return self.calls is None

    @property
    def depends_on_ties(self) -> bool:
        """Whether two evaluations of it may differ."""
        first = {"first", "first_value", "last", "last_value", "any_value", "nth_value"}
        calls = self.calls or ()
        return any(call.depends_on_ties or call.name in first for call in calls)


def _united(columns: Sequence[Sequence[int]]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple((new, tuple(old)) for new, *old in columns)


@dataclass(frozen=True, slots=True)
class Union:
    """A ``UNION ALL``.

    Args:
        children: Its inputs.
        columns: For each output attribute, the one of each input that it takes.
        is_keyed: Whether Spark knows that its rows are grouped as those of its inputs.
    """

    children: tuple[int, ...]
    columns: tuple[tuple[int, tuple[int, ...]], ...] = field(
        metadata={"type": "integer[][]", "read": _united}
    )
    is_keyed: bool = field(default=True, metadata={"key": "keyed"})


@dataclass(frozen=True, slots=True)
class Expanded:
    """A column of an expansion: its attribute, and what it is in each projection; a list, told."""

    id: int
    values: tuple[SparkExpression, ...]


@dataclass(frozen=True, slots=True)
class Expand:
    """Several rows for each one.

    Args:
        child: Its input.
        columns: For each output attribute that is the same one of the input in all rows, that one.
        outputs: Its columns; None where the outline does not contain them.
    """

    child: int
    columns: tuple[tuple[int, int], ...] = field(default=(), metadata=DERIVED)
    outputs: tuple[Expanded, ...] | None = field(default=None, metadata={"key": "expressions"})


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many rows of what a task computes: any of them, or the first ones by an order.

    Args:
        child: Its input.
        count: The most rows; None where all are ordered, for an offset above.
        order: What they are ordered by; none where any rows will do.
        is_whole: Whether it counts the rows of all tasks together (a global limit).
    """

    child: int
    count: int | None
    order: tuple[SortKey, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Offset:
    """All rows of a query but so many first ones, by the order in which they come.

    Args:
        child: Its input.
        count: How many are left out.
    """

    child: int
    count: int


@dataclass(frozen=True, slots=True)
class Pass:
    """What leaves rows and attributes where they are.

    Args:
        child: Its input.
        name: Its name for people.
        equal: Pairs of an attribute of its input and another one that is equal in each of its rows.
    """

    child: int
    name: str = ""
    equal: tuple[tuple[int, int], ...] = field(default=(), metadata=DERIVED)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything else: nothing of its inputs is known above it; its name for people.

    ``of_groups``: whether it wants rows of equal keys in one task, as Python's functions do.
    """

    children: tuple[int, ...] = ()
    name: str = ""
    of_groups: bool = False


PlanNode = (
    Scan
    | OneRow
    | Filter
    | Project
    | Join
    | Group
    | Window
    | Union
    | Expand
    | Limit
    | Offset
    | Pass
    | Opaque
)


# What people know an operator by.


def name_of(node: PlanNode) -> str:
    """Name an operator that stays in Spark.

    Example:
        >>> name_of(Opaque((0,), "Range")), name_of(Pass(0, "explode"))
        ('the operator Range', 'the operator explode')
    """
    match node:
        case Opaque(children=(), name=name) if name:
            return f"rows of no table of Pennon ({name})"
        case Opaque(name=name) | Pass(name=name) if name:
            return f"the operator {name}"
        case Offset():
            return "OFFSET of rows without an order"
        case Limit():
            return "the first rows by an order, within a query of several tasks"
    return "an operator that stays in Spark"
