"""Updates rows by a condition: deletes the old ones and adds the new ones in one commit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from pennon.catalog.configured_catalog import WriteMode
from pennon.errors import (
    NotWholePartitions,
    RowsMoved,
    SnapshotExpired,
    UnsupportedTableChange,
    ValuesNotUnderstood,
    WriteColumnTwice,
    WriteColumnUnknown,
    WriteConflict,
    WriteTypeMismatch,
)
from pennon.execution.run import ComputedColumns
from pennon.leaf.changes.deleted_rows import DeletedRows, collect_deleted
from pennon.leaf.read.metadata_columns import LEAF, LEAF_VERSION, ROW_ADDRESS
from pennon.leaf.schema.array_conversion import check_stored
from pennon.leaf.write.incoming_rows import conform
from pennon.manifest.format.rows import CommitIdentity
from pennon.namespace.rows.row_scan import read_plan
from pennon.namespace.rows.row_write import check_condition, table_of, write_row_changes
from pennon.planning import plan_scan
from pennon.spec.column_names import hiding_column
from pennon.spec.schema import NamespaceSchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pennon.catalog.tables.loaded_table import Table

__all__ = ["ROW_NAMES", "check_row_names", "delete_where", "run_beside_maintenance", "update_where"]

# Deletes rows by a condition: whole partitions in the manifest, others by deletion vectors.

_ROW_NAMES = pa.schema([LEAF, LEAF_VERSION, ROW_ADDRESS])


def delete_where(table: Table, where: str) -> int:
    """Delete the rows for which a condition is true; those for which it is NULL stay.

    Args:
        table: The table at its newest version.
        where: Spark SQL.

    Returns:
        The new version; the same one where no row satisfies the condition.

    Raises:
        PredicateNotEvaluable: A part of the condition is not understood outside of Spark.
        WriteConflict: Another commit changed rows that the condition is about.
    """
    stored = table.stored
    check_condition(stored.snapshot, where, table.name)
    try:
        return stored.delete_rows([where])
    except NotWholePartitions:
        plan = replace(plan_scan(stored.snapshot, where), schema=_ROW_NAMES)
        rows = read_plan(plan, table.name)
    deleted = [deletion.to_json() for deletion in collect_deleted(rows.batches)]
    return stored.change_rows(WriteMode.DELETE, deleted, (), [[where]], CommitIdentity.fresh())


# Statements that conflict with maintenance are run again, so that no user sees the conflict.
#
# A compaction never fails a concurrent statement by itself. Rows that are rewritten under the
# present partition spec are in other partitions then, and a change of them has to find them again.
# Nothing of a statement in conflict is visible, so it can be run again as a whole.

T = TypeVar("T")

_ATTEMPTS: Final = 20


def run_beside_maintenance(load: Callable[[], Table], statement: Callable[[Table], T]) -> T:
    """Run a statement, and run it again where it met rows that were moved to other partitions.

    Args:
        load: Gives the table at its newest version.
        statement: Reads and commits; it is given the table for each run.

    Returns:
        What the statement gives.

    Raises:
        WriteConflict: Another statement changed what this one is about, or the version that it read
            has expired.

    Example:
        >>> run_beside_maintenance(load, lambda table: delete_where(table, "id = 7"))
        ... # doctest: +SKIP
        12

    Spec: "Conflict Resolution".
    """
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(RowsMoved):
            return _run(load(), statement)
    return _run(load(), statement)


def _run(table: Table, statement: Callable[[Table], T]) -> T:
    try:
        return statement(table)
    except SnapshotExpired as error:
        if error.parameters["table"] != table.snapshot.location:
            raise  # of another table, from which the rows come
        why = f"version {table.snapshot.version}, which the statement read, has expired meanwhile"
        raise WriteConflict(table=table.name, why=why) from error


ROW_NAMES = (LEAF, LEAF_VERSION, ROW_ADDRESS)


def check_row_names(table: Table) -> None:
    """Refuse to change rows one by one where the name of a column stands in the way.

    Raises:
        UnsupportedTableChange: It names the column.
    """
    hiding = hiding_column(table.snapshot.schema.arrow.names)
    if hiding is not None:
        raise UnsupportedTableChange(
            change="change single rows",
            table=table.name,
            why=f"its column {hiding} is called as one that names or marks the rows to change",
            advice="Rename the column",
        )


def update_where(table: Table, values: Mapping[str, object], where: str | None) -> int:
    """Change the rows for which a condition is true.

    Args:
        table: The table at its newest version.
        values: By column: a text is a Spark SQL expression over the row as it was, anything else
            is a value.
        where: Spark SQL; None for every row.

    Returns:
        The new version; the same one where no row satisfies the condition.

    Raises:
        UnsupportedTableChange: A column hides the name of rows.
        WriteColumnTwice: A column is there in small and in capital letters.
        WriteColumnUnknown: There is no such column, or no such nested field.
        WriteTypeMismatch: A value does not fit its column.
        PredicateNotEvaluable: An expression, or the condition, is not understood outside of Spark.
        WriteConflict: Another commit changed rows that the condition is about.
    """
    snapshot = table.snapshot
    table.stored.check_write(WriteMode.UPDATE, [])
    check_row_names(table)
    plan = plan_scan(snapshot, where)
    assigned = _Assignments(table, values, plan.schema)
    deleted: list[DeletedRows] = []

    def changed() -> Iterator[pa.RecordBatch]:
        schema = pa.schema([*plan.schema, *ROW_NAMES])
        for batch in read_plan(replace(plan, schema=schema), table.name).batches:
            if batch.num_rows:
                deleted.extend(collect_deleted([batch]))
                yield assigned.of(batch.select(plan.schema.names))

    return write_row_changes(
        table, WriteMode.UPDATE, changed(), deleted, [[] if where is None else [where]]
    )


class _Assignments:
    """The new values of some columns."""

    def __init__(self, table: Table, values: Mapping[str, object], schema: pa.Schema) -> None:
        self._constants: dict[str, pa.Scalar] = {}
        texts: dict[str, str] = {}
        names = self._names = schema.names
        for name, value in values.items():
            named = table.snapshot.schema.field_by_path([name])
            if named is None:
                raise WriteColumnUnknown(column=name, table=table.name, columns=", ".join(names))
            column = named.field
            if column.name in texts or column.name in self._constants:
                raise WriteColumnTwice(column=name, table=table.name)
            if isinstance(value, str):
                texts[column.name] = value
            else:
                self._constants[column.name] = _scalar(value, column, table.name)
        self._computed = ComputedColumns(list(texts.values()), schema, table.name)
        self._texts = list(texts)
        for name, given in zip(texts, self._computed.types, strict=True):
            check_stored(given, schema.field(name), table.name)

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Give the rows with the new values."""
        computed = dict(zip(self._texts, self._computed.of(rows), strict=True))
        columns = [
            computed[name]
            if name in computed
            else pa.repeat(self._constants[name], rows.num_rows)
            if name in self._constants
            else rows.column(name)
            for name in self._names
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._names)


def _scalar(value: object, column: pa.Field, table: str) -> pa.Scalar:
    """Give a value as the rows of an append would store it."""
    # Whether a NULL may stand there is asked of the rows that get it.
    own = NamespaceSchema(pa.schema([column.with_nullable(nullable=True)]))
    if isinstance(value, pa.Scalar):
        rows = pa.table({column.name: pa.repeat(value, 1)})
    else:
        try:
            rows = table_of([{column.name: value}], own)
        except ValuesNotUnderstood as error:
            raise WriteTypeMismatch(
                actual=type(value).__name__,
                column=column.name,
                table=table,
                expected=column.type,
                why=error.__cause__,
            ) from error
    return conform(rows.to_batches()[0], own, table).column(0)[0]
