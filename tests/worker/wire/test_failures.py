"""What the other side is told of an exception that is none of Pennon's."""

from __future__ import annotations

import errno
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import errors as upstream_errors
from tests.present import present

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.directory import Directory
from pennon.catalog.layouts.plain_snapshot import open_plain
from pennon.catalog.layouts.plain_table import append_plain, stage_plain
from pennon.catalog.partitioning import FieldChange, evolved_spec
from pennon.errors import CatalogRefused, UnsupportedTransform, WriteConflict
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.worker.wire.framing import STORAGE_OPTION_VALUES, describe


@pytest.mark.parametrize(
    ("error", "condition", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/data/x"), "STORAGE_FULL", "/data/x"),
        (OSError("LanceError(IO): No space left on device, /b/x.rs:1:2"), "STORAGE_FULL", "space"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/data/x"),
            "STORAGE_DENIED",
            "/data/x",
        ),
        (OSError("Access Denied for s3://lake/t"), "STORAGE_DENIED", "s3://lake/t"),
        (ValueError("Dataset at path /data/t was not found"), "FILE_GONE", "/data/t"),
        (pa.ArrowInvalid("Failed to parse string"), "VALUES_NOT_CONVERTIBLE", "Failed to parse"),
        (OSError("LanceError(Arrow): odd, /home/x/y.rs:1:2"), "READ_FAILURE", "odd"),
        (KeyError("x"), "INTERNAL_ERROR", "KeyError"),
    ],
)
def test_upstream_failures_become_conditions(error: Exception, condition: str, said: str) -> None:
    told = describe(error)
    assert told["condition"] == condition
    assert said in str(told["message"])
    assert ".rs:" not in str(told["message"])
    assert len(str(told["sqlState"])) == 5


def test_values_of_storage_options_are_blotted_out() -> None:
    STORAGE_OPTION_VALUES.remember({"account_key": "9f8e7d6c5b"})
    told = describe(OSError("signature with 9f8e7d6c5b refused"))
    assert "9f8e7d6c5b" not in str(told)


def test_a_refusal_of_the_implementation_names_the_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = Directory(Catalog("lance", str(tmp_path)))

    class Refusing:
        def list_tables(self, _: object) -> None:
            raise upstream_errors.ServiceUnavailableError("come back later")

        list_namespaces = list_tables

    monkeypatch.setattr(Directory, "_client", Refusing())
    with pytest.raises(CatalogRefused, match="come back later"):
        directory.tables(())


def test_an_incomplete_evolution_is_refused() -> None:
    schema = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int64()}))
    with pytest.raises(UnsupportedTransform, match="incomplete"):
        evolved_spec({1: PartitionSpec(1, ())}, schema, FieldChange("add"))


def test_an_append_to_a_dataset_that_was_replaced_is_a_conflict(tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    lance.write_dataset(pa.table({"a": [1]}), path)
    snapshot = open_plain(path, None, None, {})
    rows = pa.table({"a": [2]})
    staged = stage_plain(path, rows.to_batches(), rows.schema, {})
    lance.write_dataset(pa.table({"b": ["x"]}), path, mode="overwrite")
    assert staged.num_rows == 1
    with pytest.raises(WriteConflict):
        append_plain(present(snapshot), staged.texts)
