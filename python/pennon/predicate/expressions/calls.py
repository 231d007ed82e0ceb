"""How calls of Spark's functions are compiled: the forms in which the parser has them.

A form is a function of a call and of what reads its operands; ``functions`` says which call has
which. What has another form than is read here is declined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.dialect import shortened_predicate
from pennon.predicate.expressions import floats
from pennon.predicate.expressions import number_functions as numbers
from pennon.predicate.expressions import text_functions as texts
from pennon.predicate.expressions import time_functions as times
from pennon.predicate.expressions.casts import converted
from pennon.predicate.normalize import like_call
from pennon.predicate.parse import SparkSql
from pennon.predicate.typed import ZONED, Typed, call, cast, integer
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from pennon.predicate.condition import Semantics


class Reader(Protocol):
    """What compiles the operands of an expression."""

    @property
    def semantics(self) -> Semantics:
        """The session's."""

    def read(self, node: exp.Expr) -> Typed:
        """Compile an operand."""

    def numbers(self, node: exp.Expr) -> Sequence[Typed]:
        """Compile the two operands of arithmetic, in types of one kind."""

    def alike(self, values: Sequence[Typed]) -> Sequence[Typed]:
        """Give operands one type."""


TEXT: Final = pa.utf8()
Compile = Callable[[exp.Expr, Reader], Typed]


def name_of(node: exp.Expr) -> str:
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


def of(compute: Callable[..., Typed], *names: str, session: bool = False) -> Compile:
    """Compile by a function of the compiled arguments.

    Args:
        compute: The function.
        names: What the parser calls the arguments: ``?`` behind one that may be missing, which is
            None then; ``:date`` behind one that the parser marks as a date. Of ``expressions`` all
            are given.
        session: Whether the function is given the session's semantics behind them.
    """
    known = {name.removesuffix("?").removesuffix(":date") for name in names}

    def compile_call(node: exp.Expr, reader: Reader) -> Typed:
        others = [
            name
            for name, value in node.args.items()
            if name not in known and isinstance(value, exp.Expr)
        ]
        if others:
            raise Declined(why=name_of(node))
        arguments = [value for name in names for value in _arguments(node, name, reader)]
        return compute(*arguments, reader.semantics) if session else compute(*arguments)

    return compile_call


def _arguments(node: exp.Expr, name: str, reader: Reader) -> Iterator[Typed | None]:
    if name == "expressions":
        yield from map(reader.read, node.expressions)
        return
    bare = name.removesuffix("?").removesuffix(":date")
    value = node.args.get(bare)
    if value is None and not name.endswith("?"):
        raise Declined(why=name_of(node))
    if name.endswith(":date") and isinstance(value, exp.TsOrDsToDate):
        value = value.this
    yield None if value is None else reader.read(value)


def by_name(compute: Callable[..., Typed], count: int, *, session: bool = False) -> Compile:
    """Compile a call without a class of the parser, of so many arguments."""

    def compile_call(node: exp.Expr, reader: Reader) -> Typed:
        arguments = list(map(reader.read, _exactly(node, count)))
        return compute(*arguments, reader.semantics) if session else compute(*arguments)

    return compile_call


def _exactly(node: exp.Expr, count: int) -> Sequence[exp.Expr]:
    if len(node.expressions) != count:
        raise Declined(why=name_of(node))
    return node.expressions


def typed_by(compute: Callable[..., Typed], *names: str, session: bool = False) -> Compile:
    """Compile by a function that is given the parser's class first."""

    def compile_call(node: exp.Expr, reader: Reader) -> Typed:
        def of_class(*arguments: object) -> Typed:
            return compute(type(node), *arguments)

        return of(of_class, *names, session=session)(node, reader)

    return compile_call


def on_numbers(compute: Callable[..., Typed], *, is_typed: bool = False) -> Compile:
    """Compile an operator of two numbers."""

    def compile_operator(node: exp.Expr, reader: Reader) -> Typed:
        sides = reader.numbers(node)
        kinds = (type(node),) if is_typed else ()
        return compute(*kinds, *sides, reader.semantics)

    return compile_operator


def compared(node: exp.Expr, reader: Reader) -> Typed:
    """Compile a comparison of two values of one type."""
    left, right = reader.alike([reader.read(node.this), reader.read(node.expression)])
    return floats.compared(type(node), left, right)


def sum_of(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``+``, ``-`` and ``*``, and what is moved by an interval."""
    interval = node.expression
    if not isinstance(interval, exp.Interval) or isinstance(node, exp.Mul):
        return on_numbers(numbers.arithmetic, is_typed=True)(node, reader)
    is_backward = isinstance(node, exp.Sub)
    moment = reader.read(node.this)
    return times.moved_by_interval(moment, interval, reader.semantics, is_backward=is_backward)


def quotient(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``/``: two integers are DOUBLEs to it."""
    left, right = reader.numbers(node)
    if left.is_integer and right.is_integer:
        left, right = (converted(side, pa.float64(), reader.semantics) for side in (left, right))
    return numbers.quotient(left, right, reader.semantics)


def rounded(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``round`` to a stated number of digits."""
    digits = node.args.get("decimals")
    literal = pa.scalar(0) if digits is None else literal_value(digits)
    if literal is None or not (literal.is_valid and pa.types.is_integer(literal.type)):
        raise Declined(why="rounding to a computed digit")
    return numbers.rounded(reader.read(node.this), int(literal.as_py()), reader.semantics)


def extreme(node: exp.Expr, reader: Reader) -> Typed:
    """Compile GREATEST and LEAST, which leave NULLs out in both engines."""
    values = [reader.read(operand) for operand in (node.this, *node.expressions)]
    first, *others = reader.alike(values)
    if first.is_float:
        return floats.extreme_float([first, *others], is_greatest=isinstance(node, exp.Greatest))
    tree = type(node)(this=first.tree, expressions=[other.tree for other in others])
    return Typed(tree, first.type)


def is_nan(value: Typed) -> Typed:
    """Test for NaN, which is never NULL."""
    if not value.is_float:
        raise Declined(why=f"isnan of {value.type}")
    of_value = call("isnan", value.tree)
    return Typed(exp.Coalesce(this=of_value, expressions=[exp.false()]), pa.bool_())


def calls(name: str, result: pa.DataType = TEXT) -> Callable[..., Typed]:
    """Call a function of DataFusion that takes texts, and is Spark's but for the result's type."""

    def compute(*values: Typed) -> Typed:
        tree = call(name, *texts.texts(values))
        return Typed(tree if result == pa.utf8() else cast(tree, result), result)

    return compute


def text_test(kind: type[exp.Expr], *sides: Typed) -> Typed:
    """Compile ``startswith`` and its like."""
    tested, part = texts.texts(sides)
    return Typed(kind(this=tested, expression=part), pa.bool_())


def like(node: exp.Expr, reader: Reader) -> Typed:
    """Compile LIKE and its ESCAPE."""
    asked = like_call(node)
    if asked is None:
        raise Declined(why=name_of(node))
    matched = reader.read(asked.subject), reader.read(asked.pattern)
    return texts.like(*matched, asked.escape, is_negated=asked.is_negated)


def left(whole: Typed, count: Typed) -> Typed:
    """Compile ``left``: a part from the first character."""
    return texts.substring(whole, Typed(integer(1, pa.int32()), pa.int32()), count)


def trimmed(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``trim`` of either side, or both."""
    side = str(node.args.get("position") or "BOTH").upper()
    return of(partial(texts.trimmed, side), "this", "expression?")(node, reader)


def replaced(value: Typed, searched: Typed, replacement: Typed | None) -> Typed:
    """Compile ``replace``; without a replacement what is found is left out."""
    nothing = Typed(exp.Literal.string(""), pa.utf8())
    return texts.replaced(value, searched, replacement or nothing)


def padded(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``lpad`` and ``rpad``."""
    padded_texts = partial(texts.padded, is_left=bool(node.args.get("is_left")))
    return of(padded_texts, "this", "expression", "fill_pattern")(node, reader)


def from_first(compute: Callable[..., Typed], *names: str) -> Compile:
    """Compile a search that begins with a text, for what comes first; another one is declined."""

    def compile_call(node: exp.Expr, reader: Reader) -> Typed:
        stated = [node.args[name] for name in ("position", "occurrence") if node.args.get(name)]
        literals = [literal_value(value) for value in stated]
        if not all(literal is not None and literal.as_py() == 1 for literal in literals):
            raise Declined(why=name_of(node))
        searched = node.copy()
        for name in ("position", "occurrence"):
            searched.set(name, None)
        return of(compute, *names)(searched, reader)

    return compile_call


def part_of_split(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``split(…)[0]``, the same by ``element_at``, which counts from 1, or ``split_part``.

    Raises:
        Declined: A part that is computed; or, by ``element_at`` under ANSI, one that there may
            not be.
    """
    split = node.this
    is_by_text = isinstance(split, exp.Anonymous) and split.name.lower() == "stringsplitsql"
    if not (is_by_text or isinstance(split, exp.RegexpSplit)):
        raise Declined(why=name_of(node))
    (number,) = [literal_value(at) for at in node.expressions]
    is_from_one = node.args.get("offset") == 1
    stated = None if number is None or not number.is_valid else int(number.as_py())
    place = stated if stated is None or is_from_one else stated + 1
    if not place or (place < 0 and not is_from_one):
        raise Declined(why="a computed part")
    if is_by_text:
        value, separator = map(reader.read, split.expressions)
        return texts.part_or_nothing(value, separator, place)
    limit = literal_value(split.args["limit"]) if split.args.get("limit") else pa.scalar(-1)
    if limit is None or limit.as_py() != -1:
        raise Declined(why="a split of limited parts")
    is_ansi = reader.semantics.ansi
    if is_ansi and is_from_one and abs(place) > 1:
        raise Declined(why="an element that there may not be")
    parts = reader.read(split.this), reader.read(split.expression)
    return texts.part_of_split(*parts, place, is_error=is_ansi)


def digest(node: exp.Expr, reader: Reader) -> Typed:
    """Compile a digest of bytes; a text that is cast to them stands for its own."""
    is_cast = isinstance(node.this, exp.Cast) and node.this.is_type(exp.DType.BINARY)
    bits: int | None = None
    if isinstance(node, exp.SHA2):
        length = literal_value(node.args["length"]) if node.args.get("length") else None
        bits = None if length is None or not length.is_valid else length.as_py() or 256
        if bits not in (224, 256, 384, 512):
            raise Declined(why="a digest of computed bits")
    value = reader.read(node.this.this if is_cast else node.this)
    return texts.digest("md5" if bits is None else f"sha{bits}", value)


def next_whole(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``floor`` and ``ceil``."""
    return typed_by(numbers.whole_number, "this", session=True)(node, reader)


def shifted(node: exp.Expr, reader: Reader) -> Typed:
    """Compile a shift of bits."""
    is_left = isinstance(node, exp.BitwiseLeftShift)
    value, count = reader.read(node.this), reader.read(node.expression)
    return numbers.shifted(value, count, is_left=is_left)


def part(name: str) -> Compile:
    """Compile a function that is a part of a time."""
    return of(of_part(name), "this:date", session=True)


def of_part(name: str) -> Callable[..., Typed]:
    """Give a part of a time by its name."""
    return lambda value, semantics: times.part(name, value, semantics)


def extract(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``extract``."""
    return times.part(node.this.name.upper(), reader.read(node.expression), reader.semantics)


def timestamp_trunc(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``date_trunc``."""
    unit = node.text("unit").upper()
    return times.truncated(unit, reader.read(node.this), reader.semantics)


def date_trunc(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``trunc``."""
    if literal_value(node.args["unit"]) is None:
        raise Declined(why=name_of(node))
    unit = node.args["unit"].name.upper()
    return times.truncated_date(unit, reader.read(node.this), reader.semantics)


def days_added(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``date_add``; the parser writes ``date_sub`` as one of the product with -1."""
    if node.text("unit").upper() != "DAY":
        raise Declined(why=name_of(node))
    days = node.expression
    is_backward = isinstance(days, exp.Mul) and isinstance(days.expression, exp.Neg)
    moved = reader.read(node.this), reader.read(days.this if is_backward else days)
    return times.moved_by_days(*moved, is_backward=is_backward)


def months_added(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``add_months``."""
    months = exp.Interval(this=node.expression.copy(), unit=exp.var("MONTH"))
    return times.moved_by_interval(times.date(reader.read(node.this)), months, reader.semantics)


def units_added(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``timestampadd``."""
    interval = exp.Interval(this=node.expression.copy(), unit=node.args["unit"].copy())
    moment = reader.read(node.this)
    if moment.type == pa.date32():
        moment = converted(moment, ZONED, reader.semantics)
    return times.moved_by_interval(moment, interval, reader.semantics, is_elapsed=True)


def units_between(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``timestampdiff``."""
    moments = reader.read(node.expression), reader.read(node.this)
    return times.units_between(node.text("unit").upper(), *moments, reader.semantics)


def months_between(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``months_between``."""
    if not isinstance(node.args.get("roundoff"), exp.Boolean):
        raise Declined(why=name_of(node))
    moments = reader.read(node.this), reader.read(node.expression)
    is_rounded = bool(node.args["roundoff"].this)
    return times.months_between(*moments, reader.semantics, is_rounded=is_rounded)


def epoch_units(unit: str) -> Compile:
    """Compile what counts whole units since 1970."""
    return of(lambda value: times.epoch_units(unit, value), "this")


def cut_seconds(node: exp.Expr, reader: Reader) -> Typed:
    """Compile ``unix_timestamp``; of a timestamp Spark ignores the format."""
    return times.cut_seconds(reader.read(node.this))


def microseconds(node: exp.Expr, reader: Reader) -> Typed:
    """Compile what ``window`` computes with.

    Its other argument, the type, is not in Spark's text: back it leads to where a number of
    microseconds within it came from.
    """
    (argument,) = _exactly(node, 1)
    calls = argument.find_all(exp.Anonymous)
    within = [
        call.expressions[0]
        for call in calls
        if call.name == node.name and len(call.expressions) == 1
    ]
    kinds = {moment.type for moment in map(reader.read, within) if not moment.is_integer}
    return times.microseconds(reader.read(argument), kinds)


def moment_of(width: int) -> Callable[[Typed], Typed]:
    """Give the timestamp so many units of some microseconds after 1970."""
    return lambda value: times.moment_of(value, width)


def from_unixtime(seconds: Typed, pattern: Typed, semantics: Semantics) -> Typed:
    """Compile ``from_unixtime``."""
    return times.formatted(times.wrapped_moment_of(seconds), pattern, semantics)


def make_decimal(node: exp.Expr, reader: Reader) -> Typed:
    """Compile a decimal of its digits."""
    digits, precision, scale = _exactly(node, 3)
    sizes = int(precision.name), int(scale.name)
    return numbers.decimal_of_unscaled(reader.read(digits), *sizes, reader.semantics)


def decimal_average(node: exp.Expr, reader: Reader) -> Typed:
    """Compile the end of an average of decimals."""
    total, count, precision, scale = _exactly(node, 4)
    kept = int(precision.name), int(scale.name)
    return numbers.average(reader.read(total), reader.read(count), kept, reader.semantics)


def double_average(total: Typed, count: Typed, semantics: Semantics) -> Typed:
    """Compile the end of an average of DOUBLEs."""
    return numbers.quotient(total, count, replace(semantics, ansi=False))


def same(value: Typed) -> Typed:
    """Give an expression as it is."""
    return value
