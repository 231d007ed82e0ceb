"""Spark's functions and operators that workers compute: one row each.

A row says how an expression is compiled for DataFusion, in which order Spark computes its operands,
when it is NULL, and what it asks of a time. What is not in the table is left to Spark, and so is
what a row does not take: its functions raise ``Declined``, as ``left`` says of the row. A new
function is its row, and its lines in ``tests/golden/expressions``, which compare it with Spark.

The table is the page ``docs/functions.md``, too, which ``make docs`` writes.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined, reference_path
from pennon.predicate.expressions import calls, intervals, parsed_texts
from pennon.predicate.expressions import number_functions as numbers
from pennon.predicate.expressions import text_functions as texts
from pennon.predicate.expressions import time_functions as times
from pennon.predicate.expressions.calls import Compile, Reader, by_name, name_of, of, typed_by
from pennon.predicate.expressions.intervals import Interval, Rule, of_operands
from pennon.predicate.typed import Typed
from pennon.predicate.values.literals import arrow_type, literal_value, whole_interval
from pennon.predicate.values.time_units import (
    FIRST_OF_UNIT,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    first_day_of_year,
    months_before,
    moved_before,
    unit_from,
)


class Order(Enum):
    """In which order Spark computes operands; it stops at the first that is NULL."""

    UNKNOWN = "an operand that can be an error is declined beside others"
    LEFT_FIRST = "the left one first"
    DIVISOR_FIRST = "the divisor first"
    ALL = "all of them, or as its own rules say"


class Nulls(Enum):
    """When an expression is NULL."""

    STRICT = "where an operand is"
    EXACT = "where an operand is, and nowhere else"
    OWN = "by its own rules"


class Unit(Enum):
    """The most that a function asks of a time."""

    DAY = "day"
    HOUR = "hour"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a function asks of the times that it is given.

    Args:
        unit: No more than that: of all times within it, it gives the same.
        is_cyclic: Whether it gives the same 400 years later, when the calendar repeats.
    """

    unit: Unit
    is_cyclic: bool = False


Inverse: TypeAlias = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Monotone:
    """A function of a time that never decreases, and how it is inverted.

    Args:
        inverse: By the call, and by whether it takes days: from a value to the first time of which
            it is not less; None for a call that is not known, ``int`` for what is the time itself.
        takes: ``days`` or ``micros`` of the time; empty for what there is.
        gives: What its value counts: these, ``years``, or ``units`` since 1970.
        operand: The argument with the time.
        is_of_moments: Whether it counts moments, in UTC whatever the session's zone.
    """

    inverse: Callable[[exp.Expr, bool], Inverse | None]
    takes: str = ""
    gives: str = ""
    operand: str = "this"
    is_of_moments: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of a function, however it is compiled.

    Args:
        nulls: When it is NULL.
        order: In which order Spark computes its operands.
        asks: What it asks of a time, by the expression; None for more than the hour.
        bounds: What it can be, by what its operands can be; None where nothing is known.
        is_total: Whether it is an error only where an operand is.
        monotone: How conditions on it become ranges of a time; None for what may decrease.
    """

    nulls: Nulls = Nulls.STRICT
    order: Order = Order.UNKNOWN
    asks: Callable[[exp.Expr], Asked | None] | None = None
    bounds: Rule | None = None
    is_total: bool = False
    monotone: Monotone | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function or an operator of Spark.

    Args:
        names: As users write it, several spellings with commas between.
        nodes: The parser's classes of it; or its name, where the parser has no class.
        signature: The types of its arguments and of its result.
        compile: How it is written for DataFusion; None for what ``typed_expression`` reads itself.
        left: What of it is left to Spark.
        facts: What is true of it.
    """

    names: str
    nodes: tuple[type[exp.Expr], ...] | str
    signature: str
    compile: Compile | None
    left: str = ""
    facts: Facts = Facts()


def function_of(node: exp.Expr) -> Function | None:
    """Find the row of an expression; None for what workers do not compute.

    Example:
        >>> print(function_of(exp.Upper(this=exp.column("a"))).signature)
        STRING → STRING
    """
    if isinstance(node, exp.Anonymous):
        return _BY_NAME.get(node.name.lower())
    return _BY_CLASS.get(type(node))


def compiled(node: exp.Expr, reader: Reader) -> Typed:
    """Write a function for DataFusion.

    Args:
        node: Its call, in Spark's SQL.
        reader: What reads its operands.

    Raises:
        Declined: It is not in the table, or is not known to be computed as Spark does.
    """
    function = function_of(node)
    if function is None or function.compile is None:
        raise Declined(why=name_of(node))
    return function.compile(node, reader)


def asked_of_times(node: exp.Expr) -> Asked | None:
    """Tell what a function asks of the times that it is given; None where that may be more.

    Example:
        >>> asked_of_times(exp.Year(this=exp.column("a")))
        Asked(unit=<Unit.DAY: 'day'>, is_cyclic=False)
    """
    function = function_of(node)
    asks = None if function is None else function.facts.asks
    return None if asks is None else asks(node)


def monotone_of(node: exp.Expr) -> Monotone | None:
    """Tell how a function of a time is inverted; None for what may decrease."""
    function = function_of(node)
    return None if function is None else function.facts.monotone


def is_null_of_null(node: exp.Expr) -> bool:
    """Whether an expression is NULL as soon as one of its operands is."""
    function = function_of(node)
    return function is not None and function.facts.nulls is not Nulls.OWN


def is_total(node: exp.Expr) -> bool:
    """Whether an expression is an error only where an operand is."""
    function = function_of(node)
    return function is not None and function.facts.is_total


# More digits than the product of two of the widest decimals has, so that none is rounded.
_EXACT_DIGITS: Final = decimal.Context(prec=400, traps=[decimal.Inexact, decimal.InvalidOperation])


def interval_of(
    node: exp.Expr, columns: Mapping[tuple[str, ...], Interval], count: int
) -> Interval | None:
    """Find what an expression can be.

    Args:
        node: As DataFusion computes it.
        columns: What its columns can be, by their paths.
        count: Of how many leaves.

    Returns:
        What it can be in each; None where its form is not known.

    Example:
        >>> byte = Interval.of_range(pa.int8(), (1, 5))
        >>> doubled = exp.Add(this=exp.column("a"), expression=exp.column("a"))
        >>> interval_of(doubled, {("a",): byte}, 1).upper.tolist()
        [10]
    """

    def of(inner: exp.Expr) -> Interval | None:
        literal = literal_value(inner)
        if literal is not None:
            return Interval.of_literal(literal, count)
        path = reference_path(inner)
        if path is not None:
            return columns.get(path)
        if isinstance(inner, exp.Anonymous) and inner.name.lower() == "greatest":
            (*_, only) = inner.expressions  # it stands for its only value
            return of(only) if len(inner.expressions) == 1 else None
        function = function_of(inner)
        rule = None if function is None else function.facts.bounds
        return None if rule is None else rule(inner, of)

    with decimal.localcontext(_EXACT_DIGITS):
        return of(node)


# What functions ask of a time.

_DAYS: Final = Asked(Unit.DAY)
_CYCLIC_DAYS: Final = Asked(Unit.DAY, is_cyclic=True)


_HOURS: Final = Asked(Unit.HOUR, is_cyclic=True)


def _asks_by_target(node: exp.Expr) -> Asked | None:
    return _DAYS if arrow_type(node.args["to"]) == pa.date32() else None


def _asks_by_part(node: exp.Expr) -> Asked | None:
    name = node.this.name.upper()
    if name == "HOUR":
        return _HOURS
    if name == "YEAR":
        return _DAYS
    return _CYCLIC_DAYS if times.is_part_of_dates(name) else None


def _asks_by_unit(node: exp.Expr) -> Asked | None:
    unit = node.args.get("unit")
    name = "" if unit is None else unit.name.upper()
    if name == "HOUR":
        return Asked(Unit.HOUR)
    return _DAYS if times.is_unit_of_days(name) else None


def _asks_by_letters(node: exp.Expr) -> Asked | None:
    """Tell by the letters of a pattern; a text in it, or a computed one, has others."""
    pattern = literal_value(node.expressions[-1])
    text = "?" if pattern is None or not pattern.is_valid else str(pattern.as_py())
    letters = set(text) - set("-/.:, _")
    if not letters <= set("yMdH"):
        return None
    return Asked(Unit.HOUR if "H" in letters else Unit.DAY, is_cyclic="y" not in letters)


# How functions that never decrease are inverted.


def _year_from(node: exp.Expr, _: bool) -> Inverse | None:  # noqa: FBT001
    is_year = isinstance(node, exp.Year) or node.this.name.upper() == "YEAR"
    return first_day_of_year if is_year else None


def _unit_from(node: exp.Expr, is_days: bool) -> Inverse | None:  # noqa: FBT001
    unit = node.args["unit"].name.upper()
    return unit_from(unit, is_days=is_days) if not is_days or times.is_unit_of_trunc(unit) else None


def _moved_from(node: exp.Expr, is_days: bool) -> Inverse | None:  # noqa: FBT001
    """Invert what moves a time; None for a time of the day that is added to a date."""
    interval = node.args["expression"]
    whole = whole_interval(interval) if isinstance(interval, exp.Interval) else None
    if whole is None:
        return None
    unit, count = whole
    count = -count if isinstance(node, exp.Sub) else count
    per_day = 1 if is_days else MICROS_PER_DAY
    if unit == "MONTH":
        return partial(months_before, count, per_day)
    moved, rest = divmod(count * per_day, MICROS_PER_DAY)
    return None if rest else partial(moved_before, moved)


def _counted(unit: str) -> Facts:
    return Facts(
        monotone=Monotone(lambda *_: FIRST_OF_UNIT[unit], "micros", "units", is_of_moments=True)
    )


_ALL: Final = Facts(Nulls.OWN, Order.ALL)
_OWN: Final = Facts(Nulls.OWN)
_LOGIC: Final = replace(_ALL, bounds=intervals.connected, is_total=True)
_NOT: Final = Facts(bounds=intervals.inverted, is_total=True)
_COMPARED: Final = Facts(
    order=Order.LEFT_FIRST, bounds=of_operands(intervals.compared), is_total=True
)
_NULL_SAFE: Final = replace(_ALL, bounds=of_operands(intervals.null_safe_equal), is_total=True)
_IS_NULL: Final = replace(_OWN, bounds=of_operands(intervals.is_null), is_total=True)
_LISTED: Final = replace(_OWN, bounds=intervals.listed)
_BETWEEN: Final = replace(_OWN, is_total=True)
_CHOSEN: Final = replace(_ALL, bounds=intervals.chosen)
_FIRST_VALID: Final = replace(_ALL, bounds=intervals.first_valid)
_CAST: Final = Facts(asks=_asks_by_target, bounds=of_operands(intervals.cast))
_ENCLOSED: Final = Facts(Nulls.EXACT, bounds=of_operands(intervals.same), is_total=True)
_SIGN: Final = Facts(Nulls.EXACT, bounds=of_operands(intervals.negated))
_MAGNITUDE: Final = Facts(bounds=of_operands(intervals.magnitude))
_LEFT_FIRST: Final = Facts(order=Order.LEFT_FIRST)
_PRODUCT: Final = Facts(Nulls.EXACT, Order.LEFT_FIRST, bounds=of_operands(intervals.arithmetic))
_SUM: Final = replace(_PRODUCT, monotone=Monotone(_moved_from))
_DIVISION: Final = Facts(order=Order.DIVISOR_FIRST)
_DAY: Final = Facts(asks=lambda _: _DAYS)
_DAY_LEFT_FIRST: Final = replace(_DAY, order=Order.LEFT_FIRST)
_BY_UNIT: Final = Facts(asks=_asks_by_unit, monotone=Monotone(_unit_from, "micros", "micros"))
_BY_DAYS: Final = replace(_BY_UNIT, monotone=Monotone(_unit_from, "days", "days"))
_ANY_ORDER: Final = Facts(order=Order.ALL)
_CYCLIC: Final = Facts(asks=lambda _: _CYCLIC_DAYS)
_YEARS: Final = Monotone(_year_from, "days", "years")
_EXTRACTED: Final = Facts(asks=_asks_by_part, monotone=replace(_YEARS, operand="expression"))
_DATES: Final = replace(_DAY, monotone=Monotone(lambda *_: int, "days", "days"))
_ALIKE: Final = "values of one type → their type"
_PART: Final = "time → INT"
_TEXT: Final = "STRING → STRING"
_LENGTH: Final = "STRING → INT"
_COMPUTED: Final = "arguments that are no literals"


def _row(
    names: str,
    nodes: type[exp.Expr] | tuple[type[exp.Expr], ...] | str,
    signature: str,
    compile_by: Compile | None,
    facts: Facts = Facts(),
    *,
    left: str = "",
) -> Function:
    classes = (nodes,) if isinstance(nodes, type) else nodes
    return Function(names, classes, signature, compile_by, left, facts)


def _within(name: str, nodes: type[exp.Expr] | tuple[type[exp.Expr], ...], part: str) -> Function:
    return _row(name, nodes, _PART, calls.part(part), _CYCLIC)


def _counts(name: str) -> Callable[..., Typed]:
    return calls.calls(name, pa.int32())


def _since(name: str, node: type[exp.Expr], unit: str) -> Function:
    facts = _counted(f"{unit.lower()}s")
    return _row(name, node, "TIMESTAMP → BIGINT", calls.epoch_units(unit), facts)


_CHOICES: Final = (
    _row("AND, OR", (exp.And, exp.Or), "two BOOLEANs → BOOLEAN", None, _LOGIC),
    _row("NOT, !", exp.Not, "BOOLEAN → BOOLEAN", None, _NOT),
    _row(
        "=, <>, <, <=, >, >=",
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
        "two values of one type → BOOLEAN",
        calls.compared,
        _COMPARED,
    ),
    _row("<=>", (exp.NullSafeEQ, exp.NullSafeNEQ), "as =", calls.compared, _NULL_SAFE),
    _row("IS NULL, isnull", exp.Is, "any → BOOLEAN", None, _IS_NULL),
    _row("IN", exp.In, "a value, a list → BOOLEAN", None, _LISTED, left="lists of queries"),
    _row("BETWEEN", exp.Between, "three values of one type → BOOLEAN", None, _BETWEEN),
    _row("CASE", exp.Case, "branches of one type → their type", None, _CHOSEN),
    _row("if, nvl2", exp.If, "as CASE", None, _ALL),
    _row("nullif", exp.Nullif, _ALIKE, None, _ALL),
    _row("coalesce, ifnull, nvl", exp.Coalesce, _ALIKE, None, _FIRST_VALID),
    _row("greatest, least", (exp.Greatest, exp.Least), _ALIKE, calls.extreme, _ALL),
    _row("CAST, try_cast", (exp.Cast, exp.TryCast), "below", None, _CAST),
    _row("( )", exp.Paren, "any", None, _ENCLOSED),
)
_NUMBERS: Final = (
    _row("+, -", (exp.Add, exp.Sub), "two numbers; a time, an interval", calls.sum_of, _SUM),
    _row("*", exp.Mul, "two numbers", calls.sum_of, _PRODUCT),
    _row("-, a sign", exp.Neg, "number", of(numbers.negated, "this", session=True), _SIGN),
    _row("/", exp.Div, "two numbers", calls.quotient, _DIVISION, left="38 digits and more"),
    _row("div", exp.IntDiv, "integers", calls.on_numbers(numbers.whole_quotient), _DIVISION),
    _row("%, mod", exp.Mod, "two numbers", calls.on_numbers(numbers.remainder), _DIVISION),
    _row("pmod", "pmod", "integers", by_name(numbers.positive_remainder, 2, session=True)),
    _row("abs", exp.Abs, "number", of(numbers.magnitude, "this", session=True), _MAGNITUDE),
    _row("round", exp.Round, "number, digits", calls.rounded, left="FLOAT; negative digits"),
    _row("floor, ceil", (exp.Floor, exp.Ceil), "number", calls.next_whole, left="digits"),
    _row("sign", exp.Sign, "number → DOUBLE", of(numbers.sign, "this", session=True)),
    _row("sqrt", exp.Sqrt, "number → DOUBLE", of(numbers.square_root, "this", session=True)),
    _row(
        "power, pow",
        exp.Pow,
        "two DOUBLEs → DOUBLE",
        of(numbers.power, "this", "expression"),
        _LEFT_FIRST,
        left="powers other than 2, 1, -1 and 0.5",
    ),
    _row("isnan", exp.IsNan, "DOUBLE → BOOLEAN", of(calls.is_nan, "this"), _OWN),
    _row("nanvl", exp.Nanvl, "two DOUBLEs", of(numbers.number_or, "this", "expression"), _OWN),
    _row(
        "&, |, ^",
        (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
        "two integers",
        typed_by(numbers.bits, "this", "expression"),
        _LEFT_FIRST,
        left="^ of two columns",
    ),
    _row("~", exp.BitwiseNot, "integer", of(numbers.complement, "this")),
    _row(
        "shiftleft, shiftright",
        (exp.BitwiseLeftShift, exp.BitwiseRightShift),
        "integer, INT",
        calls.shifted,
        _LEFT_FIRST,
        left=_COMPUTED,
    ),
    _row("positive", "positive", "number", by_name(calls.same, 1)),
)
_TEXTS: Final = (
    _row("length, char_length", exp.Length, _LENGTH, of(_counts("character_length"), "this")),
    _row("octet_length", "octet_length", _LENGTH, by_name(_counts("octet_length"), 1)),
    _row("ascii", exp.Ascii, _LENGTH, of(_counts("ascii"), "this")),
    _row(
        "upper, lower",
        (exp.Upper, exp.Lower),
        _TEXT,
        typed_by(texts.cased, "this"),
        left="locales with cases of their own",
    ),
    _row("reverse", exp.Reverse, _TEXT, of(calls.calls("reverse"), "this")),
    _row(
        "substring, substr, right",
        exp.Substring,
        "STRING, INT, INT → STRING",
        of(texts.substring, "this", "start", "length?"),
        _LEFT_FIRST,
    ),
    _row("left", exp.Left, "STRING, INT → STRING", of(calls.left, "this", "expression")),
    _row("trim, ltrim, rtrim, btrim", exp.Trim, "STRING, STRING → STRING", calls.trimmed),
    _row(
        "concat", exp.Concat, "STRINGs → STRING", of(texts.concatenated, "expressions"), _ANY_ORDER
    ),
    _row(
        "||",
        exp.DPipe,
        "two STRINGs → STRING",
        of(texts.concatenated, "this", "expression"),
        _ANY_ORDER,
    ),
    _row("concat_ws", exp.ConcatWs, "STRINGs → STRING", of(texts.joined, "expressions"), _ALL),
    _row(
        "repeat",
        exp.Repeat,
        "STRING, INT → STRING",
        of(texts.repeated, "this", "times"),
        left=_COMPUTED,
    ),
    _row(
        "replace",
        exp.Replace,
        "three STRINGs → STRING",
        of(calls.replaced, "this", "expression", "replacement?"),
        _LEFT_FIRST,
        left="what may be empty, replaced",
    ),
    _row(
        "translate",
        exp.Translate,
        "three STRINGs → STRING",
        of(texts.translated, "this", "from_", "to"),
        left=_COMPUTED,
    ),
    _row("lpad, rpad", exp.Pad, "STRING, INT, STRING → STRING", calls.padded, left=_COMPUTED),
    _row(
        "instr, locate, position",
        exp.StrPosition,
        "two STRINGs → INT",
        calls.from_first(_counts("strpos"), "this", "substr"),
        left="places behind the first character",
    ),
    _row(
        "startswith, endswith, contains",
        (exp.StartsWith, exp.EndsWith, exp.Contains),
        "two STRINGs → BOOLEAN",
        typed_by(calls.text_test, "this", "expression"),
        _LEFT_FIRST,
    ),
    _row(
        "LIKE",
        (exp.Like, exp.Escape),
        "two STRINGs → BOOLEAN",
        calls.like,
        _LEFT_FIRST,
        left="computed patterns",
    ),
    _row(
        "RLIKE, regexp_like",
        exp.RegexpLike,
        "two STRINGs → BOOLEAN",
        of(texts.matched, "this", "expression"),
        _LEFT_FIRST,
        left="patterns that Rust may match otherwise than Java",
    ),
    _row(
        "regexp_replace",
        exp.RegexpReplace,
        "three STRINGs → STRING",
        calls.from_first(texts.replaced_matches, "this", "expression", "replacement"),
        left="as RLIKE",
    ),
    _row(
        "regexp_extract",
        exp.RegexpExtract,
        "STRING, STRING, INT → STRING",
        of(texts.extracted, "this", "expression", "group"),
        left="as RLIKE",
    ),
    _row(
        "split, split_part, element_at, get",
        exp.Bracket,
        "STRING, STRING, INT → STRING",
        calls.part_of_split,
        left="separators that are patterns; other lists, and maps",
    ),
    _row(
        "substring_index",
        exp.SubstringIndex,
        "STRING, STRING, INT → STRING",
        of(texts.before_separator, "this", "delimiter", "count"),
        left="separators of several characters",
    ),
    _row("md5, sha2", (exp.MD5, exp.SHA2), "STRING or BINARY → STRING", calls.digest),
)
_TIMES: Final = (
    _row("year", exp.Year, _PART, calls.part("YEAR"), replace(_DAY, monotone=_YEARS)),
    _within("quarter", exp.Quarter, "QUARTER"),
    _within("month", exp.Month, "MONTH"),
    _within("day, dayofmonth", (exp.Day, exp.DayOfMonth), "DAY"),
    _within("dayofweek", exp.DayOfWeek, "DAYOFWEEK"),
    _within("dayofyear", exp.DayOfYear, "DAYOFYEAR"),
    _within("weekofyear", exp.WeekOfYear, "WEEK"),
    _row("weekday", "weekday", _PART, by_name(calls.of_part("WEEKDAY"), 1, session=True), _CYCLIC),
    _row("hour", exp.Hour, _PART, calls.part("HOUR"), Facts(asks=lambda _: _HOURS)),
    _row("minute", exp.Minute, _PART, calls.part("MINUTE")),
    _row("second", exp.Second, _PART, calls.part("SECOND")),
    _row("extract, date_part", exp.Extract, _PART, calls.extract, _EXTRACTED),
    _row(
        "extract(SECOND)",
        "secondwithfraction",
        "timestamp → DECIMAL(8, 6)",
        by_name(times.seconds_with_fraction, 1, session=True),
    ),
    _row("date_trunc", exp.TimestampTrunc, "unit, timestamp", calls.timestamp_trunc, _BY_UNIT),
    _row("trunc", exp.DateTrunc, "time, unit → DATE", calls.date_trunc, _BY_DAYS),
    _row("to_date", (exp.TsOrDsToDate, exp.Date), "time → DATE", None, _DATES),
    _row("date_add, date_sub", exp.TsOrDsAdd, "DATE, INT", calls.days_added, _DAY_LEFT_FIRST),
    _row(
        "datediff, date_diff",
        exp.DateDiff,
        "two times → INT",
        of(times.days_between, "this:date", "expression:date", session=True),
        _DAY_LEFT_FIRST,
    ),
    _row("add_months", exp.AddMonths, "DATE, INT → DATE", calls.months_added, _DAY, left=_COMPUTED),
    _row(
        "timestampadd, dateadd",
        exp.TimestampAdd,
        "unit, INT, time",
        calls.units_added,
        left=_COMPUTED,
    ),
    _row(
        "timestampdiff",
        exp.TimestampDiff,
        "unit, two timestamps → BIGINT",
        calls.units_between,
        _LEFT_FIRST,
    ),
    _row(
        "months_between",
        exp.MonthsBetween,
        "two timestamps → DOUBLE",
        calls.months_between,
        _LEFT_FIRST,
        left="zones other than UTC",
    ),
    _row("last_day", exp.LastDay, "time → DATE", of(times.last_day, "this", session=True), _DAY),
    _row(
        "next_day",
        exp.NextDay,
        "DATE, STRING → DATE",
        of(times.next_day, "this", "expression"),
        _DAY,
        left=_COMPUTED,
    ),
    _row(
        "dayname, monthname",
        (exp.Dayname, exp.Monthname),
        "DATE → STRING",
        typed_by(times.name_of, "this"),
        _CYCLIC,
    ),
    _row(
        "date_format",
        "date_format",
        "time, pattern → STRING",
        by_name(times.formatted, 2, session=True),
        Facts(asks=_asks_by_letters),
        left="eras, weeks, zones, days of a year",
    ),
    _row(
        "from_unixtime",
        "from_unixtime",
        "BIGINT, pattern → STRING",
        by_name(calls.from_unixtime, 2, session=True),
        left="as date_format",
    ),
    _row(
        "to_timestamp, to_date",
        "gettimestamp",
        "STRING, pattern → time",
        by_name(parsed_texts.timestamp_of_text, 2, session=True),
        left="without a pattern; fields other than year to second",
    ),
    _row("unix_date", exp.UnixDate, "DATE → INT", of(times.epoch_days, "this"), _DAY),
    _row("date_from_unix_date", exp.DateFromUnixDate, "INT → DATE", of(times.day_of_epoch, "this")),
    _since("unix_seconds", exp.UnixSeconds, "SECOND"),
    _since("unix_millis", exp.UnixMillis, "MILLISECOND"),
    _since("unix_micros", exp.UnixMicros, "MICROSECOND"),
    _row(
        "unix_timestamp",
        exp.StrToUnix,
        "TIMESTAMP → BIGINT",
        calls.cut_seconds,
        _counted("cut seconds"),
        left="texts",
    ),
    _row(
        "timestamp_seconds",
        "timestamp_seconds",
        "integer → TIMESTAMP",
        by_name(calls.moment_of(MICROS_PER_SECOND), 1),
    ),
    _row(
        "timestamp_micros",
        "timestamp_micros",
        "integer → TIMESTAMP",
        by_name(calls.moment_of(1), 1),
    ),
)
# What Spark's plans call, and users do not.
_OF_PLANS: Final = (
    _row("KnownNullable", "knownnullable", "any", by_name(calls.same, 1)),
    _row("KnownNotNull", "knownnotnull", "any", by_name(calls.same, 1)),
    _row("PreciseTimestampConversion", "precisetimestampconversion", "", calls.microseconds),
    _row("UnscaledValue", "unscaledvalue", "", by_name(numbers.unscaled, 1)),
    _row("MakeDecimal", "makedecimal", "", calls.make_decimal),
    _row("avg", "decimalaverage", "", calls.decimal_average),
    _row("avg", "doubleaverage", "", by_name(calls.double_average, 2, session=True)),
    _row("CHAR", "readsidepadding", "", by_name(texts.char_read, 2)),
)
SECTIONS: Final = {
    "Conditions and choices": _CHOICES,
    "Numbers": _NUMBERS,
    "Texts": _TEXTS,
    "Dates and timestamps": _TIMES,
}
"""The functions that users write, as the page has them."""
_FUNCTIONS: Final = (*(row for rows in SECTIONS.values() for row in rows), *_OF_PLANS)
_BY_CLASS: Final = {
    kind: row for row in _FUNCTIONS if not isinstance(row.nodes, str) for kind in row.nodes
}
_BY_NAME: Final = {row.nodes: row for row in _FUNCTIONS if isinstance(row.nodes, str)}
