"""Errors of the ``__manifest`` table."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class NamespaceHasNoManifest(PennonError):
    """The location holds no ``__manifest`` table."""

    condition = "NOT_A_NAMESPACE"
    template = (
        "Cannot open {location} as a partitioned namespace: it has no __manifest table. "
        "Check the path, or create the namespace; a plain dataset has no partitions to check, "
        "analyze or rewrite."
    )
    sql_state = "42P01"


class TableFilesGone(NamespaceHasNoManifest):
    """The catalog names a table whose folder is not there, or empty."""

    condition = "TABLE_FILES_GONE"
    template = (
        "Cannot open {table}: the catalog names {location}, and no table is there. Restore the"
        " folder from a copy, or drop the table, which then frees its name."
    )
    sql_state = "58030"


class NotPartitionedNamespace(PennonError):
    """The location is a directory namespace without partition specs."""

    condition = "NOT_A_PARTITIONED_NAMESPACE"
    template = (
        "Cannot open {location} as a partitioned namespace: the metadata of its __manifest has no "
        "partition_spec_v<N> key. It holds tables: open one of them, or make it the root of a "
        "catalog (pennon.connect, spark.sql.catalog.<name>.root)."
    )
    sql_state = "42P01"


class NamespaceSchemaMissing(PennonError):
    """The namespace has partition specs, but no schema."""

    condition = "NAMESPACE_SCHEMA_MISSING"
    template = (
        "Cannot open {location}: the metadata of its __manifest has {keys} but no schema key. "
        "Run `pennon repair {location}`, which restores it from an earlier version."
    )
    sql_state = "22032"


class ManifestMetadataLost(PennonError):
    """A foreign writer removed what makes ``__manifest`` a partitioned namespace's."""

    condition = "MANIFEST_METADATA_LOST"
    template = (
        "Cannot read {location}: the metadata of version {version} of its __manifest has no key"
        " {keys}; a writer that does not know it dropped it. "
        "Run `pennon repair {location}`, which restores it from an earlier version."
    )
    sql_state = "55000"


class ManifestColumnsLost(PennonError):
    """A foreign writer rewrote ``__manifest`` without the columns that the specs need."""

    condition = "MANIFEST_COLUMNS_LOST"
    template = (
        "Cannot read {location}: version {version} of its __manifest has no column {columns},"
        " which its "
        "partition specs need; a writer that does not know them dropped them. "
        "Run `pennon repair {location}`, which restores them from an earlier version."
    )
    sql_state = "55000"


class ManifestRowDoubled(PennonError):
    """Two rows of ``__manifest`` are one object: neither readers nor writers know which it is."""

    condition = "MANIFEST_ROW_DOUBLED"
    template = (
        "Cannot use {location}: version {version} of its __manifest has {count} rows with the"
        " object_id {object_id}. Run `pennon repair {location}`, or open an earlier version."
    )
    sql_state = "55000"


class LeafMisnamed(PennonError):
    """A table row's name does not match its spec: its rows would go missing."""

    condition = "LEAF_MISNAMED"
    template = (
        "Cannot read {location}: version {version} of its __manifest has the table row {object_id},"
        " whose name does not match its partition spec (expected {expected}). Correct its"
        " object_id, or delete the row; `pennon check` names every such row."
    )
    sql_state = "55000"


class LeafNotLocated(PennonError):
    """A table row of ``__manifest`` does not say where the files of its partition are."""

    condition = "LEAF_NOT_LOCATED"
    template = (
        "Cannot read {location}: version {version} of its __manifest has no location in the table"
        " row {object_id}. Write the name of the partition's folder into it, or delete the row;"
        " `pennon check` names every such row."
    )
    sql_state = "55000"


class ManifestColumnMissing(PennonError):
    """``__manifest`` lacks a column that every directory namespace has."""

    condition = "MANIFEST_COLUMN_MISSING"
    template = (
        "Cannot read {location}: version {version} of its __manifest has no column {column}, which"
        " the specification lists under Manifest Table Schema. Add it as a {expected}; one named"
        " metadata may be NULL in every row."
    )
    sql_state = "55000"


class ManifestColumnType(PennonError):
    """A partition column of ``__manifest`` has a type that its spec does not allow."""

    condition = "MANIFEST_COLUMN_TYPE"
    template = (
        "Cannot read {location}: column {column} of its __manifest is {actual}, but the "
        "partition spec "
        "declares {expected}. Correct the spec's result_type."
    )
    sql_state = "55000"


class SnapshotNotFound(PennonError):
    """No version of the namespace answers the version or the time asked for."""

    condition = "SNAPSHOT_NOT_FOUND"
    template = (
        "Cannot open {location} {asked}: {existing}. Choose a version, or a time, that it has."
    )
    sql_state = "42704"


class SnapshotExpired(PennonError):
    """The version that a query reads has expired meanwhile."""

    condition = "SNAPSHOT_EXPIRED"
    template = (
        "Cannot read {table}: the version that the query began with expired while it was read. Run"
        " the query again, and keep versions for longer than queries take"
        " (history.expire.max-snapshot-age-ms)."
    )
    sql_state = "55000"


class NamespaceExists(PennonError):
    """A namespace is to be created where there is one."""

    condition = "NAMESPACE_LOCATION_EXISTS"
    template = (
        "Cannot create a partitioned namespace at {location}: it has a __manifest table already. "
        "Choose another location, or drop what is there."
    )
    sql_state = "42P07"


class ReservedProperty(PennonError):
    """A property's name belongs to the format."""

    condition = "RESERVED_PROPERTY"
    template = (
        "Cannot set property {name}: Pennon keeps its own records under {prefix}. Choose "
        "another name."
    )
    sql_state = "42939"


class StorageFailure(PennonError):
    """The storage below the manifest refused an operation."""

    condition = "STORAGE_FAILURE"
    template = "Cannot {verb} {location}: {problem}. {advice}."
    sql_state = "58030"


class StorageFull(StorageFailure):
    """There is no room left; what was there is as it was."""

    condition = "STORAGE_FULL"
    template = (
        "Cannot {verb} {location}: no space is left there. Make room and run it again;"
        " vacuum gives back what failed writes have left of theirs."
    )
    sql_state = "53100"
