"""Merges rows into a table by key: update, delete and insert in one commit.

The rows to merge are in memory; the table is read as a stream, and only where it can have their
keys. The rules are those of MERGE in Spark: keys are equal as ``=`` says, so that NULL equals
nothing, and a row of the table may be changed by one row only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.arguments import checked_methods
from pennon.catalog.columns.projected_columns import with_defaults
from pennon.catalog.configured_catalog import WriteMode
from pennon.errors import (
    ArgumentRefused,
    MergeCardinality,
    MergeKeyRefused,
    WriteColumnUnknown,
)
from pennon.leaf.changes.deleted_rows import DeletedRows, collect_deleted
from pennon.leaf.schema.reconciliation import stream_type
from pennon.leaf.write.incoming_rows import conform
from pennon.namespace.rows.row_scan import read_plan
from pennon.namespace.rows.row_update import ROW_NAMES, check_row_names, run_beside_maintenance
from pennon.namespace.rows.row_write import batches_of, write_row_changes
from pennon.planning import ScanPlan, plan_scan
from pennon.predicate.values.literals import to_expression
from pennon.spec.schema import NamespaceSchema

if TYPE_CHECKING:
    from pennon.catalog.tables.loaded_table import Table

__all__ = ["Merge", "Merged"]

_MOST_VALUES: Final = 1_000
_ROWS_AT_ONCE: Final = 1 << 20
# No column has a dot in its name.
_THEIRS: Final = "row.of.source"
_OURS: Final = "row.of.table"


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did.

    Args:
        version: The table's version that has it.
        num_inserted_rows: Rows that were added for no row of the table.
        num_updated_rows: Rows of the table that got other values.
        num_deleted_rows: Rows of the table that went.
    """

    version: int
    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


@checked_methods
@dataclass(frozen=True, slots=True)
class Merge:
    """A merge that is being described; ``execute`` runs it.

    Args:
        source: The rows, as in ``append``. Columns match by name.
        on: The columns whose values together identify a row.
        load: Gives the table at its newest version.
        follow: Is called when the commit is made.
        matched: What happens to a row of the table that has its like in the source: ``update``,
            ``delete`` or None.
        inserts: Whether rows of the source without their like are added.
        deletes_others: Whether rows of the table without their like in the source go.
        others_where: Only those of them that satisfy this condition; None for all.
    """

    source: object
    on: tuple[str, ...]
    load: Callable[[], Table]
    follow: Callable[[], None]
    matched: str | None = None
    inserts: bool = False
    deletes_others: bool = False
    others_where: str | None = None

    def when_matched_update_all(self) -> Self:
        """Update rows that are in both: the source's columns get its values, others stay.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/stock"
            >>> schema = pa.schema({"item": pa.string(), "count": pa.int64()})
            >>> stock = pennon.create(path, schema)
            >>> version = stock.append([{"item": "a", "count": 1}, {"item": "b", "count": 2}])
            >>> merge = stock.merge(
            ...     [{"item": "b", "count": 5}, {"item": "c", "count": 7}], on="item"
            ... )
            >>> merge.when_matched_update_all().execute().num_updated_rows
            1
            >>> stock.scan("item = 'b'").to_arrow()["count"].to_pylist()
            [5]
        """
        return replace(self, matched="update")

    def when_matched_delete(self) -> Self:
        """Delete the table's rows that are in both.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/stock"
            >>> schema = pa.schema({"item": pa.string(), "count": pa.int64()})
            >>> stock = pennon.create(path, schema)
            >>> version = stock.append([{"item": "a", "count": 1}, {"item": "b", "count": 2}])
            >>> merge = stock.merge(
            ...     [{"item": "b", "count": 5}, {"item": "c", "count": 7}], on="item"
            ... )
            >>> merge.when_matched_delete().execute().num_deleted_rows
            1
            >>> stock.scan().to_arrow()["item"].to_pylist()
            ['a']
        """
        return replace(self, matched="delete")

    def when_not_matched_insert_all(self) -> Self:
        """Add the source's rows that are not in the table; columns that it lacks as in ``append``.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/stock"
            >>> schema = pa.schema({"item": pa.string(), "count": pa.int64()})
            >>> stock = pennon.create(path, schema)
            >>> version = stock.append([{"item": "a", "count": 1}, {"item": "b", "count": 2}])
            >>> merge = stock.merge(
            ...     [{"item": "b", "count": 5}, {"item": "c", "count": 7}], on="item"
            ... )
            >>> merge.when_not_matched_insert_all().execute().num_inserted_rows
            1
            >>> sorted(stock.scan().to_arrow()["item"].to_pylist())
            ['a', 'b', 'c']
        """
        return replace(self, inserts=True)

    def when_not_matched_by_source_delete(self, where: str | None = None) -> Self:
        """Delete the table's rows that are not in the source.

        Args:
            where: Only those that satisfy this condition in Spark SQL.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/stock"
            >>> schema = pa.schema({"item": pa.string(), "count": pa.int64()})
            >>> stock = pennon.create(path, schema)
            >>> version = stock.append([{"item": "a", "count": 1}, {"item": "b", "count": 2}])
            >>> merge = stock.merge(
            ...     [{"item": "b", "count": 5}, {"item": "c", "count": 7}], on="item"
            ... )
            >>> merge.when_not_matched_by_source_delete("count < 2").execute().num_deleted_rows
            1
            >>> stock.scan().to_arrow()["item"].to_pylist()
            ['b']
        """
        return replace(self, deletes_others=True, others_where=where)

    def execute(self) -> Merged:
        """Run the merge, as one commit.

        Raises:
            ArgumentRefused: No clause says what happens to which rows.
            MergeCardinality: Several rows of the source are to update the same row.
            MergeKeyRefused: A column of ``on`` is missing, or of a type that is no key.
            WriteConflict: Another commit changed rows that the keys are about.

        Example:
            >>> import pennon, tempfile
            >>> path = tempfile.mkdtemp() + "/stock"
            >>> schema = pa.schema({"item": pa.string(), "count": pa.int64()})
            >>> stock = pennon.create(path, schema)
            >>> version = stock.append([{"item": "a", "count": 1}, {"item": "b", "count": 2}])
            >>> merge = stock.merge(
            ...     [{"item": "b", "count": 5}, {"item": "c", "count": 7}], on="item"
            ... )
            >>> done = merge.when_matched_update_all().when_not_matched_insert_all().execute()
            >>> (done.num_updated_rows, done.num_inserted_rows, done.num_deleted_rows)
            (1, 1, 0)
        """
        if not self.on:
            why = "no column is named"
            raise MergeKeyRefused(column="(none)", table=self.load().name, why=why)
        if self.matched is None and not self.inserts and not self.deletes_others:
            raise ArgumentRefused(
                function="execute",
                parameter="merge",
                why="it does nothing with any row",
                expected="it a clause before, for example when_matched_update_all()",
            )
        columns = self.load().snapshot.schema
        # There may be several runs.
        held = replace(self, source=list(batches_of(self.source, columns)))
        done = run_beside_maintenance(self.load, lambda table: _Run(held, table).committed())
        self.follow()
        return done


class _Run:
    """One merge into a table at a version."""

    def __init__(self, merge: Merge, table: Table) -> None:
        self.merge = merge
        self.table = table
        table.stored.check_write(WriteMode.MERGE, [])
        check_row_names(table)
        self.deleted: list[DeletedRows] = []
        self.inserted = self.updated = self.removed = 0
        self.source = self._source()
        schema = table.snapshot.schema.arrow
        self.keys = list(dict.fromkeys(_key_of(table, self.source, name) for name in merge.on))
        keys = self.source.select(self.keys)
        self.theirs = keys.append_column(_THEIRS, pa.array(range(len(keys)), pa.int64()))
        self.is_seen = np.zeros(len(keys), np.bool_)
        updates = merge.matched == "update"
        given = frozenset(self.source.column_names)
        rest = [name for name in schema.names if name not in given]
        self.rest = rest if updates else []
        self.condition = _condition(keys)

    def committed(self) -> Merged:
        reads = [[self.condition]]
        if self.merge.deletes_others:
            where = self.merge.others_where
            reads.append([] if where is None else [where])
        version = write_row_changes(
            self.table, WriteMode.MERGE, self._new_rows(), self.deleted, reads
        )
        return Merged(version, self.inserted, self.updated, self.removed)

    def _source(self) -> pa.Table:
        """Bring the source's columns to the types of the table's."""
        full = self.table.snapshot.schema.arrow
        batches = list(batches_of(self.merge.source, self.table.snapshot.schema))
        if not batches:
            return full.empty_table()
        given: dict[str, pa.Field] = {}
        for name in dict.fromkeys(name for batch in batches for name in batch.schema.names):
            column = self.table.snapshot.schema.field_by_path([name])
            if column is None:
                names = ", ".join(full.names)
                raise WriteColumnUnknown(column=name, table=self.table.name, columns=names)
            given[column.field.name] = column.field
        own = NamespaceSchema(pa.schema(list(given.values())))
        return pa.Table.from_batches([conform(batch, own, self.table.name) for batch in batches])

    def _new_rows(self) -> Iterator[pa.RecordBatch]:
        for rows in self._chunks(plan_scan(self.table.snapshot, self.condition), self.rest):
            yield from self._matched(rows)
        if self.merge.deletes_others:
            for rows in self._chunks(plan_scan(self.table.snapshot, self.merge.others_where), []):
                self._delete_others(rows)
        if self.merge.inserts:
            others = self.source.filter(pa.array(~self.is_seen))
            self.inserted = len(others)
            columns = self.table.snapshot.schema.arrow
            yield from with_defaults(others.to_batches(), columns, self.table.name)

    def _chunks(self, plan: ScanPlan, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read keys, names of rows and some columns, many rows at a time."""
        names = [*self.keys, *(name for name in columns if name not in self.keys)]
        fields = [self.table.snapshot.schema.arrow.field(name) for name in names]
        with_row_names = replace(plan, schema=pa.schema([*fields, *ROW_NAMES]))
        held: list[pa.RecordBatch] = []
        for batch in read_plan(with_row_names, self.table.name).batches:
            held.append(batch)
            if sum(batch.num_rows for batch in held) >= _ROWS_AT_ONCE:
                yield pa.Table.from_batches(held)
                held = []
        if held:
            yield pa.Table.from_batches(held)

    def _pairs(self, rows: pa.Table) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Give the numbers of rows of the table and of rows of the source that are the same."""
        ours = rows.select(self.keys).append_column(_OURS, pa.array(range(len(rows)), pa.int64()))
        theirs = self.theirs.cast(
            pa.schema([*(ours.schema.field(name) for name in self.keys), (_THEIRS, pa.int64())])
        )
        joined = ours.join(theirs, self.keys, join_type="inner").combine_chunks()
        return joined[_OURS], joined[_THEIRS]

    def _matched(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        ours, theirs = self._pairs(rows)
        self.is_seen[theirs.to_numpy()] = True
        if self.merge.matched is None or not len(ours):
            return
        distinct = pc.unique(ours)
        self._delete(rows.take(distinct))
        if self.merge.matched == "delete":
            self.removed += len(distinct)
            return
        if len(distinct) < len(ours):
            raise MergeCardinality(table=self.table.name, on=", ".join(self.keys))
        self.updated += len(ours)
        changed = self.source.take(theirs)
        own = rows.take(ours)
        for name in self.rest:
            changed = changed.append_column(name, own[name])
        yield from changed.to_batches()

    def _delete_others(self, rows: pa.Table) -> None:
        is_other = np.ones(len(rows), np.bool_)
        is_other[self._pairs(rows)[0].to_numpy()] = False
        others = rows.filter(pa.array(is_other))
        self.removed += len(others)
        self._delete(others)

    def _delete(self, rows: pa.Table) -> None:
        names = rows.select([name.name for name in ROW_NAMES]).combine_chunks()
        self.deleted.extend(collect_deleted(names.to_batches()))


def _key_of(table: Table, source: pa.Table, name: str) -> str:
    """Give a key's column by its name in the table."""
    named = table.snapshot.schema.field_by_path([name])
    column = None if named is None else named.field
    if column is None or column.name not in source.column_names:
        where = "table" if column is None else "source"
        raise MergeKeyRefused(column=name, table=table.name, why=f"the {where} has no such column")
    data_type = stream_type(column.type)
    if (
        pa.types.is_nested(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_null(data_type)
    ):
        why = f"values of type {data_type} are not compared here as Spark compares them"
        raise MergeKeyRefused(column=name, table=table.name, why=why)
    return str(column.name)


def _condition(keys: pa.Table) -> str:
    """Write what the keys of the source have in common as Spark SQL; it holds for each of them."""
    parts: list[exp.Expression] = []
    for name in keys.column_names:
        values = pc.unique(keys[name]).drop_null()
        column = exp.column(name, quoted=True)
        if not len(values):
            return "false"
        if len(values) <= _MOST_VALUES:
            parts.append(
                exp.In(this=column, expressions=[to_expression(value) for value in values])
            )
        elif not pa.types.is_boolean(values.type):
            ends = pc.min_max(values)
            parts.append(
                exp.Between(
                    this=column, low=to_expression(ends["min"]), high=to_expression(ends["max"])
                )
            )
    return exp.and_(*parts).sql(dialect="spark") if parts else "true"
