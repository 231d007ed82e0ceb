"""``Scan``: rows to read, described first and read later in the form that the caller chooses."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.arguments import checked_methods
from pennon.catalog.table_name import by_name
from pennon.execution import BatchStream, LeafRead, Relation, run_ahead
from pennon.execution.engine_failures import failure_of_values
from pennon.maintenance.read_failures import naming_causes_at
from pennon.notebook import rows_shown
from pennon.planning import plan_scan
from pennon.planning.binding.bound_predicate import check_evaluable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import datafusion
    import pandas as pd

    from pennon.manifest import Snapshot
    from pennon.planning import ScanPlan
    from pennon.planning.scan_plan import PlannedPartition

__all__ = ["Scan", "naming_failures", "read_plan"]

_NUMBERS: Final = count()


@checked_methods
@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of a table at one version: nothing is read before one of the methods asks for it.

    Whatever takes Arrow's C stream interface takes a scan: ``polars.from_arrow(scan)``,
    ``duckdb.sql("SELECT * FROM scan")``.

    Args:
        snapshot: The table.
        where: Spark SQL of one condition; None for all rows.
        columns: The columns, in this order; None for all.
        table: What errors call the table; None for its folder.
    """

    snapshot: Snapshot
    where: str | None = None
    columns: tuple[str, ...] | None = None
    table: str | None = None

    def plan(self) -> ScanPlan:
        """Choose the partitions that the rows are in, without opening one.

        Returns:
            A plan: ``manifest_sql``, ``partitions``, ``num_rows`` and ``num_bytes`` before any
            filter.

        Raises:
            PennonError: The condition is no SQL, or names no column of the table.

        Example:
            >>> import pennon, tempfile
            >>> schema = pa.schema({"day": pa.date32(), "n": pa.int64()})
            >>> path = tempfile.mkdtemp() + "/days"
            >>> days = pennon.create(path, schema, partition_by=["months(day)"])
            >>> len(days.scan("day >= DATE '2025-01-01'").plan().partitions)
            0

        Spec: "Partition Pruning".
        """
        return plan_scan(self.snapshot, self.where, self.columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch; memory is bounded whatever their number.

        Raises:
            PredicateNotEvaluable: A part of the condition is not understood outside of Spark.
            LeafMissing: The files of a partition are gone.
            SnapshotExpired: The version has expired meanwhile.
            TableNotFound: The table was dropped meanwhile.
            TableMadeAnew: Another table was made in its place.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> [batch.num_rows for batch in letters.scan().to_batches()]
            [2]
        """
        return read_plan(self.plan(), self.table).batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Give the rows as a reader of Arrow; as ``to_batches``.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> letters.scan().to_reader().read_all().num_rows
            2
        """
        stream = read_plan(self.plan(), self.table)
        return pa.RecordBatchReader.from_batches(stream.schema, stream.batches)

    def to_arrow(self) -> pa.Table:
        """Read the rows into a table; as ``to_batches``.

        Its types are the plain forms of the schema's, without fixed-size lists and dictionaries.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}), ["letter"])
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> letters.scan("letter > 'a'").to_arrow().to_pylist()
            [{'letter': 'b'}]
        """
        return read_plan(self.plan(), self.table).to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """Read the rows into a data frame of pandas; as ``to_batches``.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> letters.scan("letter > 'a'").to_pandas()
              letter
            0      b
        """
        return self.to_arrow().to_pandas()

    def read(self, partitions: Sequence[PlannedPartition]) -> pa.Table:
        """Read the rows of some partitions of the plan, in any process; as ``to_arrow``.

        Args:
            partitions: Of this scan's ``plan().partitions``. Both can be pickled.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}), ["letter"])
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> scan = letters.scan()
            >>> [scan.read([one]).num_rows for one in scan.plan().partitions]
            [1, 1]
        """
        with _naming(self.snapshot, self.table):
            whole = _relation(self.plan())
            stream = run_ahead(replace(whole, leaves=tuple(map(_leaf_read, partitions))))
        batches = _computed(stream.batches, self.snapshot, self.table)
        return BatchStream(stream.schema, batches).to_arrow()

    def to_datafusion(
        self, context: datafusion.SessionContext | None = None
    ) -> datafusion.DataFrame:
        """Give the rows as a lazy data frame of DataFusion, which filters and projects in Lance.

        Args:
            context: The session that shall know them by a name of theirs, too. They outlive it.

        Raises:
            PredicateNotEvaluable: A part of the condition is not understood outside of Spark.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> letters.scan().to_datafusion().count()
            2
        """
        # DataFusion takes a quarter of a second to import, and the other readers need none of it.
        from pennon.execution.leaf_table import relation_frame  # noqa: PLC0415

        with _naming(self.snapshot, self.table):
            relation = _relation(self.plan())
            return relation_frame(f"scan_{next(_NUMBERS)}", relation, context)

    def count_rows(self) -> int:
        """Count the rows; from the manifest alone where it decides.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.scan().count_rows()
            0
        """
        plan = replace(self, columns=()).plan()
        check_evaluable(plan.bound, self.table or self.snapshot.location)
        is_whole = not any(index >= 0 for index in plan.table["row_filter"].to_pylist())
        if is_whole and plan.counted_rows is not None:
            return plan.counted_rows
        return sum(batch.num_rows for batch in read_plan(plan, self.table).batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to whatever speaks Arrow's C stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Describe the scan in one line."""
        columns = "*" if self.columns is None else ", ".join(self.columns)
        where = "" if self.where is None else f" where {self.where}"
        return f"Scan({columns} from {self.snapshot.location}{where})"


def read_plan(plan: ScanPlan, table: str | None = None) -> BatchStream:
    """Read the rows of a plan that satisfy its whole predicate.

    Args:
        plan: What is read.
        table: What errors call the table; None for its folder.

    Raises:
        PredicateNotEvaluable: A part of the predicate is not understood outside of Spark.
        LeafMissing: The files of a partition are gone.
        SnapshotExpired: With the version, which has expired.
        TableNotFound: With the table, which was dropped.
        TableMadeAnew: Likewise, and another table was made in its place.
        FragmentDivision: While the rows are read: the predicate divides by zero, as in Spark.
        FragmentOverflow: Likewise: a value does not fit its type.
        FragmentText: Likewise: a text that is cast is no value of its type.
    """
    with _naming(plan.snapshot, table):
        stream = run_ahead(_relation(plan))
    total = None if plan.is_filtered else plan.num_rows
    return BatchStream(stream.schema, _computed(stream.batches, plan.snapshot, table, total))


@contextmanager
def _naming(snapshot: Snapshot, table: str | None) -> Iterator[None]:
    """Name the table and the causes of failures to read it."""
    with by_name(table or snapshot.location), naming_causes_at(snapshot):
        yield


def _computed(
    batches: Iterator[pa.RecordBatch],
    snapshot: Snapshot,
    table: str | None,
    total: int | None = None,
) -> Iterator[pa.RecordBatch]:
    name = (table or snapshot.location).rpartition("/")[2]
    with naming_failures(snapshot, table):
        yield from rows_shown(batches, f"read {name}", total)


@contextmanager
def naming_failures(snapshot: Snapshot, table: str | None) -> Iterator[None]:
    """Name what failed while rows are read: the table, or a value that Spark cannot compute.

    Args:
        snapshot: The table.
        table: What errors call it; None for its folder.
    """
    try:
        with _naming(snapshot, table):
            yield
    except pa.ArrowInvalid as error:
        failure = failure_of_values(error)
        if failure is None:
            raise
        raise failure from error


def _relation(plan: ScanPlan) -> Relation:
    """Give what is read of a plan.

    Raises:
        PredicateNotEvaluable: DataFusion may compute the predicate otherwise than Spark.
    """
    snapshot = plan.snapshot
    check_evaluable(plan.bound, snapshot.location)
    return Relation(
        snapshot.location,
        tuple(map(_leaf_read, plan.partitions)),
        plan.schema,
        snapshot.schema.arrow,
        snapshot.storage_options,
        identity=plan.identity,
    )


def _leaf_read(partition: PlannedPartition) -> LeafRead:
    return LeafRead(
        partition.location, partition.version, partition.residual, num_rows=partition.num_rows
    )
