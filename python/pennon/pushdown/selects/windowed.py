"""Writes window functions, and which rows around one they see, as DataFusion computes them.

NULL rules: NULLs stand where Spark's order says, and are one partition. Aggregates leave NULLs out;
``lag``, ``lead``, ``first_value``, ``last_value`` and ``nth_value`` give them as they stand.

| DataFusion | Spark | guard |
|---|---|---|
| numbers of rows are 64 bits, unsigned | INT | cast |
| ``ntile``: every width is rounded | the first tiles have one row more | made of numbers of rows |
| a default beside ``lag`` is one literal | any value of the row | CASE where there is no row |
| a sum that loses rows takes them off | sums anew | floats are declined where rows leave |
| an average of integers is summed in floats | the same | exact where floats are, then divided |
| a sum of floats that loses rows is inexact | sums anew | BIGINTs of any size are floats |
| an extreme stays when the last value leaves | NULL | NULL where none is counted |
| functions whose arguments differ in a cast have one name | each is its own | of columns |
| a computed key beside a column selected twice is an internal error | any keys | of columns |
| minima of floats compare by < | NaN is the greatest | declined |
| lead leaves NULLs out only for its first row | for all | declined but of the first |

Which of the rows that an order holds equal comes first is open in Spark as well; so no two tasks
evaluate a window whose result says it (``division.py``). Declined: FILTER, and an order by
literals.

Of frames: rows whose order is NULL are near each other and near no other row.

| DataFusion | Spark | guard |
|---|---|---|
| RANGE with offsets adds intervals to times | days and microseconds | in the order of numbers |
| an offset wraps where it leaves 64 bits | an error, if rows are left | numbers of 20 digits |
| an empty RANGE lets earlier values stay in a sum | none | declined without the row itself |

Spark computes an end from the row only while rows are left beyond it, and an end that leaves the
integers is an error or wraps, by the session. So which rows are an error depends on their order.

Declined: RANGE with offsets of months, of decimals and floats, of integers whose known values do
not keep every end within their type, and of whole days in a zone whose days differ in length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp, parse_one

from pennon.predicate.condition import Declined
from pennon.predicate.expressions.aggregates import is_cut, total
from pennon.predicate.expressions.floats import comparable
from pennon.predicate.expressions.intervals import limits
from pennon.predicate.expressions.number_functions import average
from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.typed import (
    MAX_DIGITS,
    NTZ,
    ZONED,
    Typed,
    binary,
    call,
    cast,
    choice,
    integer,
    is_null,
    stated_integer,
)
from pennon.predicate.values.literals import literal_value, whole_interval
from pennon.predicate.values.time_units import MICROS_PER_DAY
from pennon.pushdown.selects.selected import Selected, named, quoted_columns, selected_from

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pennon.plan import Window, WindowCall, WindowFrame
    from pennon.predicate.condition import Semantics
    from pennon.predicate.expressions.intervals import Ends
    from pennon.predicate.typed import SparkExpression

__all__ = ["is_near", "near_number", "written_frame"]

_ENDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "UNBOUNDED PRECEDING": ("UNBOUNDED", "PRECEDING"),
    "UNBOUNDED FOLLOWING": ("UNBOUNDED", "FOLLOWING"),
    "CURRENT ROW": ("CURRENT ROW", None),
}
# As Spark writes them: -3, -3L.
_INTEGER: Final = re.compile(r"(-?\d+)L?")
_WIDE: Final = pa.decimal128(20, 0)


def is_near(frame: WindowFrame) -> bool:
    """Whether it is of the rows whose values are near that of the row."""
    return frame.unit == "RANGE" and not {frame.lower, frame.upper} <= set(_ENDS)


def written_frame(frame: WindowFrame, near: Typed | None) -> exp.WindowSpec:
    """Write a frame.

    Args:
        frame: The frame.
        near: The key of the order where ``is_near`` holds of the frame.

    Raises:
        Declined: It is none that DataFusion has as Spark does.
    """
    if frame.unit not in ("ROWS", "RANGE"):
        raise Declined(why=f"a frame of {frame.unit}")
    (start, start_side), (end, end_side) = (
        _end(bound, None if near is None else near.type) for bound in (frame.lower, frame.upper)
    )
    if near is not None and start_side == end_side:
        raise Declined(why="a frame of values that may be empty")
    return exp.WindowSpec(
        kind=frame.unit, start=start, start_side=start_side, end=end, end_side=end_side
    )


def near_number(
    frame: WindowFrame,
    key: Typed,
    semantics: Semantics,
    *,
    values: Ends | None,
    is_descending: bool,
) -> exp.Expr:
    """Write the number by which rows are near that of the row.

    Args:
        frame: A frame of which ``is_near`` holds.
        key: The only key of the order.
        semantics: The session's.
        values: The range of its values; None where it is not known.
        is_descending: Whether the greatest comes first.

    Raises:
        Declined: An offset does not lead to the same values from everywhere, or may be lost.
    """
    offsets = [_offset(end, key.type) for end in (frame.lower, frame.upper) if end not in _ENDS]
    if key.type == pa.date32():
        return cast(cast(key.tree, pa.int32()), pa.int64())
    number = cast(cast(key.tree, pa.int64()), _WIDE)
    if key.type == NTZ:
        return number
    if key.type == ZONED:
        if not semantics.is_utc and any(abs(offset) >= MICROS_PER_DAY for offset in offsets):
            raise Declined(why="a frame of days, which differ in length in the session's zone")
        return number
    ends = [0, *(-offset if is_descending else offset for offset in offsets)]
    least, greatest = limits(key.type)
    if values is None or values[0] + min(ends) < least or values[1] + max(ends) > greatest:
        raise Declined(why="a frame of integers whose ends may leave their type")
    return number


def _end(text: str, key: pa.DataType | None) -> tuple[str | exp.Expr, str | None]:
    """Read an end of a frame as Spark writes it: a number of rows, or what is added to a key."""
    end = _ENDS.get(text)
    if end is not None:
        return end
    offset = _rows(text) if key is None else _offset(text, key)
    return exp.Literal.number(abs(offset)), "PRECEDING" if offset < 0 else "FOLLOWING"


def _rows(text: str) -> int:
    try:
        return int(text)
    except ValueError as reason:
        raise Declined(why=f"a frame up to {text}") from reason


def _offset(text: str, key: pa.DataType) -> int:
    """Read what is added to a key: days to a date, microseconds to a timestamp."""
    number = _INTEGER.fullmatch(text)
    if number is not None and key in (pa.date32(), pa.int32(), pa.int64()):
        return int(number[1])
    if number is None and key in (pa.date32(), NTZ, ZONED):
        interval = parse_one(text)
        whole = whole_interval(interval) if isinstance(interval, exp.Interval) else None
        if whole is not None and whole[0] == "MICROSECOND":
            days, rest = divmod(whole[1], MICROS_PER_DAY)
            if key != pa.date32():
                return whole[1]
            if rest == 0:
                return days
    raise Declined(why=f"a frame of values near that of the row: {text} of {key}")


# Millions of these have a sum that a float holds.
_LARGEST_EXACT: Final = 2**31
_RANKS: Final = frozenset({"row_number", "rank", "dense_rank"})
_SHARES: Final = frozenset({"percent_rank", "cume_dist"})
_FIRST: Final = {"first": "first_value", "last": "last_value", "any_value": "first_value"}


def windowed(
    name: str,
    node: Window,
    below: Selected,
    order: Sequence[exp.Ordered],
    semantics: Semantics,
    *,
    known: Callable[[str], Ends | None],
) -> Selected:
    """Write the functions of a window beside the columns of its input.

    Args:
        name: What the input is called.
        node: The window.
        below: What is selected of its input.
        order: Its order, written.
        semantics: The session's.
        known: Gives the range of a column of the input.

    Returns:
        The input's columns, and one of each function, called ``c`` and its attribute.

    Raises:
        Declined: A function is not known to be computed as Spark does.
    """
    return _Writer(node, below, order, semantics, known=known).selected(name)


class _Writer:
    def __init__(
        self,
        node: Window,
        below: Selected,
        order: Sequence[exp.Ordered],
        semantics: Semantics,
        *,
        known: Callable[[str], Ends | None],
    ) -> None:
        self.node = node
        self.below = below
        self.semantics = semantics
        self.known = known
        self.order = order
        self.partition = [comparable(self.key(value)) for value in node.partition]
        self.inputs: dict[exp.Expr, str] = {}
        self.functions: list[exp.Expr] = []

    def selected(self, name: str) -> Selected:
        results = {
            f"c{windowed.output}": self.result(windowed) for windowed in self.node.calls or ()
        }
        columns = quoted_columns(self.below.types)
        inputs = [named(tree.copy(), column) for tree, column in self.inputs.items()]
        rows = Selected(selected_from(self.below, f"{name}a", [*columns, *inputs]), {})
        inner = selected_from(rows, name, [*(column.copy() for column in columns), *self.functions])
        finished = [named(value.tree, column) for column, value in results.items()]
        types = {
            **self.below.types,
            **{column: value.type for column, value in results.items()},
        }
        copies = [column.copy() for column in columns]
        return Selected(
            selected_from(Selected(inner, types), f"{name}w", [*copies, *finished]), types
        )

    def key(self, expression: SparkExpression) -> Typed:
        value = self.argument(expression)
        if pa.types.is_binary(value.type) or pa.types.is_null(value.type):
            raise Declined(why=f"a window by {value.type}")
        return value

    def argument(self, expression: SparkExpression) -> Typed:
        return typed_expression(expression, self.below.types, self.semantics)

    def result(self, function: WindowCall) -> Typed:
        """Write a function over the columns of the inner SELECT, of the type that Spark expects."""
        name = function.name or ""
        name = _FIRST.get(name, name)
        if any(literal_value(sort_key.this) is not None for sort_key in self.order):
            raise Declined(why="a window in the order of literals")
        if name in _RANKS:
            result = Typed(cast(self.ranked(name), pa.int32()), pa.int32())
        elif name in _SHARES:
            result = Typed(self.ranked(name), pa.float64())
        elif name == "ntile":
            result = self.tile(function)
        elif name in ("lag", "lead"):
            result = self.moved(name, function)
        else:
            result = self.framed(name, function)
        if result.type != function.type:
            raise Declined(why=f"a {name} of type {function.type} that would be {result.type}")
        return result

    def ranked(self, name: str) -> exp.Expr:
        if not self.order:
            raise Declined(why=f"{name} without an order")
        return self.over(call(name))

    def tile(self, function: WindowCall) -> Typed:
        """Number tiles of rows: as many in each, and one more in each of the first."""
        count = stated_integer(self.argument(function.arguments[0]))
        if count is None or count < 1:
            raise Declined(why="ntile of what is no number")
        whole = pa.int64()
        before = exp.Sub(this=cast(self.ranked("row_number"), whole), expression=integer(1, whole))
        rows = self.over(exp.Count(this=exp.Star()), is_ordered=False)
        width = exp.paren(binary(exp.Div, rows, integer(count, whole)))
        more = exp.paren(binary(exp.Mod, rows.copy(), integer(count, whole)))
        one = integer(1, whole)
        wider = exp.paren(exp.Add(this=width, expression=one))
        in_wider = exp.paren(exp.Mul(this=more, expression=wider))
        first = exp.Add(this=binary(exp.Div, before, wider.copy()), expression=one.copy())
        narrow = call("nullif", width.copy(), integer(0, whole))
        left = exp.paren(binary(exp.Sub, before.copy(), in_wider.copy()))
        rest = exp.Add(
            this=exp.Add(this=binary(exp.Div, left, narrow), expression=more.copy()),
            expression=one.copy(),
        )
        chosen = choice((binary(exp.LT, before.copy(), in_wider), first), default=rest)
        return Typed(cast(chosen, pa.int32()), pa.int32())

    def moved(self, name: str, function: WindowCall) -> Typed:
        """Take the value of another row, or the default where there is no such row."""
        if not self.order:
            raise Declined(why=f"{name} without an order")
        value, offset, default = (self.argument(argument) for argument in function.arguments)
        rows = stated_integer(offset)
        if rows is None or rows < 0:
            raise Declined(why=f"{name} by what is no number of rows")
        count = integer(rows, pa.int64())
        if function.ignores_nulls and (rows == 0 or (name == "lead" and rows > 1)):
            raise Declined(why=f"{name} by {rows} rows that are not NULL")
        moved = self.over(call(name, value.tree, count), ignores_nulls=function.ignores_nulls)
        literal = literal_value(default.tree)
        if default.is_null or (literal is not None and not literal.is_valid):
            return Typed(moved, value.type)
        if default.type != value.type or default.can_fail:
            raise Declined(why=f"the default of {name}")
        inner = self.column(default.tree)
        if function.ignores_nulls:
            return Typed(choice((is_null(moved), inner), default=moved), value.type)
        exists = self.over(call(name, integer(1, pa.int64()), count.copy()))
        return Typed(choice((is_null(exists), inner), default=moved), value.type)

    def framed(self, name: str, function: WindowCall) -> Typed:
        """Write a function of the rows in a frame."""
        frame = function.frame
        if frame is None or not function.arguments:
            raise Declined(why=f"the window function {name or 'without a name'}")
        value = self.argument(function.arguments[0])
        loses = frame.lower != "UNBOUNDED PRECEDING"
        if name == "nth_value":
            number = stated_integer(self.argument(function.arguments[1]))
            if number is None or number < 1:
                raise Declined(why="nth_value of what is no number")
            nth = call(name, value.tree, integer(number, pa.int64()))
            nth_value = self.over(nth, frame, ignores_nulls=function.ignores_nulls)
            return Typed(nth_value, value.type)
        if len(function.arguments) != 1:
            raise Declined(why=f"{name} of several values")
        match name:
            case "first_value" | "last_value":
                end = call(name, value.tree)
                end_value = self.over(end, frame, ignores_nulls=function.ignores_nulls)
                return Typed(end_value, value.type)
            case _ if function.ignores_nulls:
                raise Declined(why=f"{name} that ignores NULLs")
            case "count":
                return Typed(self.counted(value, frame), pa.int64())
            case "min" | "max":
                if value.is_float or pa.types.is_boolean(value.type):
                    raise Declined(why=f"{name} of {value.type} in a window")
                extreme = exp.Min if name == "min" else exp.Max
                extreme_value = self.over(extreme(this=value.tree.copy()), frame)
                none = exp.EQ(this=self.counted(value, frame), expression=integer(0, pa.int64()))
                return Typed(choice((none, exp.Null()), default=extreme_value), value.type)
            case "sum" if not (loses and value.is_float):
                return self.summed(value, frame)
            case "avg" | "mean" if not (loses and self.is_averaged_as_float(value)):
                return self.averaged(value, frame, function.type)
        raise Declined(why=f"the window function {name} of {value.type}")

    def summed(self, value: Typed, frame: WindowFrame) -> Typed:
        if is_cut(value.type) and not self.semantics.ansi:
            raise Declined(why="sums of decimals that would be NULL in a window")
        whole = total(value, self.semantics)
        tree = whole.tree.transform(
            lambda node: self.over(node, frame) if isinstance(node, exp.Sum) else node
        )
        return Typed(tree, whole.type)

    def counted(self, value: Typed, frame: WindowFrame) -> exp.Expr:
        literal = literal_value(value.tree)
        everything = literal is not None and literal.is_valid
        counted = exp.Star() if everything else value.tree.copy()
        return self.over(exp.Count(this=counted), frame)

    def averaged(self, value: Typed, frame: WindowFrame, data_type: pa.DataType | None) -> Typed:
        count = self.counted(value, frame)
        if value.is_decimal and data_type is not None and pa.types.is_decimal(data_type):
            digits = Typed(cast(count, pa.decimal128(20, 0)), pa.decimal128(20, 0))
            kept = (data_type.precision, data_type.scale)
            return average(self.summed(value, frame), digits, kept, self.semantics)
        if self.is_averaged_as_float(value):
            as_float = Typed(cast(value.tree, pa.float64()), pa.float64())
            whole = self.summed(as_float, frame).tree
        elif value.is_integer:
            digits_type = pa.decimal128(MAX_DIGITS, 0)
            exact = self.over(exp.Sum(this=cast(value.tree, digits_type)), frame)
            whole = cast(exact, pa.float64())
        else:
            raise Declined(why=f"the average of {value.type}")
        divisor = cast(call("nullif", count, integer(0, pa.int64())), pa.float64())
        return Typed(binary(exp.Div, whole, divisor), pa.float64())

    def is_averaged_as_float(self, value: Typed) -> bool:
        """Whether a sum in floats may be rounded, as Spark's then is: of large BIGINTs, too."""
        if value.type != pa.int64():
            return value.is_float
        ends = self.known_range(value)
        return ends is None or max(-ends[0], ends[1]) > _LARGEST_EXACT

    def known_range(self, value: Typed) -> Ends | None:
        return self.known(value.tree.name) if isinstance(value.tree, exp.Column) else None

    def over(
        self,
        function: exp.Expr,
        frame: WindowFrame | None = None,
        *,
        is_ordered: bool = True,
        ignores_nulls: bool = False,
    ) -> exp.Expr:
        """Compute a function over the window in the inner SELECT; give its column there."""
        if frame is not None and frame.unit == "RANGE" and not (self.order or frame.is_whole):
            raise Declined(why="a frame of peers without an order")
        near = self.near_key(frame)
        ordered = self.ordered(frame, near) if is_ordered else []
        called = self.of_columns(function)
        window = exp.Window(
            this=exp.IgnoreNulls(this=called) if ignores_nulls else called,
            partition_by=[self.as_column(tree) for tree in self.partition],
            order=exp.Order(expressions=ordered) if ordered else None,
            spec=None if frame is None else written_frame(frame, near),
            over="OVER",
        )
        return self.column(window)

    def ordered(self, frame: WindowFrame | None, near: Typed | None) -> list[exp.Ordered]:
        """Write the order; that of values near the row's is of numbers."""
        keys = [sort_key.copy() for sort_key in self.order]
        if frame is None or near is None:
            return keys
        is_descending = bool(keys[0].args.get("desc"))
        number = near_number(
            frame,
            near,
            self.semantics,
            values=self.known_range(near),
            is_descending=is_descending,
        )
        keys[0].set("this", self.as_column(number))
        return keys

    def near_key(self, frame: WindowFrame | None) -> Typed | None:
        """Give the key near whose value a frame is; None of another frame."""
        if frame is None or not is_near(frame):
            return None
        if len(self.order) != 1:
            raise Declined(why="a frame of values in the order of several")
        return self.argument(self.node.order[0].value)

    def of_columns(self, function: exp.Expr) -> exp.Expr:
        """Let a function read columns: DataFusion calls two by one name that differ in a cast."""
        function = function.copy()
        called = isinstance(function, exp.Anonymous)
        argument = next(iter(function.expressions), None) if called else function.this
        if isinstance(argument, exp.Expr) and not isinstance(argument, exp.Star):
            argument.replace(self.as_column(argument))
        return function

    def as_column(self, tree: exp.Expr) -> exp.Expr:
        if isinstance(tree, exp.Column):
            return tree.copy()
        return exp.column(self.inputs.setdefault(tree.copy(), f"a{len(self.inputs)}"), quoted=True)

    def column(self, tree: exp.Expr) -> exp.Expr:
        column = f"w{len(self.functions)}"
        self.functions.append(named(tree.copy(), column))
        return exp.column(column, quoted=True)
