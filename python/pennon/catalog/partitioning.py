"""A partition spec as Spark's transforms, and the statements that evolve it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pennon.errors import PartitionFieldNotFound, UnsupportedTransform
from pennon.spec.evolution import add_field, drop_field, replace_field
from pennon.spec.functions import SpecFunction, spec_functions
from pennon.transforms.registry import TransformCall, from_spark

if TYPE_CHECKING:
    from pennon.spec.partition_spec import PartitionSpec
    from pennon.spec.schema import NamespaceSchema, SchemaField
    from pennon.spec.write_properties import OrderColumn, WriteOrder

__all__ = [
    "FieldChange",
    "calls_of",
    "clustering",
    "evolved_spec",
    "of_columns",
    "partitioned_by",
    "partitioned_by_columns",
    "partitioning",
    "sort_key",
    "sorting",
]

SparkTransform = dict[str, object]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A change of the partition spec.

    Args:
        action: ``add``, ``drop`` or ``replace``.
        transform: The new field as messages have transforms; None for DROP.
        field: The field that goes, as a transform; a column stands for a field's name first. None
            for ADD.
        name: The name after AS.
    """

    action: str
    transform: Mapping[str, object] | None = None
    field: Mapping[str, object] | None = None
    name: str | None = None


def partitioning(spec: PartitionSpec, schema: NamespaceSchema) -> tuple[SparkTransform, ...]:
    """Spell a spec as the transforms that a user types in PARTITIONED BY.

    Args:
        spec: The current spec.
        schema: The full namespace schema.

    Spec: "Partition Spec".
    """
    return tuple(
        _typed(function, _columns(function, schema)) for function in spec_functions(spec, schema)
    )


def partitioned_by(spec: PartitionSpec, schema: NamespaceSchema) -> tuple[str, ...]:
    """Spell a spec as the SQL that a user types in PARTITIONED BY.

    Args:
        spec: The spec.
        schema: The full namespace schema.

    Spec: "Partition Spec".
    """
    return tuple(str(from_spark(transform)) for transform in partitioning(spec, schema))


def partitioned_by_columns(
    spec: PartitionSpec, schema: NamespaceSchema
) -> dict[str, tuple[SchemaField, ...]]:
    """Give the source columns of each transform that `partitioned_by` spells.

    Args:
        spec: The spec.
        schema: The full namespace schema.

    Spec: "Partition Spec".
    """
    sources = (
        tuple(field for id_ in function.source_ids if (field := schema.field_by_id(id_)))
        for function in spec_functions(spec, schema)
    )
    return dict(zip(partitioned_by(spec, schema), sources, strict=True))


def clustering(
    spec: PartitionSpec, schema: NamespaceSchema, *, has_functions: bool = True
) -> tuple[SparkTransform, ...]:
    """Give the transforms by which Spark has to distribute and sort rows before a write.

    A field that Spark cannot evaluate is replaced by its source columns: rows of one partition
    may then come from several tasks, which costs files and is never wrong.

    Args:
        spec: The spec that is written with.
        schema: The full namespace schema.
        has_functions: Whether Spark knows the catalog, which has the transforms' functions.
    """
    transforms: list[SparkTransform] = []
    for function in spec_functions(spec, schema):
        columns = _columns(function, schema)
        for transform in _evaluable(function, columns, has_functions=has_functions):
            if transform not in transforms:
                transforms.append(transform)
    return tuple(transforms)


def sorting(
    spec: PartitionSpec,
    schema: NamespaceSchema,
    order: WriteOrder | None,
    *,
    has_functions: bool = True,
) -> tuple[SparkTransform, ...]:
    """Give what Spark has to sort the rows of a task by before a write.

    Partition by partition, and within each by the write order. Fields that Spark cannot evaluate
    have no part in it then: their source columns before the order's would spoil it.

    Args:
        spec: The spec that is written with.
        schema: The full namespace schema.
        order: The table's write order, if it has one.
        has_functions: Whether Spark knows the catalog.
    """
    if order is None:
        return clustering(spec, schema, has_functions=has_functions)
    transforms: list[SparkTransform] = []
    for function in spec_functions(spec, schema):
        if _is_evaluable(function, has_functions=has_functions):
            columns = _columns(function, schema)
            transforms += _evaluable(function, columns, has_functions=has_functions)
    return (*transforms, *map(sort_key, order.columns))


def of_columns(
    transforms: Iterable[SparkTransform], names: Iterable[str]
) -> tuple[SparkTransform, ...]:
    """Leave out what is computed of columns that rows come without: there it is constant.

    Args:
        transforms: Of ``clustering`` or ``sorting``.
        names: The columns of the rows, in any case.
    """
    known = {name.casefold() for name in names}

    def is_known(argument: Mapping[str, Sequence[str]]) -> bool:
        return "column" not in argument or argument["column"][0].casefold() in known

    return tuple(
        transform
        for transform in transforms
        if all(map(is_known, cast("list[Mapping[str, Sequence[str]]]", transform["arguments"])))
    )


def sort_key(column: OrderColumn) -> SparkTransform:
    """Write a column of an order as messages have it."""
    return {
        "function": "identity",
        "arguments": [{"column": [column.name]}],
        "desc": column.is_descending,
        "nulls_first": column.nulls_first,
    }


def evolved_spec(
    specs: Mapping[int, PartitionSpec], schema: NamespaceSchema, change: FieldChange
) -> PartitionSpec:
    """Compute the next spec version of ADD, DROP or REPLACE PARTITION FIELD.

    A field that goes is named by its name, else by its column or its transform.

    Args:
        specs: Every spec version.
        schema: The full namespace schema.
        change: What the statement asks for.

    Raises:
        PennonError: As ``pennon.spec.evolution`` states.

    Spec: "Evolution Scenarios".
    """
    call = None if change.transform is None else from_spark(change.transform)
    if change.field is None:
        if call is None:
            raise UnsupportedTransform(transform=change.action, why="the statement is incomplete")
        return add_field(specs, schema, call, change.name)

    def evolve(dropped: str | TransformCall) -> PartitionSpec:
        if call is None:
            return drop_field(specs, schema, dropped)
        return replace_field(specs, schema, dropped, call, change.name)

    return _by_name_or_column(change.field, evolve)


def calls_of(transforms: Sequence[Mapping[str, object]]) -> list[TransformCall]:
    """Read the transforms of a PARTITIONED BY clause."""
    return [from_spark(transform) for transform in transforms]


def _by_name_or_column(
    field: Mapping[str, object], evolve: Callable[[str | TransformCall], PartitionSpec]
) -> PartitionSpec:
    call = from_spark(field)
    if call.composed is not None or not call.transforms[0].is_identity:
        return evolve(call)
    path = call.columns[0]
    try:
        return evolve(".".join(path))
    except PartitionFieldNotFound as not_a_name:
        try:
            return evolve(call)
        except PartitionFieldNotFound:
            raise not_a_name from None


def _columns(function: SpecFunction, schema: NamespaceSchema) -> list[dict[str, object]]:
    sources = [schema.field_by_id(source_id) for source_id in function.source_ids]
    return [{"column": list(source.path)} for source in sources if source is not None]


def _typed(function: SpecFunction, columns: list[dict[str, object]]) -> SparkTransform:
    transform = function.grouping.transform
    literals = [{"literal": parameter} for parameter in transform.parameters]
    return {"function": transform.sql_name, "arguments": [*literals, *columns]}


def _is_evaluable(function: SpecFunction, *, has_functions: bool) -> bool:
    has_name = function.grouping.spark_name is not None
    return has_name and (has_functions or function.grouping.is_identity)


def _evaluable(
    function: SpecFunction, columns: list[dict[str, object]], *, has_functions: bool
) -> list[SparkTransform]:
    name = function.grouping.spark_name
    if not _is_evaluable(function, has_functions=has_functions):
        return [{"function": "identity", "arguments": [column]} for column in columns]
    literals = [{"literal": literal} for literal in function.grouping.transform.spark_literals]
    return [{"function": name, "arguments": [*literals, *columns]}]
