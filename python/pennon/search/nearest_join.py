"""``q JOIN t {APPROX | EXACT} NEAREST k BY …``: rows of a stream beside the rows nearest to each.

Spark runs it as one of its own functions over Arrow batches of the left side, in its Python
processes: a batch is one search of as many queries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import QueryDimensionMismatch
from pennon.search.nearest import nearest_rows
from pennon.search.search_plan import QUERY_INDEX
from pennon.search.vectors import known_vectors, query_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.search.search_plan import SearchPlan

__all__ = ["NearestJoin"]

# Queries of one search: what is found of all of them is in memory at once.
_MOST_QUERIES: Final = 256


@dataclass(frozen=True, slots=True)
class NearestJoin:
    """The join as a function over batches; the last column of each has the queries.

    Args:
        plan: The search, of queries that each batch brings.
        table: What errors call the table that is searched.
        keeps_unmatched: Whether a row without any neighbour stays, with NULL beside it.
        schema: The columns of the left side without the query, then those of the rows nearest.
    """

    plan: SearchPlan
    table: str
    keeps_unmatched: bool
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join each batch; of a NULL query nothing is near, as in Spark.

        Raises:
            QueryDimensionMismatch: A query has another number of elements than the vectors.
            QueryVectorRefused: A query has NaN.
        """
        for batch in batches:
            for first in range(0, batch.num_rows, _MOST_QUERIES):
                yield from self._joined(batch.slice(first, _MOST_QUERIES)).to_batches()

    def _joined(self, batch: pa.RecordBatch) -> pa.Table:
        queries, places = self._queries(batch.column(batch.num_columns - 1))
        left, right = np.empty(0, np.int64), self.plan.result_schema.empty_table()
        if len(queries):
            right = nearest_rows(replace(self.plan, queries=queries, is_batch=True))
            left = places[right[QUERY_INDEX.name].to_numpy()]
        nearest = right.select([field.name for field in self.plan.schema])
        if self.keeps_unmatched:
            alone = np.setdiff1d(np.arange(batch.num_rows), left)
            nothing = pa.table(
                [pa.nulls(len(alone), one.type) for one in nearest.schema], nearest.schema
            )
            left, nearest = np.concatenate([left, alone]), pa.concat_tables([nearest, nothing])
        beside = [column.take(pa.array(left)) for column in batch.columns[:-1]]
        columns = [pa.chunked_array([column]) for column in beside] + nearest.columns
        stated = zip(columns, self.schema.types, strict=True)
        return pa.table([column.cast(kind) for column, kind in stated], self.schema)

    def _queries(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Give the queries that are known, and the rows that have them."""
        dimension = self.plan.vector.type.list_size
        lengths = pc.unique(pc.list_value_length(column).drop_null()).to_pylist()
        for given in set(lengths) - {dimension}:
            raise QueryDimensionMismatch(
                table=self.table,
                column=self.plan.vector.name,
                given=given,
                expected=dimension,
            )
        vectors, is_known = known_vectors(column, dimension)
        if not len(vectors):
            return vectors, np.flatnonzero(is_known)
        queries, _ = query_vectors(list(vectors), self.plan.vector, self.table)
        return queries, np.flatnonzero(is_known)
