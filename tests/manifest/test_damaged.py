"""Damaged namespaces: each opens with an error that names the place, and never with a traceback."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.manifest import handmade

import pennon
from pennon import errors
from pennon.cli import main
from pennon.manifest.dataset.storage import storage_failure
from pennon.namespace import read_plan

Damage = Callable[[Path], object]
V2 = "partition_spec_v2"


def metadata(key: str, change: Callable[[dict[str, Any]], Any]) -> Damage:
    """Change the JSON under a metadata key: in place, or to the text that is returned."""

    def damage(root: Path) -> None:
        dataset = lance.dataset(str(root / "__manifest"))
        written = json.loads(dataset.metadata[key])
        text = change(written)
        dataset.update_metadata({key: text if isinstance(text, str) else json.dumps(written)})

    return damage


def first(**changes: object) -> Damage:
    """Change the first field of spec v2; None takes a key away."""

    def change(spec: dict[str, Any]) -> None:
        field = spec["fields"][0]
        field.update(changes)
        for key in [key for key, value in field.items() if value is None]:
            del field[key]

    return metadata(V2, change)


def without(key: str) -> Damage:
    return lambda root: lance.dataset(str(root / "__manifest")).update_metadata({key: None})


def column(**changes: object) -> Damage:
    return metadata("schema", lambda schema: schema["fields"][1].update(changes))


def lost_columns(root: Path) -> None:
    dataset = lance.dataset(str(root / "__manifest"))
    dataset.drop_columns(["partition_field_event_year", "partition_field_country"])


def other_type(root: Path) -> None:
    dataset = lance.dataset(str(root / "__manifest"))
    dataset.drop_columns(["partition_field_country"])
    dataset.add_columns([pa.field("partition_field_country", pa.date32())])


def doubled(root: Path) -> None:
    dataset = lance.dataset(str(root / "__manifest"))
    dataset.insert(dataset.to_table(filter=f"object_id = '{handmade.US}'"))


def renamed(name: str) -> Damage:
    def rename(root: Path) -> None:
        dataset = lance.dataset(str(root / "__manifest"))
        rows = dataset.to_table(filter=f"object_id = '{handmade.US}'")
        dataset.delete(f"object_id = '{handmade.US}'")
        dataset.insert(rows.set_column(0, rows.schema.field(0), pa.array([name])))

    return rename


def unlocated(root: Path) -> None:
    dataset = lance.dataset(str(root / "__manifest"))
    dataset.update({"location": "NULL"}, where=f"object_id = '{handmade.US}'")


def lacking(name: str) -> Damage:
    return lambda root: lance.dataset(str(root / "__manifest")).drop_columns([name])


def cut_manifest(root: Path) -> None:
    for path in (root / "__manifest" / "_versions").glob("*.manifest"):
        path.write_bytes(b"\x00")


def cut_rows(root: Path) -> None:
    for path in (root / "__manifest" / "data").glob("*.lance"):
        path.write_bytes(path.read_bytes()[:50])


def schema_text(text: str) -> Damage:
    return lambda root: lance.dataset(str(root / "__manifest")).update_metadata({"schema": text})


DAMAGED: dict[str, tuple[Damage, type[errors.PennonError], str]] = {
    "unknown transform": (
        first(transform={"type": "zorder"}),
        errors.InvalidPartitionSpec,
        r"partition_spec_v2: transform of fields\[0\] 'event_year' .*zorder.*bucket",
    ),
    "transform without its number": (
        first(transform={"type": "bucket"}),
        errors.InvalidPartitionSpec,
        "partition_spec_v2: transform of .*num_buckets|number of buckets|whole number",
    ),
    "spec id is another": (
        metadata(V2, lambda spec: spec.update(id=7)),
        errors.InvalidPartitionSpec,
        "partition_spec_v2: id has 7, expected the version in the key's name",
    ),
    "leaves of a spec that is gone": (
        without(V2),
        errors.ManifestMetadataLost,
        "no key partition_spec_v2, the spec of leaf v2.*pennon repair",
    ),
    "no schema": (without("schema"), errors.NamespaceSchemaMissing, "no schema key.*pennon repair"),
    "bad type": (
        first(result_type={"type": "int33"}),
        errors.InvalidArrowJson,
        "partition_spec_v2: result_type of .*event_year.*int33",
    ),
    "bad type in the schema": (
        column(type={"type": "datum"}),
        errors.InvalidArrowJson,
        r"schema.fields\[1\].type: found .*datum",
    ),
    "both": (
        first(expression="date_part('year', col0)"),
        errors.InvalidPartitionSpec,
        "event_year' has both transform and expression, expected exactly one",
    ),
    "neither": (
        first(transform=None),
        errors.InvalidPartitionSpec,
        "event_year' has neither transform nor expression, expected exactly one",
    ),
    "cut spec": (
        metadata(V2, lambda spec: json.dumps(spec)[:40]),
        errors.CorruptJson,
        "metadata key partition_spec_v2 .* at line 1, column",
    ),
    "cut schema": (
        metadata("schema", lambda schema: json.dumps(schema)[:-3]),
        errors.CorruptJson,
        "metadata key schema .* at line 1, column",
    ),
    "schema is a list": (schema_text("[]"), errors.CorruptJson, "schema .*expected an object"),
    "two columns of one id": (
        column(metadata={"lance:field_id": "0"}),
        errors.InvalidNamespaceSchema,
        "event_date' has lance:field_id 0, also the id of 'id'",
    ),
    "two columns of one name": (
        column(name="id"),
        errors.InvalidNamespaceSchema,
        "field 'id' has 2 columns of this name, expected a name of its own",
    ),
    "column without id": (
        column(metadata={}),
        errors.InvalidNamespaceSchema,
        "event_date' has no lance:field_id",
    ),
    "source ids are names": (
        first(source_ids=["event_date"]),
        errors.InvalidPartitionSpec,
        "source_ids of .*event_date.*expected an array of field ids",
    ),
    "field twice": (
        metadata(V2, lambda spec: spec["fields"].append(spec["fields"][0])),
        errors.InvalidPartitionSpec,
        "field_id of field 'event_year' .* an id of its own",
    ),
    "result type is not the transform's": (
        first(result_type={"type": "utf8"}),
        errors.InvalidPartitionSpec,
        "result_type of field 'event_year' has string, expected int32",
    ),
    "lost columns": (
        lost_columns,
        errors.ManifestColumnsLost,
        "no column partition_field_event_year, partition_field_country.*pennon repair",
    ),
    "column of another type": (
        other_type,
        errors.ManifestColumnType,
        "partition_field_country of its __manifest is date32",
    ),
    "no spec": (
        lambda root: (without("partition_spec_v1")(root), without(V2)(root), None)[-1],
        errors.ManifestMetadataLost,
        r"no key partition_spec_v<N>.*pennon repair",
    ),
    "volatile expression": (
        first(transform=None, expression="date_part('year', col0) + CAST(random() AS INT)"),
        errors.InvalidPartitionSpec,
        "expression of field 'event_year' .*value of random may change",
    ),
    "aggregate": (
        first(transform=None, expression="max(date_part('year', col0))"),
        errors.InvalidPartitionSpec,
        "expression of field 'event_year' has",
    ),
    "two rows of one leaf": (
        doubled,
        errors.ManifestRowDoubled,
        "has 2 rows with the object_id v2",
    ),
    "leaf above the levels of its spec": (
        renamed("v2$k7m2n9p4q8r5s3t6$dataset"),
        errors.LeafMisnamed,
        r"the table row v2\$k7m2n9p4q8r5s3t6\$dataset, .*a name for each of 2 fields",
    ),
    "leaf of a version with zeros": (
        renamed("v02$k7m2n9p4q8r5s3t6$u3v7w1x5y9z2a4b8$dataset"),
        errors.LeafMisnamed,
        r"v02\$k7m2n9p4q8r5s3t6\$u3v7w1x5y9z2a4b8\$dataset.*\(expected v2, a name",
    ),
    "leaf without a location": (
        unlocated,
        errors.LeafNotLocated,
        r"no location in the table row v2\$e9f0g1h2i3j4k5l6.*\$dataset",
    ),
    "no column metadata": (
        lacking("metadata"),
        errors.ManifestColumnMissing,
        "no column metadata, which .*Add it as a string",
    ),
    "no column location": (
        lacking("location"),
        errors.ManifestColumnMissing,
        "no column location, which ",
    ),
    "no manifest": (
        lambda root: shutil.rmtree(root / "__manifest"),
        errors.NamespaceHasNoManifest,
        "no __manifest table",
    ),
    "cut manifest": (cut_manifest, errors.StorageFailure, "Cannot open"),
    "cut rows": (cut_rows, errors.StorageFailure, "Cannot read"),
}


# An earlier version of the manifest has what is missing.
REPAIRABLE = (
    "lost columns",
    "leaves of a spec that is gone",
    "no schema",
    "no spec",
    "cut spec",
    "cut schema",
    "two rows of one leaf",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(handmade.appendix_c(tmp_path).location)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damage_is_named_by_the_library_and_by_every_command(
    root: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, condition, message = DAMAGED[name]
    damage(root)
    with pytest.raises(condition, match=f"(?s){message}"):
        pennon.open(root).scan().plan()
    commands = [
        ["describe"],
        ["plan", str(root), "id = 1"],
        ["check"],
        ["migrate"],
        *([] if name in REPAIRABLE else [["repair"]]),
        ["adopt", str(root / "nothing"), "--into"],
    ]
    for words in commands:
        full = words if len(words) == 3 and words[0] == "plan" else [*words, str(root)]
        assert main(full) == 1, words
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        if words[0] != "check":
            assert told.err.startswith("["), words
        else:
            assert "violation: " in told.out or told.err.startswith("[")
    if name in REPAIRABLE:
        assert main(["repair", str(root)]) == 0
        assert sorted(pennon.open(root).scan().to_arrow()["id"].to_pylist()) == list(range(1, 9))


def test_a_missing_leaf_is_named_when_it_is_read(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"b4a3c2d1_{handmade.US}"
    shutil.rmtree(root / place)
    plan = pennon.open(root).scan("country = 'US' AND event_date < DATE '2025-12-11'").plan()
    with pytest.raises(errors.LeafMissing) as missing:
        read_plan(plan).to_arrow()
    assert place in str(missing.value)
    # What does not need the leaf is still read.
    other = pennon.open(root).scan("event_date = DATE '2025-12-11' AND country = 'DE'")
    assert other.to_arrow()["id"].to_pylist() == [5]
    assert main(["check", str(root)]) == 1
    capsys.readouterr()
    # Files cannot be made up.
    assert main(["repair", str(root)]) == 0
    told = capsys.readouterr().out
    assert re.search(rf"version \d+ of leaf {re.escape(place)} is gone; it is set aside", told)
    assert main(["check", str(root)]) == 0


def test_a_damaged_file_of_a_leaf_is_named_with_its_table_by_whatever_reads_it(root: Path) -> None:
    place = f"b4a3c2d1_{handmade.US}"
    for file in (root / place / "data").iterdir():
        file.write_bytes(file.read_bytes()[:100])
    table = pennon.open(root)
    reads: tuple[Callable[[], object], ...] = (
        lambda: table.scan().to_arrow(),
        lambda: table.scan("id > 0").count_rows(),
        lambda: table.scan().to_datafusion().collect(),
        lambda: table.delete("id > 0"),
        lambda: table.update({"id": "id + 1"}, "id > 0"),
        lambda: table.merge([{"id": 1}], "id").when_matched_delete().execute(),
    )
    for read in reads:
        with pytest.raises(errors.StorageFailure) as damaged:
            read()
        message = str(damaged.value)
        assert message.startswith(f"[STORAGE_FAILURE] Cannot read {root / place}: LanceError(IO)")
        assert message.endswith("damaged: restore it from a copy, or drop the table.")
        assert ".rs:" not in message


def test_a_leaf_of_another_type_is_named_with_its_column(root: Path) -> None:
    place = f"b4a3c2d1_{handmade.SALES_LATE}"
    rows = pa.table({"id": ["4"], "event_date": pa.array([20433], pa.date32()), "country": ["US"]})
    shutil.rmtree(root / place)
    lance.write_dataset(rows, str(root / place))
    with pytest.raises(errors.LeafTypeMismatch, match=r"column id of leaf .*w1x2y3z4a5b6c7d8"):
        pennon.open(root).scan().to_arrow()


def test_an_older_version_is_read_while_the_newest_is_damaged(root: Path) -> None:
    older = pennon.open(root).version
    num_rows = pennon.open(root).scan().count_rows()
    lance.dataset(str(root / "__manifest")).update_metadata({"note": "the newest version"})
    files = (root / "__manifest" / "_versions").glob("*.manifest")
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:40])
    with pytest.raises(errors.StorageFailure):
        pennon.open(root)
    assert pennon.open(root, version=older).scan().count_rows() == num_rows


_ANSWERED = (
    "LanceError(IO): Generic S3 error: Error performing list request: Error performing GET"
    " http://invalid.store/b?prefix=x in 650.1µs - Server returned non-2xx status code: {status}:"
    ' <?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>It says why.'
    "</Message><AWSAccessKeyId>AKIA7</AWSAccessKeyId></Error>, /lance/rust/object_store.rs:1:42"
)
_TRIED = (
    "LanceError(IO): Generic S3 error: Error performing GET http://invalid.store/b in 441.49ms,"
    " after 3 retries, max_retries: 3, retry_timeout: 180s  - {reason}, /lance/rust/a.rs:1:42"
)
_DEBUG = (
    'Internal error: Failed to create object store: InvalidInput { source: "No object store'
    " provider found for scheme: 's3a'\\nValid schemes: az\", location: Location { line: 2"
)


@pytest.mark.parametrize(
    ("text", "problem", "advice"),
    [
        (
            _ANSWERED.format(status="403 Forbidden", code=code),
            f"the store answers 403 {code} (It says why)",
            advice,
        )
        for code, advice in (
            ("SignatureDoesNotMatch", "Check the access key and its secret"),
            ("InvalidAccessKeyId", "Check the access key and its secret"),
            ("ExpiredToken", "Renew the credentials"),
            ("RequestTimeTooSkewed", "Set the clock"),
            ("NoSuchBucket", "Check the name of the bucket"),
            ("AccessDenied", "Give these credentials the right"),
            ("SlowDown", "The store is overloaded"),
        )
    ]
    + [
        (
            _TRIED.format(reason="HTTP error: error sending request"),
            "http://invalid.store/b: HTTP error: error sending request",
            "Check the address, the network",
        ),
        (
            _TRIED.format(reason="Server returned non-2xx status code: 503 Service Unavailable: x"),
            "503 Service Unavailable: x",
            "The store is overloaded",
        ),
        (
            (
                "Internal error: Failed to overwrite manifest: IO { source: RetryError("
                "RetryErrorImpl { inner: Status { status: 403,"
                ' body: Some("<Error><Code>Denied</Code></Error>") } })'
            ),
            "the store answers 403 Denied",
            "Give these credentials the right",
        ),
        (
            _DEBUG,
            "No object store provider found for scheme: 's3a'",
            "Check the address and its scheme",
        ),
    ],
)
def test_a_store_that_refuses_is_told_in_its_own_words_with_what_to_do(text, problem, advice):
    message = str(storage_failure("open", "s3://b/t", OSError(text)))
    assert problem in message
    assert advice in message
    assert "AKIA7" not in message
    assert "rust" not in message
