"""The mapping of a leaf's columns to the read schema, computed once for equal leaf schemas.

A table has many leaves and few versions of its schema. Matching the fields and rewriting a filter
for one leaf costs as much as reading it does where it has few rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.caching import PerObject
from pennon.leaf.read.leaf_filter import leaf_filter
from pennon.leaf.read.metadata_columns import is_metadata_column, name_in_lance
from pennon.leaf.schema.promotion import stream_schema, stream_type
from pennon.leaf.schema.reconciliation import (
    FieldMatch,
    LeafFields,
    leaf_matching,
    shared_fields,
)
from pennon.spec.column_names import check_column

if TYPE_CHECKING:
    import lance

__all__ = ["LeafView", "LeafViews", "leaf_name"]


@dataclass(frozen=True, slots=True)
class LeafView:
    """The requested columns as a leaf has them.

    Args:
        matches: One per requested column.
        condition: The filter in the leaf's names; None for none.
        is_empty: Whether no row of the leaf can satisfy the filter.
        states_nested_ids: Whether a field of the leaf below a column states its id.
    """

    matches: tuple[FieldMatch, ...]
    condition: str | None = None
    is_empty: bool = False
    states_nested_ids: bool = False

    @property
    def names(self) -> list[str]:
        """The columns of the leaf that are read."""
        own = [match.stored.name for match in self.matches if match.stored is not None]
        metadata = dict.fromkeys(map(name_in_lance, self.metadata_columns))
        return [*own, *(name for name in metadata if name is not None)]

    @property
    def metadata_columns(self) -> list[pa.Field]:
        """The requested columns that are none of the table's."""
        return [match.expected for match in self.matches if is_metadata_column(match.expected)]

    @property
    def is_flat(self) -> bool:
        """Whether only such columns are read, and no metadata columns."""
        return self.is_of_plain_columns and not self.metadata_columns

    @property
    def is_of_plain_columns(self) -> bool:
        """Whether its own columns are numbers, texts and times, by names that are no paths."""
        fields = [match.stored for match in self.matches if match.stored is not None]
        return all(_is_flat(field.arrow.type) for field in fields) and not any(
            mark in field.name for field in fields for mark in "`."
        )

    @property
    def is_unchecked(self) -> bool:
        """Whether every value has the requested type already, so that no cast can fail."""
        return all(
            match.stored is None or stream_type(match.stored.arrow.type) == match.expected.type
            for match in self.matches
        )


def _is_flat(stored: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(stored)
        or pa.types.is_floating(stored)
        or pa.types.is_boolean(stored)
        or pa.types.is_decimal(stored)
        or pa.types.is_string(stored)
        or pa.types.is_date(stored)
        or pa.types.is_timestamp(stored)
    )


def _own_columns(schema: pa.Schema) -> pa.Schema | None:
    """Leave metadata columns out of a schema; None where it has none."""
    own = [column for column in schema if not is_metadata_column(column)]
    return None if len(own) == len(schema) else pa.schema(own)


_OWN_COLUMNS: Final[PerObject[pa.Schema, pa.Schema | None]] = PerObject(_own_columns)


class LeafViews:
    """The views of leaves in one requested schema. Threads may share it.

    Args:
        schema: Columns of the namespace schema, with their ``lance:field_id``.
        namespace_schema: All columns of the namespace; None where ``schema`` has them all.
    """

    def __init__(self, schema: pa.Schema, namespace_schema: pa.Schema | None = None) -> None:
        self.schema = stream_schema(schema)
        columns = self.schema if namespace_schema is None else namespace_schema
        self._known = columns if (own := _OWN_COLUMNS.of(columns)) is None else own
        self._views: dict[tuple[LeafFields, str | None], LeafView] = {}
        self._lock = Lock()

    def of(self, dataset: lance.LanceDataset, filter_sql: str | None = None) -> LeafView:
        """See a leaf.

        Args:
            dataset: The leaf at the version to read.
            filter_sql: A condition in the DataFusion dialect and in the namespace's names.

        Raises:
            LeafTypeMismatch: A stored type does not promote to the requested one.
            InvalidColumnName: Lance reads no column of such a name.
        """
        stored = shared_fields(dataset)
        with self._lock:  # leaves are read several at once, and most of them are alike
            view = self._views.get((stored, filter_sql))
            if view is None:
                view = self._view(stored, filter_sql, leaf_name(dataset))
                self._views[stored, filter_sql] = view
        return view

    def _view(self, stored: LeafFields, filter_sql: str | None, leaf: str) -> LeafView:
        own = [column for column in self.schema if not is_metadata_column(column)]
        matching = leaf_matching(self._known, stored)
        matched = iter(matching.of(own, leaf))
        matches = tuple(
            FieldMatch(column, None, ()) if is_metadata_column(column) else next(matched)
            for column in self.schema
        )
        for match in matches:
            if match.stored is not None and "`" in match.stored.name:
                check_column([match.stored.name])
        if filter_sql is None:
            return LeafView(matches, states_nested_ids=matching.states_nested_ids)
        condition = leaf_filter(filter_sql, matching, leaf)
        return LeafView(
            matches,
            condition,
            is_empty=condition is None,
            states_nested_ids=matching.states_nested_ids,
        )


def leaf_name(dataset: lance.LanceDataset) -> str:
    """Give the name of a leaf for errors: the last part of its address."""
    return str(dataset.uri).rstrip("/").rsplit("/", 1)[-1]
