"""``pennon.open`` and ``pennon.create``: a table by its path."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from pennon.arguments import as_names, checked
from pennon.catalog.configured_catalog import Catalog, stated_place
from pennon.catalog.ddl import table_ddl
from pennon.catalog.tables.loaded_table import load
from pennon.draft import open_snapshot
from pennon.errors import SchemaNotUnderstood, TableNotFound
from pennon.namespace.partitioned_namespace import PartitionedNamespace
from pennon.transforms.transform_text import parse_transform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["create_namespace", "made_table", "open_namespace"]

_NAME = "pennon"


@checked("pennon.open", runs_lance=True)
def open_namespace(
    path: str | os.PathLike[str],
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedNamespace:
    """Open a table by its path; ``pennon.open`` is this function.

    Args:
        path: Path or URL of a partitioned namespace, or of a plain Lance dataset.
        version: A version of it or a tag, which is then only read; None for the newest.
        storage_options: Given to Lance; never printed.

    Raises:
        NamespaceHasNoManifest: There is nothing.
        PathNotTable: There is something else.
        SnapshotNotFound: There is no such version.
        TableVersionNotFound: There is no such tag.

    Example:
        >>> import pennon
        >>> flights = pennon.open("lake/flights")  # doctest: +SKIP
        >>> flights.scan("time_hour >= TIMESTAMP '2013-07-01'").to_arrow()  # doctest: +SKIP

    Spec: "Metadata Definition".
    """
    location = stated_place(path)
    catalog = _catalog_of(location, storage_options)
    try:
        table = load(catalog, (location,), None if version is None else str(version))
    except TableNotFound:
        open_snapshot(
            location, None, None, catalog.storage
        )  # raises the error that names what is missing
        raise
    return PartitionedNamespace(catalog, table, is_pinned=version is not None)


@checked("pennon.create", runs_lance=True)
def create_namespace(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    partition_by: Sequence[str] = (),
    *,
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedNamespace:
    """Create a table at a path; ``pennon.create`` is this function.

    Args:
        path: Path or URL of a folder that does not exist or is empty.
        schema: Its columns.
        partition_by: As in PARTITIONED BY: ``["months(ordered_at)", "bucket(16, customer_id)"]``.
        properties: Table properties, for example ``{"write.order": "id"}``.
        comment: Its comment.
        storage_options: Given to Lance; never printed.

    Raises:
        TableAlreadyExists: There is a table.
        UnknownTransform: Lists the known ones.
        PartitionSourceNotFound: A transform names a column that is not in the schema.

    Example:
        >>> import pennon, tempfile
        >>> import pyarrow as pa
        >>> schema = pa.schema({"id": pa.int64(), "ordered_at": pa.timestamp("us", "UTC")})
        >>> path = tempfile.mkdtemp() + "/orders"
        >>> orders = pennon.create(path, schema, partition_by=["months(ordered_at)"])
        >>> [field.field_id for field in orders.spec.fields]
        ['ordered_at_year', 'ordered_at_month']

    Spec: "Metadata Definition", "Physical Layout and Naming".
    """
    location = stated_place(path)
    catalog = _catalog_of(location, storage_options)
    stated = {} if comment is None else {"comment": comment}
    return made_table(catalog, (location,), schema, partition_by, {**(properties or {}), **stated})


def made_table(
    catalog: Catalog,
    parts: tuple[str, ...],
    schema: pa.Schema,
    partition_by: Sequence[str],
    properties: Mapping[str, str],
) -> PartitionedNamespace:
    """Create a table by its name or its path.

    Raises:
        SchemaNotUnderstood: The schema is another object.
    """
    if not isinstance(cast("object", schema), pa.Schema):
        kind = type(schema)
        raise SchemaNotUnderstood(type=f"{kind.__module__}.{kind.__qualname__}")
    table = table_ddl.create(
        catalog,
        parts,
        schema=schema,
        transforms=[parse_transform(text) for text in as_names(partition_by)],
        properties=dict(properties),
        mode="create",
    )
    return PartitionedNamespace(catalog, table)


def _catalog_of(location: str, storage_options: Mapping[str, str] | None) -> Catalog:
    above = location.rpartition("/")[0] or "/"
    return Catalog(_NAME, above, storage=dict(storage_options or {}))
