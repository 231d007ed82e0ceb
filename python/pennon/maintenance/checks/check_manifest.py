"""``pennon check``: every rule of the specification; here those of the rows of ``__manifest``.

Nothing is repaired, and nothing stops the check but a manifest that cannot be opened: what is
damaged is reported, and the rest is checked as far as it can be understood.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from lance.file import LanceFileSession

from pennon.caching.lance_sessions import lance_options
from pennon.errors import CorruptJson, InvalidArrowJson, InvalidNamespaceSchema, PennonError
from pennon.maintenance.calls.procedure_declaration import Procedure, columns_of
from pennon.maintenance.checks.check_leaves import LeafCheck
from pennon.maintenance.checks.findings import (
    CheckReport,
    Finding,
    RawRow,
    RawRows,
    note,
    version_row_of,
    violation,
    warning,
)
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.manifest.dataset.storage import MANIFEST, StorageOptions, open_manifest, storage_failure
from pennon.manifest.draft import is_draft
from pennon.manifest.format.names import SEPARATOR, TABLE_NAME, ObjectId
from pennon.manifest.format.properties import (
    SCHEMA,
    WRITER_FLAGS,
    has_guard,
    has_specs,
    index_definitions,
    index_name,
    user_properties,
)
from pennon.manifest.format.rows import (
    COMMIT,
    NAMESPACE,
    PARTITION_PREFIX,
    PRIMARY_KEY,
    READ_VERSION,
    TABLE,
    TABLE_VERSION,
    partition_columns,
)
from pennon.manifest.repair import properties_in_schema
from pennon.search.indexes import indexed_column
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.spec.partition_spec import is_same_kind
from pennon.spec.schema import children_of, field_id_of
from pennon.spec.write_properties import WriteOrder
from pennon.transforms.expression_checks import check_constant, check_expression

__all__ = ["CHECK", "check"]

# The metadata map of a namespace against the specification: schema, specs, their evolution.

_KEY: Final = re.compile(r"partition_spec_v(.*)", re.DOTALL)
_DEFINITION: Final = "Metadata Definition"
_REUSE: Final = "Partition Spec, Field ID Reuse"
_FIELD_ID: Final = "Partition Spec, Partition Field ID"
_SCHEMA: Final = "Schema"
_FIELD: Final = "Partition Field Schema"


@dataclass(frozen=True, slots=True)
class CheckedMetadata:
    """What could be read of a metadata map, and what is wrong with the rest.

    Args:
        schema: The namespace schema; None where it cannot be read.
        specs: The specs that can be read, by version.
        findings: What was found.
    """

    schema: NamespaceSchema | None
    specs: Mapping[int, PartitionSpec]
    findings: Sequence[Finding]


def check_metadata(metadata: Mapping[str, str]) -> CheckedMetadata:
    """Check the metadata map of ``__manifest``.

    Args:
        metadata: The map.

    Spec: "Metadata Definition", "Schema", "Partition Spec".
    """
    findings: list[Finding] = []
    schema = _schema(metadata, findings)
    specs = _specs(metadata, schema, findings)
    findings += _versions(specs)
    findings += _reuse(specs)
    findings += _definitions(metadata, schema)
    if not has_guard(metadata):
        findings.append(
            note(
                "Manifest Table Schema",
                WRITER_FLAGS,
                "no writer guard is set: upstream's directory namespace would drop the partition"
                " columns at its next change",
            )
        )
    return CheckedMetadata(schema, specs, tuple(findings))


def _definitions(metadata: Mapping[str, str], schema: NamespaceSchema | None) -> Iterator[Finding]:
    """The definitions of indexes: whether they can be read, and have a column."""
    known = index_definitions(metadata)
    for key in sorted(metadata):
        name = index_name(key)
        if name is not None and name not in known:
            problem = "it defines no index that can be understood, and is ignored"
            yield warning(
                _DEFINITION, key, f"{problem}; write it as in docs/search.md, or remove it"
            )
    for definition in known.values():
        if schema is not None and indexed_column(schema.arrow, definition) is None:
            problem = f"{definition.type} has no column with the id {definition.field_id} to be of"
            advice = f"nothing is built; drop_index of {definition.name} takes it out"
            yield warning(_DEFINITION, definition.key, f"{problem}: {advice}")


def _schema(metadata: Mapping[str, str], findings: list[Finding]) -> NamespaceSchema | None:
    text = metadata.get(SCHEMA)
    if text is None:
        findings.append(violation(_DEFINITION, SCHEMA, "the key is missing"))
        return None
    try:
        schema = NamespaceSchema.from_json(text)
    except CorruptJson as error:
        findings.append(violation(_DEFINITION, SCHEMA, error.message))
        return None
    except (InvalidArrowJson, InvalidNamespaceSchema) as error:
        findings.append(violation(_SCHEMA, SCHEMA, error.message))
        return None
    for column in schema.arrow:
        findings.extend(
            violation(_SCHEMA, SCHEMA, f"field '{path}' has no lance:field_id")
            for path in _without_id(column, "")
        )
    names = [column.name for column in schema.arrow]
    findings.extend(
        violation(_SCHEMA, SCHEMA, f"two columns have the name '{name}'")
        for name in sorted({name for name in names if names.count(name) > 1})
    )
    return schema


def _without_id(column: pa.Field, above: str) -> Iterator[str]:
    path = f"{above}{column.name}"
    if field_id_of(column) is None:
        yield path
    for child in children_of(column.type):
        yield from _without_id(child, f"{path}.")


def _specs(
    metadata: Mapping[str, str], schema: NamespaceSchema | None, findings: list[Finding]
) -> dict[int, PartitionSpec]:
    specs: dict[int, PartitionSpec] = {}
    keys = [(key, match.group(1)) for key in metadata if (match := _KEY.fullmatch(key)) is not None]
    if not keys:
        findings.append(violation(_DEFINITION, "metadata", "there is no partition_spec_v<N> key"))
    for key, number in sorted(keys):
        if not (number.isascii() and number.isdecimal()):
            findings.append(violation(_DEFINITION, key, "its N is no number"))
            continue
        try:
            spec = PartitionSpec.from_json(metadata[key], key)
        except CorruptJson as error:
            findings.append(violation(_DEFINITION, key, error.message))
            continue
        except PennonError as error:
            findings.append(violation(_FIELD, key, error.message))
            continue
        if schema is not None:
            findings.extend(_against_schema(spec, schema))
            if not all(_is_computable(field, schema) for field in spec.fields):
                continue
        specs[spec.spec_version] = spec
    return dict(sorted(specs.items()))


def _is_computable(field: PartitionField, schema: NamespaceSchema) -> bool:
    """Whether the values of rows can be computed one by one, and come out the same again."""
    types = [kind for kind in field.source_types(schema) if kind is not None]
    if field.expression is None or len(types) < len(field.source_ids):
        return True
    try:
        check_constant(field.derivation, tuple(types))
    except PennonError:
        return False
    return True


def _against_schema(spec: PartitionSpec, schema: NamespaceSchema) -> Iterator[Finding]:
    for field in spec.fields:
        missing = [number for number in field.source_ids if schema.field_by_id(number) is None]
        if missing:
            yield note(
                "Partition Expression, Column removal resistant",
                f"{spec.key} field '{field.field_id}'",
                f"source id {missing[0]} is not in the schema: it reads as NULL",
            )
    try:
        spec.check(schema)
    except PennonError as error:
        yield violation("Partition Expression", spec.key, error.message)
        return
    for field in spec.fields:
        types = [kind for kind in field.source_types(schema) if kind is not None]
        if field.expression is None or len(types) < len(field.source_ids):
            continue
        try:
            check_expression(field.derivation, types)
        except PennonError as error:
            where = f"{spec.key} field '{field.field_id}'"
            yield violation("Partition Expression", where, error.message)


def _versions(specs: Mapping[int, PartitionSpec]) -> Iterator[Finding]:
    for at, version in enumerate(specs, 1):
        if at != version:
            yield warning(
                "Partition Evolution",
                f"partition_spec_v{version}",
                f"spec versions are not consecutive from 1: version {at} is missing",
            )
            return


def _reuse(specs: Mapping[int, PartitionSpec]) -> Iterator[Finding]:
    seen: list[tuple[str, PartitionField]] = []
    for spec in specs.values():
        for field in spec.fields:
            where = f"{spec.key} field '{field.field_id}'"
            yield from _against_earlier(where, field, seen)
            seen.append((spec.key, field))


def _against_earlier(
    where: str, field: PartitionField, seen: Sequence[tuple[str, PartitionField]]
) -> Iterator[Finding]:
    for key, other in seen:
        is_same_id, is_same_derivation = (
            other.field_id == field.field_id,
            other.derives_as(field),
        )
        if is_same_id and not is_same_derivation:
            yield violation(
                _FIELD_ID, where, f"{key} uses this field id for another source or derivation"
            )
            return
        if is_same_derivation and not is_same_id:
            yield violation(
                _REUSE, where, f"{key} derives the same under field id '{other.field_id}'"
            )
            return
        if is_same_id and not is_same_kind(field.result_type, other.result_type):
            yield violation(
                _FIELD_ID,
                where,
                f"its result_type is {field.result_type}, but {other.result_type} in {key}",
            )
            return
        if not is_same_id and other.field_id.lower() == field.field_id.lower():
            yield warning(_FIELD_ID, where, f"it differs from '{other.field_id}' of {key} in case")
            return


_COLUMNS: Final = "Manifest Table Schema"
_LAYOUT: Final = "Physical Layout and Naming"
_NAMING: Final = "Partition Namespace Naming"
_STRONG: Final = "Multi-Partition Transaction (Strong)"
_NAME: Final = re.compile(r"[a-z0-9]{16}")
_DIRECTORY: Final = re.compile(r"[0-9a-f]{8}_.+", re.DOTALL)


def check_columns(arrow: pa.Schema, specs: Mapping[int, PartitionSpec]) -> Iterator[Finding]:
    """Check the columns of ``__manifest``.

    Args:
        arrow: Its schema.
        specs: The specs that can be read.

    Spec: "Manifest Table Schema".
    """
    by_name = {column.name: column for column in arrow}
    for name in ("object_id", "object_type", "location", "metadata"):
        if name not in by_name:
            yield violation(_COLUMNS, f"column {name}", "it is missing")
        elif by_name[name].type not in (pa.utf8(), pa.large_utf8(), pa.string_view()):
            yield violation(_COLUMNS, f"column {name}", f"it is {by_name[name].type}, not a string")
    key = by_name.get("object_id")
    if key is not None and PRIMARY_KEY not in (key.metadata or {}):
        yield warning(_COLUMNS, "column object_id", "it has no primary-key metadata")
    version = by_name.get(READ_VERSION.name)
    if version is not None and version.type != READ_VERSION.type:
        yield violation(_COLUMNS, "column read_version", f"it is {version.type}, not uint64")
    expected = partition_columns(specs.values())
    for name, kind in expected.items():
        column = by_name.get(name)
        if column is None:
            yield violation(_COLUMNS, f"column {name}", "it is missing")
            continue
        if column.type != kind:
            is_wider = is_same_kind(column.type, kind)
            made = warning if is_wider else violation
            problem = f"it is {column.type}, the result_type is {kind}"
            yield made(_COLUMNS, f"column {name}", problem)
        if not column.nullable:
            yield violation(_COLUMNS, f"column {name}", "it is not nullable")
    for name in by_name:
        if name.startswith(PARTITION_PREFIX) and name not in expected:
            yield note(_COLUMNS, f"column {name}", "no spec version has this partition field")


def leaf_rows(raw: RawRows, specs: Mapping[int, PartitionSpec]) -> list[RawRow]:
    """Give the table rows that are leaves of a spec."""
    return [
        row
        for row in raw.rows
        if row.object_type == TABLE
        and row.parsed is not None
        and row.parsed.is_table
        and row.parsed.spec_version in specs
        and len(row.parsed.namespaces) == len(specs[row.parsed.spec_version].fields)
    ]


def check_rows(
    raw: RawRows, specs: Mapping[int, PartitionSpec], *, are_all_specs_read: bool
) -> Iterator[Finding]:
    """Check the rows of ``__manifest``.

    Args:
        raw: All rows.
        specs: The specs that can be read.
        are_all_specs_read: Whether no spec is unreadable; else rows of unknown specs are not
            reported.

    Spec: "Physical Layout and Naming", "Manifest Table Schema", Appendix C.
    """
    rows = _Rows(raw, specs, raw.codes(), raw.of_type(NAMESPACE), raw.of_type(TABLE))
    yield from rows.ids()
    for row in raw.rows:
        if row.object_type in (NAMESPACE, TABLE):
            if row.parsed is not None:
                yield from rows.own(row, are_all_specs_read=are_all_specs_read)
        elif row.object_type == TABLE_VERSION:
            yield from rows.version(row)
    yield from rows.foreign()
    yield from rows.spec_versions()
    yield from rows.doubled()


@dataclass(frozen=True, slots=True)
class _Rows:
    raw: RawRows
    specs: Mapping[int, PartitionSpec]
    codes: Mapping[str, Sequence[int | None]]
    namespaces: Mapping[str, RawRow]
    tables: Mapping[str, RawRow]
    versions: Mapping[str, Mapping[int, RawRow]] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", self.raw.version_rows())

    def ids(self) -> Iterator[Finding]:
        """Ids are unique, and no two leaves share a directory."""
        counted = Counter(row.object_id for row in self.raw.rows)
        for object_id, count in counted.items():
            if count > 1:
                yield violation(_COLUMNS, f"row {object_id}", f"{count} rows have this object_id")
        leaves = leaf_rows(self.raw, self.specs)
        places = Counter(leaf.location for leaf in leaves if leaf.location)
        for place, count in places.items():
            if count > 1:
                yield violation(_LAYOUT, f"location {place}", f"{count} leaves are there")

    def own(self, row: RawRow, *, are_all_specs_read: bool) -> Iterator[Finding]:
        """A namespace or table below a spec version."""
        parsed, where = row.parsed, f"row {row.object_id}"
        if parsed is None:
            return
        spec = self.specs.get(parsed.spec_version)
        if spec is None:
            if are_all_specs_read:
                problem = f"there is no partition_spec_v{parsed.spec_version}"
                yield violation("Metadata Definition", where, problem)
            return
        for name in parsed.namespaces:
            if _NAME.fullmatch(name) is None:
                problem = f"'{name}' is not 16 characters of a-z and 0-9"
                yield violation(_NAMING, where, problem)
        yield from self._shape(row, spec, where)
        yield from self._parents(row, where)
        yield from self._values(row, spec, where)
        yield from _metadata(row, where)

    def _shape(self, row: RawRow, spec: PartitionSpec, where: str) -> Iterator[Finding]:
        parsed = row.parsed
        if parsed is None:
            return
        depth, levels = len(parsed.namespaces), len(spec.fields)
        if row.object_type == TABLE and not parsed.is_table:
            yield violation(_LAYOUT, where, f"a partition table has the name '{TABLE_NAME}'")
        elif row.object_type == TABLE and depth != levels:
            yield violation(_LAYOUT, where, f"it is {depth} levels deep, the spec has {levels}")
        elif row.object_type == NAMESPACE and (depth > levels or parsed.is_table):
            yield violation(_LAYOUT, where, f"a namespace below the {levels} levels of the spec")
        if row.object_type == TABLE:
            if not row.location:
                yield violation(_LAYOUT, where, "it has no location")
            elif _DIRECTORY.fullmatch(row.location.rsplit("/", 1)[-1]) is None:
                problem = f"its directory is {row.location}, not <hash>_<object_id>"
                yield warning(_LAYOUT, where, problem)
        elif row.location:
            yield warning(_LAYOUT, where, "a namespace has a location")

    def _parents(self, row: RawRow, where: str) -> Iterator[Finding]:
        above, _, _ = row.object_id.rpartition(SEPARATOR)
        if above and above not in self.namespaces:
            yield violation(_LAYOUT, where, f"its parent namespace {above} is not in the manifest")

    def _values(self, row: RawRow, spec: PartitionSpec, where: str) -> Iterator[Finding]:
        """The levels of the row have values equal to its parent's, all other columns are NULL."""
        if row.parsed is None:
            return
        above = self.namespaces.get(row.object_id.rpartition(SEPARATOR)[0])
        own = [
            partition_field.column for partition_field in spec.fields[: len(row.parsed.namespaces)]
        ]
        is_table = row.object_type == TABLE
        for name, codes in self.codes.items():
            if name not in own:
                if codes[row.at] is not None:
                    problem = f"{name} has a value, but is none of its levels"
                    yield violation(_COLUMNS, where, problem)
                continue
            is_inherited = is_table or name != own[-1]
            if above is not None and is_inherited and codes[row.at] != codes[above.at]:
                problem = f"{name} differs from its parent's value"
                yield violation(_COLUMNS, where, f"{problem} (values are inherited)")

    def version(self, row: RawRow) -> Iterator[Finding]:
        """A ``table_version`` row."""
        where, leaf_and_version = f"row {row.object_id}", version_row_of(row.object_id)
        if leaf_and_version is None:
            yield violation(_STRONG, where, "its id is not <table id>$<version>")
            return
        table = self.tables.get(leaf_and_version[0])
        if table is None:
            yield violation(_STRONG, where, f"there is no table {leaf_and_version[0]}")
            return
        if row.read_version is None and READ_VERSION.name in self.raw.table.column_names:
            yield violation(_STRONG, where, "it has no read_version")
        for name, codes in self.codes.items():
            if codes[row.at] is not None and codes[row.at] != codes[table.at]:
                yield violation(_COLUMNS, where, f"{name} differs from its table's value")

    def foreign(self) -> Iterator[Finding]:
        """What other writers added: kept and ignored, but reported."""
        object_types = (NAMESPACE, TABLE, TABLE_VERSION, COMMIT)
        others = Counter(
            row.object_type for row in self.raw.rows if row.object_type not in object_types
        )
        for object_type, count in others.items():
            problem = f"{count} rows of this unknown type are ignored"
            yield note(_COLUMNS, f"object type '{object_type}'", problem)
        for row in self.raw.rows:
            if row.object_type in (NAMESPACE, TABLE) and row.parsed is None:
                problem = f"a {row.object_type} that belongs to no spec version is ignored"
                yield note(_LAYOUT, f"row {row.object_id}", problem)

    def spec_versions(self) -> Iterator[Finding]:
        """A spec with leaves has its namespace; a leaf that names a version has it recorded."""
        written = {
            manifest_row.parsed.spec_version
            for manifest_row in leaf_rows(self.raw, self.specs)
            if manifest_row.parsed
        }
        for number in self.specs:
            # A spec that no row was written with yet need not have one.
            if number in written and str(ObjectId(number)) not in self.namespaces:
                problem = f"the spec version has no namespace row v{number}"
                yield warning(_LAYOUT, f"partition_spec_v{number}", problem)
        for manifest_row in leaf_rows(self.raw, self.specs):
            if manifest_row.read_version is None or manifest_row.is_elsewhere:
                continue
            recorded = {
                row.read_version for row in self.versions.get(manifest_row.object_id, {}).values()
            }
            if manifest_row.read_version not in recorded:
                problem = (
                    f"version {manifest_row.read_version} is not recorded as a table_version row"
                )
                yield warning(_STRONG, f"row {manifest_row.object_id}", problem)

    def doubled(self) -> Iterator[Finding]:
        """One leaf per partition tuple."""
        first: dict[tuple[object, ...], str] = {}
        for manifest_row in leaf_rows(self.raw, self.specs):
            if manifest_row.parsed is None:
                continue
            spec = self.specs[manifest_row.parsed.spec_version]
            if any(one.column not in self.codes for one in spec.fields):
                continue
            codes = (self.codes[one.column][manifest_row.at] for one in spec.fields)
            other = first.setdefault((spec.spec_version, *codes), manifest_row.object_id)
            if other != manifest_row.object_id:
                problem = f"it has the partition values of {other}"
                yield warning("Partition Spec", f"row {manifest_row.object_id}", problem)


def _metadata(row: RawRow, where: str) -> Iterator[Finding]:
    if row.metadata is None:
        return
    try:
        written = json.loads(row.metadata)
    except json.JSONDecodeError as error:
        yield violation(_COLUMNS, where, f"its metadata is no JSON: {error.msg}")
        return
    if not isinstance(written, dict):
        yield violation(_COLUMNS, where, "its metadata is no JSON object")


def check(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    version: int | None = None,
    progress: Progress = no_progress,
) -> CheckReport:
    """Check a partitioned namespace.

    Args:
        location: Path or URL of the namespace.
        storage_options: Given to Lance; never printed.
        version: A version of the manifest; left out, the newest.
        progress: Told after every leaf.

    Returns:
        All violations, warnings and notes, each with its section of the specification.

    Raises:
        NamespaceHasNoManifest: There is nothing to check.
        StorageFailure: The storage refused to open the manifest.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from pennon.manifest import create
        >>> from pennon.spec import NamespaceSchema, PartitionSpec
        >>> place = tempfile.mkdtemp()
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int64()}))
        >>> made = create(place, schema, PartitionSpec(1, ()))
        >>> check(place).is_valid
        True

    Spec: "Metadata Definition", "Schema", "Physical Layout and Naming", "Manifest Table Schema".
    """
    options = storage_options or {}
    manifest = open_manifest(location, version, None, options)
    metadata = check_metadata(dict(manifest.metadata))
    findings: list[Finding] = list(metadata.findings)
    if is_draft(manifest.metadata) and not metadata.specs:
        problem = f"it has the layout of the older draft; `pennon migrate {location}` changes that"
        findings.insert(0, violation("Metadata Definition", "metadata", problem))
    if not metadata.specs and has_specs(properties_in_schema(manifest)):
        problem = f"the schema of __manifest has the specs; `pennon repair {location}` copies them"
        findings.insert(0, violation("Metadata Definition", "metadata", problem))
    findings += check_columns(manifest.schema, metadata.specs)
    raw = RawRows.read(location, manifest)
    are_all_read = len(metadata.specs) == sum(
        key.startswith("partition_spec_v") for key in manifest.metadata
    )
    findings += check_rows(raw, metadata.specs, are_all_specs_read=are_all_read)
    leaves = leaf_rows(raw, metadata.specs)
    num_rows = 0
    if metadata.schema is not None:
        order = WriteOrder.known(user_properties(manifest.metadata), metadata.schema)
        indexes = index_definitions(manifest.metadata)
        checking = LeafCheck(location, metadata.schema, raw, options, order, indexes)
        checking.check(leaves, metadata.specs, progress)
        findings += checking.findings
        num_rows = checking.num_rows
    findings += _strays(location, raw, options)
    return CheckReport(location, manifest.version, len(leaves), num_rows, tuple(findings))


CHECK: Final = Procedure(
    check,
    "Check every rule of the format against the files, and list what is found.",
    columns_of(Finding),
    rows="findings",
    command="check",
)


def _strays(location: str, raw: RawRows, options: StorageOptions) -> list[Finding]:
    """Tell what lies beside the leaves, on any storage that Lance lists."""
    leaf_folders = {row.location.split("/", 1)[0] for row in raw.rows if row.location}
    try:
        session = LanceFileSession(location, storage_options=lance_options(options))
        folders = session.list_with_delimiter().common_prefixes
    except OSError as error:
        problem = storage_failure("list", location, error).message
        return [note("Physical Layout and Naming", "directories", problem)]
    return [
        note(
            "Physical Layout and Naming", f"directory {file_name}", "no row of the manifest has it"
        )
        for file_name in sorted(name.rstrip("/") for name in folders)
        if file_name != MANIFEST and file_name not in leaf_folders
    ]
