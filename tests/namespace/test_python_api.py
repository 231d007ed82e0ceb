"""The Python API on real files: what is written is read, as plain Arrow computes it."""

from __future__ import annotations

import datetime as dt
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from inspect import getdoc, isfunction
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.separate_process import run_script

import pennon
from pennon.errors import (
    DefaultNotOfType,
    NamespacePinned,
    NotWholePartitions,
    PathNotTable,
    RowsNotUnderstood,
    TransformSyntax,
    WriteColumnUnknown,
)
from pennon.leaf import clustered
from pennon.leaf.write.incoming_rows import partition_tuples, tuple_codes
from pennon.namespace import Lake, PartitionedNamespace, Scan
from pennon.namespace.rows.row_merge import Merge
from pennon.namespace.upkeep import Maintenance
from pennon.spec.write_properties import WriteOrder

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "day": pa.date32(),
        "customer": pa.string(),
        "vector": pa.list_(pa.float32(), 2),
    }
)


def rows(count: int, seed: int = 1) -> pa.Table:
    """Rows in no order, with NULLs in the columns that partitions are made of."""
    drawn = random.Random(seed)  # noqa: S311 - test data
    days = [None, *(dt.date(2025, month, 15) for month in (1, 2, 7))]
    return pa.table(
        {
            "id": range(count),
            "day": [drawn.choice(days) for _ in range(count)],
            "customer": [drawn.choice([None, "a", "bé", "东京"]) for _ in range(count)],
            "vector": [[float(at), 0.5] for at in range(count)],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def table(tmp_path: Path) -> PartitionedNamespace:
    return pennon.create(
        tmp_path / "t", SCHEMA, partition_by=["months(day)", "bucket(4, customer)"]
    )


def ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


def test_what_is_appended_in_any_order_is_read_and_passes_every_check(
    table: PartitionedNamespace,
) -> None:
    given = rows(5000)
    table.append(given)
    everything = table.scan().to_arrow().sort_by("id")
    assert everything.drop_columns("vector").equals(
        given.drop_columns("vector"), check_metadata=False
    )
    assert everything["vector"].to_pylist() == given["vector"].to_pylist()
    report = table.maintenance.check()
    assert (report.is_valid, report.rows) == (True, 5000)
    # one file per partition although the rows came in no order
    assert set(table.scan().plan().table["num_fragments"].to_pylist()) == {1}


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("day >= DATE '2025-02-01'", pc.field("day") >= dt.date(2025, 2, 1)),
        ("customer = 'bé'", pc.field("customer") == "bé"),
        ("customer IS NULL OR id < 100", pc.field("customer").is_null() | (pc.field("id") < 100)),
        ("false", pc.scalar(value=False)),
    ],
)
def test_every_form_of_a_scan_gives_the_rows_that_arrow_keeps(
    table: PartitionedNamespace, where: str, kept: pc.Expression
) -> None:
    given = rows(2000)
    table.append(given)
    wanted = ids(given.filter(kept))
    scan = table.scan(where, columns=["id"])
    assert ids(scan.to_arrow()) == wanted
    assert ids(pa.Table.from_batches(scan.to_batches(), scan.to_arrow().schema)) == wanted
    assert sorted(scan.to_pandas()["id"].tolist()) == wanted
    assert ids(pa.RecordBatchReader.from_stream(scan).read_all()) == wanted
    assert ids(scan.to_datafusion().to_arrow_table()) == wanted
    assert scan.count_rows() == len(wanted)


def test_whole_partitions_are_replaced_and_deleted_and_others_refused(
    table: PartitionedNamespace,
) -> None:
    given = rows(300)
    before = table.append(given)
    january = pc.field("day") == dt.date(2025, 1, 15)
    table.overwrite(rows(1), where="day >= DATE '2025-01-01' AND day < DATE '2025-02-01'")
    assert len(ids(table.scan().to_arrow())) == 300 - given.filter(january).num_rows + 1
    with pytest.raises(NotWholePartitions):
        table.overwrite(rows(1), where="id = 7")
    table.delete("day IS NOT NULL")
    assert ids(table.scan("day IS NOT NULL").to_arrow()) == []
    table.overwrite_partitions(rows(2, seed=3))
    table.overwrite(rows(3))
    assert ids(table.scan().to_arrow()) == [0, 1, 2]
    assert ids(table.scan(version=before).to_arrow()) == ids(given)


@pytest.mark.parametrize(
    ("where", "gone"),
    [
        ("id BETWEEN 100 AND 900", (pc.field("id") >= 100) & (pc.field("id") <= 900)),
        ("customer = 'a' AND id > 10", (pc.field("customer") == "a") & (pc.field("id") > 10)),
        ("customer > 'a' OR id = 3", (pc.field("customer") > "a") | (pc.field("id") == 3)),
        ("day IS NULL AND id >= 0", pc.field("day").is_null()),
        ("id > 5000", pc.scalar(value=False)),
    ],
)
def test_single_rows_are_deleted_as_arrow_filters_them(
    table: PartitionedNamespace, where: str, gone: pc.Expression
) -> None:
    given = rows(1000)
    table.append(given)
    before = table.version
    table.delete(where)
    # Rows for which the condition is NULL are kept: Arrow's filter drops them, so they are joined.
    kept = sorted(set(ids(given)) - set(ids(given.filter(gone))))
    assert ids(table.scan().to_arrow()) == kept
    assert table.scan().count_rows() == len(kept)
    assert ids(table.scan(version=before).to_arrow()) == ids(given)
    assert table.maintenance.check().is_valid


def test_appends_at_once_all_arrive(tmp_path: Path) -> None:
    path = tmp_path / "t"
    pennon.create(path, SCHEMA, partition_by=["customer"])

    def append(seed: int) -> None:
        pennon.open(path).append(rows(10, seed))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(8)))
    assert pennon.open(path).scan().count_rows() == 80


def test_a_write_names_its_own_version_though_another_came_behind_it(
    table: PartitionedNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(3))
    other, refresh = pennon.open(table.location), table.refresh
    looks = iter([False, True] * 3)

    def late() -> object:
        if next(looks):  # behind the commit
            other.append(rows(5))
        return refresh()

    monkeypatch.setattr(table, "refresh", late)
    counts = [
        table.scan(version=version).count_rows()
        for version in (table.append(rows(1)), table.update({"id": "id + 1"}), table.delete("true"))
    ]
    assert counts == [4, 9, 0]


def test_a_failed_append_leaves_no_file(table: PartitionedNamespace) -> None:
    table.append(rows(10))
    folder = Path(table.location)
    before = sorted(folder.rglob("*"))
    version = table.version
    with pytest.raises(WriteColumnUnknown, match="colour"):
        table.append(pa.table({"id": [1], "colour": ["red"]}))

    def breaking() -> object:
        yield from rows(10).to_batches()
        raise KeyError

    with pytest.raises(KeyError):
        table.append(breaking())
    assert (sorted(folder.rglob("*")), table.refresh().version) == (before, version)


UNWRITABLE = """
import os, sys
from decimal import Decimal
from inspect import getdoc, isfunction
from pathlib import Path
import pyarrow as pa
import pennon

folder = Path(sys.argv[1])
table = pennon.create(folder / "t", pa.schema({"r": pa.string()}), ["r"])
table.append([{"r": "a"}])
for path in [folder, *folder.rglob("*")]:
    path.chmod(0o555 if path.is_dir() else 0o444)
if os.getuid() == 0:  # whom nothing is forbidden
    os.setresuid(65534, 65534, 65534)
for value in ("a", "b"):
    try:
        table.append([{"r": value}])
    except pennon.errors.StorageFailure as error:
        print(error)
"""


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        said = run_script(UNWRITABLE, folder).splitlines()
    assert len(said) == 2
    for line in said:
        assert line.startswith(f"[STORAGE_FAILURE] Cannot write to {folder}/t: ")
        assert "Permission denied" in line


def test_rows_come_from_many_places(tmp_path: Path) -> None:
    wanted = rows(4).to_pylist()
    schema = pa.schema([SCHEMA.field("id"), SCHEMA.field("customer")])
    table = pennon.create(tmp_path / "t", schema)
    given = pa.Table.from_pylist(wanted, schema=schema)
    for form in (given, given.to_reader(), given.to_batches(), given.to_pandas(), iter([given])):
        table.overwrite(form)
        assert table.scan().to_arrow().sort_by("id").to_pylist() == given.to_pylist()
    for wrong in ("text", 5, {"id": 1}, [1]):
        with pytest.raises(RowsNotUnderstood):
            table.append(wrong)


@pytest.mark.parametrize("listed", [False, True])
def test_decimals_of_an_arrow_stream_are_written(tmp_path: Path, *, listed: bool) -> None:
    kind = pa.decimal128(9, 2)
    wanted = pa.table(
        {"id": [1, 2, 3], "price": pa.array([Decimal(text) for text in (7, -1, 0)], kind)}
    )
    if listed:
        prices = pa.array([[price] for price in wanted["price"].to_pylist()], pa.list_(kind))
        wanted = wanted.set_column(1, "price", prices)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, wanted.schema) as stream:
        stream.write_table(wanted)
    table = pennon.create(str(tmp_path / "prices"), wanted.schema)
    # Streams place buffers at multiples of 8, as those of a Spark session do.
    for shift in (0, 8):
        moved = pa.py_buffer(b"\0" * shift + sink.getvalue().to_pybytes()).slice(shift)
        table.append(pa.ipc.open_stream(moved).read_all())
        table.append(pa.ipc.open_stream(moved))
    assert table.scan().to_arrow().sort_by("id") == pa.concat_tables([wanted] * 4).sort_by("id")


def test_columns_and_partitioning_evolve(table: PartitionedNamespace) -> None:
    table.append(rows(20))
    table.add_column("score", pa.int32(), default=7, comment="points")
    table.rename_column("customer", "client")
    table.alter_column("score", type=pa.int64())
    table.drop_column("vector")
    table.add_partition_field("truncate(1, client)", "initial")
    table.drop_partition_field("bucket(4, client)")
    table.set_properties({"team": "sales"})
    table.append([{"id": 100, "client": "zz", "score": 1}])
    found = table.scan("score = 7").to_arrow()
    assert found.schema.names == ["id", "day", "client", "score"]
    assert (ids(found), table.properties["team"]) == (list(range(20)), "sales")
    assert [field.field_id for field in table.spec.fields] == ["day_year", "day_month", "initial"]
    assert ids(table.scan("client = 'zz'").to_arrow()) == [100]
    assert table.maintenance.check().is_valid
    with pytest.raises(DefaultNotOfType):
        table.add_column("n", pa.int32(), default="x")


@pytest.mark.parametrize("text", ["", "bucket(4, id", "months(1.5)", "a b", "'open"])
def test_a_transform_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TransformSyntax):
        pennon.create(tmp_path / "t", SCHEMA, partition_by=[text])


def test_a_table_opened_at_a_version_is_only_read(table: PartitionedNamespace) -> None:
    table.append(rows(3))
    version = table.append(rows(4))
    old = pennon.open(table.location, version - 1)
    assert old.scan().count_rows() == 3
    for change in (lambda: old.append(rows(1)), lambda: old.drop_column("id"), old.refresh):
        with pytest.raises(NamespacePinned, match=f"version {version - 1}"):
            change()


def test_a_write_order_is_kept_without_spark(tmp_path: Path) -> None:
    order = {"write.order": "id DESC"}
    table = pennon.create(tmp_path / "t", SCHEMA, ["customer"], properties=order)
    table.append(rows(1000))
    for value in ("a", "bé"):
        found = table.scan(f"customer = '{value}'").to_arrow()["id"].to_pylist()
        assert found == sorted(found, reverse=True)
    assert table.maintenance.check().is_valid


def test_rows_are_brought_together_within_a_bound(table: PartitionedNamespace) -> None:
    snapshot, spec = table.snapshot, table.spec
    order = WriteOrder.parse("id", snapshot.schema)
    given = rows(3000)
    pieces = list(clustered(given.to_batches(), snapshot, spec, order, gathered_bytes=20_000))
    assert ids(pa.Table.from_batches(pieces)) == list(range(3000))
    assert len(pieces) >= 3
    for piece in pieces:
        codes = tuple_codes(partition_tuples(piece, spec, snapshot))
        changes = sum(a != b for a, b in zip(codes[1:], codes[:-1], strict=True))
        assert changes == len(set(codes)) - 1


def test_a_lake_finds_its_tables_by_name(tmp_path: Path) -> None:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("shop")
    made = lake.create_table("lance.shop.`my orders`", SCHEMA, ["months(day)"], comment="sold")
    made.append(rows(5))
    assert lake.list_tables() == ["shop.`my orders`"]
    assert lake.load_table("shop.`my orders`").scan().count_rows() == 5
    lake.rename_table("shop.`my orders`", "shop.orders")
    assert (lake.table_exists("shop.orders"), lake.list_namespaces()) == (True, ["shop"])
    assert repr(lake.load_table("shop.orders")) == (
        f"PartitionedNamespace(lance.shop.orders, version {made.version}, 4 columns,"
        " partitioned by months(day))"
    )
    lake.drop_table("shop.orders")
    with pytest.raises(pennon.errors.TableNotFound):
        lake.drop_table("shop.orders")
    lake.drop_namespace("shop")


def test_a_plain_dataset_is_read_and_written(tmp_path: Path) -> None:
    import lance

    path = str(tmp_path / "plain.lance")
    lance.write_dataset(rows(5).select(["id", "customer"]), path)
    table = pennon.open(path)
    table.append([{"id": 5, "customer": "z"}])
    assert ids(table.scan("id > 2").to_arrow()) == [3, 4, 5]
    table.overwrite([{"id": 9, "customer": None}])
    assert ids(lance.dataset(path).to_table()) == [9]


def test_a_partition_is_no_table_of_its_own(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", rows(5).schema, ["customer"])
    table.append(rows(5))
    partition = f"{table.location}/{table.scan().plan().partitions[0].location}"
    with pytest.raises(PathNotTable, match=f"it is a partition of the table {table.location}, "):
        pennon.open(partition)
    # Where the newest version of each partition counts, any client may read and write it.
    table.maintenance.set_transaction_mode("weak")
    assert pennon.open(partition).scan().count_rows() > 0


def test_what_is_shown_is_one_line(table: PartitionedNamespace) -> None:
    table.append(rows(500))
    plan = table.scan("customer = 'a'").plan()
    chosen = len(plan.partitions)
    assert repr(plan).startswith(f"ScanPlan({chosen} of {len(table.scan().plan().partitions)} part")
    for shown in (table, plan, plan.partitions, table.scan("id = 1")):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 500
    assert "<td>customer</td>" in table._repr_html_()


def test_a_plan_is_shown_in_notebooks_with_its_partitions(table: PartitionedNamespace) -> None:
    table.append(rows(500))
    plan = table.scan("customer = '<b>' AND id > 3").plan()
    html = plan._repr_html_()
    total = len(table.scan().plan().partitions)
    assert f"{len(plan.partitions)} of {total} partitions" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    every = table.scan("id >= 0").plan()
    assert every._repr_html_().count("<tr>") == 1 + min(20, len(every.partitions))
    assert (f"{len(every.partitions)} in all" in every._repr_html_()) == (total > 20)


def test_the_doors_are_seen() -> None:
    assert {"open", "create", "connect", "spark", "configure"} <= set(dir(pennon))


def test_years_that_python_does_not_have(tmp_path: Path) -> None:
    days = pa.array([4_000_000, 1, None], pa.int32()).cast(pa.date32())
    rows = pa.table({"d": days, "n": pa.array([1, 2, 3], pa.int32())})
    table = pennon.create(tmp_path / "t", rows.schema, ["d"])
    table.append(rows)
    shown = {partition.values["d"] for partition in table.scan().plan().partitions}
    assert shown == {"12921-08-18", dt.date(1970, 1, 2), None}
    table.update({"n": "n + 10"}, "n = 1")
    table.delete("n = 2")
    table.add_partition_field("bucket(2, n)")
    assert "v1: d=12921-08-18" in table.maintenance.rewrite_partitions().partitions
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [3, 11]


@pytest.mark.parametrize("offered", [Lake, PartitionedNamespace, Scan, Merge, Maintenance])
def test_whatever_a_user_calls_has_an_example_that_runs(offered: type) -> None:
    members = {
        name: member.fget if isinstance(member, property) else member
        for cls in offered.__mro__
        for name, member in vars(cls).items()
        if not name.startswith("_") and (isinstance(member, property) or isfunction(member))
    }
    assert members
    without = [name for name, member in members.items() if ">>> " not in (getdoc(member) or "")]
    assert without == []
