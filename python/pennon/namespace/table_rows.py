"""The rows of a table in Python: read, append, overwrite, delete, update, merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.arguments import as_names, checked_methods
from pennon.catalog.tables.loaded_table import Table
from pennon.catalog.write_options import WriteMode
from pennon.errors import ArgumentRefused
from pennon.namespace.open_table import OpenTable
from pennon.namespace.rows.row_merge import Merge
from pennon.namespace.rows.row_scan import Scan
from pennon.namespace.rows.row_update import delete_where, run_beside_maintenance, update_where
from pennon.namespace.rows.row_write import batches_of, write_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

__all__ = ["TableRows"]


@checked_methods
class TableRows(OpenTable):
    """A table whose rows are read and written.

    Each method that writes loads the newest version, makes one commit, and leaves the object at the
    version that it made.
    """

    def scan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        version: int | str | datetime | None = None,
    ) -> Scan:
        """Describe rows to read; nothing is read yet.

        Args:
            where: A condition in Spark SQL; None for all rows.
            columns: The columns, in this order; None for all.
            version: A version of the table, a tag, or a time; None for the version of this object.

        Raises:
            SnapshotNotFound: There is no such version.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"region": pa.string(), "amount": pa.int64()})
            >>> path = tempfile.mkdtemp() + "/sales"
            >>> sales = pennon.create(path, schema, partition_by=["region"])
            >>> version = sales.append([{"region": "eu", "amount": 7}])
            >>> sales.scan("region = 'eu'", columns=["amount"]).to_arrow().to_pylist()
            [{'amount': 7}]

        Spec: "Partition Pruning", "Read Behavior".
        """
        snapshot = self.snapshot
        if version is not None:
            snapshot = self._at(version).snapshot
        chosen = None if columns is None else as_names(columns)
        return Scan(snapshot, where, chosen, table=self.name)

    def append(self, rows: object) -> int:
        """Add rows, in one commit.

        Args:
            rows: A table, record batches or a reader of ``pyarrow``, a data frame of pandas or
                Polars, or a list of dicts. Columns match by name; a missing one has its
                DEFAULT, or else NULL.

        Returns:
            The version that has the rows.

        Raises:
            PennonError: The rows do not fit the columns.
            DefaultNotComputed: Only Spark computes the default of a column that is missing.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append(pa.table({"letter": ["a", "b"]}))
            >>> letters.scan().count_rows()
            2

        Spec: "Transaction".
        """
        return self._write("append to", WriteMode.APPEND, rows)

    def overwrite(self, rows: object, where: str | None = None) -> int:
        """Put rows in the place of those that satisfy a condition, in one commit.

        Args:
            rows: As in ``append``.
            where: A condition in Spark SQL that decides whole partitions; None for every row.

        Returns:
            The version that has the rows.

        Raises:
            NotWholePartitions: A partition has rows that stay beside rows that go.
            WriteConflict: Another commit changed what goes.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}), ["letter"])
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> version = letters.overwrite([{"letter": "c"}], where="letter = 'a'")
            >>> sorted(letters.scan().to_arrow()["letter"].to_pylist())
            ['b', 'c']
        """
        return self._write("overwrite", WriteMode.OVERWRITE, rows, where)

    def overwrite_partitions(self, rows: object) -> int:
        """Put rows in the place of all rows of the partitions that they belong to.

        Args:
            rows: As ``append`` takes them; the partitions that they belong to are replaced whole.

        Returns:
            The version with the rows.

        Raises:
            PennonError: The rows do not fit the columns.
            WriteConflict: Another commit changed a partition that is replaced.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"region": pa.string(), "amount": pa.int64()})
            >>> sales = pennon.create(tempfile.mkdtemp() + "/sales", schema, ["region"])
            >>> version = sales.append([{"region": "eu", "amount": 7}, {"region": "us"}])
            >>> version = sales.overwrite_partitions([{"region": "eu", "amount": 8}])
            >>> sorted(sales.scan().to_arrow()["region"].to_pylist())
            ['eu', 'us']
        """
        return self._write("overwrite", WriteMode.OVERWRITE_PARTITIONS, rows)

    def delete(self, where: str) -> int:
        """Delete the rows that satisfy a condition, in one commit.

        Partitions that it decides go as a whole; of others no file is rewritten, the rows are
        marked as deleted. Rows for which the condition is NULL stay.

        Args:
            where: A condition in Spark SQL; ``true`` for every row.

        Returns:
            The version without the rows.

        Raises:
            PredicateNotEvaluable: Only Spark computes the condition exactly.
            WriteConflict: Another commit changed rows that the condition is about.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> version = letters.delete("letter = 'a'")
            >>> letters.scan().to_arrow().to_pylist()
            [{'letter': 'b'}]
        """
        version = run_beside_maintenance(
            lambda: self._current("delete from"), lambda table: delete_where(table, where)
        )
        self._follow()
        return version

    def update(self, values: Mapping[str, object], where: str | None = None) -> int:
        """Change columns of the rows that satisfy a condition, in one commit.

        No file is rewritten: the old rows are marked as deleted, and the new ones added. A row
        whose partition value changes moves.

        Args:
            values: By column. A text is a Spark SQL expression over the row as it was, ``"v + 1"``,
                ``"'eu'"``; anything else is the value itself.
            where: A condition in Spark SQL; None for every row.

        Returns:
            The version with the new values.

        Raises:
            WriteColumnUnknown: There is no such column.
            WriteTypeMismatch: A value does not fit its column.
            PredicateNotEvaluable: Only Spark computes an expression, or the condition, exactly.
            WriteConflict: Another commit changed rows that the condition is about.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"region": pa.string(), "amount": pa.int64()})
            >>> sales = pennon.create(tempfile.mkdtemp() + "/sales", schema, ["region"])
            >>> version = sales.append(
            ...     [{"region": "eu", "amount": 7}, {"region": "us", "amount": 1}]
            ... )
            >>> version = sales.update({"amount": "amount * 2"}, where="region = 'eu'")
            >>> sorted(sales.scan().to_arrow()["amount"].to_pylist())
            [1, 14]

        Spec: "Transaction".
        """
        if not values:
            raise ArgumentRefused(
                function="update", parameter="values", why="it is empty", expected="a column"
            )
        version = run_beside_maintenance(
            lambda: self._current("update"), lambda table: update_where(table, values, where)
        )
        self._follow()
        return version

    def merge(self, source: object, on: str | Sequence[str]) -> Merge:
        """Describe a merge of rows into the table; ``execute`` on what comes back runs it.

        Args:
            source: Rows as in ``append``; they are held in memory.
            on: The column, or the columns, by which rows are the same. NULL equals nothing.

        Raises:
            MergeCardinality: Several rows of the source are to update the same row.
            MergeKeyRefused: A column of ``on`` is missing, or of a type that is no key.
            WriteConflict: Another commit changed rows that the keys are about.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"id": pa.int64(), "region": pa.string()})
            >>> path = tempfile.mkdtemp() + "/users"
            >>> users = pennon.create(path, schema, partition_by=["region"])
            >>> version = users.append([{"id": 1, "region": "eu"}, {"id": 2, "region": "us"}])
            >>> merge = users.merge([{"id": 2, "region": "eu"}, {"id": 3, "region": "us"}], on="id")
            >>> done = merge.when_matched_update_all().when_not_matched_insert_all().execute()
            >>> (done.num_updated_rows, done.num_inserted_rows, done.num_deleted_rows)
            (1, 1, 0)
            >>> users.scan("region = 'eu'").to_arrow()["id"].to_pylist()
            [1, 2]

        Spec: "Transaction".
        """
        self._check_unpinned("merge into")
        return Merge(source, as_names(on), lambda: self._current("merge into"), self._follow)

    def _current(self, verb: str) -> Table:
        """Load the newest version for a change; what is pinned takes none."""
        self._check_unpinned(verb)
        self.refresh()
        return self._table

    def _write(self, verb: str, mode: WriteMode, rows: object, where: str | None = None) -> int:
        predicates = [] if where is None else [where]

        def written(table: Table) -> int:
            return write_rows(table, mode, predicates, batches_of(rows, table.snapshot.schema))

        if isinstance(rows, list | pa.Table):  # which can be read a second time
            version = run_beside_maintenance(lambda: self._current(verb), written)
        else:
            version = written(self._current(verb))
        self._follow()  # to what may be a later version: other writers have theirs
        return version
