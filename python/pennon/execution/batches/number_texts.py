"""The function that reads texts as DOUBLEs as Java does, which DataFusion calls for each batch.

NULL rules: NULL stays NULL, and so is a text that is no number.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import udf

from pennon.predicate.expressions.texts.parsed_texts import DOUBLE_OF_TEXT

if TYPE_CHECKING:
    from datafusion import SessionContext

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
