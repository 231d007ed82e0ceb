"""Spark's named functions of texts, numbers, dates and timestamps.

NULL rules: those of ``text_functions``, ``number_functions`` and ``time_functions``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.dialect import shortened_predicate
from pennon.predicate.expressions import (
    number_functions,
    parsed_texts,
    text_functions,
    time_functions,
    time_spans,
)
from pennon.predicate.expressions import text_functions as text_parts
from pennon.predicate.expressions.arithmetic import decimal_of_unscaled, unscaled
from pennon.predicate.expressions.casts import converted
from pennon.predicate.expressions.number_functions import average, quotient
from pennon.predicate.expressions.text_functions import texts
from pennon.predicate.normalize import like_call
from pennon.predicate.parse import SparkSql
from pennon.predicate.typed import ZONED, Typed, integer
from pennon.predicate.values.literals import literal_value
from pennon.predicate.values.time_units import MICROS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pennon.predicate.condition import Semantics

    Reading = Callable[[exp.Expr], Typed]

_TEXT_TESTS: Final = (exp.StartsWith, exp.EndsWith, exp.Contains)
_PARTS: Final[Mapping[type[exp.Expr], str]] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.DayOfWeek: "DAYOFWEEK",
    exp.DayOfYear: "DAYOFYEAR",
    exp.WeekOfYear: "WEEK",
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.Second: "SECOND",
}
# What users write, by the parser's class; of all else, the text itself is shown.
_SPELLED: Final[Mapping[type[exp.Expr], str]] = {
    exp.All: "ALL",
    exp.Any: "ANY",
    exp.Bracket: "an element of an array or a map",
    exp.Case: "CASE",
    exp.Collate: "COLLATE",
    exp.Dot: "a field of what is computed",
    exp.Filter: "FILTER",
    exp.ILike: "ILIKE",
    exp.In: "IN of a query",
    exp.Interval: "INTERVAL",
    exp.Is: "IS",
    exp.Select: "a query",
    exp.SimilarTo: "SIMILAR TO",
    exp.Subquery: "a query",
    exp.Tuple: "a tuple",
    exp.Window: "OVER",
}
_BITS: Final = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_EPOCH_UNITS: Final[Mapping[type[exp.Expr], str]] = {
    exp.UnixSeconds: "SECOND",
    exp.UnixMillis: "MILLISECOND",
    exp.UnixMicros: "MICROSECOND",
}


def named_function(node: exp.Expr, read: Reading, semantics: Semantics) -> Typed:
    """Read a function of texts, or of times, whose operands ``read`` reads.

    Raises:
        Declined: It is none of these, or not known to be computed as Spark does.
    """
    if isinstance(node, _TEXT_TESTS):
        tested, part = texts([read(node.this), read(node.expression)])
        return Typed(type(node)(this=tested, expression=part), pa.bool_())
    match node:
        case exp.Like() | exp.Escape() if (asked := like_call(node)) is not None:
            matched = read(asked.subject), read(asked.pattern)
            return text_functions.like(*matched, asked.escape, is_negated=asked.is_negated)
        case exp.Concat() if type(node) is exp.Concat:
            return text_functions.concatenated(
                [read(expression) for expression in node.expressions]
            )
        case exp.DPipe():
            sides = [read(node.this), read(node.expression)]
            return text_functions.concatenated(sides)
        case exp.Upper() | exp.Lower():
            return text_functions.cased(type(node), read(node.this))
        case exp.Length():
            return text_functions.length(read(node.this))
        case exp.Substring() if node.args.get("start") is not None:
            count = node.args.get("length")
            return text_functions.substring(
                read(node.this),
                read(node.args["start"]),
                None if count is None else read(count),
            )
        case exp.Left():
            start = Typed(integer(1, pa.int32()), pa.int32())
            whole, count = read(node.this), read(node.expression)
            return text_functions.substring(whole, start, count)
        case exp.Trim() if node.args.get("collation") is None:
            taken = node.args.get("expression")
            return text_functions.trimmed(
                read(node.this),
                None if taken is None else read(taken),
                str(node.args.get("position") or "BOTH").upper(),
            )
        case exp.StrPosition() if _are_first(node, "position", "occurrence"):
            return text_functions.position(read(node.this), read(node.args["substr"]))
        case exp.Replace():
            written = node.args.get("replacement") or exp.Literal.string("")
            return text_functions.replaced(read(node.this), read(node.expression), read(written))
        case exp.Pad() if node.args.get("fill_pattern") is not None:
            filling, is_left = read(node.args["fill_pattern"]), bool(node.args.get("is_left"))
            whole, size = read(node.this), read(node.expression)
            return text_functions.padded(whole, size, filling, is_left=is_left)
    return _rewritten(node, read, semantics)


def _rewritten(node: exp.Expr, read: Reading, semantics: Semantics) -> Typed:
    """Read a function that writes a text anew."""
    match node:
        case exp.Reverse():
            return text_functions.reversed_text(read(node.this))
        case exp.ConcatWs():
            return text_functions.joined([read(expression) for expression in node.expressions])
        case exp.RegexpLike() if node.args.get("flag") is None:
            return text_functions.matched(read(node.this), read(node.expression))
        case exp.RegexpReplace() if node.args.get("replacement") is not None and _are_first(
            node, "position", "occurrence"
        ):
            pair = read(node.expression), read(node.args["replacement"])
            return text_functions.replaced_matches(read(node.this), *pair)
        case exp.RegexpExtract():
            pair = read(node.expression), read(node.args["group"])
            return text_functions.extracted(read(node.this), *pair)
        case exp.Bracket() if _is_split(node.this):
            return _part_of_split(node, read, semantics)
        case exp.Ascii():
            return text_functions.first_code(read(node.this))
        case exp.MD5():
            return text_functions.digest("md5", _bytes(read, node.this))
        case exp.SHA2():
            name = _sha2(node)
            return text_functions.digest(name, _bytes(read, node.this))
        case exp.Translate():
            pair = read(node.args["from_"]), read(node.args["to"])
            return text_functions.translated(read(node.this), *pair)
        case exp.SubstringIndex():
            place = read(node.args["delimiter"]), read(node.args["count"])
            return text_parts.before_separator(read(node.this), *place)
        case exp.Repeat():
            return text_functions.repeated(read(node.this), read(node.args["times"]))
    return _number(node, read, semantics)


def _number(node: exp.Expr, read: Reading, semantics: Semantics) -> Typed:
    if isinstance(node, _BITS):
        return number_functions.bits(type(node), read(node.this), read(node.expression))
    match node:
        case exp.BitwiseLeftShift() | exp.BitwiseRightShift():
            is_left = isinstance(node, exp.BitwiseLeftShift)
            value, count = read(node.this), read(node.expression)
            return number_functions.shifted(value, count, is_left=is_left)
        case exp.Nanvl():
            return number_functions.number_or(read(node.this), read(node.expression))
        case exp.BitwiseNot():
            return number_functions.complement(read(node.this))
        case exp.Sign():
            return number_functions.sign(read(node.this), semantics)
        case exp.Pow():
            return number_functions.power(read(node.this), read(node.expression))
        case exp.Sqrt():
            return number_functions.square_root(read(node.this), semantics)
        case exp.Floor() | exp.Ceil() if not (node.args.get("decimals") or node.args.get("to")):
            return number_functions.whole_number(type(node), read(node.this), semantics)
    return _time(node, read, semantics)


def _time(node: exp.Expr, read: Reading, semantics: Semantics) -> Typed:
    named = _PARTS.get(type(node))
    if named is not None:
        return time_functions.part(named, _date_of(read, node.this), semantics)
    match node:
        case exp.Extract():
            source = read(node.expression)
            return time_functions.part(node.this.name.upper(), source, semantics)
        case exp.TimestampTrunc():
            unit = node.text("unit").upper()
            return time_functions.truncated(unit, read(node.this), semantics)
        case exp.DateTrunc() if literal_value(node.args["unit"]) is not None:
            unit = node.args["unit"].name.upper()
            return time_functions.truncated_date(unit, read(node.this), semantics)
        case exp.TsOrDsAdd() if node.text("unit").upper() == "DAY":
            days, is_backward = _days(node.expression)
            return time_spans.moved_by_days(read(node.this), read(days), is_backward=is_backward)
        case exp.DateDiff() if node.args.get("unit") is None:
            end, start = _date_of(read, node.this), _date_of(read, node.expression)
            return time_functions.days_between(end, start, semantics)
        case exp.AddMonths():
            months = exp.Interval(this=node.expression.copy(), unit=exp.var("MONTH"))
            day = time_functions.date(read(node.this))
            return time_spans.moved_by_interval(day, months, semantics)
        case exp.TimestampAdd():
            interval = exp.Interval(this=node.expression.copy(), unit=node.args["unit"].copy())
            moment = read(node.this)
            if moment.type == pa.date32():
                moment = converted(moment, ZONED, semantics)
            return time_spans.moved_by_interval(moment, interval, semantics, is_elapsed=True)
        case exp.TimestampDiff():
            moments = read(node.expression), read(node.this)
            return time_spans.units_between(node.text("unit").upper(), *moments, semantics)
        case exp.MonthsBetween() if isinstance(node.args.get("roundoff"), exp.Boolean):
            moments = read(node.this), read(node.expression)
            is_rounded = bool(node.args["roundoff"].this)
            return time_spans.months_between(*moments, semantics, is_rounded=is_rounded)
        case exp.LastDay():
            return time_functions.last_day(read(node.this), semantics)
        case exp.NextDay():
            return time_functions.next_day(read(node.this), read(node.expression))
        case exp.Dayname() | exp.Monthname():
            return time_functions.name_of(type(node), read(node.this))
        case exp.UnixDate():
            return time_functions.epoch_days(read(node.this))
        case exp.DateFromUnixDate():
            return time_functions.day_of_epoch(read(node.this))
        case exp.UnixSeconds() | exp.UnixMillis() | exp.UnixMicros():
            unit = _EPOCH_UNITS[type(node)]
            return time_functions.epoch_units(unit, read(node.this))
        case exp.StrToUnix():
            return time_functions.cut_seconds(read(node.this))
    return _other(node, read, semantics)


def _other(node: exp.Expr, read: Reading, semantics: Semantics) -> Typed:
    """Read a function that the parser has no class for."""
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        (argument,) = node.expressions
        match node.name.lower():
            case "weekday":
                return time_functions.part("WEEKDAY", read(argument), semantics)
            case "octet_length":
                return text_functions.byte_length(read(argument))
            case "positive" | "knownnullable" | "knownnotnull":
                return read(argument)
            case "precisetimestampconversion":
                # Its other argument, the type, is not in Spark's text: back it leads to where a
                # number of microseconds within it came from.
                within = (read(inner) for inner in _arguments_of(argument, node.name))
                kinds = {moment.type for moment in within if not moment.is_integer}
                return time_functions.microseconds(read(argument), kinds)
            case "unscaledvalue":
                return unscaled(read(argument))
            case "timestamp_seconds":
                return time_spans.moment_of(read(argument), MICROS_PER_SECOND)
            case "timestamp_micros":
                return time_spans.moment_of(read(argument), 1)
            case "secondwithfraction":
                return time_spans.seconds_with_fraction(read(argument), semantics)
    if isinstance(node, exp.Anonymous):
        match node.name.lower(), node.expressions:
            case "date_format", [value, pattern]:
                return time_functions.formatted(read(value), read(pattern), semantics)
            case "from_unixtime", [seconds, pattern]:
                moment = time_spans.wrapped_moment_of(read(seconds))
                return time_functions.formatted(moment, read(pattern), semantics)
            case "gettimestamp", [value, pattern]:
                return parsed_texts.timestamp_of_text(read(value), read(pattern), semantics)
            case "readsidepadding", [value, size]:
                return text_functions.char_read(read(value), read(size))
            case "pmod", [left, right]:
                return number_functions.positive_remainder(read(left), read(right), semantics)
            case "makedecimal", [digits, precision, scale]:
                return decimal_of_unscaled(
                    read(digits), int(precision.name), int(scale.name), semantics
                )
            case "decimalaverage", [total, count, precision, scale]:
                kept = int(precision.name), int(scale.name)
                return average(read(total), read(count), kept, semantics)
            case "doubleaverage", [total, count]:
                return quotient(read(total), read(count), replace(semantics, ansi=False))
    raise Declined(why=_name_of(node))


def _is_split(node: exp.Expr) -> bool:
    is_by_text = isinstance(node, exp.Anonymous) and node.name.lower() == "stringsplitsql"
    return is_by_text or isinstance(node, exp.RegexpSplit)


def _part_of_split(node: exp.Bracket, read: Reading, semantics: Semantics) -> Typed:
    """Read ``split(…)[0]``, the same by ``element_at``, which counts from 1, or ``split_part``.

    Raises:
        Declined: A part that is computed; or, by ``element_at`` under ANSI, one that there may
            not be.
    """
    (number,), split = [literal_value(at) for at in node.expressions], node.this
    is_from_one = node.args.get("offset") == 1
    stated = None if number is None or not number.is_valid else int(number.as_py())
    place = stated if stated is None or is_from_one else stated + 1
    if not place or (place < 0 and not is_from_one):
        raise Declined(why="a computed part")
    if not isinstance(split, exp.RegexpSplit):
        value, separator = map(read, split.expressions)
        return text_parts.part_or_nothing(value, separator, place)
    limit = literal_value(split.args["limit"]) if split.args.get("limit") else pa.scalar(-1)
    if limit is None or limit.as_py() != -1:
        raise Declined(why="a split of limited parts")
    if semantics.ansi and is_from_one and abs(place) > 1:
        raise Declined(why="an element that there may not be")
    parts = read(split.this), read(split.expression)
    return text_parts.part_of_split(*parts, place, is_error=semantics.ansi)


def _bytes(read: Reading, node: exp.Expr) -> Typed:
    """Read bytes; a text that is cast to them stands for its own."""
    is_cast = isinstance(node, exp.Cast) and node.is_type(exp.DType.BINARY)
    return read(node.this if is_cast else node)


def _sha2(node: exp.SHA2) -> str:
    length = literal_value(node.args["length"]) if node.args.get("length") else None
    bits = None if length is None or not length.is_valid else length.as_py() or 256
    if bits not in (224, 256, 384, 512):
        raise Declined(why="a digest of computed bits")
    return f"sha{bits}"


def _name_of(node: exp.Expr) -> str:
    """Name an operation as Spark's users know it."""
    if isinstance(node, exp.Anonymous):
        return node.name
    written = _SPELLED.get(type(node))
    if written is not None:
        return written
    text = node.sql(dialect=SparkSql)
    return (
        text.partition("(")[0].lower() if isinstance(node, exp.Func) else shortened_predicate(text)
    )


def _arguments_of(tree: exp.Expr, name: str) -> Iterator[exp.Expr]:
    """List what a function of one argument is called with in an expression."""
    for call in tree.find_all(exp.Anonymous):
        if call.name == name and len(call.expressions) == 1:
            yield call.expressions[0]


def _date_of(read: Reading, node: exp.Expr) -> Typed:
    """Read what the parser marks as a date, or as a text of one."""
    return read(node.this if isinstance(node, exp.TsOrDsToDate) else node)


def _days(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """Tell DATE_SUB, which the parser writes as a product with -1, from DATE_ADD."""
    is_backward = isinstance(node, exp.Mul) and isinstance(node.expression, exp.Neg)
    return (node.this if is_backward else node), is_backward


def _are_first(node: exp.Expr, *names: str) -> bool:
    """Whether a text is searched from its beginning, for what comes first."""
    stated = [value for name in names if (value := node.args.get(name)) is not None]
    literals = [literal_value(value) for value in stated]
    return all(literal is not None and literal.as_py() == 1 for literal in literals)
