"""truncate: the first W characters of a string, or a number without its remainder by W.

NULL rules: NULL in, NULL out. The remainder has the sign of the number, as DataFusion computes
it: -7 with W 10 gives 0, so partition 0 covers (-W, W) and the transform never decreases.
Characters are code points, not bytes.

Spec: "Supported Transforms": ``left(col0, W)`` or ``col0 - (col0 % W)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import InvalidTransform, TransformOnWrongType
from pennon.predicate.condition import Comparison, Operator, condition, negation, one_of
from pennon.predicate.dialect import DataFusion
from pennon.predicate.values.time_units import is_text
from pennon.transforms.evaluation import (
    INT64_DIGITS,
    from_scalars,
    low_halves,
    plain_array,
    plain_type,
    with_nulls_of,
)
from pennon.transforms.transform import SizedTransform, Transform, one_of_values, project_monotone

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_WIDTH = 2**31 - 1
_FIRST: Final = "CAST(1 AS BIGINT)"


@dataclass(frozen=True, slots=True)
class Truncate(SizedTransform):
    """Partition by a prefix, or by ranges of W numbers.

    Example:
        >>> Truncate(10).apply([pa.array([-7, 12])]).to_pylist()
        [0, 10]

    Spec: "Supported Transforms".
    """

    type: ClassVar[str] = "truncate"
    size_name: ClassVar[str] = "width"
    keeps_type: ClassVar[bool] = True
    survives_widening: ClassVar[bool] = True
    has_monotone_values: ClassVar[bool] = True
    width: int

    def __post_init__(self) -> None:
        if not 1 <= self.width <= MAX_WIDTH:
            raise InvalidTransform(
                transform="truncate",
                actual=f"width {self.width}",
                expected="a whole number from 1 to 2147483647",
                form=self.form(self.type),
            )

    @property
    def size(self) -> int:
        """The width."""
        return self.width

    @property
    def name_suffix(self) -> str:
        """``_trunc``."""
        return "_trunc"

    @classmethod
    def form(cls, name: str) -> str:
        """Show the width and the column."""
        return f"{name}(10, column)"

    @classmethod
    def from_sql(cls, name: str, literals: Sequence[object], num_columns: int) -> Transform:
        """Take one whole number and one column."""
        width = cls.size_of(name, literals)
        if num_columns > 1:
            raise cls.invalid_call(name, f"{num_columns} columns", "one column")
        return cls(width)

    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the derived DataFusion expression."""
        if is_text(plain_type(source_types[0])):
            return f"left(col0, {self.width})"
        return f"col0 - (col0 % {self.width})"

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give the type of the source."""
        (source_type,) = source_types
        data_type = plain_type(source_type)
        types = pa.types
        if not (
            is_text(data_type)
            or types.is_integer(data_type)
            or types.is_decimal(data_type)
            or types.is_null(data_type)
        ):
            raise TransformOnWrongType(
                transform=f"truncate({self.width}, …)",
                type=data_type,
                allowed="strings, integers and decimals",
            )
        return data_type

    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Truncate every row."""
        (source,) = sources
        data_type = self.result_type([source.type])
        array = plain_array(source)
        if pa.types.is_null(data_type):
            return array
        if is_text(data_type):
            wide = array.cast(pa.large_string())
            return pc.utf8_slice_codeunits(wide, 0, self.width).cast(data_type)
        if pa.types.is_decimal(data_type):
            return self._truncate_decimals(array)
        numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
        wide_numbers = numbers if pa.types.is_uint64(data_type) else numbers.astype(np.int64)
        width = wide_numbers.dtype.type(self.width)
        return with_nulls_of(wide_numbers - np.fmod(wide_numbers, width), array, data_type)

    def _truncate_decimals(self, array: pa.Array) -> pa.Array:
        data_type = array.type
        unscaled_width = self.width * 10 ** max(data_type.scale, 0)
        if data_type.precision <= INT64_DIGITS:
            low = low_halves(array.cast(pa.decimal128(data_type.precision, data_type.scale)))
            is_wider = unscaled_width >= 10**INT64_DIGITS
            kept = np.zeros_like(low) if is_wider else low - np.fmod(low, np.int64(unscaled_width))
            return _decimals(kept, array)
        # more than 18 digits: exact arithmetic on whole numbers of any size
        exact = [
            None if value is None else _truncated(value, self.width) for value in array.to_pylist()
        ]
        return pa.array(exact, type=data_type)

    def project_values(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Project equality, ranges and prefixes: truncation never decreases."""
        if is_text(plain_type(source_type)):
            return self._project_text(comparison, column, plain_type(source_type))
        return project_monotone(self, comparison, column, source_type)

    def _project_text(
        self, comparison: Comparison, column: exp.Column, data_type: pa.DataType
    ) -> exp.Expression | None:
        """Project a comparison of strings; a text shorter than W is alone in its partition."""
        operator, literals = comparison.operator, comparison.literals
        if operator in (Operator.EQUAL, Operator.IN):
            return one_of_values(column, self.apply([from_scalars(literals, data_type)]))
        if operator in (Operator.NOT_EQUAL, Operator.NOT_IN):
            alone = [literal for literal in literals if len(literal.as_py()) < self.width]
            return negation(one_of(column, alone)) if alone else None
        length = len(comparison.literal.as_py())
        image = self.value_of(comparison.literal, data_type)
        match operator:
            case Operator.LESS:
                kept = Operator.LESS if length <= self.width else Operator.LESS_OR_EQUAL
            case Operator.GREATER:
                kept = Operator.GREATER if length < self.width else Operator.GREATER_OR_EQUAL
            case Operator.STARTS_WITH:
                kept = Operator.STARTS_WITH if length < self.width else Operator.EQUAL
            case Operator.NOT_STARTS_WITH if length > self.width:
                return None
            case Operator.NOT_STARTS_WITH:
                kept = Operator.NOT_STARTS_WITH if length < self.width else Operator.NOT_EQUAL
            case _:
                kept = operator
        return condition(Comparison(kept, (image,)), column)

    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give the one-column function with the width in its name."""
        del source_types
        return f"truncate_{self.width}"

    def reduction_to(self, other: Transform, source_type: pa.DataType) -> bool:
        """Whether the other's prefix is no longer, or its width a multiple of this one's."""
        if not isinstance(other, Truncate):
            return False
        if is_text(plain_type(source_type)):
            return other.width <= self.width
        return other.width % self.width == 0

    def reduce(self, values: pa.Array, other: Transform, source_type: pa.DataType) -> pa.Array:
        """Truncate the truncated values again."""
        del source_type
        return other.apply([values])

    def coarser_of_both(self, other: Transform, source_type: pa.DataType) -> Transform | None:
        """Give the shorter prefix, or the least common multiple of the widths."""
        if not isinstance(other, Truncate):
            return Transform.coarser_of_both(self, other, source_type)
        if is_text(plain_type(source_type)):
            return Truncate(min(self.width, other.width))
        width = math.lcm(self.width, other.width)
        return Truncate(width) if width <= MAX_WIDTH else None

    def replaced_call(
        self,
        tree: exp.Expr,
        sources: Sequence[exp.Expression],
        source_types: Sequence[pa.DataType],
        value: exp.Expr,
    ) -> exp.Expr:
        """Take the first characters of texts from the prefix: ``left(name, 2)``."""
        if is_text(source_types[0]):
            for part in tree.find_all(exp.Substring):
                if part.this == sources[0] and _is_start(part, self.width):
                    part.set("this", value.copy())
        return tree


def _is_start(part: exp.Substring, width: int) -> bool:
    """Whether a part of a text is its first characters, and no more than so many."""
    start, length = part.args.get("start"), part.args.get("length")
    if start is None or length is None or start.sql(dialect=DataFusion) != _FIRST:
        return False
    literal = length.find(exp.Literal)
    count = length.this if isinstance(length, exp.Cast) else length
    return count is literal and literal.is_int and 0 <= int(literal.name) <= width


def _truncated(value: Decimal, width: int) -> Decimal:
    """Take the remainder off, towards zero; Decimal's own subtraction rounds to 28 digits."""
    sign, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    unscaled = int("".join(map(str, digits))) * 10 ** max(int(exponent), 0)
    kept = unscaled - unscaled % (width * 10**scale)
    return Decimal((sign, tuple(map(int, str(kept))), -scale))


def _decimals(unscaled: np.ndarray[tuple[int], np.dtype[np.int64]], source: pa.Array) -> pa.Array:
    """Give decimals of unscaled values, NULL where the source is NULL."""
    words = np.empty(2 * len(unscaled), dtype=np.int64)
    words[0::2] = unscaled
    words[1::2] = unscaled >> np.int64(63)
    narrow = pa.decimal128(source.type.precision, source.type.scale)
    validity = None
    if source.null_count:
        validity = pa.array(source.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    buffers = [validity, pa.py_buffer(words.tobytes())]
    return pa.Array.from_buffers(narrow, len(unscaled), buffers).cast(source.type)
