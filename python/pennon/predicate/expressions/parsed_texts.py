r"""Texts read as values, by a cast of Spark or by a pattern; and Java's patterns in Rust.

NULL rules: NULL stays NULL.

| DataFusion | Spark | guard |
|---|---|---|
| no space around an integer | spaces and control characters | trimmed before |
| a cast compared with a literal compares texts | ``'07' = 7`` | a function around the cast |
| dates as ``20200105``; of years 1 to 9999 | a year alone, a sign, a time behind | made of parts |
| no suffix, no hexadecimal digits | Java's forms of a DOUBLE | a function in Python |
| formats of chrono | of Java's strict parser | a regular expression of each pattern |

Declined: texts as decimals, whose digits Java takes from Unicode, and as FLOATs; texts as
timestamps without a pattern, which may end with the name of a zone.

Regular expressions are written for Rust's engine where it matches them alike. Both take the first
alternative that leads to a match, and as much as they can.

| Rust | Java | guard |
|---|---|---|
| ``.`` is all but a newline | all but five line terminators | a class |
| ``\d``, ``\w`` and ``\s`` of Unicode | of ASCII | classes |
| ``$`` is the end | or before a line terminator at the end | an optional one; never behind ``\r`` |
| no empty match right behind another | there is | none that may be empty is replaced |
| a backslash, lost where DataFusion makes LIKE of a pattern | itself | declined |
| ``&&``, ``--``, ``[a[b]]`` in classes | other ones | every sign by its number |

Declined: what looks ahead or back, flags, ``\b``, ``\p``, possessive quantifiers, groups that are
repeated and captured or may be empty, control characters.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.typed import (
    NTZ,
    ZONED,
    Typed,
    as_number,
    binary,
    call,
    cast,
    choice,
    enclosed,
    has_more_nodes,
    integer,
    is_null,
    is_one,
    opaque,
    sql_type,
)
from pennon.predicate.values.literals import literal_value
from pennon.predicate.values.time_units import (
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.predicate.condition import Semantics

_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES: Final = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\x{20}\t\n\x{0B}\x{0C}\r"}
_QUANTIFIER: Final = re.compile(r"(?:([*+?])|\{(\d{1,2})(?:(,)(\d{1,2})?)?\})(\??)")
# By a backslash, by a class of one sign, or as it is.
_STATED_SIGN: Final = re.compile(r"\\([^A-Za-z0-9\\])|\[([^\\\[\]^&])\]|([^\\])")
_SPECIAL: Final = frozenset(r"\^$.|?*+()[]{}")
_SPACE: Final = 32
_LINE_ENDS: Final = "\x85\u2028\u2029"


@dataclass(slots=True)
class JavaPattern:
    r"""A pattern in Rust's form.

    Args:
        text: The pattern, as Java reads it.

    Raises:
        Declined: Both engines are not known to match alike.

    Example:
        >>> JavaPattern("^https?://([a-z]+)").rust
        '^https?\\x{3A}\\x{2F}\\x{2F}([a-z]+)'
    """

    text: str
    rust: str = ""
    groups: int = 0
    least: int = 0
    is_anchored: bool = False
    has_end: bool = False
    _at: int = field(default=0)
    _cuts: int = field(default=0)
    _repeats_groups: bool = field(default=False)
    _matched: str = field(default="")
    _end: str = field(default="")

    def __post_init__(self) -> None:
        """Read the whole pattern."""
        if any(ord(sign) < _SPACE or sign in _LINE_ENDS for sign in self.text):
            raise self._declined()
        if self.text.startswith("^"):
            self.is_anchored = True
            self._at = 1
        self.has_end = self.text.endswith("$") and not self.text.endswith("\\$")
        last = len(self.text) - self.has_end
        written, self.least, takes_return = self._alternatives(last)
        if self._at != last or (self.has_end and takes_return):
            raise self._declined()
        if self._cuts > 1 and (self.is_anchored or self.has_end):
            raise self._declined()
        self._matched = written
        self._end = rf"(\r\n|[{_ENDS}])?\z" if self.has_end else ""
        self.rust = ("^" if self.is_anchored else "") + written + self._end

    def _declined(self) -> Declined:
        return Declined(why=f"the regular expression {self.text}")

    def _peek(self, last: int) -> str:
        return self.text[self._at] if self._at < last else ""

    def _alternatives(self, last: int) -> tuple[str, int, bool]:
        """Read alternatives: their form, the least length, whether one may end with a return."""
        alternatives = [self._sequence(last)]
        while self._peek(last) == "|":
            self._at += 1
            alternatives.append(self._sequence(last))
        self._cuts = len(alternatives)
        text = "|".join(written for written, _, _ in alternatives)
        return (
            text,
            min(least for _, least, _ in alternatives),
            any(ends for *_, ends in alternatives),
        )

    def _sequence(self, last: int) -> tuple[str, int, bool]:
        written, least, ends = "", 0, False
        while self._peek(last) not in ("", "|", ")"):
            text, size, takes_return, is_captured = self._atom(last)
            quantifier = _QUANTIFIER.match(self.text, self._at, last)
            fewest = 1
            if quantifier is not None:
                sign, low, _, _, _ = quantifier.groups()
                is_group = text.startswith("(")
                self._repeats_groups |= is_captured and sign != "?"
                if is_group and size == 0:
                    raise self._declined()
                fewest = {"*": 0, "+": 1, "?": 0}[sign] if sign else int(low)
                text += quantifier.group()
                self._at = quantifier.end()
                if self._peek(last) in ("*", "+", "?", "{"):
                    raise self._declined()
            written += text
            least += size * fewest
            # behind what may be missing, what is before it ends the match
            ends = takes_return or (ends and size * fewest == 0)
        return written, least, ends

    def _atom(self, last: int) -> tuple[str, int, bool, bool]:
        """Read one: its form, its least length, whether it may end with a return, captures."""
        character = self._peek(last)
        self._at += 1
        if character == "(":
            return self._group(last)
        if character == "[":
            return self._class(last)
        if character == ".":
            return f"[^{_ENDS}]", 1, False, False
        if character == "\\":
            letter = self._peek(last)
            self._at += 1
            if letter.lower() in _CLASSES and letter:
                is_not = letter.isupper()
                text = f"[{'^' if is_not else ''}{_CLASSES[letter.lower()]}]"
                return text, 1, letter in "sDW", False
            # DataFusion makes LIKE of some patterns, and escapes no backslash there.
            if letter in ("", "\\") or letter.isalnum() or not letter.isascii():
                raise self._declined()
            return _number(letter), 1, False, False
        if character in _SPECIAL:
            raise self._declined()
        return _number(character), 1, False, False

    def _group(self, last: int) -> tuple[str, int, bool, bool]:
        is_captured = not self.text.startswith("?:", self._at)
        if not is_captured:
            self._at += 2
        elif self._peek(last) == "?":
            raise self._declined()
        else:
            self.groups += 1
        written, least, ends = self._alternatives(last)
        if self._peek(last) != ")":
            raise self._declined()
        self._at += 1
        return f"({'' if is_captured else '?:'}{written})", least, ends, is_captured

    def _class(self, last: int) -> tuple[str, int, bool, bool]:
        close = self.text.find("]", self._at, last)
        inner = self.text[self._at : close]
        is_not = inner.startswith("^")
        inner = inner.removeprefix("^")
        if close < 0 or not inner or re.search(r"[\[\\&]", inner):
            raise self._declined()
        parts, at = "", 0
        while at < len(inner):
            is_range = at + 2 < len(inner) and inner[at + 1] == "-"
            if is_range:
                if inner[at] > inner[at + 2]:
                    raise self._declined()
                parts += f"{_number(inner[at])}-{_number(inner[at + 2])}"
                at += 3
            else:
                parts += _number(inner[at])
                at += 1
        self._at = close + 1
        return f"[{'^' if is_not else ''}{parts}]", 1, is_not, False

    def extraction(self, group: int) -> tuple[str, str]:
        """Write a form of the whole text, and what of it a group has matched first.

        Raises:
            Declined: A group that there is not, or that is repeated.
        """
        if not 0 <= group <= self.groups or self._repeats_groups:
            raise self._declined()
        start = "^" if self.is_anchored else "^(?s:.*?)"
        match = f"({self._matched})"
        return f"{start}{match}{self._end or '(?s:.*)'}", f"${{{group + 1}}}"

    def replacement(self, text: str) -> str:
        """Write what matches are replaced by.

        Raises:
            Declined: A group that there is not, an escape, or matches that may be empty or end
                before what the end of the pattern leaves.
        """
        is_cut_off = self.has_end and not self.is_anchored
        if self.least == 0 or is_cut_off or self._repeats_groups or "\\" in text:
            raise self._declined()
        pieces = re.split(r"\$(\d)(?!\d)", text)
        if any("$" in piece for piece in pieces[::2]):
            raise self._declined()
        # The whole match has what is left behind it in Rust's form.
        first = 1 if self.has_end else 0
        if not all(first <= int(number) <= self.groups for number in pieces[1::2]):
            raise self._declined()
        written = "".join(f"${{{piece}}}" if at % 2 else piece for at, piece in enumerate(pieces))
        return written + (f"${{{self.groups + 1}}}" if self.has_end else "")


def _number(character: str) -> str:
    is_plain = character.isascii() and (character.isalnum() or character == "_")
    return character if is_plain else f"\\x{{{ord(character):X}}}"


def plain_text(pattern: str) -> str:
    r"""Give the text that is all that a pattern of Java matches.

    Raises:
        Declined: It has signs that stand for others, or none.

    Example:
        >>> plain_text("-"), plain_text(r"\."), plain_text("[|]")
        ('-', '.', '|')
    """
    signs = list(_STATED_SIGN.finditer(pattern))
    is_whole = "".join(sign.group() for sign in signs) == pattern
    if not signs or not is_whole or not _SPECIAL.isdisjoint(sign.group() for sign in signs):
        raise Declined(why=f"the regular expression {pattern}")
    return "".join(sign[sign.lastindex or 0] for sign in signs)


_LONG: Final = pa.int64()
_DOUBLE: Final = pa.float64()
_BLANKS: Final = "".join(map(chr, range(33))) + "\x7f"
_BLANK: Final = r"[\x00-\x20\x7f]*"
_PLAIN_DATE: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATE: Final = (
    rf"(?s)^{_BLANK}([+-]?[0-9]{{4,7}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T].*)?)?)?{_BLANK}$"
)
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097
_NEAR: Final = 2000
_MOST_NODES: Final = 100
_MICROS: Final[Mapping[str, int]] = {
    "dd": MICROS_PER_DAY,
    "HH": MICROS_PER_HOUR,
    "mm": MICROS_PER_MINUTE,
    "ss": MICROS_PER_SECOND,
}
# A year has a sign where it has more than four digits; a negative one is not zero.
_FIELDS: Final[Mapping[str, str]] = {
    "yyyy": r"([0-9]{4}|\+[0-9]{5,15}|-[0-9]{4,15})",
    "MM": "([0-9]{2})",
    "dd": "([0-9]{2})",
    "HH": "([01][0-9]|2[0-3])",
    "mm": "([0-5][0-9])",
    "ss": "([0-5][0-9])",
}
_PIECES: Final = re.compile(r"([A-Za-z])\1*|'T'|[-/.:, _]+")
DOUBLE_OF_TEXT: Final = "double_of_text"
"""A function of ``execution/functions.py``: NULL for a text that is no number."""
NOT_READ: Final = "not read: "
"""What stands before a text, in an error, that is not read by a form of ours."""
NOT_PARSED: Final = "not parsed: "
"""What stands before one that is not read by a pattern of the user's."""


def integer_of_text(value: Typed, target: pa.DataType, *, is_tried: bool) -> Typed:
    """Cast a text to an integer.

    Args:
        value: The text.
        target: The type.
        is_tried: Whether what is no integer is NULL; it is an error otherwise.
    """
    trimmed = call("btrim", value.tree, exp.Literal.string(_BLANKS))
    # A function: DataFusion would compare the text where a literal is compared with the integer.
    return Typed(opaque(_cast(trimmed, target, is_tried)), target, can_fail=not is_tried)


def double_of_text(value: Typed, semantics: Semantics, *, is_tried: bool) -> Typed:
    """Cast a text to a DOUBLE.

    Args:
        value: The text.
        semantics: The session's.
        is_tried: Whether what is no number is NULL; it is an error otherwise.

    Raises:
        Declined: Outside of fragments, where nobody calls the function; or a text of many terms.
    """
    if not semantics.in_fragments:
        raise Declined(why="a text as DOUBLE, beside a fragment")
    whole = _repeatable(value)
    number = call(DOUBLE_OF_TEXT, whole)
    if is_tried:
        return Typed(number, _DOUBLE)
    text = binary(exp.DPipe, exp.Literal.string(NOT_READ), whole.copy())
    error = cast(exp.paren(text), _DOUBLE)
    return Typed(choice((is_null(number), error), default=number.copy()), _DOUBLE, can_fail=True)


def boolean_of_text(value: Typed, *, is_tried: bool) -> Typed:
    """Cast a text to a BOOLEAN: the words and numbers that Spark takes, in letters of any case.

    Args:
        value: The text.
        is_tried: Whether what is none of them is NULL; it is an error otherwise.

    Raises:
        Declined: A text of many terms, which would be there several times.
    """
    whole = _repeatable(value)
    one, zero = integer(1, pa.int32()), integer(0, pa.int32())
    error = cast(binary(exp.DPipe, exp.Literal.string(NOT_READ), whole.copy()), pa.bool_())
    number = choice(
        (_matches(whole, _word("t|true|y|yes|1")), one),
        (_matches(whole, _word("f|false|n|no|0")), zero),
        (exp.Not(this=exp.paren(is_null(whole.copy()))), as_number(error)),
        default=None,
    )
    if is_tried:
        number.args["ifs"].pop()
    return Typed(is_one(number), pa.bool_(), can_fail=not is_tried)


def _word(words: str) -> str:
    letters = "".join(f"[{sign}{sign.upper()}]" if sign.isalpha() else sign for sign in words)
    return f"^{_BLANK}(?:{letters}){_BLANK}$"


def date_of_text(value: Typed, *, is_tried: bool) -> Typed:
    """Cast a text to a date.

    Args:
        value: The text.
        is_tried: Whether what is no date is NULL; it is an error otherwise.

    Raises:
        Declined: A text of many terms, which would be there several times.
    """
    whole = _repeatable(value)
    fast = _cast(whole.copy(), pa.date32(), is_tried)
    year, month, day = (_group(whole, _DATE, at) for at in (1, 2, 3))
    parts = {"yyyy": year, "MM": _or_first(month), "dd": _or_first(day)}
    slow = cast(
        _cast(exp.paren(_days(parts, is_tried=is_tried)), pa.int32(), is_tried), pa.date32()
    )
    tree = choice(
        (_matches(whole, _PLAIN_DATE), fast),
        (_matches(whole, _DATE), slow),
        default=exp.Null() if is_tried else _failure(whole),
    )
    return Typed(tree, pa.date32(), can_fail=not is_tried)


def timestamp_of_text(value: Typed, pattern: Typed, semantics: Semantics) -> Typed:
    """Read a text by a pattern of Java (``to_timestamp``, and ``to_date`` below its cast).

    Raises:
        Declined: Without ANSI, or where the session's zone is not UTC; a pattern that is computed,
            or has other fields than a year, a month and what may follow, each in all its digits.
    """
    literal = literal_value(pattern.tree)
    text = str(literal.as_py()) if literal is not None and literal.is_valid else ""
    fields = _fields(text)
    if not (semantics.ansi and semantics.is_utc) or fields is None:
        raise Declined(why=f"the pattern {text}")
    whole = _repeatable(value)
    form = f"^{''.join(_FIELDS.get(field, _sign(field)) for field in fields)}$"
    named = [field for field in fields if field in _FIELDS]
    parts = {field: _group(whole, form, at) for at, field in enumerate(named, 1)}
    terms = [_times(_days(parts, is_tried=True), MICROS_PER_DAY)]
    terms += [_times(parts[unit], _MICROS[unit]) for unit in ("HH", "mm", "ss") if unit in parts]
    micros = cast(exp.paren(reduce(partial(binary, exp.Add), terms)), _LONG)
    is_minus_zero = call("regexp_like", parts["yyyy"].copy(), exp.Literal.string("^-0+$"))
    is_form = exp.And(this=_matches(whole, form), expression=exp.Not(this=is_minus_zero))
    failure = cast(_failure(whole, NOT_PARSED), NTZ)
    # Numbers are taken of what has the form alone; a day that no month has is NULL.
    of_form = choice((is_null(micros.copy()), failure), default=cast(micros, NTZ))
    read = choice((is_form, of_form), default=failure.copy())
    return Typed(cast(cast(read, _LONG), ZONED), ZONED, can_fail=True)


def _fields(pattern: str) -> list[str] | None:
    """Take a pattern apart; None where a text may be read in another way than by one expression."""
    pieces = [piece.group() for piece in _PIECES.finditer(pattern)]
    named = [piece for piece in pieces if piece in _FIELDS]
    is_known = all(piece in _FIELDS or not piece[0].isalpha() for piece in pieces)
    is_whole = "".join(pieces) == pattern and len(set(named)) == len(named)
    # Digits in a row are told apart by how many there are behind the year.
    is_apart = not any(
        one in _FIELDS and other in _FIELDS for one, other in itertools.pairwise(pieces)
    )
    if not (is_known and is_whole and (is_apart or pieces[0] == "yyyy")):
        return None
    return pieces if {"yyyy", "MM"} <= set(named) else None


def _sign(piece: str) -> str:
    if piece == "'T'":
        return "[Tt]"  # Spark's parser takes no notice of case
    return "".join(f"\\x{{{ord(character):X}}}" for character in piece)


def _days(parts: Mapping[str, exp.Expr], *, is_tried: bool) -> exp.Expr:
    """Count the days since 1970, in the cycle of 400 years in which DataFusion has a calendar."""
    year = cast(parts["yyyy"], _LONG)
    cycle = integer(_CYCLE_YEARS, _LONG)
    over = binary(exp.Add, binary(exp.Mod, year, cycle), cycle.copy())
    near = binary(exp.Add, binary(exp.Mod, over, cycle.copy()), integer(_NEAR, _LONG))
    pieces = [cast(exp.paren(near), pa.string()), _two_digits(parts["MM"])]
    pieces.append(_two_digits(parts["dd"]) if "dd" in parts else exp.Literal.string("01"))
    written = reduce(
        lambda one, other: binary(
            exp.DPipe, binary(exp.DPipe, one, exp.Literal.string("-")), other
        ),
        pieces,
    )
    day = cast(cast(_cast(written, pa.date32(), is_tried), pa.int32()), _LONG)
    cycles = binary(exp.Div, binary(exp.Sub, year.copy(), near.copy()), cycle.copy())
    return binary(exp.Add, day, binary(exp.Mul, cycles, integer(_CYCLE_DAYS, _LONG)))


def _two_digits(digits: exp.Expr) -> exp.Expr:
    return call("lpad", digits, integer(2, _LONG), exp.Literal.string("0"))


def _or_first(digits: exp.Expr) -> exp.Expr:
    """Take the first month, or day, where a text has none."""
    is_none = binary(exp.EQ, digits, exp.Literal.string(""))
    return choice((is_none, exp.Literal.string("1")), default=digits.copy())


def _times(number: exp.Expr, micros: int) -> exp.Expr:
    """Multiply so that nothing wraps: DataFusion's BIGINT would."""
    factor = cast(exp.Literal.string(str(micros)), pa.decimal128(12, 0))
    return binary(exp.Mul, cast(exp.paren(number), pa.decimal128(20, 0)), factor)


def _repeatable(value: Typed) -> exp.Expr:
    if value.type != pa.utf8() or has_more_nodes(value.tree, _MOST_NODES):
        raise Declined(why="a text of many terms that is read")
    return enclosed(value.tree)


def _group(whole: exp.Expr, form: str, number: int) -> exp.Expr:
    """Give what a group of a form has matched; an empty text where it has not."""
    pieces = (exp.Literal.string(piece) for piece in (form, f"${{{number}}}"))
    return cast(call("regexp_replace", whole.copy(), *pieces), pa.string())


def _matches(whole: exp.Expr, form: str) -> exp.Expr:
    return call("regexp_like", whole.copy(), exp.Literal.string(form))


def _cast(tree: exp.Expr, target: pa.DataType, is_tried: bool) -> exp.Expr:  # noqa: FBT001
    kind = exp.TryCast if is_tried else exp.Cast
    return kind(this=tree, to=sql_type(target))


def _failure(whole: exp.Expr, why: str = NOT_READ) -> exp.Expr:
    """Write what is an error for every text, and tells it."""
    return cast(binary(exp.DPipe, exp.Literal.string(why), whole.copy()), pa.date32())
