"""Searching a table in Python: by vectors, by texts, by both; and the indexes for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pennon.arguments import as_names, checked_methods
from pennon.manifest.format.properties import IndexDefinition, index_definitions
from pennon.namespace.open_table import OpenTable
from pennon.namespace.rows.row_scan import naming_failures
from pennon.search import (
    best_rows,
    create_index,
    define_index,
    drop_index,
    nearest_rows,
    plan_hybrid,
    plan_search,
    plan_text,
    refresh_indexes,
    search_details,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    import pandas as pd
    import pyarrow as pa

    from pennon.manifest import Snapshot
    from pennon.search import HybridPlan, SearchPlan, TextPlan

__all__ = ["RankedSearch", "Search", "SearchedTable"]


class FoundRows(ABC):
    """Rows that a search finds, as whatever takes Arrow's C stream interface takes them."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Find the rows."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Find the rows; as ``to_arrow``."""
        return iter(self.to_arrow().to_batches())

    def to_reader(self) -> pa.RecordBatchReader:
        """Find the rows; as ``to_arrow``."""
        return self.to_arrow().to_reader()

    def to_pandas(self) -> pd.DataFrame:
        """Find the rows; as ``to_arrow``."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to whatever speaks Arrow's C stream interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


@checked_methods
@dataclass(frozen=True, slots=True)
class Search(FoundRows):
    """The rows of a table at one version that are nearest to vectors.

    Nothing is read before one of the methods asks for it, nor is any argument looked at. Whatever
    takes Arrow's C stream interface takes a search.

    Args:
        snapshot: The table.
        planned: Plans the search.
        table: What errors call the table; None for its folder.
    """

    snapshot: Snapshot
    planned: Callable[[], SearchPlan] = field(repr=False)
    table: str | None = None

    def plan(self) -> SearchPlan:
        """Choose the partitions that the rows can be in, without opening one.

        Raises:
            PennonError: The query, the column, an option or the condition cannot be.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"n": pa.int64(), "v": pa.list_(pa.float32(), 2)})
            >>> points = pennon.create(tempfile.mkdtemp() + "/points", schema)
            >>> points.search([0, 1], where="n = 1").plan().metric.value
            'l2'
        """
        return self.planned()

    def explain(self) -> str:
        """Tell what is searched: leaves by index or row by row, rows in none, the filter before k.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"n": pa.int64(), "v": pa.list_(pa.float32(), 2)})
            >>> points = pennon.create(tempfile.mkdtemp() + "/points", schema)
            >>> print(points.search([0, 1]).explain().splitlines()[-1])
            filter before k: none
        """
        plan = self.plan()
        return "\n".join([repr(plan), *search_details(self.snapshot, plan)])

    def to_arrow(self) -> pa.Table:
        """Find the rows: their columns and ``_distance``, the nearest first.

        Of several queries, ``query_index`` says which one a row was found for.

        Raises:
            PredicateNotEvaluable: A part of the condition is not understood outside of Spark.
            LeafMissing: The files of a partition are gone: there is no partial answer.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"n": pa.int64(), "v": pa.list_(pa.float32(), 2)})
            >>> points = pennon.create(tempfile.mkdtemp() + "/points", schema)
            >>> version = points.append([{"n": 1, "v": [0, 1]}, {"n": 2, "v": [0, 5]}])
            >>> found = points.search([[0, 0], [0, 4]], k=1, columns=["n"]).to_arrow()
            >>> [list(row.values()) for row in found.to_pylist()]
            [[0, 1, 1.0], [1, 2, 1.0]]
        """
        plan = self.plan()
        with naming_failures(self.snapshot, self.table):
            return nearest_rows(plan)


@checked_methods
@dataclass(frozen=True, slots=True)
class RankedSearch(FoundRows):
    """The rows of a table at one version that match words best, or words and a vector.

    As of ``Search``, nothing is read before one of the methods asks for it.

    Args:
        snapshot: The table.
        planned: Plans the search.
        table: What errors call the table; None for its folder.
    """

    snapshot: Snapshot
    planned: Callable[[], TextPlan | HybridPlan] = field(repr=False)
    table: str | None = None

    def plan(self) -> TextPlan | HybridPlan:
        """Choose the partitions that the rows can be in, without opening one.

        Raises:
            PennonError: A query, a column, an option or the condition cannot be.
        """
        return self.planned()

    def to_arrow(self) -> pa.Table:
        """Find the rows: their columns, and ``_score`` or ``_relevance_score``, the best first.

        Raises:
            PredicateNotEvaluable: A part of the condition is not understood outside of Spark.
            LeafMissing: The files of a partition are gone: there is no partial answer.
        """
        plan = self.plan()
        with naming_failures(self.snapshot, self.table):
            return best_rows(plan)


@checked_methods
class SearchedTable(OpenTable):
    """A table whose rows are searched, and that has indexes."""

    def search(
        self,
        q: object,
        column: str | None = None,
        k: int = 10,
        where: str | None = None,
        *,
        metric: str | None = None,
        exact: bool = False,
        nprobes: int | None = None,
        refine_factor: int | None = None,
        ef: int | None = None,
        columns: Sequence[str] | None = None,
        version: int | str | datetime | None = None,
    ) -> Search:
        """Describe a search for the rows nearest to vectors; nothing is read yet.

        All partitions that the condition leaves give one answer: the k nearest rows of all that
        satisfy it, by exact distances, ties in a fixed order.

        Args:
            q: A vector, or several: numbers in lists or arrays. Of several, each row says for which
                it was found (``query_index``).
            column: The column of vectors; None for the only one.
            k: How many rows are found for each query, at most.
            where: A condition in Spark SQL, which rows satisfy before the nearest are chosen.
            metric: ``l2`` (squared), ``cosine``, ``dot`` or ``hamming`` (of bytes); None for the
                column's.
            exact: Whether every vector is compared, whatever indexes there are.
            nprobes: How many parts of an index are looked into at least.
            refine_factor: Of how many times k candidates of an index exact distances are computed.
            ef: How many candidates an index that is a graph keeps.
            columns: The columns of the rows, beside ``_distance``; None for all.
            version: A version of the table, a tag, or a time; None for the version of this object.

        Raises:
            SnapshotNotFound: There is no such version.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"tenant": pa.string(), "v": pa.list_(pa.float32(), 2)})
            >>> path = tempfile.mkdtemp() + "/notes"
            >>> notes = pennon.create(path, schema, partition_by=["tenant"])
            >>> version = notes.append([{"tenant": "a", "v": [0, 1]}, {"tenant": "b", "v": [3, 1]}])
            >>> notes.search([1, 1], k=1, columns=["tenant"]).to_arrow().to_pylist()
            [{'tenant': 'a', '_distance': 1.0}]

        Spec: "Partition Pruning", "Read Behavior".
        """
        snapshot = self._snapshot_at(version)
        planned = partial(
            plan_search,
            snapshot,
            q,
            column=column,
            k=k,
            where=where,
            metric=metric,
            exact=exact,
            nprobes=nprobes,
            refine_factor=refine_factor,
            ef=ef,
            columns=None if columns is None else as_names(columns),
            table=self.name,
        )
        return Search(snapshot, planned, self.name)

    def search_text(
        self,
        query: str,
        column: str | None = None,
        k: int = 10,
        where: str | None = None,
        *,
        operator: str = "or",
        fuzziness: int = 0,
        scope: str = "global",
        ascii_folding: bool = False,
        columns: Sequence[str] | None = None,
        version: int | str | datetime | None = None,
    ) -> RankedSearch:
        """Describe a search for the rows whose texts match words best; nothing is read yet.

        Scores are BM25 over all partitions, with or without an index: those that one table of all
        rows would give. Words are letters and digits in lower case, neither stemmed nor left out.

        Args:
            query: Words; ``"a phrase"``; ``+must`` and ``-must_not`` before either.
            column: The column of texts; None for the one that has a full text index, or the only
                one.
            k: How many rows are found, at most.
            where: A condition in Spark SQL, which rows satisfy before the best are chosen; it
                changes no score.
            operator: Whether one of the words is enough (``or``), or a row needs all (``and``).
            fuzziness: How many edits away from a word of the query a word may be: 0, 1 or 2. Not
                in phrases and after ``-``.
            scope: Whether words are counted over the table (``global``) or in each ``partition``.
            ascii_folding: Whether accents are left out.
            columns: The columns of the rows, beside ``_score``; None for all.
            version: A version of the table, a tag, or a time; None for the version of this object.

        Raises:
            SnapshotNotFound: There is no such version.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"id": pa.int64(), "body": pa.string()})
            >>> notes = pennon.create(tempfile.mkdtemp() + "/notes", schema)
            >>> rows = [{"id": 1, "body": "a blue sky"}, {"id": 2, "body": "Blue, blue sea"}]
            >>> version = notes.append(rows)
            >>> notes.search_text("blue -sky", columns=["id"]).to_arrow()["id"].to_pylist()
            [2]
        """
        snapshot = self._snapshot_at(version)
        planned = partial(
            plan_text,
            snapshot,
            query,
            column=column,
            k=k,
            where=where,
            operator=operator,
            fuzziness=fuzziness,
            scope=scope,
            ascii_folding=ascii_folding,
            columns=None if columns is None else as_names(columns),
            table=self.name,
        )
        return RankedSearch(snapshot, planned, self.name)

    def search_hybrid(
        self,
        query: str,
        q: object,
        *,
        text_column: str | None = None,
        vector_column: str | None = None,
        k: int = 10,
        candidates: int | None = None,
        rrf_k: int = 60,
        where: str | None = None,
        metric: str | None = None,
        exact: bool = False,
        columns: Sequence[str] | None = None,
        version: int | str | datetime | None = None,
    ) -> RankedSearch:
        """Describe a search by words and by a vector; nothing is read yet.

        A row's ``_relevance_score`` is the sum of 1 / (rrf_k + its rank, from 0) over the two.

        Args:
            query: As ``search_text``.
            q: A vector, as ``search``.
            text_column: The column of texts; None as in ``search_text``.
            vector_column: The column of vectors; None for the only one.
            k: How many rows are found, at most.
            candidates: How many rows each of the two finds; None for 100, or k.
            rrf_k: The more, the less the first ranks are worth.
            where: A condition in Spark SQL, which rows satisfy before the best are chosen.
            metric: As ``search``.
            exact: Whether every vector is compared, whatever indexes there are.
            columns: The columns of the rows, beside ``_relevance_score``; None for all.
            version: A version of the table, a tag, or a time; None for the version of this object.

        Raises:
            SnapshotNotFound: There is no such version.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"body": pa.string(), "v": pa.list_(pa.float32(), 2)})
            >>> notes = pennon.create(tempfile.mkdtemp() + "/notes", schema)
            >>> version = notes.append([{"body": "sky", "v": [0, 1]}, {"body": "sea", "v": [3, 1]}])
            >>> notes.search_hybrid("sea", [3, 1], k=1).to_arrow()["body"].to_pylist()
            ['sea']
        """
        snapshot = self._snapshot_at(version)
        planned = partial(
            plan_hybrid,
            snapshot,
            query,
            q,
            text_column=text_column,
            vector_column=vector_column,
            k=k,
            candidates=candidates,
            rrf_k=rrf_k,
            where=where,
            metric=metric,
            exact=exact,
            columns=None if columns is None else as_names(columns),
            table=self.name,
        )
        return RankedSearch(snapshot, planned, self.name)

    def create_index(
        self,
        column: str,
        index_type: str = "IVF_RQ",
        name: str | None = None,
        *,
        metric: str | None = None,
        where: str | None = None,
        **options: float | str,
    ) -> int:
        """Define an index, and build it in all partitions that are large enough to gain by it.

        Writers go on meanwhile. Rows that come later are found without it until
        ``refresh_indexes``, which maintenance calls behind commits.

        Args:
            column: The column.
            index_type: Of vectors: ``IVF_RQ``, ``IVF_FLAT``, ``IVF_SQ``, ``IVF_PQ``,
                ``IVF_HNSW_FLAT``, ``IVF_HNSW_SQ``, ``IVF_HNSW_PQ``. Of values: ``BTREE``,
                ``BITMAP``, ``ZONEMAP``, ``BLOOMFILTER``, of lists ``LABEL_LIST``, of texts
                ``NGRAM``, ``INVERTED``.
            name: Its name; None for ``<column>_idx``.
            metric: How distances between vectors are measured: ``l2``, ``cosine``, ``dot``,
                ``hamming``; None for ``l2``, or for ``hamming`` of bytes.
            where: A condition in Spark SQL: partitions that it rules out get no index.
            options: What Lance builds it with, ``num_partitions`` for one; and ``min_bytes``, of
                how many bytes of vectors on a partition gets one (8 MiB).

        Returns:
            The version that has the index.

        Raises:
            IndexAlreadyExists: There is one of that name.
            IndexRefused: The kind is not known, or not of such columns; nothing is left of it.
            IndexOptionRefused: The kind has no such option, or not with that value.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"n": pa.int64(), "v": pa.list_(pa.float32(), 2)})
            >>> points = pennon.create(tempfile.mkdtemp() + "/points", schema)
            >>> version = points.append([{"n": 1, "v": [0, 1]}, {"n": 2, "v": [0, 5]}])
            >>> version = points.create_index("v", "IVF_FLAT", min_bytes=0)
            >>> points.metadata("indexes")["rows_indexed"].to_pylist()
            [2]
        """
        table = self._current("create an index of")
        definition = define_index(
            table.snapshot,
            column,
            index_type,
            table=self.name,
            name=name,
            metric=metric,
            where=where,
            options=options,
        )
        return self._followed(create_index(table.snapshot, definition, self.name))

    def drop_index(self, name: str) -> int:
        """Drop an index from the table and from all its partitions.

        Returns:
            The version that has it no more.

        Raises:
            IndexNotFound: There is none of that name; lists those there are.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> letters = pennon.create(tempfile.mkdtemp() + "/t", pa.schema({"a": pa.string()}))
            >>> version = letters.create_index("a", "BTREE")
            >>> version = letters.drop_index("a_idx")
            >>> letters.indexes()
            []
        """
        table = self._current("drop an index of")
        return self._followed(drop_index(table.snapshot, name, self.name))

    def indexes(self) -> list[IndexDefinition]:
        """List the indexes of the version that the object is at.

        How many rows are in them, ``metadata("indexes")`` says of each partition; and of a plain
        dataset, whose indexes are Lance's own, that alone.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> letters = pennon.create(tempfile.mkdtemp() + "/t", pa.schema({"a": pa.string()}))
            >>> version = letters.create_index("a", "BTREE")
            >>> [(index.name, index.type) for index in letters.indexes()]
            [('a_idx', 'BTREE')]
        """
        if not self._table.stored.has_manifest:
            return []
        return list(index_definitions(self.snapshot.metadata).values())

    def refresh_indexes(
        self, names: str | Sequence[str] | None = None, where: str | None = None
    ) -> int:
        """Bring rows that are in no index into it: those appended, changed or compacted since.

        Args:
            names: The indexes; None for all.
            where: A condition in Spark SQL: partitions that it rules out stay as they are.

        Returns:
            The newest version.

        Raises:
            IndexNotFound: There is none of a name; lists those there are.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"n": pa.int64()})
            >>> numbers = pennon.create(tempfile.mkdtemp() + "/numbers", schema)
            >>> version = numbers.create_index("n", "BTREE", min_bytes=0)
            >>> version = numbers.append([{"n": 1}])
            >>> version = numbers.refresh_indexes()
            >>> numbers.metadata("indexes")["rows_indexed"].to_pylist()
            [1]
        """
        table = self._current("refresh the indexes of")
        chosen = None if names is None else as_names(names)
        return self._followed(refresh_indexes(table.snapshot, self.name, chosen, where))

    def _followed(self, version: int) -> int:
        self._follow()
        return version
