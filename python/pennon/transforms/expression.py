"""expression: any DataFusion SQL over ``col0``, ``col1``, …, evaluated by DataFusion.

NULL rules: what the expression says. ``coalesce(col0, 'x')`` is not NULL for NULL, so conditions
come from evaluating it with the bound values, NULL among them (``project_bound``), and one
comparison alone projects to nothing.

Spec: "Partition Expression".
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, TokenError

from pennon.errors import InternalError, PartitionExpressionFailed
from pennon.predicate.dialect import DataFusion
from pennon.predicate.values.time_units import is_text
from pennon.transforms.evaluation import DataFusionErrors, plain_array, plain_type
from pennon.transforms.murmur3 import murmur3_multi
from pennon.transforms.transform import MultiColumnTransform, Transform, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datafusion import DataFrame, SessionContext

_HASHES = ("murmur3", "murmur3_multi")
_ROWS = "source_rows"
_PARSE_ERRORS = (ParseError, TokenError)


@dataclass(frozen=True, slots=True)
class Expression(MultiColumnTransform):
    """Partition by the value of a DataFusion SQL expression.

    Args:
        expression_sql: SQL over ``col0``, ``col1``, ….
        declared_type: The partition field's ``result_type``; None for the natural type.

    Example:
        >>> Expression("lower(col0)").apply([pa.array(["Ab"])]).to_pylist()
        ['ab']

    Spec: "Partition Expression".
    """

    type: ClassVar[str] = "expression"
    tells_types_apart: ClassVar[bool] = True
    expression_sql: str = field(compare=False)
    declared_type: pa.DataType | None = None
    _tokens: tuple[str, ...] = field(init=False, repr=False)
    """What is compared: blanks, comments and the case of bare words do not matter."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tokens", _folded_tokens(self.expression_sql))

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The SQL."""
        return (self.expression_sql,)

    @property
    def name_suffix(self) -> str:
        """``_expr``."""
        return "_expr"

    @classmethod
    def form(cls, name: str) -> str:
        """Show an expression and a column."""
        return f"{name}('lower(col0)', column)"

    @classmethod
    def from_sql(cls, name: str, literals: Sequence[object], num_columns: int) -> Transform:
        """Take one string, and the columns."""
        del num_columns
        match literals:
            case [str() as sql]:
                return cls(sql)
        raise cls.invalid_call(name, listed(literals), "one string of DataFusion SQL")

    @classmethod
    def from_message(
        cls, written: Mapping[str, object], read_type: Callable[[object], pa.DataType]
    ) -> Expression:
        """Read the SQL and its type."""
        result = written["result_type"]
        return cls(str(written["expression"]), None if result is None else read_type(result))

    def to_message(self, write_type: Callable[[pa.DataType], object]) -> dict[str, object]:
        """Write the SQL and its type."""
        result = None if self.declared_type is None else write_type(self.declared_type)
        return {"type": self.type, "expression": self.expression_sql, "result_type": result}

    def to_json(self) -> dict[str, object]:
        """Refuse: the specification keeps expressions beside transforms."""
        raise InternalError(what="an expression was to be written as a transform object")

    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the expression itself."""
        del source_types
        return self.expression_sql

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give the declared type, or what DataFusion finds."""
        if self.declared_type is not None:
            return self.declared_type
        return self.natural_type(source_types)

    def natural_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give the type that DataFusion finds, string views as strings."""
        empty = [pa.array([], type=plain_type(data_type)) for data_type in source_types]
        data_type = plain_type(self.natural_values(empty).type)
        if pa.types.is_string_view(data_type):
            return pa.string()
        return pa.binary() if pa.types.is_binary_view(data_type) else data_type

    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Evaluate the expression for every row and cast to the result type.

        Raises:
            PartitionExpressionFailed: DataFusion refused, or a value does not fit the type.
        """
        arrays = [plain_array(source) for source in sources]
        data_type = self.result_type([array.type for array in arrays])
        values = plain_array(self.natural_values(arrays))
        try:
            return values if values.type.equals(data_type) else values.cast(data_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self.failure(arrays, error) from error

    def natural_values(self, arrays: Sequence[pa.Array]) -> pa.ChunkedArray:
        """Evaluate the expression for every row, in the type that DataFusion finds.

        Raises:
            PartitionExpressionFailed: DataFusion refused.
        """
        context = session_over(arrays)
        with self.refusals(arrays):
            frame = select(context, self.expression_sql)
            data_type = frame.schema().field(0).type
            batches = frame.collect()
        return pa.chunked_array([batch.column(0) for batch in batches], type=data_type)

    def refusals(self, arrays: Sequence[pa.Array]) -> AbstractContextManager[None]:
        """Turn what DataFusion raises over ``arrays`` into PartitionExpressionFailed."""
        return DataFusionErrors(partial(self.failure, tuple(arrays)), _PARSE_ERRORS)

    def failure(
        self, arrays: Sequence[pa.Array], reason: BaseException
    ) -> PartitionExpressionFailed:
        """Give the error for values of ``arrays``, with the reason's first line."""
        return PartitionExpressionFailed(
            expression=self.expression_sql,
            types=", ".join(str(array.type) for array in arrays),
            reason=str(reason).split("\n")[0].strip().rstrip("."),
        )

    def replaced_call(
        self,
        tree: exp.Expr,
        sources: Sequence[exp.Expression],
        source_types: Sequence[pa.DataType],
        value: exp.Expr,
    ) -> exp.Expr:
        """Find the SQL in the condition: ``lower(region)``.

        Of texts only: what has another natural type than its field, or a zero of two signs, is not
        the same value everywhere.

        Example:
            >>> tree = parse_one("lower(`region`) = 'eu'", dialect=DataFusion)
            >>> region, value = exp.column("region", quoted=True), exp.column("p")
            >>> lower = Expression("lower(col0)", pa.string())
            >>> print(lower.replaced_call(tree, [region], [pa.string()], value).sql())
            p = 'eu'
        """
        del source_types
        if self.declared_type is None or not is_text(self.declared_type):
            return tree
        named = {f"col{at}": source for at, source in enumerate(sources)}
        call = parse_one(self.expression_sql, dialect=DataFusion).transform(
            lambda node: (
                named[node.name] if isinstance(node, exp.Column) and node.name in named else node
            )
        )
        text = call.sql(dialect=DataFusion)
        return tree.transform(
            lambda node: (
                value.copy()
                if isinstance(node, type(call)) and node.sql(dialect=DataFusion) == text
                else node
            ),
            copy=False,
        )


@lru_cache(maxsize=256)
def _folded_tokens(sql: str) -> tuple[str, ...]:
    """Split an expression into its words, bare ones in lower case; whole where that is unsure."""
    if "$" in sql:  # a quote that the tokenizer does not know
        return (sql,)
    try:
        tokens = DataFusion().tokenize(sql)
    except TokenError:
        return (sql,)
    words = [sql[token.start : token.end + 1] for token in tokens]
    return tuple(word if set(word) & set("'\"`") else word.lower() for word in words)


def select(context: SessionContext, sql: str) -> DataFrame:
    """Plan an expression over the rows of a session, the hash functions included."""
    hashed = _with_hash_functions(context, sql)
    # brackets and a line of its own: neither a comma nor a comment reaches the query around it
    return context.sql(f"SELECT ({hashed}\n) AS partition_value FROM {_ROWS}")  # noqa: S608


def qualifies_rows(sql: str) -> bool:
    """Whether a column is named with the table that holds the rows here, and nowhere else."""
    try:
        tree = parse_one(sql, dialect=DataFusion)
    except _PARSE_ERRORS:
        return False
    return any(column.table.lower() == _ROWS for column in tree.find_all(exp.Column))


def session_over(arrays: Sequence[pa.Array]) -> SessionContext:
    """Open a session in UTC that keeps the order of the rows."""
    from datafusion import SessionConfig, SessionContext  # noqa: PLC0415 - a quarter of a second

    settings = SessionConfig().set("datafusion.execution.target_partitions", "1")
    settings = settings.with_information_schema(enabled=True)
    context = SessionContext(settings.set("datafusion.execution.time_zone", "+00:00"))
    names = [f"col{position}" for position in range(len(arrays))]
    batch = pa.RecordBatch.from_arrays(list(arrays), names=names)
    context.register_record_batches(_ROWS, [[batch]])
    return context


def _with_hash_functions(context: SessionContext, sql: str) -> str:
    """Register the hash functions for the types that the expression gives them."""
    if not any(name in sql.lower() for name in _HASHES):
        return sql
    from datafusion import udf  # noqa: PLC0415 - as above

    tree = parse_one(sql, dialect=DataFusion)
    calls = [call for call in tree.find_all(exp.Anonymous) if call.name.lower() in _HASHES]
    # inner calls come last in the walk, and have to be known before the outer ones are typed
    for number, call in enumerate(reversed(calls)):
        arguments = ", ".join(a.sql(dialect=DataFusion) for a in call.expressions)
        kinds = list(context.sql(f"SELECT {arguments} FROM {_ROWS}").schema().types)  # noqa: S608
        name = f"{call.name.lower()}_{number}"
        hash_rows = udf(
            lambda *columns: murmur3_multi(columns), kinds, pa.int32(), "immutable", name
        )
        context.register_udf(hash_rows)
        call.set("this", name)
    return str(tree.sql(dialect=DataFusion))
