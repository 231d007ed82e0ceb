"""The interface of a partition transform, and the rules that all of them keep.

NULL rules: unless a transform says otherwise, NULL in gives NULL out, and only NULL gives NULL.
A comparison (``=``, ``<``, ``IN``, …) is never true for NULL, so the partition whose value is
NULL is dropped by every projected condition except that of IS NULL.

Inclusiveness: ``project_inclusive`` may keep a partition without matching rows, but never drops
one with a matching row. ``project_strict`` may miss, but where it is true every row of the
partition satisfies the comparison. Each may decline with None: "keep all", "never known". The
second is the first turned around: where no row can satisfy the negation, all rows that are not
NULL satisfy the comparison. So a transform writes ``project_values`` only.

Nobody outside this package asks which transform one is: what differs between them is a property
or a method here, with the default that is safe for a new one.
"""

from __future__ import annotations

import decimal
import itertools
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa
from sqlglot import exp

from pennon.errors import InternalError, InvalidTransform
from pennon.predicate.condition import (
    Comparison,
    Operator,
    condition,
    is_not_null,
    is_null,
    negation,
    one_of,
)
from pennon.predicate.values.time_units import MILLIS_PER_DAY, of_stored_integer, stored_integer
from pennon.transforms.evaluation import from_scalars, plain_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_ENUMERATED = 1000
"""How many source values are turned into partition values one by one."""


class Transform(ABC):
    """A partition transform: source values in, partition value out.

    Subclasses are frozen dataclasses whose fields are the transform's parameters.

    Spec: "Partition Transform".
    """

    __slots__ = ()

    type: ClassVar[str]
    """The specification's name of the transform."""

    is_identity: ClassVar[bool] = False
    """Whether its value is that of the source column itself."""

    is_level: ClassVar[bool] = False
    """Whether it is a calendar field, which others of its column complete to a point of time."""

    takes_many: ClassVar[bool] = False
    """Whether source columns count together only, so that one comparison alone tells nothing."""

    prunes_by_bound_values: ClassVar[bool] = False
    """Whether ``project_bound`` tells more than the comparisons one by one."""

    keeps_type: ClassVar[bool] = False
    """Whether its values have the type of the source."""

    survives_widening: ClassVar[bool] = False
    """Whether a number has the same value in every wider type of its kind."""

    tells_types_apart: ClassVar[bool] = False
    """Whether equal sources of different types may have different values."""

    has_monotone_values: ClassVar[bool] = False
    """Whether ``monotone_values`` can be asked."""

    @property
    def sql_name(self) -> str:
        """The name that a user types in PARTITIONED BY."""
        return self.type

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """What a user types before the columns."""
        return ()

    @property
    def expression_sql(self) -> str | None:
        """The DataFusion SQL that the format keeps in its place; None for a well-known one."""
        return None

    @property
    def name_suffix(self) -> str:
        """What the generated name of a field ends with."""
        return f"_{self.type}"

    @property
    def buckets(self) -> int | None:
        """Over how many values rows are spread by a hash; None where no hash spreads them."""
        return None

    @property
    def levels(self) -> tuple[Transform, ...]:
        """The transforms of the fields that it is written as, coarse to fine; () for its own."""
        return ()

    @property
    def spark_literals(self) -> tuple[int, ...]:
        """What Spark's function of ``spark_function`` takes before the column."""
        return ()

    @classmethod
    def sql_names(cls) -> tuple[str, ...]:
        """List the names under which SQL calls it."""
        return (cls.type,)

    @classmethod
    def form(cls, name: str) -> str:
        """Show a user how a call is written."""
        return f"{name}(column)"

    @classmethod
    def from_sql(cls, name: str, literals: Sequence[object], num_columns: int) -> Transform:
        """Make it from the arguments of a call with at least one column.

        Raises:
            InvalidTransform: Arguments are missing, too many or out of range.
        """
        if literals or num_columns != 1:
            count = len(literals) + num_columns
            raise cls.invalid_call(name, f"{count} arguments", "one column")
        return cls()

    @classmethod
    def invalid_call(cls, name: str, actual: str, expected: str) -> InvalidTransform:
        """Give the error for a call."""
        return InvalidTransform(
            transform=name, actual=actual, expected=expected, form=cls.form(name)
        )

    @classmethod
    def from_json(cls, obj: Mapping[str, object]) -> Self:
        """Make it from the specification's transform object.

        Raises:
            InvalidTransform: A parameter is missing or out of range.
        """
        del obj
        return cls()

    @classmethod
    def from_message(
        cls, written: Mapping[str, object], read_type: Callable[[object], pa.DataType]
    ) -> Self:
        """Make it from what ``to_message`` gives."""
        del read_type
        return cls.from_json(written)

    def to_json(self) -> dict[str, object]:
        """Give the specification's transform object."""
        return {"type": self.type}

    def to_message(self, write_type: Callable[[pa.DataType], object]) -> dict[str, object]:
        """Give the object of messages between workers, of which some have no place in a spec."""
        del write_type
        return self.to_json()

    @abstractmethod
    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the derived DataFusion expression over ``col0``, ``col1``, ….

        Spec: "Supported Transforms".
        """

    @abstractmethod
    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give the type of the partition value.

        Raises:
            TransformOnWrongType: The transform does not take sources of these types.
        """

    def recorded_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give the type of the values that any writer may have recorded.

        It is ``result_type``, except where other writers take sources that Pennon refuses.
        """
        return self.result_type(source_types)

    @abstractmethod
    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Compute the partition values of rows, in exactly ``result_type``."""

    def monotone_values(self, source: pa.Array) -> pa.Array:
        """Compute values that never decrease with the source, and that tell this transform's.

        A month recurs every year; months since 1970 do not.
        """
        return self.apply([source])

    def from_fields(
        self, values: Sequence[pa.Array], source_types: Sequence[pa.DataType]
    ) -> pa.Array:
        """Give its values from those of the field, or fields, that it is written as."""
        (own,) = values
        data_type = self.result_type(source_types)
        return own if own.type == data_type else own.cast(data_type)

    def sql(self, columns: Sequence[str]) -> str:
        """Spell the transform as a user types it: ``bucket(16, customer_id)``."""
        return f"{self.sql_name}({', '.join([*map(_spelled, self.parameters), *columns])})"

    @abstractmethod
    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give the name of Spark's one-column function; None when Spark cannot express it."""

    def project_values(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give the condition on the values that non-NULL rows with a true comparison can have.

        The condition has to be NULL for NULL; IS [NOT] NULL is not asked here.
        """
        del comparison, column, source_type
        return None

    def project_inclusive(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Rewrite a comparison on the source column into a condition on the partition column.

        Args:
            comparison: Operator and literals, the literals of ``source_type``.
            column: The manifest column, for example ``partition_field_event_day``.
            source_type: Arrow type of the one source column.

        Returns:
            The condition, or None when every partition has to be kept.

        Spec: "Partition Pruning".
        """
        if comparison.operator is Operator.IS_NULL:
            return is_null(column)
        if comparison.operator is Operator.IS_NOT_NULL:
            return is_not_null(column)
        values = self.project_values(comparison, column, source_type)
        return is_not_null(column) if values is None else values

    def project_strict(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give a condition that is true only where every row satisfies the comparison.

        Args:
            comparison: Operator and literals, the literals of ``source_type``.
            column: The manifest column.
            source_type: Arrow type of the one source column.

        Returns:
            The condition, or None when partition values never decide the comparison.
        """
        operator = comparison.operator
        if operator.is_unary:
            return self.project_inclusive(comparison, column, source_type)
        opposite = Comparison(operator.negated, comparison.literals)
        failing = self.project_values(opposite, column, source_type)
        match failing:
            case None:
                return None
            case exp.Boolean():
                return None if failing.this else is_not_null(column)
            case _:
                return negation(failing)

    def project_bound(
        self,
        values: Sequence[Sequence[pa.Scalar]],
        column: exp.Column,
        source_types: Sequence[pa.DataType],
    ) -> exp.Expression | None:
        """Give the inclusive condition for rows whose source columns each have one of some values.

        Args:
            values: Per source column the values of its ``=`` or IN; a NULL scalar for IS NULL.
            column: The manifest column.
            source_types: Arrow types of the source columns.

        Returns:
            The condition, or None when there are more than 1,000 combinations.
        """
        if math.prod(len(choices) for choices in values) > MAX_ENUMERATED:
            return None
        rows = list(itertools.product(*map(_with_both_zeros, values)))
        if not rows:
            return exp.Boolean(this=False)
        columns = list(zip(*rows, strict=True))
        sources = [
            from_scalars(c, data_type) for c, data_type in zip(columns, source_types, strict=True)
        ]
        return one_of_values(column, self.apply(sources))

    def replaced_call(
        self,
        tree: exp.Expr,
        sources: Sequence[exp.Expression],
        source_types: Sequence[pa.DataType],
        value: exp.Expr,
    ) -> exp.Expr:
        """Put the partition value in the place of what computes it in a condition.

        Args:
            tree: A condition as DataFusion computes it; it is changed.
            sources: The source columns as the condition has them.
            source_types: Their types.
            value: What stands for the partition value.

        Returns:
            The condition, with whatever else of it untouched.

        Spec: "Partition Pruning".
        """
        del sources, source_types, value
        return tree

    def reduction_to(self, other: Transform, source_type: pa.DataType) -> bool:
        """Whether the partition value of ``other`` follows from this transform's value alone."""
        del source_type
        return self == other

    def reduce(self, values: pa.Array, other: Transform, source_type: pa.DataType) -> pa.Array:
        """Compute the values of ``other`` from this transform's; ``reduction_to`` was asked."""
        del other, source_type
        return values

    def reduced(self, values: pa.Array, other: Transform, source_type: pa.DataType) -> pa.Array:
        """Compute the values of ``other`` from partition values of this transform.

        NULL stays NULL.

        Args:
            values: Partition values of this transform.
            other: The coarser transform, to which this one must reduce.
            source_type: Type of the source column.
        """
        if self == other:
            return values
        if not self.reduction_to(other, source_type):
            raise InternalError(what=f"{self} was to be reduced to {other}")
        return self.reduce(values, other, source_type)

    def reduced_column(self, other: Transform, column: exp.Column) -> exp.Expression | None:
        """Compute ``other`` from the manifest column; None where no condition can."""
        return column.copy() if self == other else None

    def common_reduction(self, other: Transform, source_type: pa.DataType) -> Transform | None:
        """Find the finest transform that follows from both.

        Args:
            other: A transform of the same column, or of one that is compared with it.
            source_type: Type of the column.

        Returns:
            The transform, or None when there is none.
        """
        return self if self == other else self.coarser_of_both(other, source_type)

    def coarser_of_both(self, other: Transform, source_type: pa.DataType) -> Transform | None:
        """Find the finest transform that follows from both; they are not equal."""
        if self.reduction_to(other, source_type):
            return other
        return self if other.reduction_to(self, source_type) else None

    def of_one_column(self) -> Transform:
        """Give the same function of a single source, in its plainest form."""
        return self

    def of_midnights(self) -> Transform | None:
        """Give what follows from it and is the same of a DATE and of its midnight; None if none."""
        return None

    def value_of(self, literal: pa.Scalar, source_type: pa.DataType) -> pa.Scalar:
        """Compute the partition value of one source value."""
        return self.apply([from_scalars([literal], plain_type(source_type))])[0]


class MultiColumnTransform(Transform):
    """A transform whose sources count together only, so that Spark has no function for it.

    One comparison alone tells nothing of its values: `project_bound` does, where all its sources
    are bound.
    """

    __slots__ = ()

    takes_many = True
    prunes_by_bound_values = True

    def project_inclusive(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give None: every partition has to be kept."""
        del comparison, column, source_type
        return None

    def project_strict(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give None: the partition value never decides the comparison."""
        del comparison, column, source_type
        return None

    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give None: Spark's keys have one column, and functions of its own."""
        del source_types
        return None


class SizedTransform(Transform):
    """A transform with one whole number, its only field."""

    __slots__ = ()

    size_name: ClassVar[str]
    """The specification's name of the number."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number."""

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The number."""
        return (self.size,)

    @classmethod
    def of_size(cls, size: int) -> Self:
        """Make it with a number.

        Raises:
            InvalidTransform: The number is out of range.
        """
        return cls(size)  # type: ignore[call-arg] # the field of each

    @classmethod
    def from_sql(cls, name: str, literals: Sequence[object], num_columns: int) -> Transform:
        """Take one whole number, and the columns."""
        del num_columns
        return cls.of_size(cls.size_of(name, literals))

    @classmethod
    def size_of(cls, name: str, literals: Sequence[object]) -> int:
        """Find the one whole number among the literals of a call."""
        match literals:
            case [int() as size] if not isinstance(size, bool):
                return size
        raise cls.invalid_call(name, listed(literals), "one whole number")

    @classmethod
    def from_json(cls, obj: Mapping[str, object]) -> Self:
        """Read the number."""
        size = obj.get(cls.size_name)
        if not isinstance(size, int) or isinstance(size, bool):
            raise InvalidTransform(
                transform=cls.type,
                actual=f"{cls.size_name} = {size!r}",
                expected="a whole number",
                form=f'{{"type": "{cls.type}", "{cls.size_name}": 16}}',
            )
        return cls.of_size(size)

    def to_json(self) -> dict[str, object]:
        """Give the specification's transform object."""
        return {"type": self.type, self.size_name: self.size}


def one_of_values(column: exp.Column, values: pa.Array) -> exp.Expression:
    """Write membership of the partition column in computed values, NULL among them."""
    distinct = [value for value in values.unique() if value.is_valid]
    if values.null_count == 0:
        return one_of(column, distinct)
    if not distinct:
        return is_null(column)
    return exp.Paren(this=exp.Or(this=one_of(column, distinct), expression=is_null(column)))


def _with_both_zeros(choices: Sequence[pa.Scalar]) -> list[pa.Scalar]:
    """Add -0.0 to 0.0: they are equal to a comparison but not to every expression."""
    both = list(choices)
    for scalar in choices:
        if pa.types.is_floating(scalar.type) and scalar.is_valid and scalar.as_py() == 0:
            both += [pa.scalar(0.0, scalar.type), pa.scalar(-0.0, scalar.type)]
    return both


def listed(literals: Sequence[object]) -> str:
    """Spell the literals of a call for an error."""
    return ", ".join(map(repr, literals)) or "no literal"


def _spelled(parameter: int | str) -> str:
    if isinstance(parameter, str):
        return exp.Literal.string(parameter).sql(dialect="spark")
    return str(parameter)


# Projects comparisons through a monotone transform.
#
# ``c < 25`` is ``c <= 24`` for integers, so its rows lie in partitions up to that of 24. The step
# to the neighbouring value makes the bounds as narrow as they can be. NULL rules: the conditions
# are NULL for NULL.

_WIDE = decimal.Context(prec=100)


def project_monotone(
    transform: Transform, comparison: Comparison, column: exp.Column, source_type: pa.DataType
) -> exp.Expression | None:
    """Give the condition on the partition values of rows that satisfy a comparison.

    Args:
        transform: A transform for which a <= b gives transform(a) <= transform(b).
        comparison: Operator and literals.
        column: The manifest column.
        source_type: Integer, decimal, date or timestamp.
    """
    data_type = plain_type(source_type)
    match comparison.operator:
        case Operator.EQUAL | Operator.IN:
            images = transform.apply([from_scalars(comparison.literals, data_type)])
            return one_of_values(column, images)
        case Operator.LESS | Operator.LESS_OR_EQUAL:
            step = -1 if comparison.operator is Operator.LESS else 0
            return _bounded(transform, comparison.literal, step, Operator.LESS_OR_EQUAL, column)
        case Operator.GREATER | Operator.GREATER_OR_EQUAL:
            step = 1 if comparison.operator is Operator.GREATER else 0
            return _bounded(transform, comparison.literal, step, Operator.GREATER_OR_EQUAL, column)
        case Operator.NOT_EQUAL | Operator.NOT_IN:
            # only a partition that holds one value cannot have another one
            alone = [s for s in comparison.literals if _is_alone(transform, s, data_type)]
            values = [transform.value_of(scalar, data_type) for scalar in alone]
            return negation(one_of(column, values)) if values else None
        case _:
            return None


def _bounded(
    transform: Transform, literal: pa.Scalar, step: int, operator: Operator, column: exp.Column
) -> exp.Expression:
    bound = neighbour(literal, step)
    if bound is None:  # nothing lies beyond the last value of the type
        return exp.Boolean(this=False)
    return condition(Comparison(operator, (transform.value_of(bound, literal.type),)), column)


def _is_alone(transform: Transform, literal: pa.Scalar, data_type: pa.DataType) -> bool:
    image = transform.value_of(literal, data_type)
    beside = [neighbour(literal, -1), neighbour(literal, 1)]
    return all(n is None or transform.value_of(n, data_type) != image for n in beside)


def neighbour(literal: pa.Scalar, step: int) -> pa.Scalar | None:
    """Give the next greater (step 1) or smaller (step -1) value; None beyond the last one."""
    data_type = literal.type
    if pa.types.is_decimal(data_type):
        unscaled = int(literal.as_py().scaleb(data_type.scale, _WIDE)) + step
        if abs(unscaled) >= 10**data_type.precision:
            return None
        return pa.scalar(_WIDE.create_decimal(unscaled).scaleb(-data_type.scale, _WIDE), data_type)
    if pa.types.is_date64(data_type):
        step *= MILLIS_PER_DAY
    return of_stored_integer(stored_integer(literal) + step, data_type)
