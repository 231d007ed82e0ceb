"""The columns that a query reads or writes: Spark's schema with the namespace's field ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from pennon.catalog.columns.spark_types import CURRENT_DEFAULT
from pennon.catalog.configured_catalog import quoted
from pennon.errors import (
    DefaultNotComputed,
    PennonError,
    StreamColumnLeftOut,
    StreamColumnUnknown,
    TextNotUtf8,
    TextTooLong,
    UnknownColumn,
)
from pennon.execution.run import ComputedColumns
from pennon.leaf.read.metadata_columns import named_metadata_column
from pennon.predicate.values.time_units import is_text
from pennon.spec.column_defaults import INITIAL_DEFAULT
from pennon.spec.column_names import LENGTH_LIMIT, LengthLimit
from pennon.spec.schema import FIELD_ID, NamespaceSchema, SchemaField, children_of, with_children

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "check_stream_columns",
    "column_paths",
    "edit_column",
    "find_column",
    "inside_map_key",
    "is_container_part",
    "place_column",
    "shown_path",
    "valid_texts",
    "with_defaults",
    "with_field_ids",
    "with_length_limits",
    "within_lengths",
]


# Keeps texts to the lengths of CHAR and VARCHAR columns, as Spark's own writes do.
#
# Spark does so in statements. Streams it leaves to the table, and others than Spark know no
# lengths. Spaces at the end that are too many are cut off, any other character is an error; what
# CHAR lacks is filled up with spaces.


def with_length_limits(columns: pa.Schema, table_columns: pa.Schema) -> pa.Schema:
    """Give columns of a query the limits that the table's columns of these names have.

    Args:
        columns: Names in any case.
        table_columns: All columns of the table.
    """
    limits = {
        str(field.name).lower(): (field.metadata or {})[LENGTH_LIMIT.encode()]
        for field in table_columns
        if LengthLimit.of(field) is not None
    }
    return pa.schema(
        [
            field.with_metadata({**(field.metadata or {}), LENGTH_LIMIT.encode(): limits[name]})
            if (name := str(field.name).lower()) in limits
            else field
            for field in columns
        ]
    )


def within_lengths(
    batches: Iterable[pa.RecordBatch], columns: pa.Schema, table: str
) -> Iterator[pa.RecordBatch]:
    """Keep the texts of rows to the lengths of their columns.

    Args:
        batches: The rows.
        columns: With the limits of those that have one, by name in any case.
        table: For errors.

    Raises:
        TextTooLong: A text is longer than its column allows.

    Example:
        >>> columns = pa.schema([pa.field("a", pa.utf8(), metadata={LENGTH_LIMIT: "char(3)"})])
        >>> batches = pa.table({"a": ["x", "yz  ", None]}).to_batches()
        >>> next(within_lengths(batches, columns, "t"))["a"].to_pylist()
        ['x  ', 'yz ', None]
    """
    stated = {str(field.name).lower(): LengthLimit.of(field) for field in columns}
    limits = {name: limit for name, limit in stated.items() if limit is not None}
    for batch in batches:
        limited = {
            at: _within(batch.column(at), limits[name.lower()], name, table)
            for at, name in enumerate(batch.schema.names if limits else ())
            if name.lower() in limits and pa.types.is_string(batch.column(at).type)
        }
        yield _with_columns(batch, limited) if limited else batch


def _with_columns(batch: pa.RecordBatch, replaced: Mapping[int, pa.Array]) -> pa.RecordBatch:
    columns = [replaced.get(at, column) for at, column in enumerate(batch.columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _within(texts: pa.Array, limit: LengthLimit, column: str, table: str) -> pa.Array:
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    if longest > limit.length:
        needed = pc.max(pc.utf8_length(pc.utf8_rtrim(texts, " "))).as_py()
        if needed > limit.length:
            raise TextTooLong(length=needed, column=column, table=table, type=limit)
        texts = pc.utf8_slice_codeunits(texts, 0, limit.length)
    return pc.utf8_rpad(texts, limit.length, " ") if limit.is_fixed else texts


# Refuses texts that are not UTF-8, which Lance takes and nobody can read afterwards.
#
# Spark keeps whatever bytes a STRING is made of: the lines of a file in another encoding, a cast of
# a BINARY. Parquet files may have such texts, too, and Arrow reads them without a look.


def valid_texts(batches: Iterable[pa.RecordBatch], table: str) -> Iterator[pa.RecordBatch]:
    """Give the rows, up to one with a text that is none.

    Args:
        batches: The rows.
        table: For errors.

    Raises:
        TextNotUtf8: A text, which may be part of a nested value, has other bytes than UTF-8.

    Example:
        >>> next(valid_texts(pa.table({"a": ["é"]}).to_batches(), "t"))["a"].to_pylist()
        ['é']
    """
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not _has_texts(column.type):
                continue
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise TextNotUtf8(column=name, table=table) from error
        yield batch


def _has_texts(data_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(data_type):
        return _has_texts(data_type.value_type)
    children = (data_type.field(at).type for at in range(data_type.num_fields))
    return is_text(data_type) or any(map(_has_texts, children))


# The columns of a stream that is written: Spark checks those of statements alone.


def check_stream_columns(table: str, stream: pa.Schema, columns: pa.Schema) -> None:
    """Refuse a stream with another column than its table, or without one that has a DEFAULT.

    The rows of the latter would be NULL there.

    Args:
        table: The table's name, for the error.
        stream: The columns of the stream.
        columns: Those of the table.

    Raises:
        StreamColumnUnknown: It names the column, or the field of a struct.
        StreamColumnLeftOut: It names the column and its default.

    Example:
        >>> import pyarrow as pa
        >>> columns = pa.schema([("id", pa.int64()), ("n", pa.int32())])
        >>> check_stream_columns("t", pa.schema([("ID", pa.int64())]), columns)
    """
    _check_known(table, list(stream), list(columns), ())
    given = {name.lower() for name in stream.names}
    for column in columns:
        default = (column.metadata or {}).get(CURRENT_DEFAULT.encode())
        if default is not None and column.name.lower() not in given:
            raise StreamColumnLeftOut(column=column.name, table=table, default=default.decode())


def _check_known(
    table: str, given: Sequence[pa.Field], own: Sequence[pa.Field], above: tuple[str, ...]
) -> None:
    by_name = {column.name.lower(): column for column in own}
    for field in given:
        column = by_name.get(field.name.lower())
        if column is None:
            raise StreamColumnUnknown(
                column=_spelled((*above, field.name)),
                table=table,
                columns=", ".join(_spelled((*above, other.name)) for other in own),
            )
        _check_below(table, field.type, column.type, (*above, column.name))


def _check_below(table: str, given: pa.DataType, own: pa.DataType, path: tuple[str, ...]) -> None:
    """Look for unknown fields below a column; types that do not match are refused row by row."""
    if pa.types.is_struct(given) and pa.types.is_struct(own):
        _check_known(table, children_of(given), children_of(own), path)
    elif given.id == own.id:  # keys, items and entries pair by their place
        names = ("key", "value") if pa.types.is_map(given) else ("element",)
        pairs = zip(names, children_of(given), children_of(own), strict=False)
        for name, child, other in pairs:
            _check_below(table, child.type, other.type, (*path, name))


def _spelled(path: tuple[str, ...]) -> str:
    return ".".join(map(quoted, path))


# Fills in columns that the rows of a write leave out, where they have a DEFAULT.
#
# A default is the text of Spark SQL that stands in the column's metadata. It is computed once per
# write, as Spark does for a statement; times are those of a session in UTC. NULL is the default of
# a column without one.

_ONE_ROW = pa.record_batch({"row": pa.array([0], pa.int64())})
_NOW = (exp.CurrentTimestamp, exp.CurrentDate)


def with_defaults(
    batches: Iterable[pa.RecordBatch], columns: pa.Schema, table: str
) -> Iterator[pa.RecordBatch]:
    """Add the columns that have a DEFAULT to rows without them.

    Args:
        batches: The rows; names match in any case.
        columns: The table's.
        table: For errors.

    Raises:
        DefaultNotComputed: Only Spark computes the default of a column that is left out.

    Example:
        >>> columns = pa.schema([("a", pa.int32()), ("n", pa.int32())])
        >>> columns = columns.set(1, columns.field(1).with_metadata({CURRENT_DEFAULT: "2 + 3"}))
        >>> next(with_defaults(pa.table({"a": [1, 2]}).to_batches(), columns, "t"))["n"].to_pylist()
        [5, 5]
    """
    texts = {
        column.name: stated.decode()
        for column in columns
        if (stated := (column.metadata or {}).get(CURRENT_DEFAULT.encode())) is not None
    }
    values: dict[str, pa.Scalar] = {}
    for batch in batches:
        given = {name.lower() for name in batch.schema.names}
        for name, text in texts.items():
            if name.lower() in given:
                continue
            if name not in values:
                values[name] = _value(columns.field(name), text, table)
            batch = batch.append_column(  # noqa: PLW2901
                pa.field(name, columns.field(name).type), pa.repeat(values[name], batch.num_rows)
            )
        yield batch


def _value(column: pa.Field, text: str, table: str) -> pa.Scalar:
    try:
        value = _computed(text, table)
        if _is_assignable(value.type, column.type):
            return value.cast(column.type)
    except (PennonError, sqlglot.ParseError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DefaultNotComputed(column=column.name, table=table, default=text) from error
    raise DefaultNotComputed(column=column.name, table=table, default=text)


def _computed(text: str, table: str) -> pa.Scalar:
    tree = sqlglot.parse_one(text, dialect="spark")
    if isinstance(tree, _NOW):
        now = pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC"))
        return now if isinstance(tree, exp.CurrentTimestamp) else now.cast(pa.date32())
    return ComputedColumns([text], _ONE_ROW.schema, table).of(_ONE_ROW)[0][0]


def _is_assignable(given: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow's cast of a value is Spark's store assignment."""
    if given == target or pa.types.is_null(given) or (is_text(given) and is_text(target)):
        return True
    return _is_number(given) and _is_number(target)


def _is_number(data_type: pa.DataType) -> bool:
    is_of = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(data_type) for test in is_of)


# Paths of nested columns as Spark spells them: ``a.element.x``, ``m.key``, ``m.value``.


def find_column(schema: NamespaceSchema, path: Sequence[str]) -> SchemaField | None:
    """Find a column by Spark's path: exactly, else the only one but for case.

    Example:
        >>> columns = pa.schema({"a": pa.list_(pa.struct({"x": pa.int8()}))})
        >>> column = find_column(NamespaceSchema.with_fresh_ids(columns), ["a", "element", "X"])
        >>> column.path
        ('a', 'item', 'x')
    """
    above: pa.DataType | None = None
    names: list[str] = []
    for name in path:
        fields = list(schema.arrow) if above is None else children_of(above)
        shown = [_shown(above, at, field) for at, field in enumerate(fields)]
        places = [at for at, one in enumerate(shown) if one == name] or [
            at for at, one in enumerate(shown) if one.lower() == name.lower()
        ]
        if len(places) != 1:
            return None
        names.append(fields[places[0]].name)
        above = fields[places[0]].type
    return schema.field_by_path(names)


def shown_path(schema: pa.Schema, path: Sequence[str]) -> tuple[str, ...]:
    """Spell the path of a field as Spark does.

    Example:
        >>> shown_path(pa.schema({"a": pa.list_(pa.int8())}), ["a", "item"])
        ('a', 'element')
    """
    fields, above = list(schema), None
    shown = []
    for name in path:
        at = next(at for at, field in enumerate(fields) if field.name == name)
        shown.append(_shown(above, at, fields[at]))
        above = fields[at].type
        fields = children_of(above)
    return tuple(shown)


def is_container_part(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether a path ends at the elements of an array or the keys or values of a map."""
    return _type_of(schema, path[:-1]) not in (None, "struct")


def inside_map_key(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether a path is that of a map's keys, or goes through them."""
    return any(
        _type_of(schema, path[:depth]) == "map"
        and _field_at(schema, path[:depth]).type.key_field.name == path[depth]
        for depth in range(1, len(path))
    )


def _type_of(schema: pa.Schema, path: Sequence[str]) -> str | None:
    if not path:
        return None
    data_type = _field_at(schema, path).type
    if pa.types.is_struct(data_type):
        return "struct"
    return "map" if pa.types.is_map(data_type) else "list"


def _field_at(schema: pa.Schema, path: Sequence[str]) -> pa.Field:
    fields = list(schema)
    for name in path:
        field_ = next(field for field in fields if field.name == name)
        fields = children_of(field_.type)
    return field_


def _shown(above: pa.DataType | None, at: int, field: pa.Field) -> str:
    if above is None or pa.types.is_struct(above):
        return str(field.name)
    return ("key", "value")[at] if pa.types.is_map(above) else "element"


# Changes of one column of a schema, at any depth; the other columns stay as they are.

Edit = Callable[[pa.Field], pa.Field | None]


def edit_column(schema: pa.Schema, path: Sequence[str], edit: Edit) -> pa.Schema:
    """Replace a column by what ``edit`` makes of it, or leave it out for None.

    Example:
        >>> edit_column(pa.schema({"a": pa.int8()}), ["a"], lambda column: column.with_name("b"))
        b: int8
    """
    return pa.schema(_edited(list(schema), tuple(path), edit), metadata=schema.metadata)


def place_column(
    schema: pa.Schema, path: Sequence[str], added: pa.Field | None, position: object
) -> pa.Schema:
    """Add a column, or move one that is there (``added`` None).

    Args:
        schema: The columns.
        path: The column.
        added: The new column; None moves the one at ``path``.
        position: ``{"first": true}``, ``{"after": name}``, or None for the end.
    """

    def placed(siblings: list[pa.Field]) -> list[pa.Field]:
        own = added
        if own is None:
            own = next(sibling for sibling in siblings if sibling.name == path[-1])
            siblings = [sibling for sibling in siblings if sibling.name != path[-1]]
        at = len(siblings)
        if isinstance(position, dict) and position.get("first"):
            at = 0
        elif isinstance(position, dict) and "after" in position:
            names = [sibling.name for sibling in siblings]
            if position["after"] not in names:
                raise UnknownColumn(column=position["after"], columns=", ".join(names))
            at = names.index(position["after"]) + 1
        return [*siblings[:at], own, *siblings[at:]]

    above = tuple(path[:-1])
    if not above:
        return pa.schema(placed(list(schema)), metadata=schema.metadata)

    def inside(parent: pa.Field) -> pa.Field:
        return parent.with_type(pa.struct(placed(list(parent.type))))

    return edit_column(schema, above, inside)


def _edited(siblings: list[pa.Field], path: tuple[str, ...], edit: Edit) -> list[pa.Field]:
    name, *below = path
    if all(sibling.name != name for sibling in siblings):
        raise UnknownColumn(column=name, columns=", ".join(sibling.name for sibling in siblings))
    edited_fields: list[pa.Field] = []
    for sibling in siblings:
        if sibling.name != name:
            edited_fields.append(sibling)
            continue
        if below:
            children = _edited(children_of(sibling.type), tuple(below), edit)
            edited_fields.append(sibling.with_type(with_children(sibling.type, children)))
            continue
        edited = edit(sibling)
        if edited is not None:
            edited_fields.append(edited)
    return edited_fields


def with_field_ids(pruned: pa.Schema, full: pa.Schema) -> pa.Schema:
    """Give each field of a pruned schema the id and the default of its namesake in the full one.

    Args:
        pruned: Spark's schema in Arrow's types; nested fields may be left out, and metadata
            columns stand among the others.
        full: The namespace schema.

    Raises:
        UnknownColumn: The full schema has no such column.
    """
    metadata = [
        None if full.get_all_field_indices(field.name) else named_metadata_column(field)
        for field in pruned
    ]
    pairs = list(zip(pruned, metadata, strict=True))
    own = iter(_matched([pair for pair, hidden in pairs if hidden is None], full))
    return pa.schema([hidden or next(own) for _, hidden in pairs])


def column_paths(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """List the paths of the top-level columns and of the fields of structs."""
    stack: list[tuple[tuple[str, ...], pa.Field]] = [((field.name,), field) for field in schema]
    for path, field in stack:
        yield path
        if pa.types.is_struct(field.type):
            stack.extend(((*path, child.name), child) for child in field.type)


def _matched(pruned: Sequence[pa.Field], full: pa.Schema | pa.DataType) -> list[pa.Field]:
    places = [full.get_all_field_indices(field.name) for field in pruned]
    lowered: dict[str, list[pa.Field]] = {}
    for column in full if not all(places) else ():
        lowered.setdefault(column.name.lower(), []).append(column)
    matched = []
    for field, exact in zip(pruned, places, strict=True):
        alike = [full.field(exact[0])] if exact else lowered.get(field.name.lower(), [])
        if len(alike) != 1:
            raise UnknownColumn(column=field.name, columns=", ".join(one.name for one in full))
        matched.append(_with_id(field, alike[0]))
    return matched


def _with_id(field: pa.Field, source: pa.Field) -> pa.Field:
    below = children_of(field.type)
    if below:
        sources = children_of(source.type)
        if not pa.types.is_struct(field.type):  # keys, items and entries pair by their place
            children = [_with_id(*pair) for pair in zip(below, sources, strict=False)]
            children += below[len(children) :]
        else:
            children = _matched(below, source.type)
        field = field.with_type(with_children(field.type, children))
    kept = {
        key: entry
        for key, entry in (source.metadata or {}).items()
        if key in (FIELD_ID, INITIAL_DEFAULT)
    }
    return field.with_metadata(kept or None)
