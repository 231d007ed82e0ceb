"""Searching a table in Python: ``Search``, and the indexes that serve it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pennon.arguments import as_names, checked_methods
from pennon.manifest.format.properties import IndexDefinition, index_definitions
from pennon.namespace.open_table import OpenTable
from pennon.namespace.rows.row_scan import naming_failures
from pennon.search import (
    create_index,
    define_index,
    drop_index,
    explain_search,
    nearest_rows,
    plan_search,
    refresh_indexes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import pandas as pd
    import pyarrow as pa

    from pennon.manifest import Snapshot
    from pennon.search import SearchPlan

__all__ = ["Search", "SearchedTable"]


@checked_methods
@dataclass(frozen=True, slots=True)
class Search:
    """The rows of a table at one version that are nearest to vectors.

    Nothing is read before one of the methods asks for it, nor is any argument looked at. Whatever
    takes Arrow's C stream interface takes a search.

    Args:
        snapshot: The table.
        q: A vector, or several.
        column: The column of vectors; None for the only one.
        k: How many rows are found for each query, at most.
        where: Spark SQL of one condition, which comes before k; None for all rows.
        columns: The columns, in this order; None for all.
        metric: How distances are measured; None for the column's own way.
        exact: Whether no index is asked.
        nprobes: How many parts of an index are looked into at least.
        refine_factor: Of how many times k candidates of an index exact distances are computed.
        ef: How many candidates an index that is a graph keeps.
        table: What errors call the table; None for its folder.
    """

    snapshot: Snapshot
    q: object = field(compare=False, repr=False)
    column: str | None = None
    k: int = 10
    where: str | None = None
    columns: tuple[str, ...] | None = None
    metric: str | None = None
    exact: bool = False
    nprobes: int | None = None
    refine_factor: int | None = None
    ef: int | None = None
    table: str | None = None

    def plan(self) -> SearchPlan:
        """Choose the partitions that the rows can be in, without opening one.

        Raises:
            PennonError: The query, the column, an option or the condition cannot be.

        Example:
            >>> import pennon, tempfile
            >>> schema = pa.schema({"n": pa.int64(), "v": pa.list_(pa.float32(), 2)})
            >>> points = pennon.create(tempfile.mkdtemp() + "/points", schema)
            >>> points.search([0, 1], where="n = 1").plan().metric.value
            'l2'
        """
        return plan_search(
            self.snapshot,
            self.q,
            column=self.column,
            k=self.k,
            where=self.where,
            metric=self.metric,
            exact=self.exact,
            nprobes=self.nprobes,
            refine_factor=self.refine_factor,
            ef=self.ef,
            columns=self.columns,
            table=self.table,
        )

    def explain(self) -> str:
        """Tell what is searched: leaves by index or row by row, rows in none, the filter before k.

        Example:
            >>> import pennon, tempfile
            >>> schema = pa.schema({"n": pa.int64(), "v": pa.list_(pa.float32(), 2)})
            >>> points = pennon.create(tempfile.mkdtemp() + "/points", schema)
            >>> print(points.search([0, 1]).explain().splitlines()[-1])
            filter before k: none
        """
        return explain_search(self.snapshot, self.plan())

    def to_arrow(self) -> pa.Table:
        """Find the rows: their columns and ``_distance``, the nearest first.

        Of several queries, ``query_index`` says which one a row was found for.

        Raises:
            PredicateNotEvaluable: A part of the condition is not understood outside of Spark.
            LeafMissing: The files of a partition are gone: there is no partial answer.

        Example:
            >>> import pennon, tempfile
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
        return Search(
            self.snapshot if version is None else self._at(version).snapshot,
            q,
            column,
            k,
            where,
            None if columns is None else as_names(columns),
            metric=metric,
            exact=exact,
            nprobes=nprobes,
            refine_factor=refine_factor,
            ef=ef,
            table=self.name,
        )

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
