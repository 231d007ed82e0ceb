"""``pennon check``: every rule of the specification against the files of a namespace.

Nothing is repaired, and nothing stops the check but a manifest that cannot be opened: what is
damaged is reported, and the rest is checked as far as it can be understood.
"""

from __future__ import annotations

from typing import Final

from lance.file import LanceFileSession

from pennon.caching.lance_sessions import lance_options
from pennon.maintenance.calls.procedure_declaration import Procedure, columns_of
from pennon.maintenance.checks.check_leaves import LeafCheck
from pennon.maintenance.checks.check_manifest import (
    check_columns,
    check_metadata,
    check_rows,
    leaf_rows,
)
from pennon.maintenance.checks.findings import CheckReport, Finding, RawRows, note, violation
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.manifest.dataset.storage import MANIFEST, StorageOptions, open_manifest, storage_failure
from pennon.manifest.draft import is_draft
from pennon.manifest.format.properties import has_specs, user_properties
from pennon.manifest.repair import properties_in_schema
from pennon.spec.write_order import WriteOrder

__all__ = ["CHECK", "check"]


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
        checking = LeafCheck(location, metadata.schema, raw, options, order)
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
