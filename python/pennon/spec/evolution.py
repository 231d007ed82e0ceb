"""Evolves a partition spec: ADD, DROP and REPLACE PARTITION FIELD, and promotion of its sources.

A field with the sources and the transform of a field of any earlier version takes that field's
id again; every other field gets an id that no version has used. A composed transform (``days(ts)``)
stands for levels: adding it adds the levels that are missing, beside those of the same column;
dropping it drops its levels; replacing it keeps the levels that the new transform needs as well.

An expression is checked against the format's requirements when its field is made. Specs of others
are read without that check.

A promoted source column widens the ``result_type`` of the fields over it in the next version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from pennon.errors import (
    PartitionFieldExists,
    PartitionFieldIdKept,
    PartitionFieldNotFound,
    PartitionSourceNotFound,
    TransformOnWrongType,
)
from pennon.spec.partition_spec import PartitionField, PartitionSpec
from pennon.spec.schema import (
    NamespaceSchema,
    SchemaField,
    checked_name,
    default_name,
    level_name,
    unique_name,
)
from pennon.transforms.expression_checks import check_expression
from pennon.transforms.registry import LEVELS, TransformCall
from pennon.transforms.transform import Transform

__all__ = ["add_field", "drop_field", "promoted_spec", "replace_field", "spec_of"]

_Specs = Mapping[int, PartitionSpec]


def spec_of(
    schema: NamespaceSchema, calls: Sequence[TransformCall], specs: _Specs | None = None
) -> PartitionSpec:
    """Build the spec of a PARTITIONED BY clause.

    Args:
        schema: The full namespace schema.
        calls: The transforms of the clause, outermost level first; none means one leaf.
        specs: The versions that exist already, when a table is replaced.

    Returns:
        Version 1, or the version after the last.

    Raises:
        PartitionFieldExists: Two transforms of the clause mean the same field.
        PartitionExpressionRejected: An expression breaks one of the format's requirements.
        PartitionSourceNotFound: A transform names a column that is not in the schema.

    Spec: "Partition Spec", "Field ID Reuse".
    """
    versions = dict(specs or {})
    spec = PartitionSpec(max(versions, default=0) + 1, ())
    for call in calls:
        spec = replace(spec, fields=_added(versions, spec, schema, call, name=None, place=None))
    spec.check(schema)
    return spec


def add_field(
    specs: _Specs, schema: NamespaceSchema, call: TransformCall, name: str | None = None
) -> PartitionSpec:
    """Add a field, or the missing levels of a composed transform.

    Args:
        specs: Every spec version of the namespace.
        schema: The full namespace schema.
        call: The transform and its columns.
        name: The field's id, or the prefix of the levels' ids; None derives one.

    Returns:
        The next spec version.

    Raises:
        PartitionFieldExists: The current spec has all of it.
        PartitionExpressionRejected: An expression breaks one of the format's requirements.
        InvalidPartitionFieldName: The name is taken or illegal.
        PartitionFieldIdKept: The transform has another id, which is to be used again.
        PartitionSourceNotFound: The transform names a column that is not in the schema.

    Spec: "Evolution Scenarios", "Field ID Reuse".
    """
    following = _following(specs, schema)
    fields = _added(specs, following, schema, call, name=name, place=None)
    return _checked(replace(following, fields=fields), schema)


def drop_field(
    specs: _Specs, schema: NamespaceSchema, dropped: str | TransformCall
) -> PartitionSpec:
    """Drop a field.

    Args:
        specs: Every spec version of the namespace.
        schema: The full namespace schema.
        dropped: A field id, the prefix of a composed transform's levels, or the transform.

    Returns:
        The next spec version.

    Raises:
        PartitionFieldNotFound: The current spec has no such field; the error lists those there.

    Spec: "Evolution Scenarios".
    """
    following = _following(specs, schema)
    gone = _selected(following, schema, dropped)
    return replace(
        following, fields=tuple(field for field in following.fields if field not in gone)
    )


def replace_field(
    specs: _Specs,
    schema: NamespaceSchema,
    dropped: str | TransformCall,
    call: TransformCall,
    name: str | None = None,
) -> PartitionSpec:
    """Drop one field and add another in its place; levels that both need stay.

    Args:
        specs: Every spec version of the namespace.
        schema: The full namespace schema.
        dropped: What to drop, as for ``drop_field``.
        call: What to add.
        name: The new field's id, or the prefix of the levels' ids; None derives one.

    Returns:
        The next spec version.

    Raises:
        PartitionFieldNotFound: There is nothing to drop.
        PartitionFieldExists: What is to be added is there, or nothing would change.
        PartitionExpressionRejected: An expression breaks one of the format's requirements.

    Spec: "Evolution Scenarios" (changing partition expressions).
    """
    following = _following(specs, schema)
    gone = _selected(following, schema, dropped)
    place = min(following.fields.index(partition_field) for partition_field in gone)
    rest = replace(
        following, fields=tuple(field for field in following.fields if field not in gone)
    )
    fields = _added(specs, rest, schema, call, name=name, place=place)
    if fields == following.fields:
        raise PartitionFieldExists(
            transform=_spelled(call),
            field=following.fields[place].field_id,
            spec_version=max(specs),
            reason="is this transform already",
        )
    return _checked(replace(rest, fields=fields), schema)


def promoted_spec(specs: _Specs, schema: NamespaceSchema) -> PartitionSpec | None:
    """Take the current spec over promoted source columns.

    Args:
        specs: Every spec version of the namespace.
        schema: The full namespace schema, with the promoted types.

    Returns:
        The next spec version, its result types as wide as the sources demand; None where the
        current one is wide enough.

    Spec: "Type-promotion resistant", "Field ID Reuse".
    """
    following = _following(specs, schema)
    if following.fields == specs[max(specs)].fields:
        return None
    return _checked(following, schema)


def _following(specs: _Specs, schema: NamespaceSchema) -> PartitionSpec:
    """Take the current spec into the next version, result types widened to promoted sources."""
    current = specs[max(specs)]
    return PartitionSpec(
        current.spec_version + 1,
        tuple(_widened(field, schema) for field in current.fields),
        current.extra,
    )


def _widened(partition_field: PartitionField, schema: NamespaceSchema) -> PartitionField:
    types = [
        source_type
        for source_type in partition_field.source_types(schema)
        if source_type is not None
    ]
    if partition_field.transform is None or len(types) < len(partition_field.source_ids):
        return partition_field
    natural = partition_field.transform.recorded_type(types)
    return (
        partition_field
        if _width(natural) <= _width(partition_field.result_type)
        else replace(partition_field, result_type=natural)
    )


def _width(data_type: pa.DataType) -> int:
    if pa.types.is_decimal(data_type):
        return int(data_type.precision)
    return int(data_type.bit_width) if pa.types.is_primitive(data_type) else 0


def _checked(spec: PartitionSpec, schema: NamespaceSchema) -> PartitionSpec:
    spec.check(schema)
    return spec


def _added(
    specs: _Specs,
    spec: PartitionSpec,
    schema: NamespaceSchema,
    call: TransformCall,
    *,
    name: str | None,
    place: int | None,
) -> tuple[PartitionField, ...]:
    """Give the fields of ``spec`` and those that ``call`` adds, in order of levels."""
    sources = [_source(schema, call, path) for path in call.columns]
    fields = list(spec.fields)
    existing = [field for version in specs.values() for field in version.fields]
    added = 0
    for transform in call.transforms:
        check_expression(transform, [source.field.type for source in sources])
        try:
            new_field = _field(transform, sources)
        except TransformOnWrongType as error:
            # months(i) is made of years first, and nobody typed year.
            raise TransformOnWrongType(
                **{**error.parameters, "transform": _spelled(call)}
            ) from error
        equal = next((field for field in fields if field.derives_as(new_field)), None)
        if equal is not None:
            place = fields.index(equal) + 1 if call.composed else place
            continue
        named = _named(new_field, transform, call, name, existing + fields)
        fields.insert(len(fields) if place is None else place, named)
        place = None if place is None else place + 1
        added += 1
    if not added:
        equal = next(field for field in fields if field.derives_as(new_field))
        raise PartitionFieldExists(
            transform=_spelled(call),
            field=equal.field_id,
            spec_version=spec.spec_version if not specs else max(specs),
            reason="already uses this transform",
        )
    return tuple(fields)


def _source(schema: NamespaceSchema, call: TransformCall, path: tuple[str, ...]) -> SchemaField:
    source = schema.field_by_path(path)
    if source is None:
        raise PartitionSourceNotFound(
            transform=_spelled(call),
            column=".".join(path),
            existing=", ".join(column.name for column in schema.arrow) or "none",
        )
    return source


def _field(transform: Transform, sources: Sequence[SchemaField]) -> PartitionField:
    """Make a field without a name yet."""
    types = [source.field.type for source in sources]
    sql = transform.expression_sql
    return PartitionField(
        "",
        tuple(source.id for source in sources),
        transform if sql is None else None,
        sql,
        transform.result_type(types),
    )


def _named(
    added: PartitionField,
    transform: Transform,
    call: TransformCall,
    name: str | None,
    existing: Sequence[PartitionField],
) -> PartitionField:
    chosen = level_name(name, transform) if name is not None and call.composed else name
    earlier = next(
        (
            partition_field
            for partition_field in reversed(existing)
            if partition_field.derives_as(added)
        ),
        None,
    )
    if earlier is not None:
        if chosen is not None and chosen != earlier.field_id:
            raise PartitionFieldIdKept(name=name, field_id=earlier.field_id)
        wider = max(earlier.result_type, added.result_type, key=_width)
        return replace(earlier, result_type=wider)
    taken = {partition_field.field_id for partition_field in existing}
    if chosen is not None:
        return replace(added, field_id=checked_name(chosen, taken))
    return replace(added, field_id=unique_name(default_name(transform, call.columns), taken))


def _selected(
    spec: PartitionSpec, schema: NamespaceSchema, dropped: str | TransformCall
) -> tuple[PartitionField, ...]:
    """Find the fields that a name or a transform means."""
    if isinstance(dropped, str):
        selected = _by_name(spec, dropped)
        asked = f"'{dropped}'"
    else:
        selected = _by_call(spec, schema, dropped)
        asked = _spelled(dropped)
    if not selected:
        existing = ", ".join(_described(field, schema) for field in spec.fields) or "no field"
        raise PartitionFieldNotFound(
            field=asked, spec_version=spec.spec_version - 1, existing=existing
        )
    return selected


def _by_name(spec: PartitionSpec, name: str) -> tuple[PartitionField, ...]:
    exact = spec.field_by_id(name)
    if exact is not None:
        return (exact,)
    alike = tuple(field for field in spec.fields if field.field_id.lower() == name.lower())
    if len(alike) == 1:
        return alike
    levels = {f"{name.lower()}_{level}" for level in LEVELS}
    return tuple(field for field in spec.fields if field.field_id.lower() in levels)


def _by_call(
    spec: PartitionSpec, schema: NamespaceSchema, call: TransformCall
) -> tuple[PartitionField, ...]:
    sources = [schema.field_by_path(path) for path in call.columns]
    source_columns = [source for source in sources if source is not None]
    if len(source_columns) < len(sources):
        return ()
    matching: list[PartitionField] = []
    for transform in call.transforms:
        try:
            called = _field(transform, source_columns)
        except TransformOnWrongType:  # so there is no such field to drop
            return ()
        matching.extend(field for field in spec.fields if field.derives_as(called))
    if len(matching) < len(call.transforms):
        return ()
    if call.composed is not None:
        # days(ts) is not what a spec with the level hour as well is partitioned by.
        levels = [
            field
            for field in spec.fields
            if field.source_ids == matching[0].source_ids and field.derivation.is_level
        ]
        return tuple(matching) if len(levels) == len(matching) else ()
    return tuple(matching)


def _described(partition_field: PartitionField, schema: NamespaceSchema) -> str:
    names = []
    for source_id in partition_field.source_ids:
        source = schema.field_by_id(source_id)
        names.append(str(source) if source is not None else f"<dropped column {source_id}>")
    return f"'{partition_field.field_id}' = {partition_field.derivation.sql(names)}"


def _spelled(call: TransformCall) -> str:
    columns = [".".join(path) for path in call.columns]
    if call.composed is not None:
        return f"{call.composed}({', '.join(columns)})"
    return call.transforms[0].sql(columns)
