"""Vectors: the column that is searched, the queries, and exact distances between them.

Distances are Lance's: ``l2`` squared, ``cosine`` 1 - cos, ``dot`` 1 - the product, ``hamming`` the
number of bits that differ.

NULL rule: a row qualifies only where its vector, all elements of it and its distance are known:
NULL vectors, vectors with a NULL element and distances that are no numbers never do. Lance takes a
NULL element for 0, so what it finds is looked at again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import (
    NotVectorColumn,
    QueryDimensionMismatch,
    QueryVectorRefused,
    SearchOptionRefused,
    UnknownColumn,
)
from pennon.planning.binding.source_columns import resolve_column
from pennon.spec.column_names import column_path

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Metric",
    "distances",
    "is_vector",
    "known_vectors",
    "query_vectors",
    "searched_column",
    "vector_column",
]

_DIMENSIONS_OF_BATCH: Final = 2
_CHUNK_VALUES: Final = 1 << 20


class Metric(StrEnum):
    """What tells how far two vectors are from each other."""

    L2 = "l2"
    COSINE = "cosine"
    DOT = "dot"
    HAMMING = "hamming"

    @classmethod
    def of(cls, name: str | None, column: pa.Field, table: str) -> Metric:
        """Read a metric's name.

        Args:
            name: In letters of either case; None for the usual one of such vectors.
            column: The vectors.
            table: The table, for errors.

        Raises:
            SearchOptionRefused: There is no such metric, or it is none of such vectors.
        """
        is_bytes = column.type.value_type == pa.uint8()
        if name is None:
            return cls.HAMMING if is_bytes else cls.L2
        known = [str(one) for one in cls if is_bytes or one is not cls.HAMMING]
        if name.lower() not in known:
            raise SearchOptionRefused(
                table=table,
                option="metric",
                value=name,
                why=f"which is none of vectors of {column.type.value_type}",
                expected=", ".join(known),
            )
        return cls(name.lower())

    def is_lances(self, column: pa.Field) -> bool:
        """Whether Lance computes it of such vectors."""
        element = column.type.value_type
        is_of_bytes = self is Metric.HAMMING
        return bool(element == pa.uint8() if is_of_bytes else pa.types.is_floating(element))


def is_vector(data_type: pa.DataType) -> bool:
    """Whether values of a type can be searched: lists of one size, of numbers.

    Example:
        >>> is_vector(pa.list_(pa.float32(), 4)), is_vector(pa.list_(pa.float32()))
        (True, False)
    """
    if not pa.types.is_fixed_size_list(data_type) or not data_type.list_size:
        return False
    element = data_type.value_type
    return pa.types.is_floating(element) or element in (pa.uint8(), pa.int8())


def vector_column(schema: pa.Schema, name: str | None, table: str) -> pa.Field:
    """Find the column that is searched.

    Args:
        schema: The table's columns.
        name: The column; None for the only one that has vectors.
        table: The table, for errors.

    Raises:
        UnknownColumn: There is no such column.
        NotVectorColumn: It has no vectors, or there is more than one to choose from.
    """
    vectors = [column.name for column in schema if is_vector(column.type)]
    listed = ", ".join(vectors) or "its vector columns, of which it has none"
    if name is None:
        if len(vectors) == 1:
            return schema.field(vectors[0])
        why = f"the table has {len(vectors)} columns of vectors"
        raise NotVectorColumn(table=table, column="no column", why=why, columns=listed, name="v")
    column, is_field = searched_column(schema, name)
    if is_field or not is_vector(column.type):
        why = f"it is of type {column.type}" if not is_field else "it is a field of a struct"
        raise NotVectorColumn(table=table, column=name, why=why, columns=listed, name=column.name)
    return column


def searched_column(schema: pa.Schema, name: str) -> tuple[pa.Field, bool]:
    """Find a column by its name; and whether a field within it is named.

    Raises:
        UnknownColumn: There is no such column.
    """
    try:
        top, *fields = resolve_column(column_path(name), schema).path
    except UnknownColumn:
        if name not in schema.names:
            raise
        top, fields = name, []
    return schema.field(top), bool(fields)


def query_vectors(q: object, column: pa.Field, table: str) -> tuple[npt.NDArray[np.generic], bool]:
    """Read the vectors that neighbours are looked for.

    Args:
        q: Numbers, or several lists of numbers: lists, arrays of NumPy or Arrow.
        column: The vectors that are searched.
        table: The table, for errors.

    Returns:
        One row per query, in the type of the column's elements; and whether several were given.

    Raises:
        QueryVectorRefused: It has NULL or NaN, or is something else.
        QueryDimensionMismatch: It has another number of elements than the column's vectors.
    """
    element, dimension = column.type.value_type, column.type.list_size
    if isinstance(q, pa.Array | pa.ChunkedArray):
        q = q.to_pylist()
    elif isinstance(q, pa.Scalar):
        q = q.as_py()
    rows = q if isinstance(q, list | tuple) else ()
    why, numbers = "", np.empty(0)
    try:
        sizes = {len(one) for one in rows if isinstance(one, list | tuple | np.ndarray)}
        if not sizes - {dimension}:
            numbers = np.asarray(q, np.float64)
            sizes = {numbers.shape[-1]} if numbers.ndim else set()
        for given in sizes - {dimension, 0}:
            raise QueryDimensionMismatch(
                table=table, column=column.name, given=given, expected=dimension
            )
        with np.errstate(over="ignore", invalid="ignore"):
            typed = numbers.astype(element.to_pandas_dtype())
        if not numbers.size or numbers.ndim not in (1, _DIMENSIONS_OF_BATCH):
            why = "the query is no list of numbers, nor several such lists"
        elif not np.isfinite(numbers).all():
            why = "the query has NULL, NaN or an infinity"
        elif not _fits(typed, numbers):
            why = f"the query has numbers that are no {element}"
    except (TypeError, ValueError):
        why = "the query has NULL, or other than numbers"
    if why:
        raise QueryVectorRefused(table=table, column=column.name, why=why, dimension=dimension)
    return typed.reshape(-1, dimension), numbers.ndim == _DIMENSIONS_OF_BATCH


def _fits(typed: npt.NDArray[np.generic], numbers: npt.NDArray[np.float64]) -> bool:
    """Whether numbers are of a type: integers as they are, others but for their last digits."""
    if np.issubdtype(typed.dtype, np.integer):
        return bool((typed == numbers).all())
    return bool(np.isfinite(typed.astype(np.float64)).all())


def known_vectors(
    values: pa.Array, dimension: int
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_]]:
    """Give those vectors of a column that have no NULL in them.

    Args:
        values: A column of lists, of one size or not.
        dimension: How many elements each has that is not NULL.

    Returns:
        One row per vector, and which rows of the column these are.
    """
    is_known = np.asarray(values.is_valid())
    elements = pc.list_flatten(values)
    if elements.null_count:
        has_all = np.asarray(elements.is_valid()).reshape(-1, dimension).all(axis=1)
        is_known[is_known] = has_all
        elements = elements.filter(pa.array(np.repeat(has_all, dimension)))
    return elements.to_numpy(zero_copy_only=False).reshape(-1, dimension), is_known


def distances(
    metric: Metric, query: npt.NDArray[np.generic], vectors: npt.NDArray[np.generic]
) -> npt.NDArray[np.float32]:
    """Compute how far vectors are from a query; NaN where it is not known.

    Args:
        metric: How it is measured.
        query: One vector.
        vectors: One row per vector.

    Example:
        >>> distances(Metric.L2, np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 2.0]])).tolist()
        [0.0, 5.0]
    """
    step = max(1, _CHUNK_VALUES // max(1, vectors.shape[1]))
    parts = [
        _distances(metric, query, vectors[first : first + step])
        for first in range(0, len(vectors), step)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.float32)


def _distances(
    metric: Metric, query: npt.NDArray[np.generic], vectors: npt.NDArray[np.generic]
) -> npt.NDArray[np.float32]:
    if metric is Metric.HAMMING:
        differing = np.bitwise_count(np.bitwise_xor(vectors, query))
        return np.asarray(differing.sum(axis=1), np.float32)
    one, many = query.astype(np.float64), vectors.astype(np.float64)
    with np.errstate(all="ignore"):
        match metric:
            case Metric.L2:
                apart = many - one
                exact = np.einsum("ij,ij->i", apart, apart)
            case Metric.DOT:
                exact = 1 - many @ one
            case _:
                lengths = np.sqrt(np.einsum("ij,ij->i", many, many)) * np.sqrt(one @ one)
                exact = 1 - (many @ one) / lengths
        return np.asarray(exact, np.float32)
