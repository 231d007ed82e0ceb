"""The catalog that a session configured: its name, its root and its implementation."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote, urlsplit

from pennon.caching import Cache, TableKey, storage_identity, version_identity
from pennon.caching.lance_sessions import vended
from pennon.errors import (
    ArgumentRefused,
    BytesUnknown,
    CatalogImplementationFixed,
    ExecutionUnknown,
    NamespaceHasNoManifest,
    ReadOptionNotSupported,
    SchemeNotSupported,
    StorageFailure,
    UnknownSetting,
    WriteOptionNotSupported,
)
from pennon.manifest.dataset.storage import address, open_manifest
from pennon.manifest.registered_location import StoredName, stored_name
from pennon.settings import (
    EXECUTION,
    IMPLEMENTATION,
    NAMESPACE_OPTIONS,
    ONE_EXECUTOR_BYTES,
    ONE_TASK_BYTES,
    REPLICATED_BYTES,
    ROOT,
    STORAGE,
    Setting,
    amount_of_bytes,
    catalog_options,
)
from pennon.streams.stream_start import STREAM_OPTIONS

if TYPE_CHECKING:
    import lance

__all__ = [
    "ExecutionOptions",
    "WriteMode",
    "check_options",
    "check_read_options",
    "check_storage_options",
    "known_name",
    "misspelling_of",
    "near_name",
    "near_names",
]

# Suggestions of existing names for one that was not found.

# How like two names are of which one may be suggested for the other.
_SUGGESTED: Final = 0.6
# How like they are where one is taken for the other's misspelling: it is refused, not suggested.
_MISSPELT: Final = 0.8


def near_names(name: str, existing: Sequence[str], kind: str) -> str:
    """Tell the near names, or those there are.

    Example:
        >>> near_names("order", ["orders", "planes"], "tables")
        'did you mean orders'
        >>> near_names("Orders", ["orders", "planes"], "tables")
        'names are case-sensitive, did you mean orders'
    """
    if not existing:
        return f"there are no {kind}"
    same = [candidate for candidate in existing if candidate.casefold() == name.casefold()]
    if same:
        return f"names are case-sensitive, did you mean {' or '.join(same)}"
    close = difflib.get_close_matches(name, existing, n=3, cutoff=_SUGGESTED)
    if close:
        return f"did you mean {' or '.join(close)}"
    shown = ", ".join(existing[:10]) + (", …" if len(existing) > 10 else "")  # noqa: PLR2004
    return f"the {kind} there are {shown}"


def near_name(name: str, existing: Iterable[str]) -> str | None:
    """Give the nearest of some names to suggest for another; None where none is near."""
    return next(iter(difflib.get_close_matches(name, existing, n=1, cutoff=_SUGGESTED)), None)


def misspelling_of(name: str, existing: Iterable[str]) -> str | None:
    """Give the name that was meant by another, be it spelt right or nearly so; None for others.

    Example:
        >>> misspelling_of("replacewere", ["branch", "replacewhere"])
        'replacewhere'
        >>> misspelling_of("path", ["branch", "replacewhere"])
    """
    return next(iter(difflib.get_close_matches(name, existing, n=1, cutoff=_MISSPELT)), None)


# Hadoop, and so Spark, writes a local path with one slash behind it.
_FILE: Final = "file:/"
_PREFIXES_OF_OPTIONS: Final = tuple(it.name.rstrip("*") for it in (STORAGE, NAMESPACE_OPTIONS))


@dataclass(frozen=True, slots=True)
class Catalog:
    """The catalog that a request is about.

    Args:
        name: Its name in SQL.
        root: Path or URL under which the namespaces are; a local one is made absolute, for tasks
            run in folders of their own.
        implementation: Name of a ``lance_namespace`` implementation.
        storage: Storage options, given to Lance and never printed.
        options: What the session states of the catalog now, by the names of the options; of
            storage options no values.
        has_time: Whether the session has the type TIME.
        namespace: Options of the implementation, such as the address of a service; never printed.

    Example:
        >>> lake = Catalog("lance", "file:/data/lake/")
        >>> lake.root, lake.full_name(["shop", "orders"])
        ('/data/lake', 'lance.shop.orders')
    """

    name: str
    root: str
    implementation: str = "dir"
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    has_time: bool = False
    namespace: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", absolute_place(self.root))
        check_storage_options(self.storage)

    @property
    def is_local(self) -> bool:
        """Whether the root is a folder of this machine."""
        return is_local(self.root)

    @property
    def prefix(self) -> str:
        """What all paths and URLs below the root begin with."""
        return self.root.rstrip("/") + "/"

    @property
    def connection(self) -> dict[str, str]:
        """What its implementation is connected with; a service has a place of its own."""
        storage = {f"storage.{key}": value for key, value in self.storage.items()}
        own = {} if self.implementation == "rest" else {"root": self.root, **storage}
        return {**own, **self.namespace}

    def storage_of(self, identifier: Sequence[str]) -> Mapping[str, str]:
        """Give the storage options of a table, with the credentials that a service gives for it.

        Args:
            identifier: Its name, or a path.
        """
        if self.implementation == _DIRECTORY or (len(identifier) == 1 and is_path(identifier[0])):
            return self.storage
        return vended(self.storage, self.implementation, self.connection, identifier)

    def check_implementation(self) -> None:
        """Refuse a session that states another implementation than the catalog began with.

        Raises:
            CatalogImplementationFixed: It does, by a ``SET`` that would do nothing.
        """
        for option, value in self.options.items():
            if option.lower() == IMPLEMENTATION.name and value != self.implementation:
                raise CatalogImplementationFixed(
                    catalog=self.name, implementation=self.implementation, stated=value
                )

    def full_name(self, identifier: tuple[str, ...] | list[str]) -> str:
        """Spell a name as the user types it."""
        return ".".join(quoted(part) for part in (self.name, *identifier))

    def is_below_root(self, location: str) -> bool:
        """Whether a location is inside the root."""
        return location.startswith(self.prefix)

    def address(self, location: str) -> str:
        """Give the path or URL of a location, which may be relative to the root."""
        return plain_path(location) if is_path(location) else self.prefix + location


def check_catalog_options(options: Iterable[str], catalog: str | None = None) -> None:
    """Refuse an option of a catalog that would be kept and do nothing.

    Args:
        options: Their names. Those of the storage and of the implementation may have any.
        catalog: The catalog whose settings in Spark they are; None for arguments of Python.

    Raises:
        UnknownSetting: It says which names are near.

    Example:
        >>> check_catalog_options(["root", "execution", "storage.aws_region"], "lance")
        >>> check_catalog_options(["exection"], "lance")
        Traceback (most recent call last):
            ...
        pennon.errors.UnknownSetting: [UNKNOWN_SETTING] Cannot set \
spark.sql.catalog.lance.exection: a catalog has no option of that name, did you mean execution. \
Write one that it has, or leave it out.
    """
    known = catalog_options()
    # Of their names any letters do: Spark's own map of options finds them.
    in_any_letters = (ROOT.name, IMPLEMENTATION.name)
    for option in options:
        is_known = option in known or (catalog is not None and option.lower() in in_any_letters)
        is_storage = catalog is not None and option.startswith(_PREFIXES_OF_OPTIONS)
        if not is_known and not is_storage:
            name = option if catalog is None else setting_name(catalog, option)
            near = near_names(option, (*known, ROOT.name, STORAGE.name), "options")
            raise UnknownSetting(name=name, near=near)


def setting_name(catalog: str, option: str) -> str:
    """Name an option of a catalog as a session has it.

    Example:
        >>> setting_name("lance", "execution")
        'spark.sql.catalog.lance.execution'
    """
    return f"spark.sql.catalog.{catalog}.{option}"


def quoted(part: str) -> str:
    """Quote a part of a name where SQL needs it.

    Example:
        >>> quoted("orders"), quoted("my table")
        ('orders', '`my table`')
    """
    is_plain = part.replace("_", "a").isalnum() and part.isascii() and not part[0].isdigit()
    return part if is_plain else "`" + part.replace("`", "``") + "`"


def is_path(name: str) -> bool:
    """Whether a name is a path or URL and no name of the catalog."""
    scheme, is_url, _ = name.partition("://")
    return name.startswith(("/", _FILE)) or bool(is_url and "`" not in scheme)


def is_local(place: str) -> bool:
    """Whether a path or URL is of this machine."""
    return "://" not in place or place.startswith(_FILE)


def plain_path(place: str) -> str:
    """Turn a ``file:`` URL, with one slash or three, into a path; take s3a and s3n for s3.

    Example:
        >>> plain_path("file:///data/my%20lake"), plain_path("s3a://bucket/lake")
        ('/data/my lake', 's3://bucket/lake')
    """
    return unquote(urlsplit(place).path) if place.startswith(_FILE) else address(place)


def absolute_place(place: str) -> str:
    """Give a path or URL its one spelling, so that it means the same in every process.

    Raises:
        ArgumentRefused: It begins with the home of a user that is not known.
        SchemeNotSupported: Lance has no store of the URL's scheme.

    Example:
        >>> absolute_place("/data/../lake/"), absolute_place("s3://bucket/lake/")
        ('/lake', 's3://bucket/lake')
    """
    text = plain_path(place)
    if text and is_local(text):
        text = os.path.abspath(_at_home(text))  # noqa: PTH100 - keeps `..` out
    scheme = text.partition("://")[0].lower()
    if "://" in text and scheme not in _SCHEMES:
        meant = _MEANT_BY.get(scheme)
        near = f"did you mean {meant}" if meant else f"those it has are {', '.join(_SCHEMES[:8])}"
        raise SchemeNotSupported(place=text, scheme=scheme, near=near)
    return text.rstrip("/") or text


def _at_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ArgumentRefused(
            function="pennon",
            parameter="path",
            why=f"{path} begins with the home of a user that is not known",
            expected=f"./{path} for a folder of that name",
        ) from error


def stated_place(place: str | os.PathLike[str], parameter: str = "path") -> str:
    """Give a path or URL that a user states its one spelling.

    Args:
        place: The path or URL.
        parameter: What the user calls it.

    Raises:
        ArgumentRefused: It is empty, which would mean the folder that the process runs in, or it
            begins with the home of a user that is not known.
    """
    text = os.fspath(place)
    if not text.strip():
        raise ArgumentRefused(
            function="pennon", parameter=parameter, why="it is empty", expected="a path or URL"
        )
    return absolute_place(text)


# Stores that Lance has, and their options.
#
# object_store passes over an option that it does not know: a misspelt key is no key at all, and the
# request goes out as nobody's. Names are lower case there, in any letters here. Those of the stores
# behind the prefixes are not listed.

_SCHEMES: Final = (
    *("s3", "gs", "az", "abfss", "oss", "cos", "tos", "hf", "goosefs", "s3+ddb"),
    *("memory", "shared-memory", "file", "file+uring", "file-object-store"),
)
_MEANT_BY: Final = {"gcs": "gs", "azure": "az", **dict.fromkeys(("abfs", "wasb", "wasbs"), "abfss")}
_OF_CLIENT: Final = (
    "allow_http allow_invalid_certificates connect_timeout default_content_type http1_only"
    " http2_keep_alive_interval http2_keep_alive_timeout http2_keep_alive_while_idle"
    " http2_max_frame_size http2_only pool_idle_timeout pool_max_idle_per_host"
    " proxy_ca_certificate proxy_excludes proxy_url randomize_addresses request_timeout timeout"
    " user_agent client_max_retries client_retry_timeout download_retry_count"
    " expires_at_millis refresh_offset_millis"
)
_OF_S3: Final = (
    "access_key_id secret_access_key session_token token region default_region endpoint"
    " endpoint_url endpoint_url_s3 endpoint_url_sts bucket bucket_name"
    " virtual_hosted_style_request unsigned_payload"
    " checksum_algorithm metadata_endpoint imdsv1_fallback skip_signature s3_express request_payer"
    " disable_tagging copy_if_not_exists conditional_put container_credentials_relative_uri"
    " container_credentials_full_uri container_authorization_token_file web_identity_token_file"
    " role_arn role_session_name server_side_encryption sse_kms_key_id sse_bucket_key_enabled"
    " sse_customer_key_base64 disable_bulk_delete profile allow_http"
)
_OF_GS: Final = (
    "service_account service_account_path service_account_key bucket bucket_name base_url"
    " application_credentials skip_signature storage_token"
)
_OF_AZURE: Final = (
    "account_name account_key access_key master_key storage_account_name storage_account_key"
    " storage_access_key storage_master_key client_id client_secret tenant_id authority_id"
    " authority_host storage_client_id storage_client_secret storage_tenant_id"
    " storage_authority_id storage_authority_host sas_key sas_token storage_sas_key"
    " storage_sas_token storage_token token bearer_token storage_use_emulator use_emulator"
    " endpoint storage_endpoint msi_endpoint identity_endpoint msi_resource_id object_id"
    " federated_token_file use_fabric_endpoint use_azure_cli skip_signature container_name"
    " disable_tagging fabric_token_service_url fabric_workload_host fabric_session_token"
    " fabric_cluster_identifier storage_account_host"
)
_PREFIXES: Final = {"aws_": _OF_S3, "google_": _OF_GS, "azure_": _OF_AZURE}
_STORAGE_OPTIONS: Final = frozenset(
    {
        *(name for names in (_OF_CLIENT, *_PREFIXES.values()) for name in names.split()),
        *(prefix + name for prefix, names in _PREFIXES.items() for name in names.split()),
    }
)
_OTHER_STORES: Final = (
    "lance_",
    "oss_",
    "cos_",
    "tos_",
    "hf_",
    "goosefs_",
    "opendal_",
    "headers.",
    "pennon.",
)


def check_storage_options(options: Iterable[str]) -> None:
    """Refuse a storage option that no store has.

    Args:
        options: Their names.

    Raises:
        UnknownSetting: It names the nearest option there is, and no value.

    Example:
        >>> check_storage_options(["aws_region", "AWS_ENDPOINT", "allow_http"])
        >>> check_storage_options(["aws_secret_acces_key"])
        Traceback (most recent call last):
            ...
        pennon.errors.UnknownSetting: [UNKNOWN_SETTING] Cannot set storage option \
aws_secret_acces_key: a catalog has no option of that name, did you mean aws_secret_access_key. \
Write one that it has, or leave it out.
    """
    for option in options:
        lowered = option.lower()
        if lowered not in _STORAGE_OPTIONS and not lowered.startswith(_OTHER_STORES):
            meant = near_name(lowered, sorted(_STORAGE_OPTIONS))
            near = "and neither has a store" if meant is None else f"did you mean {meant}"
            raise UnknownSetting(name=f"storage option {option}", near=near)


# What a session says of the execution of queries that read the tables of its catalogs.


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """Who computes what of a query.

    Args:
        in_workers: Whether the workers take part.
        one_task_bytes: Of all inputs of a query, for one task to compute it; 0 for none.
        one_executor_bytes: Of all inputs, for one executor to compute it with all of its cores.
        replicated_bytes: Of the inputs of a join's side, for each worker to evaluate it for itself.
    """

    in_workers: bool
    one_task_bytes: int
    one_executor_bytes: int
    replicated_bytes: int

    @classmethod
    def of_catalog(cls, catalog: str, settings: Mapping[str, str]) -> Self:
        """Read what is said of one catalog.

        Args:
            catalog: Its name.
            settings: The session's, by their names; others may be among them.

        Raises:
            ExecutionUnknown: Neither the workers nor Spark are named.
            BytesUnknown: A limit is no number of bytes.

        Example:
            >>> settings = {"spark.sql.catalog.lance.execution.oneTaskBytes": "1k"}
            >>> ExecutionOptions.of_catalog("lance", settings).one_task_bytes
            1024
        """
        name = setting_name(catalog, EXECUTION.name)
        executed_by = settings.get(name, str(EXECUTION.default))
        if executed_by.strip().lower() not in ("worker", "spark"):
            raise ExecutionUnknown(setting=name, value=executed_by)
        return cls(
            executed_by.strip().lower() == "worker",
            _bytes_of(catalog, ONE_TASK_BYTES, settings),
            _bytes_of(catalog, ONE_EXECUTOR_BYTES, settings),
            _bytes_of(catalog, REPLICATED_BYTES, settings),
        )

    @classmethod
    def of_catalogs(cls, catalogs: Iterable[str], settings: Mapping[str, str]) -> Self:
        """Read what holds for a query that reads tables of several catalogs, of at least one.

        All of them have to leave it to the workers, and the smallest limits hold.
        """
        return reduce(cls._beside, (cls.of_catalog(catalog, settings) for catalog in catalogs))

    def _beside(self, other: Self) -> Self:
        return type(self)(
            self.in_workers and other.in_workers,
            min(self.one_task_bytes, other.one_task_bytes),
            min(self.one_executor_bytes, other.one_executor_bytes),
            min(self.replicated_bytes, other.replicated_bytes),
        )


def _bytes_of(catalog: str, setting: Setting, settings: Mapping[str, str]) -> int:
    name = setting_name(catalog, setting.name)
    stated = settings.get(name, str(setting.default))
    amount = amount_of_bytes(stated)
    if amount is None:
        raise BytesUnknown(setting=name, value=stated)
    return amount


# Read options of other formats, and misspelt ones: not the rows that they mean would be read.

_VERSION: Final = "Write option('versionAsOf', …) with a version or a tag"
_TIME: Final = "Write option('timestampAsOf', …)"
_CHANGES: Final = "Read {table}.changes WHERE _commit_version BETWEEN … AND …"
_INSTEAD: Final[Mapping[str, str]] = {
    "version": _VERSION,
    "snapshot-id": _VERSION,
    "tag": _VERSION,
    "timestamp": _TIME,
    "as-of-timestamp": _TIME,
    "branch": "The format has no branches: leave it out",
    "start-snapshot-id": _CHANGES,
    "end-snapshot-id": _CHANGES,
    "start-timestamp": _CHANGES,
    "end-timestamp": _CHANGES,
    "readchangefeed": _CHANGES,
    "readchangedata": _CHANGES,
}
_OWN: Final = ("versionAsOf", "timestampAsOf", *STREAM_OPTIONS)


def check_read_options(table: str, options: Mapping[str, str]) -> None:
    """Refuse options that choose rows in another format, or would if they were spelt right.

    Args:
        table: The table's name.
        options: Of the read; what is near to no option that is known is passed over.

    Raises:
        ReadOptionNotSupported: It says what to write instead.

    Example:
        >>> check_read_options("lance.shop.orders", {"versionAsOf": "3"})
    """
    for option in options:
        advice = _advice(option.lower())
        if advice is not None:
            raise ReadOptionNotSupported(
                table=table, option=option, advice=advice.format(table=table)
            )


def _advice(option: str) -> str | None:
    own = {name.lower(): name for name in _OWN}
    if option in own:
        return None
    meant = misspelling_of(option, [*_INSTEAD, *own])
    if meant is None:
        return None
    return _INSTEAD.get(meant) or f"Write {own[meant]} if that is meant"


# What a directory says of a name, kept as long as its manifest stays at one version.
#
# Spark loads each table of a query twice. To open the newest version of the manifest costs a fifth
# of a search in it, and tells all changes, whoever made them: none is made without a new version.

_DIRECTORY: Final = "dir"
_ENTRY_BYTES: Final = 1 << 10
_known: Final[Cache[StoredName]] = Cache(
    "names of directories", max_bytes=4096 * _ENTRY_BYTES, weigh=lambda _: _ENTRY_BYTES
)


def known_name(
    catalog: Catalog, name: tuple[str, ...], describe: Callable[[], Mapping[str, str] | None]
) -> StoredName:
    """Tell what a name is now: a namespace with its properties, free, or something else.

    A name is called free only where the catalog need not be asked for a table of that name.

    Args:
        catalog: Whose name it is.
        name: Its parts.
        describe: Asks the catalog for the properties; None where it has no namespace of that name.
    """
    opened = _root(catalog)
    if opened is None:
        return StoredName(False, describe())
    manifest, root = opened

    def described() -> StoredName:
        stored = None
        if not catalog.is_local:  # the implementation asks for more than it answers
            stored = stored_name(manifest, root, name, catalog.storage)
        if stored is None or (stored.is_free and len(name) == 1):  # it may be that of a folder
            return StoredName(False, describe())
        return stored

    # An answer of a version that comes in between is not asked for under this one again.
    return _known.find(replace(root, detail=name), described)


def _root(catalog: Catalog) -> tuple[lance.LanceDataset, TableKey] | None:
    """Open the newest version of the root; None where there are no versions to tell."""
    if catalog.implementation != _DIRECTORY:
        return None
    root = catalog.root
    try:
        manifest = open_manifest(
            root, storage_options=catalog.storage, is_read_only=True, is_kept=True
        )
    except (NamespaceHasNoManifest, StorageFailure):
        return None
    version, identity = int(manifest.version), version_identity(manifest)
    return manifest, TableKey(root, version, identity, storage_identity(catalog.storage))


class WriteMode(StrEnum):
    """What a write does with the rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    """Rows that satisfy the write's condition go; without one, all."""
    OVERWRITE_PARTITIONS = "overwrite_partitions"
    """The partitions go into which the write has rows."""
    DELETE = "delete"
    """Single rows go."""
    UPDATE = "update"
    """Single rows go, and others come for them."""
    MERGE = "merge"
    """Single rows go, and others come."""

    @property
    def is_row_level(self) -> bool:
        """Whether single rows go, named by their ids."""
        return self in (WriteMode.DELETE, WriteMode.UPDATE, WriteMode.MERGE)

    def described(self, table: str, predicates: Sequence[str]) -> str:
        """What EXPLAIN says of a write.

        Example:
            >>> WriteMode.OVERWRITE.described("lance.shop.orders", ["id = 1"])
            'overwrite lance.shop.orders where id = 1'
        """
        match self:
            case WriteMode.APPEND:
                return f"append to {table}"
            case WriteMode.OVERWRITE:
                return f"overwrite {table} where {' AND '.join(predicates)}"
            case WriteMode.OVERWRITE_PARTITIONS:
                return f"overwrite partitions of {table}"
        return f"{self} rows of {table}"


# Write options of other formats, as they are spelt or nearly so: they would be ignored.

_OVERWRITE: Final = (
    "Call df.writeTo(…).overwrite(condition) or .overwritePartitions(), or set"
    " spark.sql.sources.partitionOverwriteMode for INSERT OVERWRITE"
)
_ONCE: Final = "Write by writeStream.toTable(…), whose batches are written once"
_ISOLATION: Final = "Set the table property write.<statement>.isolation-level"
_SUMMARY: Final = (
    "A commit has no words of its own: name its version by ALTER TABLE … CREATE TAG, or keep them"
    " in a column"
)
_INSTEAD_OF_WRITE_OPTION: Final[Mapping[str, str]] = {
    "branch": "The format has no branches: write to a copy made by CREATE TABLE … AS SELECT",
    "tag": "Tags name versions and are not written to: leave it out",
    "replacewhere": "Call df.writeTo(…).overwrite(condition), or write INSERT INTO … REPLACE WHERE",
    "overwrite-mode": _OVERWRITE,
    "partitionoverwritemode": _OVERWRITE,
    "txnappid": _ONCE,
    "txnversion": _ONCE,
    "isolation-level": _ISOLATION,
    "validate-from-snapshot-id": _ISOLATION,
    "output-spec-id": "Leave it out: rows are written by the newest partition spec",
    "write-format": "Leave it out: files are Lance's",
    "delete-format": "Leave it out: files are Lance's",
    "delete-granularity": "Leave it out: each fragment has deletions of its own",
    "compression-codec": "Leave it out: files are Lance's",
    "compression-level": "Leave it out: files are Lance's",
    "compression-strategy": "Leave it out: files are Lance's",
    "target-file-size-bytes": "Call system.compact(table => …, target_bytes => …)",
    "distribution-mode": "Leave it out: rows are distributed by partition",
    "use-table-distribution-and-ordering": "Leave it out: tables say how rows are written",
    "fanout-enabled": "Leave it out: rows are clustered by partition",
    "check-nullability": "Leave it out: NOT NULL always holds",
    "check-ordering": "Leave it out: columns are written by their names with df.writeTo(…)",
    "usermetadata": _SUMMARY,
    "optimizewrite": "Leave it out: rows are clustered by partition",
}
# Names that begin so: what follows is the user's.
_FAMILIES: Final[Mapping[str, str]] = {"snapshot-property.": _SUMMARY}


def check_options(table: str, options: Mapping[str, str]) -> None:
    """Refuse options that say which rows are replaced, where, how often, or in which files.

    Args:
        table: The table's name.
        options: Of the write; what is near to none of Iceberg's and Delta's is passed over.

    Raises:
        WriteOptionNotSupported: It says what to write instead.

    Example:
        >>> check_options("lance.shop.orders", {"path": "…"})
    """
    for option in options:
        name = option.lower()
        family = (advice for start, advice in _FAMILIES.items() if name.startswith(start))
        meant = misspelling_of(name, _INSTEAD_OF_WRITE_OPTION)
        advice = next(family, None) if meant is None else _INSTEAD_OF_WRITE_OPTION[meant]
        if advice is not None:
            raise WriteOptionNotSupported(table=table, option=option, advice=advice)
