"""The mapping of a leaf's columns to the read schema, computed once for equal leaf schemas.

A table has many leaves and few versions of its schema. Matching the fields and rewriting a filter
for one leaf costs as much as reading it does where it has few rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.caching import PerObject
from pennon.leaf.dataset import with_partition_values
from pennon.leaf.read.metadata_columns import is_metadata_column, name_in_lance, of_blob
from pennon.leaf.schema.reconciliation import (
    FieldMatch,
    LeafFields,
    leaf_matching,
    shared_fields,
    stream_schema,
    stream_type,
)
from pennon.predicate.condition import referenced_paths, replaced_references
from pennon.predicate.dialect import DataFusion, read_condition
from pennon.predicate.values.literals import to_expression
from pennon.predicate.values.time_units import UNIT_NAMES
from pennon.spec.arrow_json import EXTENSION_NAME, is_blob
from pennon.spec.column_defaults import initial_default, with_initial_default
from pennon.spec.column_names import check_column
from pennon.spec.schema import children_of, field_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import lance

    from pennon.leaf.schema.reconciliation import LeafMatching

__all__ = ["LeafView", "LeafViews", "arrow_cast", "lacking", "leaf_name"]

# A filter over the namespace's columns, rewritten for one leaf.
#
# NULL rule: a column that the leaf lacks has its initial default in every row, or NULL, here as in
# the rows that are read. A column that the leaf stores in a narrower type is promoted before it is
# compared, so that a literal of the wider type never overflows.

_TYPE_NAMES = {
    pa.bool_(): "Boolean",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.utf8(): "Utf8",
    pa.binary(): "Binary",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
}


def leaf_filter(sql: str, matching: LeafMatching, leaf: str) -> str | None:
    """Rewrite a filter for the names and types that a leaf has.

    Args:
        sql: A condition in the DataFusion dialect, in the namespace's names.
        matching: Where the leaf has the namespace's columns.
        leaf: The leaf's name for errors.

    Returns:
        The condition in the leaf's names; None when no row can satisfy it.

    Raises:
        LeafTypeMismatch: A column that the filter names has a type that does not promote.
    """
    tree = read_condition(sql)
    rewritten = replaced_references(tree, lambda path: _reference(path, matching, leaf))
    is_never = isinstance(rewritten, exp.Null) or (
        isinstance(rewritten, exp.Boolean) and not rewritten.this
    )
    return None if is_never else rewritten.sql(dialect=DataFusion)


def _reference(path: tuple[str, ...], matching: LeafMatching, leaf: str) -> exp.Expression:
    column = matching.by_name.get(path[0]) or pa.field(path[0], pa.null())
    if pa.types.is_null(column.type):  # not of the namespace: the leaf's own name, as it stands
        named = next((field for field in matching.stored if field.name == path[0]), None)
        return exp.Null() if named is None else _column(path)
    match: FieldMatch | None = matching.of([column], leaf)[0]
    value = initial_default(column) if match is None or match.stored is None else None
    referenced, names = column, []
    for depth, name in enumerate(path):
        if depth:
            inner = [child for child in children_of(referenced.type) if child.name == name]
            if not inner:
                return exp.Null()
            value = None if value is None else value[referenced.type.get_field_index(name)]
            referenced = inner[0]
            match = None if match is None else _child(match, referenced)
        if match is None or match.stored is None:
            match = None
        else:
            names.append(match.stored.name)
    if match is None or match.stored is None:
        return lacking(referenced, value)
    reference = _column(tuple(names))
    stored, target = stream_type(match.stored.arrow.type), stream_type(referenced.type)
    return reference if match.children or stored == target else arrow_cast(reference, target)


def lacking(column: pa.Field, value: pa.Scalar | None) -> exp.Expression:
    """Write what a leaf without a column, or a field of it, has there: its default, or NULL."""
    return arrow_cast(exp.Null() if value is None else _constant(value), column.type)


def _child(match: FieldMatch, target: pa.Field) -> FieldMatch | None:
    return next((child for child in match.children if child.expected is target), None) or next(
        (child for child in match.children if child.expected.name == target.name), None
    )


def _column(path: tuple[str, ...]) -> exp.Expression:
    first, *rest = (exp.to_identifier(name, quoted=True) for name in path)
    reference: exp.Expression = exp.Column(this=first)
    for name in rest:
        reference = exp.Dot(this=reference, expression=name)
    return reference


def _constant(value: pa.Scalar) -> exp.Expression:
    """Write a value of any type as DataFusion evaluates it, nested ones by its constructors."""
    data_type = value.type
    if not value.is_valid:
        return exp.Null()
    if pa.types.is_struct(data_type):
        parts: list[exp.Expression] = []
        for at, child in enumerate(data_type):
            parts += [exp.Literal.string(child.name), arrow_cast(_constant(value[at]), child.type)]
        return exp.Anonymous(this="named_struct", expressions=parts)
    if pa.types.is_map(data_type):
        entries = value.values
        sides = [_array(entries.field(at)) for at in range(2)]
        return exp.Anonymous(this="map", expressions=sides)
    if hasattr(data_type, "value_field"):
        return _array(value.values)
    return to_expression(value)


def _array(values: pa.Array) -> exp.Expression:
    parts = [arrow_cast(_constant(value), values.type) for value in values]
    return exp.Anonymous(this="make_array", expressions=parts)


def arrow_cast(value: exp.Expression, data_type: pa.DataType) -> exp.Expression:
    """Cast a value to the plain form of a type; a nested type leaves it as it is."""
    name = _type_name(stream_type(data_type))
    if name is None:
        return value
    return exp.Anonymous(this="arrow_cast", expressions=[value, exp.Literal.string(name)])


def _type_name(data_type: pa.DataType) -> str | None:
    """The type as DataFusion's ``arrow_cast`` spells it; None for a nested one."""
    if pa.types.is_integer(data_type):
        return str(data_type).replace("uint", "UInt").replace("int", "Int")
    if pa.types.is_decimal(data_type):
        return f"Decimal{data_type.bit_width}({data_type.precision}, {data_type.scale})"
    if pa.types.is_timestamp(data_type):
        zone = f'Some("{data_type.tz}")' if data_type.tz else "None"
        return f"Timestamp({UNIT_NAMES[data_type.unit]}, {zone})"
    if pa.types.is_time(data_type):
        return f"Time{data_type.bit_width}({UNIT_NAMES[data_type.unit]})"
    return _TYPE_NAMES.get(data_type)


@dataclass(frozen=True, slots=True)
class LeafView:
    """The requested columns as a leaf has them.

    Args:
        matches: One per requested column.
        condition: The filter in the leaf's names; None for none.
        is_empty: Whether no row of the leaf can satisfy the filter.
        states_nested_ids: Whether a field of the leaf below a column states its id.
        has_blobs: Whether a column is read, or filtered by, whose values Lance keeps beside the
            others: it is asked for their bytes.
        places: Metadata columns of blobs: the leaf's blob of each, and the part of its place.
        is_filtered_here: Whether Lance cannot compute the filter: it compares blobs, or JSON.
    """

    matches: tuple[FieldMatch, ...]
    condition: str | None = None
    is_empty: bool = False
    states_nested_ids: bool = False
    has_blobs: bool = False
    places: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    is_filtered_here: bool = False

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
    def is_provided(self) -> bool:
        """Whether Lance's table provider has all its columns as a scan has them."""
        fields = [match.stored.arrow for match in self.matches if match.stored is not None]
        return not (
            self.has_blobs or self.places or self.is_filtered_here or any(map(_is_opaque, fields))
        )

    @property
    def is_of_plain_columns(self) -> bool:
        """Whether its own columns are numbers, texts and times, by names that are no paths."""
        columns = [match.stored for match in self.matches if match.stored is not None]
        return all(_is_flat(column.arrow.type) for column in columns) and not any(
            mark in column.name for column in columns for mark in "`."
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


def _is_opaque(stored: pa.Field) -> bool:
    """Whether Lance stores other values than it gives: of JSON, and of blobs."""
    return is_blob(stored) or (stored.metadata or {}).get(EXTENSION_NAME) == b"arrow.json"


def _marked(stored: LeafFields) -> tuple[frozenset[str], frozenset[str]]:
    """Name the blobs of a leaf, and all of its opaque columns."""
    blobs = frozenset(field.name for field in stored.fields if is_blob(field.arrow))
    return blobs, frozenset(field.name for field in stored.fields if _is_opaque(field.arrow))


_MARKED: Final[PerObject[LeafFields, tuple[frozenset[str], frozenset[str]]]] = PerObject(_marked)


def _asked(condition: str | None, opaque: frozenset[str]) -> tuple[set[str], bool]:
    """Name opaque columns of a condition; whether more is asked than whether they are NULL."""
    if not opaque or condition is None:
        return set(), False
    columns = [
        column
        for column in read_condition(condition).find_all(exp.Column)
        if column.parts[0].name in opaque
    ]
    tests = [column.find_ancestor(exp.Is) for column in columns]
    is_more = any(
        test is None or test.this is not column or not isinstance(test.expression, exp.Null)
        for column, test in zip(columns, tests, strict=True)
    )
    return {column.parts[0].name for column in columns}, is_more


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
        self._filtered: dict[str, LeafViews] = {}
        self._views: dict[tuple[LeafFields, str | None, bytes], LeafView] = {}
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
        known = with_partition_values(self._known, dataset)
        values = b"" if known is self._known else known.serialize().to_pybytes()
        key = stored, filter_sql, values
        with self._lock:  # leaves are read several at once, and most of them are alike
            view = self._views.get(key)
            if view is None:
                view = self._views[key] = self._view(stored, known, filter_sql, leaf_name(dataset))
        return view

    def with_filtered(self, filter_sql: str) -> LeafViews:
        """Give the views with the columns of a filter behind the requested ones."""
        views = self._filtered.get(filter_sql)
        if views is None:
            paths = referenced_paths(read_condition(filter_sql))
            names = dict.fromkeys(path[0] for path in paths)
            beside = [self._known.field(name) for name in names if name not in self.schema.names]
            views = LeafViews(pa.schema([*self.schema, *beside]), self._known)
            self._filtered[filter_sql] = views
        return views

    def _view(
        self, stored: LeafFields, known: pa.Schema, filter_sql: str | None, leaf: str
    ) -> LeafView:
        own = [column for column in self.schema if not is_metadata_column(column)]
        if known is not self._known:
            filled = {field_id_of(column): column for column in known}
            own = [_with_default_of(column, filled.get(field_id_of(column))) for column in own]
        matching = leaf_matching(known, stored)
        matched = iter(matching.of(own, leaf))
        matches = tuple(
            FieldMatch(column, None, ()) if is_metadata_column(column) else next(matched)
            for column in self.schema
        )
        for match in matches:
            if match.stored is not None and "`" in match.stored.name:
                check_column([match.stored.name])
        blobs, opaque = _MARKED.of(stored)
        read = {match.stored.name for match in matches if match.stored is not None}
        states_ids = matching.states_nested_ids
        places = dict(self._places(matching, leaf))
        if filter_sql is None:
            return LeafView(
                matches, states_nested_ids=states_ids, has_blobs=bool(blobs & read), places=places
            )
        condition = leaf_filter(filter_sql, matching, leaf)
        asked, is_more = _asked(condition, opaque)
        return LeafView(
            matches,
            condition,
            is_empty=condition is None,
            states_nested_ids=states_ids,
            has_blobs=bool(blobs & (read | asked)),
            places=places,
            is_filtered_here=is_more,
        )

    def _places(self, matching: LeafMatching, leaf: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """Tell of which blobs of a leaf the requested metadata columns are."""
        for column in self.schema:
            named = of_blob(column.name) if is_metadata_column(column) else None
            blob = None if named is None else matching.by_name.get(named[0])
            if named is None or blob is None:
                continue
            stored = matching.of([blob], leaf)[0].stored
            if stored is not None and is_blob(stored.arrow):
                yield column.name, (stored.name, named[1])


def _with_default_of(column: pa.Field, known: pa.Field | None) -> pa.Field:
    """Give a requested column the initial default that it has in a leaf."""
    return column if known is None else with_initial_default(column, initial_default(known))


def leaf_name(dataset: lance.LanceDataset) -> str:
    """Give the name of a leaf for errors: the last part of its address."""
    return str(dataset.uri).rstrip("/").rsplit("/", 1)[-1]
