"""Maintenance of a table in Python: check, repair, compact, expire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Integral
from typing import TYPE_CHECKING, Final, TypeVar

from pennon.arguments import (
    as_names,
    check_least,
    check_one_of,
    checked_methods,
)
from pennon.catalog.layouts.stored_tables import missed_by_name
from pennon.errors import ArgumentRefused
from pennon.maintenance.checks.check_manifest import CHECK
from pennon.maintenance.compact import COMPACT, DEFAULT_TARGET_BYTES
from pennon.maintenance.expire import EXPIRE_SNAPSHOTS
from pennon.maintenance.leaves.leaf_files import no_progress
from pennon.maintenance.procedures import SET_TRANSACTION_MODE
from pennon.maintenance.repair import REPAIR
from pennon.maintenance.rewrite_partitions import REWRITE_PARTITIONS
from pennon.maintenance.rollback import ROLLBACK
from pennon.maintenance.statistics import ANALYZE
from pennon.maintenance.vacuum import VACUUM
from pennon.notebook import show_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pennon.maintenance.calls.procedure_declaration import Procedure
    from pennon.maintenance.checks.findings import CheckReport
    from pennon.maintenance.compact import Compacted
    from pennon.maintenance.expire import Expired
    from pennon.maintenance.leaves.leaf_files import Progress
    from pennon.maintenance.repair import Repaired
    from pennon.maintenance.rewrite_partitions import RewrittenPartitions
    from pennon.maintenance.statistics import Analyzed
    from pennon.maintenance.vacuum import Vacuumed
    from pennon.transaction.mode_change import ChangedMode

__all__ = ["Maintenance"]

_Result = TypeVar("_Result")
# They leave the rows as they are, so that a table stays at its version.
_NOTHING_TO_READ_ANEW: Final = ("check", "expire_snapshots", "vacuum")


@checked_methods
@dataclass(frozen=True, slots=True)
class Maintenance:
    """The upkeep of one table; what the procedures of SQL and the command line do.

    Args:
        name: The table's name in its catalog, or its path.
        location: Path or URL of the table.
        storage_options: Given to Lance, never printed.
        refresh: Takes the table to the version that a change made.
    """

    name: str
    location: str
    storage_options: Mapping[str, str]
    refresh: Callable[[], object]

    def check(self, version: int | None = None, progress: Progress = no_progress) -> CheckReport:
        """Hold every rule of the format against the files, and compute partition values again.

        Args:
            version: A version of ``__manifest``; None for the newest.
            progress: Called with how far it is.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.check().is_valid
            True
        """
        return self._done(CHECK, progress, version=version)

    def repair(
        self,
        progress: Progress = no_progress,
        *,
        dry_run: bool = False,
        keep_whole_files: bool = False,
    ) -> Repaired:
        """Mend what other writers, clean-ups and lost files did to the table.

        Args:
            progress: Called with how far it is.
            dry_run: Whether to tell only what would be done.
            keep_whole_files: Whether partitions of which files are gone, or torn, keep the rows of
                the others; else they are set aside.

        Raises:
            ManifestNotRepairable: What was lost stands nowhere else.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.repair().columns
            ()
        """
        return self._done(REPAIR, progress, dry_run=dry_run, keep_whole_files=keep_whole_files)

    def expire_snapshots(
        self,
        older_than: datetime | None = None,
        retain_last: int | None = None,
        *,
        dry_run: bool = False,
    ) -> Expired:
        """Remove old versions, and the files that only they read.

        Args:
            older_than: Versions from before this time go, which without a zone is UTC; None for as
                long as the table's ``history.expire.max-snapshot-age-ms`` says, or five days ago.
            retain_last: How many of the newest versions stay whatever their age; None for what the
                table's ``history.expire.min-snapshots-to-keep`` says, or one.
            dry_run: Whether to list only.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.expire_snapshots(retain_last=10).versions
            []
        """
        return self._done(
            EXPIRE_SNAPSHOTS, older_than=older_than, retain_last=retain_last, dry_run=dry_run
        )

    def vacuum(self, older_than: datetime | None = None, *, dry_run: bool = False) -> Vacuumed:
        """Remove files that no version needs: what killed writers and failed statements left.

        Args:
            older_than: Files changed before this time go, which without a zone is UTC; None for
                five days ago.
            dry_run: Whether to list only.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.vacuum(dry_run=True).files
            []
        """
        return self._done(VACUUM, older_than=older_than, dry_run=dry_run)

    def compact(
        self,
        where: str | None = None,
        target_bytes: int = DEFAULT_TARGET_BYTES,
        strategy: str = "binpack",
        *,
        dry_run: bool = False,
    ) -> Compacted:
        """Put the rows of partitions with many small files into few large ones.

        A file of which another commit changes rows meanwhile is left alone; every write that was
        based on the older files goes on.

        Args:
            where: A Spark SQL condition: only partitions that may have a row that satisfies it.
            target_bytes: How large files shall be.
            strategy: ``binpack``, or ``sort``: every partition that is not in the write order.
            dry_run: Whether to list the partitions only.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.compact().leaves
            0
        """
        return self._done(
            COMPACT, where=where, target_bytes=target_bytes, strategy=strategy, dry_run=dry_run
        )

    def analyze(self, columns: Sequence[str] = (), where: str | None = None) -> Analyzed:
        """Count the statistics of columns that the manifest lacks: foreign and adopted rows.

        A partition that another commit moves on meanwhile is left as it is.

        Args:
            columns: Names of columns; none for those that ``write.statistics.columns`` says.
            where: A Spark SQL condition: only partitions that may have a row that satisfies it.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.append([{"letter": "a"}])
            3
            >>> letters.maintenance.analyze(["letter"]).num_rows
            1
        """
        return self._done(ANALYZE, columns=as_names(columns), where=where)

    def rewrite_partitions(
        self, where: str | None = None, *, dry_run: bool = False
    ) -> RewrittenPartitions:
        """Put the rows of partitions of older specs into partitions of the present one.

        Args:
            where: A Spark SQL condition: only partitions that may have a row that satisfies it.
            dry_run: Whether to list the partitions only.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.rewrite_partitions().partitions
            []
        """
        return self._done(REWRITE_PARTITIONS, where=where, dry_run=dry_run)

    def rollback(self, version: int | None = None, *, timestamp: datetime | None = None) -> int:
        """Make an older version the newest one again; the versions between stay readable.

        Args:
            version: The version to bring back.
            timestamp: Instead of a version: what was there at this time.

        Returns:
            The new version.

        Raises:
            ArgumentRefused: Neither a version nor a time is given, or both are.
            SnapshotNotFound: There is no such version, or none that old.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> empty = letters.version
            >>> version = letters.append([{"letter": "a"}])
            >>> version = letters.maintenance.rollback(empty)
            >>> letters.scan().count_rows()
            0
        """
        return self._done(ROLLBACK, version=version, timestamp=timestamp)

    def set_transaction_mode(self, mode: str, progress: Progress = no_progress) -> ChangedMode:
        """Make the table's transactions strong or weak; its rows stay where they are.

        Writers that run meanwhile are refused, or have committed. Those of other clients in weak
        mode know nothing of it and have to be stopped.

        Args:
            mode: ``strong``, or ``weak``: writes commit partition by partition, and every Lance
                client sees their rows.
            progress: Called with how far it is.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.append([{"letter": "a"}])
            3
            >>> letters.maintenance.set_transaction_mode("weak").leaves
            1
            >>> letters.scan().count_rows()
            1
        """
        return self._done(SET_TRANSACTION_MODE, progress, mode=mode)

    def _done(
        self,
        procedure: Procedure[_Result],
        progress: Progress = no_progress,
        **arguments: object,
    ) -> _Result:
        """Run a procedure with arguments that it may have, and take the table to what it made."""
        name = procedure.name
        for one in procedure.own_parameters:
            value = arguments[one.name]
            if isinstance(value, datetime) and value.tzinfo is None:
                arguments[one.name] = value.replace(tzinfo=UTC)
            elif isinstance(value, Integral) and one.least is not None:
                check_least(name, one.name, int(value), one.least)
            elif isinstance(value, str) and one.choices:
                check_one_of(name, one.name, value, one.choices)
        stated = [one for one in procedure.one_of if arguments[one] is not None]
        if procedure.one_of and len(stated) != 1:
            raise ArgumentRefused(
                function=name,
                parameter=procedure.one_of[0],
                why="it is left out" if not stated else f"a {stated[1]} is given, too",
                expected=f"a {' or a '.join(procedure.one_of)}",
            )
        given = {"location": self.location, "storage_options": self.storage_options}
        with (
            missed_by_name(self.name, self.location, self.storage_options),
            show_progress() as shown,
        ):
            progress = shown if progress is no_progress else progress
            done = procedure.run(arguments, **given, progress=progress)
            if name not in _NOTHING_TO_READ_ANEW:
                self.refresh()
        return done
