"""Namespaces of the older draft, written by pylance after its text, become current ones."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import lance
import lance_namespace
import mmh3
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest

from pennon.cli import main
from pennon.errors import DraftLayout, MigrationRefused
from pennon.maintenance.check import check
from pennon.maintenance.migrate import migrate
from pennon.manifest import Snapshot
from pennon.planning import plan_scan

Row = dict[str, object]
SCHEMA = pa.schema(
    {"id": pa.int64(), "country": pa.utf8(), "ts": pa.timestamp("us", "UTC"), "n": pa.int32()}
)
TYPES = {"id": "int64", "country": "utf8", "ts": "timestamp[us, tz=UTC]", "n": "int32"}


def day(month: int, number: int, hour: int = 0) -> dt.datetime:
    return dt.datetime(2025, month, number, hour, tzinfo=dt.UTC)


ROWS: list[Row] = [
    {"id": at, "country": country, "ts": ts, "n": n}
    for at, (country, ts, n) in enumerate(
        [
            ("US", day(12, 10, 5), 7),
            ("US", day(12, 10, 6), -7),
            ("CN", day(12, 11), 17),
            (None, day(1, 1), 25),
            ("a/b c", day(1, 31), -25),
        ]
        * 2
    )
]


def murmur(value: int) -> int:
    return mmh3.hash(value.to_bytes(8, "little", signed=True))


def make(
    root: Path,
    columns: list[Row],
    name: Callable[[Row], list[str]],
    *,
    above: str = "",
) -> str:
    """Write a namespace of the draft; ``name`` gives a row's ``column=value`` parts."""
    parts: dict[tuple[str, ...], list[Row]] = {}
    for row in ROWS:
        parts.setdefault(tuple(name(row)), []).append(row)
    fields = [
        {"metadata": {}, "name": n, "nullable": True, "type": {"fields": [], "type": t}}
        for n, t in TYPES.items()
    ]
    properties = {
        "lance.partitioning.enabled": "true",
        "lance.partitioning.partition-columns": json.dumps(columns),
        "lance.partitioning.schema": json.dumps({"fields": fields, "metadata": {}}),
    }
    prefix = f"{above}$" if above else ""
    objects: list[Row] = []
    if above:
        text = json.dumps(properties)
        objects.append({"object_id": above, "object_type": "namespace", "metadata": text})
    for at, (path, rows) in enumerate(parts.items()):
        object_id = prefix + "$".join(path)
        location = f"{at:08x}_leaf.lance"
        # Another order of columns, and one that the namespace does not know.
        table = pa.Table.from_pylist(rows, SCHEMA).select(["n", "ts", "country", "id"])
        table = table.append_column("own", pa.array(range(len(rows)), pa.int8()))
        lance.write_dataset(table, str(root / location))
        objects.append({"object_id": object_id, "object_type": "table", "location": location})
    known = ("object_id", "object_type", "location", "metadata")
    schema = pa.schema([pa.field(each, pa.utf8(), nullable=each in known[2:]) for each in known])
    full = [{key: each.get(key) for key in known} for each in objects]
    dataset = lance.write_dataset(pa.Table.from_pylist(full, schema), str(root / "__manifest"))
    if not above:
        dataset.update_metadata(properties)
    return str(root)


def ids(location: str, predicate: str | None = None) -> tuple[list[int], int]:
    """The ids that a predicate finds, and the leaves that it reads."""
    plan = plan_scan(Snapshot.open(location), predicate)
    return sorted(plan.to_arrow()["id"].to_pylist()), plan.table.num_rows


def test_a_draft_says_what_to_do_and_migrates_without_new_data_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns: list[Row] = [
        {"name": "ts", "function": "month", "properties": {}},
        {"name": "country", "function": "identity"},
    ]

    def name(row: Row) -> list[str]:
        ts = row["ts"]
        assert isinstance(ts, dt.datetime)
        country = "null" if row["country"] is None else str(row["country"]).replace("/", "%2F")
        return [f"ts_month={(ts.year - 1970) * 12 + ts.month - 1}", f"country={country}"]

    location = make(tmp_path / "draft", columns, name)
    files = {each for each in Path(location).rglob("*.lance") if each.is_file()}
    with pytest.raises(DraftLayout, match="pennon migrate"):
        Snapshot.open(location)
    assert main(["migrate", location]) == 0
    assert "month(ts) is taken for months since 1970" in capsys.readouterr().out
    data = {each for each in Path(location).rglob("*.lance") if "__manifest" not in str(each)}
    assert {each for each in data if each.is_file()} <= files
    assert check(location).violations == ()
    assert ids(location) == (list(range(10)), 4)
    assert ids(location, "country = 'a/b c'") == ([4, 9], 1)
    assert ids(location, "country IS NULL") == ([3, 8], 1)
    assert ids(location, "ts >= TIMESTAMP '2025-12-01 00:00:00'") == ([0, 1, 2, 5, 6, 7], 2)
    upstream = lance_namespace.connect("dir", {"root": location})
    old = upstream.describe_table(DescribeTableRequest(id=["ts_month=671", "country=US"]))
    assert lance.dataset(old.location).count_rows() == 4
    with pytest.raises(MigrationRefused, match="current format already"):
        migrate(location)
    migrate(location, remove_old=True)
    rows = Snapshot.open(location).manifest.to_table()["object_id"].to_pylist()
    assert all(each.startswith("v1") for each in rows)
    key = Snapshot.open(location).manifest.schema.field("object_id")
    assert b"lance-schema:unenforced-primary-key:position" in key.metadata
    assert ids(location) == (list(range(10)), 4)
    assert check(location).violations == ()


def of(row: Row, name: str) -> int:
    value = row[name]
    assert isinstance(value, int)
    return value


def stamp(row: Row) -> dt.datetime:
    ts = row["ts"]
    assert isinstance(ts, dt.datetime)
    return ts


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
CASES: dict[str, tuple[Row, Callable[[Row], str], str, tuple[list[int], int]]] = {
    "calendar month": (
        {"name": "ts", "function": "month"},
        lambda row: f"ts_month={stamp(row).month:02d}",
        "ts = TIMESTAMP '2025-12-11 00:00:00'",
        ([2, 7], 1),
    ),
    "epoch day": (
        {"name": "ts", "function": "day"},
        lambda row: f"ts_day={(stamp(row) - EPOCH).days}",
        "ts < TIMESTAMP '2025-02-01 00:00:00'",
        ([3, 4, 8, 9], 2),
    ),
    "epoch hour": (
        {"source-id": 2, "function": "hour"},
        lambda row: f"ts_hour={(stamp(row) - EPOCH) // dt.timedelta(hours=1)}",
        "ts = TIMESTAMP '2025-12-10 06:00:00'",
        ([1, 6], 1),
    ),
    "bucket": (
        {"name": "n", "function": "bucket", "properties": {"num-buckets": "4"}},
        lambda row: f"n_bucket={abs(murmur(of(row, 'n'))) % 4}",
        "n = 17",
        ([2, 7], 1),
    ),
    "masked bucket": (
        {"name": "n", "function": "bucket[4]"},
        lambda row: f"n_bucket={(murmur(of(row, 'n')) & 0x7FFFFFFF) % 4}",
        "n = 17",
        ([2, 7], 1),
    ),
    "truncate": (
        {"name": "n", "function": "truncate", "properties": {"width": "10"}},
        lambda row: f"n_trunc={int(of(row, 'n') / 10) * 10}",
        "n > 15",
        ([2, 3, 7, 8], 2),
    ),
    "floored truncate": (
        {"name": "n", "function": "truncate", "properties": {"width": "10"}},
        lambda row: f"n_trunc={of(row, 'n') // 10 * 10}",
        "n = -7",
        ([1, 6], 1),
    ),
    "hash": (
        {"name": "n", "function": "hash"},
        lambda row: f"n_hash={murmur(of(row, 'n')) & 0xFFFFFFFF:08x}",
        "n = 25",
        ([3, 8], 1),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_function_is_read_as_its_rows_say(tmp_path: Path, case: str) -> None:
    column, name, predicate, wanted = CASES[case]
    location = make(tmp_path, [column], lambda row: [name(row)], above="root")
    migrate(location)
    assert check(location).violations == ()
    assert ids(location)[0] == list(range(10))
    assert ids(location, predicate) == wanted


def test_a_name_that_contradicts_its_rows_is_refused(tmp_path: Path) -> None:
    column: list[Row] = [{"name": "ts", "function": "year"}]
    location = make(tmp_path, column, lambda _: ["ts_year=1999"])
    before = lance.dataset(f"{location}/__manifest").version
    with pytest.raises(MigrationRefused, match=r"leaf 00000000_leaf\.lance have ts_year=2025"):
        migrate(location)
    assert lance.dataset(f"{location}/__manifest").version == before


def test_an_unknown_function_is_refused(tmp_path: Path) -> None:
    location = make(tmp_path, [{"name": "n", "function": "zorder"}], lambda _: ["n=1"])
    with pytest.raises(MigrationRefused, match="function zorder"):
        migrate(location)
