"""A CALL with its arguments checked: what the functions behind procedures are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pennon.catalog.configured_catalog import is_path
from pennon.catalog.directory import Directory
from pennon.catalog.table_name import parts_of
from pennon.predicate.values.time_units import EPOCH
from pennon.spec.column_names import listed_columns

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog
    from pennon.manifest.dataset.storage import StorageOptions

__all__ = ["Arguments", "ProcedureCall"]

Arguments = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ProcedureCall:
    """A CALL of a procedure.

    Args:
        catalog: The catalog that it is called in.
        arguments: Values by parameter name, of their parameters' types.
        time_zone: The session's, in which the times of a condition are read.

    Example:
        >>> from pennon.catalog.configured_catalog import Catalog
        >>> arguments = {"table": "/data/orders/", "older_than": 1_000_000}
        >>> call = ProcedureCall(Catalog("lance", "/lake"), arguments, "UTC")
        >>> call.location, str(call.moment("older_than")), call.flag("dry_run")
        ('/data/orders', '1970-01-01 00:00:01+00:00', False)
    """

    catalog: Catalog
    arguments: Arguments
    time_zone: str

    @property
    def storage(self) -> StorageOptions:
        """The storage options of the catalog."""
        return self.catalog.storage

    @property
    def location(self) -> str:
        """Where the table is, which is named below the catalog or by its path."""
        return self.location_of("table")

    def location_of(self, parameter: str) -> str:
        """Give the location of the table that an argument names."""
        parts = parts_of(self.catalog, self.text(parameter))
        if is_path(parts[0]):
            return parts[0]
        return Directory(self.catalog).registration(parts).location

    def text(self, parameter: str) -> str:
        """Give a text; an empty one where none was given."""
        return self.optional_text(parameter) or ""

    def optional_text(self, parameter: str) -> str | None:
        """Give a text, where one was given."""
        value = self.arguments.get(parameter)
        return value if isinstance(value, str) else None

    def columns(self, parameter: str) -> list[str]:
        """Give the names of columns in a text; none where none was given."""
        return listed_columns(self.text(parameter))

    def number(self, parameter: str) -> int | None:
        """Give a number, where one was given."""
        value = self.arguments.get(parameter)
        return value if isinstance(value, int) else None

    def flag(self, parameter: str) -> bool:
        """Give a boolean; false where none was given."""
        return self.arguments.get(parameter) is True

    def moment(self, parameter: str) -> datetime | None:
        """Give a time, which arrives as microseconds of UTC, where one was given."""
        micros = self.number(parameter)
        return None if micros is None else EPOCH + timedelta(microseconds=micros)

    def of_table(self, table: str) -> ProcedureCall:
        """Give the same call of a table by another name."""
        return replace(self, arguments={**self.arguments, "table": table})
