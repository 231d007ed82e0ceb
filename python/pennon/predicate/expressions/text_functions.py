"""Functions of texts that are exactly Spark's.

NULL rules: every function gives NULL for NULL, ``||`` and CONCAT included; a part
that there is not is NULL, or empty.

| DataFusion | Spark | guard |
|---|---|---|
| positions before the first count as such | from the end; 0 is 1 | the position is computed |
| a negative length is an error | an empty text | 0 instead |
| concat leaves NULLs out | NULL | the operator ``||`` |
| LIKE escapes by a backslash | by any character | the pattern is read and written anew |
| lengths are BIGINT | INT | cast |
| upper and lower know no language | that of the JVM's locale | declined in those with own cases |
| lpad, rpad and translate count graphemes | code points | made of parts |
| substr_index looks behind what it found | behind its first character | single characters |
| split_part gives an empty text for no part | NULL, or an error (ANSI) | separators are counted |
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.expressions.parsed_texts import JavaPattern, plain_text
from pennon.predicate.normalize import read_pattern
from pennon.predicate.typed import (
    Typed,
    binary,
    call,
    cast,
    choice,
    enclosed,
    integer,
    is_null,
    stated_integer,
)
from pennon.predicate.values.literals import literal_value
from pennon.starting_jvm import starting_jvm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# Operands of functions of texts: those that have to be texts, and those that are stated.


def texts(values: Sequence[Typed]) -> list[exp.Expr]:
    """Take expressions that all have to be texts."""
    if any(value.type != pa.utf8() for value in values):
        raise Declined(why="what is no text")
    return [value.tree for value in values]


def literal_text(value: Typed) -> str | None:
    """Give the text that an expression states; None where it is computed."""
    literal = literal_value(value.tree)
    is_text = literal is not None and literal.is_valid and pa.types.is_string(literal.type)
    return str(literal.as_py()) if literal is not None and is_text else None


NO_PART: Final = "no part "
"""What stands before a part's number, from 0, and how many there are, in an error."""


def before_separator(value: Typed, separator: Typed, count: Typed) -> Typed:
    """Cut a text at a place of a character, counted from either end (``substring_index``)."""
    (whole,) = texts([value])
    sign, place = literal_text(separator), stated_integer(count)
    if sign is None or len(sign) != 1 or place is None:
        raise Declined(why="a place of what is no single character")
    parts = (exp.Literal.string(sign), integer(place, pa.int64()))
    return Typed(cast(call("substr_index", whole, *parts), pa.utf8()), pa.utf8())


def part_of_split(value: Typed, separator: Typed, number: int, *, is_error: bool = False) -> Typed:
    """Give a part between matches of a regular expression (``split``); NULL where there is none.

    Args:
        value: The text.
        separator: What separates its parts.
        number: Which one, from 1; the last one is -1.
        is_error: Whether a part that there is not is an error instead (ANSI).
    """
    (whole,) = texts([value])
    sign = plain_text(literal_text(separator) or "")
    taken = _part(whole, sign, number)
    if abs(number) == 1:
        return taken
    without = call("replace", whole.copy(), exp.Literal.string(sign), exp.Literal.string(""))
    sizes = [cast(call("octet_length", tree), pa.int64()) for tree in (whole.copy(), without)]
    least = (abs(number) - 1) * len(sign.encode())
    behind = binary(exp.Sub, *sizes)
    is_there = binary(exp.GTE, behind, integer(least, pa.int64()))
    if not is_error:
        return Typed(choice((is_there, taken.tree), default=None), pa.utf8())
    separators = binary(exp.Div, behind.copy(), integer(len(sign.encode()), pa.int64()))
    missing = _missing(number - 1, binary(exp.Add, separators, integer(1, pa.int64())))
    tree = choice((is_there, taken.tree), (is_null(whole.copy()), exp.Null()), default=missing)
    return Typed(tree, pa.utf8(), can_fail=True)


def _missing(index: int, count: exp.Expr) -> exp.Expr:
    """Write what is an error of a part that there is not, and tells how many there are."""
    text = binary(
        exp.DPipe,
        exp.Literal.string(f"{NO_PART}{index} of "),
        cast(exp.paren(count, copy=False), pa.utf8()),
    )
    return cast(cast(exp.paren(text, copy=False), pa.int32()), pa.utf8())


def part_or_nothing(value: Typed, separator: Typed, number: int) -> Typed:
    """Give a part between separators (``split_part``); an empty text where there is none.

    Args:
        value: The text.
        separator: What separates its parts, as it is.
        number: Which one, from 1; the last one is -1.
    """
    (whole,) = texts([value])
    sign = literal_text(separator)
    if not sign:
        raise Declined(why="a separator that is computed or empty")
    return _part(whole, sign, number)


def _part(whole: exp.Expr, sign: str, number: int) -> Typed:
    if number < 0 and len(sign) > 1:
        raise Declined(why="the last part between several signs")
    place = (exp.Literal.string(sign), integer(number, pa.int64()))
    return Typed(cast(call("split_part", whole, *place), pa.utf8()), pa.utf8())


_TRIMS: Final[Mapping[str, str]] = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_SPACE: Final = " "
_MOST_FILLED: Final = 1000
_MOST_TRANSLATED: Final = 16
# What ICU, by which Spark changes the case of letters, has rules of their own for.
_OWN_CASES: Final = frozenset(
    ("tr", "tur", "az", "aze", "lt", "lit", "el", "ell", "nl", "nld", "hy", "hye")
)


def concatenated(*values: Typed) -> Typed:
    """Join texts; a NULL among them is NULL."""
    joined = reduce(lambda one, other: exp.DPipe(this=one, expression=other), _enclosed(values))
    return Typed(joined, pa.utf8())


def _enclosed(values: Sequence[Typed]) -> list[exp.Expr]:
    return [enclosed(tree) for tree in texts(values)]


def cased(case: type[exp.Upper | exp.Lower], value: Typed) -> Typed:
    """Change the case of every letter as Unicode does, which Spark does in most languages."""
    language = starting_jvm().language
    if language in _OWN_CASES:
        raise Declined(why=f"the case of letters in the locale {language}")
    (whole,) = texts([value])
    return Typed(case(this=whole), pa.utf8())


def substring(value: Typed, start: Typed, count: Typed | None) -> Typed:
    """Cut out a part by Spark's positions: from 1, or from the end; 0 is 1.

    A part that would start before the first character is cut there, as in both engines.
    """
    (whole,) = texts([value])
    if start.type != pa.int32() or (count is not None and count.type != pa.int32()):
        raise Declined(why="positions that are no INT")
    lengths = _count(count)
    part = exp.Substring(
        this=whole, start=_start(whole, start), length=lengths[0] if lengths else None
    )
    return Typed(part, pa.utf8())


def _start(whole: exp.Expr, start: Typed) -> exp.Expr:
    wide = pa.int64()
    size = cast(call("character_length", whole.copy()), wide)
    place = cast(start.tree, wide)
    from_end = binary(exp.Add, binary(exp.Add, size, place.copy()), integer(1, wide))
    stated = stated_integer(start)
    if stated is not None:
        return from_end if stated < 0 else integer(max(stated, 1), wide)
    is_positive = binary(exp.GT, place, integer(0, wide))
    is_negative = binary(exp.LT, place.copy(), integer(0, wide))
    is_nothing = binary(exp.EQ, place.copy(), integer(0, wide))
    return choice(
        (is_positive, place.copy()),
        (is_negative, from_end),
        (is_nothing, integer(1, wide)),
        default=None,
    )


def _count(count: Typed | None) -> list[exp.Expr]:
    wide = pa.int64()
    if count is None:
        return []
    stated = stated_integer(count)
    if stated is not None:
        return [integer(max(stated, 0), wide)]
    size = cast(count.tree, wide)
    is_negative = binary(exp.LT, size, integer(0, wide))
    return [choice((is_negative, integer(0, wide)), default=size.copy())]


def trimmed(side: str, value: Typed, characters: Typed | None) -> Typed:
    """Take spaces, or any of some characters, from the ends: no other white space."""
    name = _TRIMS.get(side)
    if name is None:
        raise Declined(why=f"trim {side}")
    (whole,) = texts([value])
    if characters is None:
        return Typed(call(name, whole, exp.Literal.string(_SPACE)), pa.utf8())
    (taken,) = texts([characters])
    return Typed(call(name, whole, taken), pa.utf8())


def replaced(value: Typed, searched: Typed, replacement: Typed) -> Typed:
    """Replace every occurrence of a text that is not empty."""
    trees = texts([value, searched, replacement])
    literal = literal_value(searched.tree)
    if literal is None or not literal.as_py():
        raise Declined(why="a replacement of what may be empty")
    return Typed(call("replace", *trees), pa.utf8())


def padded(value: Typed, size: Typed, filling: Typed, *, is_left: bool) -> Typed:
    """Fill a text up to a number of characters, or cut it there (``lpad``, ``rpad``)."""
    (whole,) = texts([value])
    count, text = stated_integer(size), literal_value(filling.tree)
    if count is None or count > _MOST_FILLED:
        raise Declined(why="a computed or large number of characters")
    if text is None or not text.is_valid or not pa.types.is_string(text.type) or not text.as_py():
        raise Declined(why="a filling that is computed or empty")
    wide, kept = pa.int64(), integer(max(count, 0), pa.int64())
    size_of = cast(call("character_length", whole.copy()), wide)
    is_full = binary(exp.GTE, size_of, kept)
    one = integer(1, wide)
    cut = exp.Substring(this=whole.copy(), start=one, length=kept.copy())
    enough = (text.as_py() * max(count, 0))[: max(count, 0)]
    missing = binary(exp.Sub, kept.copy(), size_of.copy())
    missing = call("greatest", missing, integer(0, wide))
    filled = exp.Substring(this=exp.Literal.string(enough), start=one.copy(), length=missing)
    sides = [filled, whole.copy()] if is_left else [whole.copy(), filled]
    together = exp.DPipe(this=enclosed(sides[0]), expression=enclosed(sides[1]))
    return Typed(choice((is_full, cut), default=together), pa.utf8())


def char_read(value: Typed, size: Typed) -> Typed:
    """Fill a CHAR up to its length with spaces, as Spark does wherever it reads one."""
    (whole,) = texts([value])
    count = stated_integer(size)
    if count is None or count > _MOST_FILLED:
        raise Declined(why="a CHAR of a large length")
    wide, one = pa.int64(), integer(1, pa.int64())
    size_of = cast(call("character_length", whole.copy()), wide)
    missing = call("greatest", binary(exp.Sub, integer(count, wide), size_of), integer(0, wide))
    filled = exp.Substring(this=exp.Literal.string(_SPACE * count), start=one, length=missing)
    return Typed(binary(exp.DPipe, whole, filled), pa.utf8())


def digest(name: str, value: Typed) -> Typed:
    """Write the digest of a text's bytes, or of bytes, in hexadecimal digits."""
    if value.type not in (pa.utf8(), pa.binary()):
        raise Declined(why=f"{name} of {value.type}")
    digits = call(name, value.tree)
    if name != "md5":
        digits = call("encode", digits, exp.Literal.string("hex"))
    return Typed(cast(digits, pa.utf8()), pa.utf8())


def translated(value: Typed, searched: Typed, replacement: Typed) -> Typed:
    """Replace single characters, or leave them out (``translate``), one after the other."""
    (whole,) = texts([value])
    old, new = literal_text(searched), literal_text(replacement)
    if old is None or new is None or len(old) > _MOST_TRANSLATED:
        raise Declined(why="a translation of computed or many characters")
    pairs = {character: new[at : at + 1] for at, character in reversed(list(enumerate(old)))}
    if set(pairs) & (set(pairs.values()) - {""}):
        raise Declined(why="a translation to characters that are translated, too")
    for character, other in pairs.items():
        pair = (exp.Literal.string(character), exp.Literal.string(other))
        whole = call("replace", whole, *pair)
    return Typed(whole, pa.utf8())


def matched(value: Typed, pattern: Typed) -> Typed:
    """Find a regular expression of Java somewhere in a text (``RLIKE``)."""
    (whole,) = texts([value])
    return Typed(call("regexp_like", whole, exp.Literal.string(_java(pattern).rust)), pa.bool_())


def replaced_matches(value: Typed, pattern: Typed, replacement: Typed) -> Typed:
    """Replace all matches of a regular expression of Java (``regexp_replace``)."""
    (whole,) = texts([value])
    java_pattern, text = _java(pattern), literal_text(replacement)
    if text is None:
        raise Declined(why="a computed replacement")
    parts = [
        exp.Literal.string(part)
        for part in (java_pattern.rust, java_pattern.replacement(text), "g")
    ]
    return Typed(cast(call("regexp_replace", whole, *parts), pa.utf8()), pa.utf8())


def extracted(value: Typed, pattern: Typed, group: Typed) -> Typed:
    """Give what a group of a regular expression of Java has matched first (``regexp_extract``)."""
    (whole,) = texts([value])
    java_pattern, number = _java(pattern), stated_integer(group)
    if number is None:
        raise Declined(why="a computed group of a regular expression")
    form = java_pattern.extraction(number)
    taken = call("regexp_replace", whole, *map(exp.Literal.string, form))
    is_match = call("regexp_like", whole.copy(), exp.Literal.string(java_pattern.rust))
    tree = choice(
        (is_match, cast(taken, pa.utf8())),
        (exp.Not(this=is_null(whole.copy())), exp.Literal.string("")),
        default=None,
    )
    return Typed(tree, pa.utf8())


def _java(pattern: Typed) -> JavaPattern:
    text = literal_text(pattern)
    if text is None:
        raise Declined(why="a computed regular expression")
    return JavaPattern(text)


def joined(*texts_and_nulls: Typed) -> Typed:
    """Join texts by a separator (``concat_ws``): both engines leave out NULLs behind it."""
    first, *others = texts_and_nulls
    values = [first, *(value for value in others if not value.is_null)]
    if len(values) < 2:  # noqa: PLR2004 - the separator, and a text
        raise Declined(why="nothing to join")
    return Typed(call("concat_ws", *texts(values)), pa.utf8())


def repeated(value: Typed, times: Typed) -> Typed:
    """Repeat a text a few times."""
    count = stated_integer(times)
    if count is None or count > _MOST_FILLED:
        raise Declined(why="a computed or large number of repetitions")
    return Typed(call("repeat", *texts([value]), integer(max(count, 0), pa.int64())), pa.utf8())


def like(value: Typed, pattern: Typed, escape: str, *, is_negated: bool) -> Typed:
    """Match a pattern that is a literal: by its start, end, part or as a pattern; or its NOT."""
    (whole,) = texts([value])
    text = literal_value(pattern.tree)
    if text is None or not text.is_valid or not pa.types.is_string(text.type):
        raise Declined(why="a computed pattern")
    read = read_pattern(text.as_py(), escape)
    if read is None:
        raise Declined(why="a pattern that escapes an ordinary character")
    test: exp.Expr = read.test(whole)
    if isinstance(test, exp.Binary):
        test.set("this", enclosed(whole))
    return Typed(exp.Not(this=enclosed(test)) if is_negated else test, pa.bool_())
