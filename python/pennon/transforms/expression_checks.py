"""The format's six requirements on a partition expression, checked when a field is made.

| requirement | how it is found out |
|---|---|
| an expression over its columns | DataFusion plans one projection, of one row, and computes it |
| deterministic, stateless | it needs no function that DataFusion reports as not immutable |
| type-promotion resistant | equal values as each numeric type give equal partition values |
| column removal resistant | it can be evaluated with each column NULL |
| NULL safe | it can be evaluated with all columns NULL |
| consistent with its result type | the type that DataFusion finds is the declared one |

Specs that others wrote are read without these checks: their partitions hold recorded values.

Spec: "Partition Expression".
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import PartitionExpressionFailed, PartitionExpressionRejected
from pennon.transforms.evaluation import plain_type, probes, versions
from pennon.transforms.expression import Expression, qualifies_rows, select, session_over

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import datafusion

    from pennon.transforms.transform import Transform

__all__ = ["check_constant", "check_expression"]

_IS_EXPRESSION = "one DataFusion expression over its columns"
_IS_CONSTANT = "deterministic and stateless"
_IS_PROMOTABLE = "type-promotion resistant"
_IS_REMOVABLE = "column removal resistant"
_IS_NULL_SAFE = "NULL safe"
_IS_TYPED = "consistent with its result type"

# What DataFusion calls immutable, and another version or client of it answers otherwise.
_OF_ENGINE = ("arrow_typeof", "version")
_OTHER_COLUMNS = 5
_SMALL = 1_000
_TINY = 100
_OF_ANY_FORM = (pa.utf8(), pa.large_utf8(), pa.binary(), pa.large_binary())
_NUMBERS = (int, float, Decimal)


@dataclass(frozen=True, slots=True)
class _Failure:
    """What DataFusion says instead of a value."""

    reason: str


_Row = tuple[object, ...]
_Value = object | _Failure


def check_expression(transform: Transform, source_types: Sequence[pa.DataType]) -> None:
    """Check an expression against the format's requirements; other transforms meet them.

    Args:
        transform: The transform; an expression with its declared type, or None for the natural one.
        source_types: Types of ``col0``, ``col1``, ….

    Raises:
        PartitionExpressionRejected: Names the requirement that failed, and the input.

    Example:
        >>> check_expression(Expression("lower(col0)"), [pa.string()])
        >>> try:
        ...     check_expression(Expression("now()"), [pa.string()])
        ... except PartitionExpressionRejected as error:
        ...     print(error.parameters["requirement"])
        deterministic and stateless

    Spec: "Partition Expression".
    """
    if isinstance(transform, Expression):
        _Check(transform, tuple(plain_type(data_type) for data_type in source_types)).run()


@functools.lru_cache(maxsize=1024)
def check_constant(transform: Transform, source_types: tuple[pa.DataType, ...]) -> None:
    """Check what makes an expression of another writer unfit for pruning, without probing it.

    Args:
        transform: The transform; all but expressions are fit.
        source_types: Types of ``col0``, ``col1``, ….

    Raises:
        PartitionExpressionRejected: It looks at more than its row, or may change between calls.

    Spec: "Partition Expression".
    """
    if not isinstance(transform, Expression):
        return
    check = _Check(transform, tuple(plain_type(data_type) for data_type in source_types))
    check.is_one_projection()
    check.has_immutable_functions()


@dataclass(frozen=True, slots=True)
class _Check:
    expression: Expression
    types: tuple[pa.DataType, ...]
    largest: int | None = None
    """The largest number to probe with; None for no bound."""

    def run(self) -> None:
        """Check from the cheapest to the dearest, so that the plainest reason is given."""
        self.is_one_projection()
        self.has_immutable_functions()
        self._has_its_result_type()
        bounded = replace(self, largest=_SMALL) if self._grows_with_a_number() else self
        bounded.probe()

    def probe(self) -> None:
        """Check what only values show."""
        self._has_a_value()
        self._bears_nulls()
        for position in range(len(self.types)):
            self._bears_promotion_of(position)

    def _rejected(self, requirement: str, reason: str) -> PartitionExpressionRejected:
        return PartitionExpressionRejected(
            expression=self.expression.expression_sql,
            types=", ".join(map(str, self.types)),
            requirement=requirement,
            reason=reason,
        )

    def is_one_projection(self) -> None:
        """Check that it is one expression over the columns of one row."""
        try:
            frame = self._planned(lambda _: None)
        except PartitionExpressionFailed as error:
            reason = f"DataFusion says {error.parameters['reason']}"
            raise self._rejected(_IS_EXPRESSION, reason) from error
        if len(frame.schema()) != 1:
            raise self._rejected(_IS_EXPRESSION, f"it is {len(frame.schema())} expressions")
        if qualifies_rows(self.expression.expression_sql):
            raise self._rejected(_IS_EXPRESSION, "its columns are col0, col1, … without a table")
        plan = frame.logical_plan()
        nodes = [line.strip() for line in plan.display_indent().splitlines()]
        if "Subquery:" in nodes:
            raise self._rejected(_IS_EXPRESSION, "it holds a subquery")
        node = plan
        while inputs := node.inputs():
            name = node.display().split(":")[0].split()[0]
            if name != "Projection":
                raise self._rejected(_IS_EXPRESSION, f"DataFusion plans it as {name} of many rows")
            node = inputs[0]

    def has_immutable_functions(self) -> None:
        """Check that no function may give something else at the next call."""
        names = _not_immutable()
        if self._can_plan_without(names):
            return
        volatile = [name for name in names if not self._can_plan_without((name,))]
        reason = f"the value of {', '.join(volatile) or 'a function'} may change from call to call"
        raise self._rejected(_IS_CONSTANT, reason)

    def _can_plan_without(self, names: Sequence[str]) -> bool:
        def remove(context: datafusion.SessionContext) -> None:
            for name in names:
                context.deregister_udf(name)

        try:
            self._planned(remove)
        except PartitionExpressionFailed:
            return False
        return True

    def _planned(
        self, prepare: Callable[[datafusion.SessionContext], None]
    ) -> datafusion.DataFrame:
        arrays = [pa.array([], data_type) for data_type in self.types]
        context = session_over(arrays)
        prepare(context)
        with self.expression.refusals(arrays):
            return select(context, self.expression.expression_sql)

    def _has_a_value(self) -> None:
        """Check that it can be evaluated at all: ``col0 / 0`` takes NULL and no number.

        Texts are not tried: one that is cast to a number fails for all but those of its form.
        """
        if any(data_type in _OF_ANY_FORM for data_type in self.types):
            return
        values = self._values(self._rows_around((0, self._probes(self.types[0]))), self.types)
        failures = [value for value in values if isinstance(value, _Failure)]
        if failures and len(failures) == len(values):
            reason = f"for every value that was tried DataFusion says {failures[0].reason}"
            raise self._rejected(_IS_EXPRESSION, reason)

    def _bears_nulls(self) -> None:
        nothing: _Row = (None,) * len(self.types)
        for value in self._values([nothing], self.types):
            if isinstance(value, _Failure):
                reason = f"with NULL in every column DataFusion says {value.reason}"
                raise self._rejected(_IS_NULL_SAFE, reason)
        rows = self._rows_around(None)
        with_nulls = self._values(rows, self.types)
        for position in range(len(self.types)):
            without = [(*row[:position], None, *row[position + 1 :]) for row in rows]
            for row, before, after in zip(
                rows, with_nulls, self._values(without, self.types), strict=True
            ):
                if isinstance(after, _Failure) and not isinstance(before, _Failure):
                    others = _spelled(row, nothing_at=position)
                    reason = f"for {others} DataFusion says {after.reason}"
                    raise self._rejected(_IS_REMOVABLE, reason)

    def _has_its_result_type(self) -> None:
        try:
            natural = Expression(self.expression.expression_sql).natural_type(self.types)
        except PartitionExpressionFailed as error:
            reason = f"DataFusion says {error.parameters['reason']}"
            raise self._rejected(_IS_EXPRESSION, reason) from error
        declared = self.expression.declared_type
        kinds = (pa.types.is_nested, pa.types.is_null, pa.types.is_interval)
        if any(is_kind(natural) for is_kind in kinds):
            raise self._rejected(_IS_TYPED, f"its type {natural} is not that of one plain value")
        if declared is not None and not _is_as_declared(natural, declared):
            raise self._rejected(_IS_TYPED, f"its type is {natural}, but {declared} is declared")

    def _grows_with_a_number(self) -> bool:
        """Whether the text is as long as a number says: repeat of 2**31 is not to be tried."""
        numbers = [at for at, data_type in enumerate(self.types) if pa.types.is_integer(data_type)]
        plain = tuple((probes(data_type) or [None])[0] for data_type in self.types)
        held = [_SMALL if _SMALL in probes(self.types[at]) else _TINY for at in numbers]
        rows = [
            (*plain[:at], most, *plain[at + 1 :]) for at, most in zip(numbers, held, strict=True)
        ]
        values = self._values(rows, self.types)
        return any(isinstance(value, str | bytes) and len(value) >= _TINY for value in values)

    def _probes(self, data_type: pa.DataType) -> list[object]:
        values = probes(data_type)
        if self.largest is None:
            return values
        return [
            value for value in values if not isinstance(value, int) or abs(value) <= self.largest
        ]

    def _bears_promotion_of(self, position: int) -> None:
        """Compare every numeric type of one column with the widest, on the values both hold."""
        own, *others = versions(self.types[position])
        if pa.types.is_integer(own):
            self._compare(position, own, pa.float64())
        for other in others:
            self._compare(position, own, other)
        if len(others) > 1:
            self._compare(position, others[0], others[-1])

    def _compare(self, position: int, first: pa.DataType, second: pa.DataType) -> None:
        to_float = pa.types.is_integer(first) and pa.types.is_floating(second)
        both = self._probes(first)
        if not (to_float or pa.types.is_decimal(first)):
            held = set(map(str, probes(second)))
            both = [value for value in both if str(value) in held]
        if to_float:
            both = [number for number in both if isinstance(number, int) and abs(number) <= _SMALL]
        rows = self._rows_around((position, both))
        types = [
            (*self.types[:position], data_type, *self.types[position + 1 :])
            for data_type in (first, second)
        ]
        if to_float and isinstance(self._values(rows[:1], types[1])[0], _Failure):
            return  # a hash, a bit, a position: not for real numbers
        results = [self._values(rows, kinds) for kinds in types]
        for row, one, other in zip(rows, *results, strict=True):
            # whole numbers become real ones in no column; but 5 / 2 shows what their type decides
            if to_float and not (isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS)):
                continue
            if not _is_same(one, other):
                reason = (
                    f"for {_spelled(row)} it gives {_shown(one)} where col{position} is "
                    f"{first}, and {_shown(other)} where it is {second}"
                )
                raise self._rejected(_IS_PROMOTABLE, reason)

    def _rows_around(self, probed: tuple[int, Sequence[object]] | None) -> list[_Row]:
        """Give probe rows; all values of the one probed column meet some of every other."""
        choices = [self._probes(data_type)[:_OTHER_COLUMNS] or [None] for data_type in self.types]
        rows = [
            tuple(values[turn % len(values)] for values in choices)
            for turn in range(_OTHER_COLUMNS)
        ]
        if probed is None:
            return rows
        position, values = probed
        several = rows if len(self.types) > 1 else rows[:1]
        return [
            (*row[:position], value, *row[position + 1 :]) for value in values for row in several
        ]

    def _values(self, rows: Sequence[_Row], types: Sequence[pa.DataType]) -> list[_Value]:
        """Evaluate rows; where DataFusion refuses, halve until single rows are to blame."""
        if not rows:
            return []
        arrays = [
            pa.array(column, data_type)
            for column, data_type in zip(zip(*rows, strict=True), types, strict=True)
        ]
        try:
            return list(self.expression.natural_values(arrays).to_pylist())
        except PartitionExpressionFailed as error:
            if len(rows) == 1:
                return [_Failure(str(error.parameters["reason"]))]
            middle = len(rows) // 2
            return self._values(rows[:middle], types) + self._values(rows[middle:], types)


@functools.cache
def _not_immutable() -> tuple[str, ...]:
    """Ask DataFusion which of its functions may change from call to call."""
    frame = session_over([pa.array([0])]).sql(
        "SELECT DISTINCT routine_name FROM information_schema.routines "
        "WHERE NOT is_deterministic AND function_type = 'SCALAR' ORDER BY routine_name"
    )
    return (*frame.to_pydict()["routine_name"], *_OF_ENGINE)


def _is_as_declared(natural: pa.DataType, declared: pa.DataType) -> bool:
    """Whether the types are the same up to integer width and views."""
    if natural == declared:
        return True
    alike = (
        pa.types.is_integer,
        lambda data_type: data_type in (pa.utf8(), pa.large_utf8(), pa.string_view()),
        lambda data_type: data_type in (pa.binary(), pa.large_binary(), pa.binary_view()),
    )
    return any(is_kind(natural) and is_kind(declared) for is_kind in alike)


def _is_same(one: _Value, other: _Value) -> bool:
    if isinstance(one, _Failure) or isinstance(other, _Failure):
        return isinstance(one, _Failure) and isinstance(other, _Failure)
    if isinstance(one, float) and isinstance(other, float) and one != one:  # noqa: PLR0124
        return other != other  # noqa: PLR0124
    return bool(one == other)


def _shown(value: _Value) -> str:
    return f"an error ({value.reason})" if isinstance(value, _Failure) else repr(value)


def _spelled(row: _Row, nothing_at: int | None = None) -> str:
    values = ["NULL" if value is None else repr(value) for value in row]
    if nothing_at is not None:
        values[nothing_at] = "NULL"
    return ", ".join(f"col{position} = {value}" for position, value in enumerate(values))
