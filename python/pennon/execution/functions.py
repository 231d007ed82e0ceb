"""The functions that DataFusion lacks, and that queries of fragments call."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import udf

from pennon.predicate.expressions.parsed_texts import DOUBLE_OF_TEXT
from pennon.predicate.expressions.times import (
    CLOCK,
    MOMENT,
    MOMENT_NEAR,
    MOMENT_OF_DAY,
    MOMENT_OF_DAY_NEAR,
)
from pennon.predicate.values.time_units import zone_offsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from datafusion import SessionContext

    from pennon.predicate.values.time_units import Micros

# The function that reads texts as DOUBLEs as Java does, which DataFusion calls for each batch.
#
# NULL rules: NULL stays NULL, and so is a text that is no number.

_DOUBLE: Final = pa.float64()
# What Java trims: U+0000 to the space.
_BLANKS: Final = "".join(map(chr, range(33)))
# Short enough that no digit is left out, and no exponent is beyond the type.
_PLAIN: Final = r"^-?[0-9]{1,300}(\.[0-9]{1,300})?$"
_DECIMAL: Final = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?", re.ASCII
)
_HEXADECIMAL: Final = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?", re.ASCII
)
_SIGNED_NAN: Final = re.compile(r"[+-]?NaN")
_INFINITE: Final = frozenset({"inf", "infinity", "+inf", "+infinity"})
_LEAST: Final = frozenset({"-inf", "-infinity"})


def register_number_texts(context: SessionContext) -> None:
    """Make the function known to the queries of a context."""
    text = pa.string()
    context.register_udf(udf(doubles_of, [text], _DOUBLE, "immutable", DOUBLE_OF_TEXT))


def doubles_of(texts: pa.Array) -> pa.Array:
    """Read texts; NULL for what is no number.

    Example:
        >>> doubles_of(pa.array(["12.5", " 1e3f ", "0x1p-1", "-INF", "1,5", None])).to_pylist()
        [12.5, 1000.0, 0.5, -inf, None, None]
    """
    is_plain = pc.fill_null(pc.match_substring_regex(texts, _PLAIN), fill_value=False)
    plain: pa.Array = pc.if_else(is_plain, texts, pa.scalar(None, texts.type)).cast(_DOUBLE)
    others = pc.and_(pc.is_valid(texts), pc.invert(is_plain))
    if not pc.any(others, min_count=0).as_py():
        return plain
    read = [_double_of(text) for text in texts.filter(others).to_pylist()]
    whole: pa.Array = pc.replace_with_mask(plain, others, pa.array(read, _DOUBLE))
    return whole


def _double_of(text: str) -> float | None:
    """Read one text as Java does, and the words that Spark adds, in letters of any case."""
    trimmed = text.strip(_BLANKS)
    decimal = _DECIMAL.fullmatch(trimmed)
    if decimal is not None:
        return float(decimal[1])
    hexadecimal = _HEXADECIMAL.fullmatch(trimmed)
    if hexadecimal is not None:
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return -math.inf if trimmed.startswith("-") else math.inf
    word = trimmed.lower()
    if word in _INFINITE or word in _LEAST:
        return -math.inf if word in _LEAST else math.inf
    return math.nan if word == "nan" or _SIGNED_NAN.fullmatch(trimmed) else None


# The functions of times in a session's zone, which DataFusion calls for each batch.
#
# NULL rules: NULL stays NULL.

_LONG: Final = pa.int64()


def register_zone_functions(context: SessionContext, numbers: tuple[int, ...]) -> None:
    """Make the functions of a zone known to the queries of a context.

    Args:
        context: DataFusion's.
        numbers: The offsets of the zone, as ``ZoneOffsets`` takes them; none of a query that has
            no time of a zone.
    """
    if not numbers:
        return
    zone = zone_offsets(numbers)
    for name, compute, arity in (
        (CLOCK, zone.clocks, 1),
        (MOMENT, zone.moments, 1),
        (MOMENT_NEAR, zone.moments, 2),
        (MOMENT_OF_DAY, zone.midnights, 1),
        (MOMENT_OF_DAY_NEAR, zone.midnights, 2),
    ):
        computed = partial(_computed, compute)
        context.register_udf(udf(computed, [_LONG] * arity, _LONG, "immutable", name))


def _computed(compute: Callable[..., Micros], *arguments: pa.Array) -> pa.Array:
    """Compute the values of a batch; what stands where one of them is NULL does not matter."""
    is_null = pc.is_null(arguments[0])
    values = [np.asarray(pc.fill_null(argument, 0), np.int64) for argument in arguments]
    return pa.array(compute(*values), _LONG, mask=np.asarray(is_null))


def register_functions(context: SessionContext, zone_offsets: tuple[int, ...]) -> None:
    """Make them known to the queries of a context.

    Args:
        context: DataFusion's.
        zone_offsets: The offsets of the session's zone; none of a query without times of a zone.
    """
    register_number_texts(context)
    register_zone_functions(context, zone_offsets)
