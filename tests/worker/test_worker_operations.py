"""Every operation of the protocol, against a real worker over its socket."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.worker.worker_client import Driver, Worker, WorkerFailed, field, transform

ORDERS = [
    field("id", "long", comment="the key"),
    field("ts", "timestamp"),
    field("region", "string"),
]
BY_DAY_AND_BUCKET = [transform("days", "ts"), transform("bucket", 4, "id")]


def orders(count: int = 1000) -> pa.Table:
    start = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "ts": pa.array(
                [start + dt.timedelta(hours=i % 72) for i in range(count)],
                pa.timestamp("us", "UTC"),
            ),
            "region": pa.array([None if i % 5 == 0 else f"r{i % 3}" for i in range(count)]),
        }
    )


def loaded(driver: Driver, *name: str, **more: object) -> dict:
    return driver.ask("load_table", identifier=list(name), **more)


def test_a_table_is_created_written_pruned_and_read(driver: Driver) -> None:
    table = driver.create(
        ["shop", "orders"], ORDERS, BY_DAY_AND_BUCKET, properties={"comment": "c", "a": "b"}
    )
    assert table["partitioning"] == BY_DAY_AND_BUCKET
    assert table["schema"]["fields"] == ORDERS
    assert table["properties"]["provider"] == "lance"
    assert (table["properties"]["comment"], table["properties"]["a"]) == ("c", "b")
    rows = orders()
    driver.insert(table, rows)

    table = loaded(driver, "shop", "orders")
    assert driver.select(table).sort_by("id").equals(rows)
    day = "`ts` >= TIMESTAMP '2013-01-03 00:00:00.000000+00:00'"
    plan, splits = driver.scan(table, [day])
    assert plan["keys"] == BY_DAY_AND_BUCKET
    assert (len(splits), plan["partitions_total"]) == (4, 12)
    assert set(splits["key_0"].to_pylist()) == {(dt.date(2013, 1, 3) - dt.date(1970, 1, 1)).days}
    expected = rows.filter(
        pc.greater_equal(
            rows["ts"], pa.scalar(dt.datetime(2013, 1, 3, tzinfo=dt.UTC), pa.timestamp("us", "UTC"))
        )
    )
    assert plan["rows"] == expected.num_rows
    assert driver.select(table, [day]).sort_by("id").equals(expected)
    keys = {"column": "id", "numbers": [5], "texts": [], "has_null": False}
    pruned = driver.ask("prune_splits", plan=plan["plan"], row_keys=[json.dumps(keys)])
    assert pruned["object_ids"] == []  # no row of the day has that id, as statistics tell
    pruned = driver.ask("prune_splits", plan=plan["plan"], predicates=["`id` < CAST(5 AS BIGINT)"])
    assert pruned["object_ids"] == []


def test_keys_of_partitions_are_decimals_as_arrow_has_them(driver: Driver) -> None:
    """Rows that go to a task have a number instead; keys are read by another reader of the JVM."""
    fields = [field("price", "decimal(10,2)"), field("id", "long")]
    table = driver.create(["shop", "priced"], fields, [transform("identity", "price")])
    prices = [decimal.Decimal("1.25"), decimal.Decimal("-3.50"), None]
    rows = pa.table({"price": pa.array(prices, pa.decimal128(10, 2)), "id": [1, 2, 3]})
    driver.insert(table, rows)
    table = loaded(driver, "shop", "priced")
    _, splits = driver.scan(table)
    assert splits["key_0"].type == pa.decimal128(10, 2)
    assert set(splits["key_0"].to_pylist()) == set(prices)
    assert driver.select(table).sort_by("id").equals(rows)


def test_columns_are_pruned_and_counted_without_any(driver: Driver) -> None:
    table = driver.create(["shop", "orders"], ORDERS, BY_DAY_AND_BUCKET)
    driver.insert(table, orders(100))
    table = loaded(driver, "shop", "orders")
    only = driver.select(table, schema={"type": "struct", "fields": [field("region", "string")]})
    assert only.schema == pa.schema({"region": pa.utf8()})
    plan, splits = driver.scan(table, schema={"type": "struct", "fields": []})
    assert plan["keys"] == []
    rows = [driver.connection.rows(plan["scan"], split) for split in splits["split"].to_pylist()]
    assert sum(row.num_rows for row in rows) == 100


def test_a_plan_is_refused_where_nobody_would_evaluate_a_predicate(driver: Driver) -> None:
    table = driver.create(["shop", "orders"], [*ORDERS, field("price", "double")])
    asked = ["`id` IS NOT NULL", "`price` > CAST('1.5' AS DOUBLE)", "soundex(`region`) = 'x'"]
    plan = {"op": "plan_scan", "table": table["table"], "schema": table["schema"]}
    driver.ask(**plan, predicates=asked, fully_pushed=[0])
    for position in (1, 2):
        with pytest.raises(WorkerFailed, match="PREDICATE_NOT_EVALUABLE"):
            driver.ask(**plan, predicates=asked, fully_pushed=[0, position])


def test_the_splits_that_come_with_a_plan_are_those_that_are_asked_for(driver: Driver) -> None:
    table = driver.create(["shop", "orders"], ORDERS, [transform("identity", "id")])
    driver.insert(table, orders(70))
    table = loaded(driver, "shop", "orders")
    for few in ("`id` < CAST(1 AS BIGINT)", "`id` < CAST(5 AS BIGINT)", "`id` IS NULL"):
        plan, _ = driver.scan(table, [few])
        driver.ask("pack_splits", plan=plan["plan"])
        asked = driver.connection.arrow()
        known = [(row["object_ids"], row["split"]) for row in plan["packed"]]
        assert known == list(zip(*asked.to_pydict().values(), strict=True))
    assert driver.scan(table)[0]["packed"] is None


def test_the_write_is_clustered_by_what_spark_can_evaluate(driver: Driver) -> None:
    by = [
        transform("days", "ts"),
        transform("truncate", 2, "region"),
        transform("bucket", 8, "id", "region"),
    ]
    table = driver.create(["shop", "orders"], ORDERS, by)
    planned = driver.ask("plan_write", table=table["table"], schema=table["schema"])
    assert table["partitioning"] == by
    assert (
        planned["distribution"]
        == planned["ordering"]
        == [
            transform("days", "ts"),
            transform("truncate_2", "region"),
            transform("identity", "id"),
            transform("identity", "region"),
        ]
    )


def test_every_type_comes_back_exactly(driver: Driver) -> None:
    kinds = [
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "decimal(38,18)",
        "decimal(5,2)",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    ]
    fields = [field(f"c{at}", kind) for at, kind in enumerate(kinds)]
    inner = {"type": "struct", "fields": [field("x", "decimal(20,3)"), field("y", "string")]}
    fields += [
        field("st", inner),
        field("l", {"type": "array", "elementType": inner, "containsNull": True}),
        field(
            "m",
            {
                "type": "map",
                "keyType": "string",
                "valueType": "decimal(30,2)",
                "valueContainsNull": True,
            },
        ),
    ]
    types = [
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(38, 18),
        pa.decimal128(5, 2),
        pa.utf8(),
        pa.binary(),
        pa.date32(),
        pa.timestamp("us", "UTC"),
        pa.timestamp("us"),
    ]
    now, big = (
        dt.datetime(2026, 2, 3, 4, 5, 6, 789, dt.UTC),
        decimal.Decimal("12345678901234567890.123456789012345678"),
    )
    values = [
        True,
        -128,
        -3,
        2**31 - 1,
        -(2**63),
        1.5,
        float("-inf"),
        big,
        decimal.Decimal("-1.25"),
        "ü'\"\\",
        b"\0\xff",
        dt.date(1, 1, 1),
        now,
        now.replace(tzinfo=None),
    ]
    struct = pa.struct([("x", pa.decimal128(20, 3)), ("y", pa.utf8())])
    types += [struct, pa.list_(struct), pa.map_(pa.utf8(), pa.decimal128(30, 2))]
    one = {"x": decimal.Decimal("1.001"), "y": None}
    values += [one, [one, None], [("k", decimal.Decimal("9.99")), ("n", None)]]
    rows = pa.table(
        {
            field_["name"]: pa.array([value, None], kind)
            for field_, value, kind in zip(fields, values, types, strict=True)
        }
    )
    table = driver.create(["shop", "every"], fields)
    assert [row["type"] for row in table["schema"]["fields"]] == [row["type"] for row in fields]
    driver.insert(table, rows)
    assert driver.select(loaded(driver, "shop", "every")).to_pylist() == rows.to_pylist()


def altered(driver: Driver, statement: str) -> dict[str, object]:
    change = {"change": "set_property", "property": "pennon.statement", "value": statement}
    return driver.ask("alter_table", identifier=["shop", "orders"], changes=[change])


@pytest.mark.spec("Compatibility with Partition Pruning 3", "Evolution Scenarios 1")
def test_the_partitioning_evolves_and_old_and_new_rows_are_read(driver: Driver) -> None:
    table = driver.create(["shop", "orders"], ORDERS, [transform("months", "ts")])
    driver.insert(table, orders(50))
    altered(driver, "ADD PARTITION FIELD region")
    table = loaded(driver, "shop", "orders")
    driver.insert(table, orders(50))
    table = loaded(driver, "shop", "orders")
    assert table["partitioning"] == [transform("months", "ts"), transform("identity", "region")]
    assert driver.select(table, ["`region` = 'r1'"])["id"].to_pylist().count(1) == 2
    plan, _ = driver.scan(table)
    assert plan["keys"] == [transform("months", "ts")]
    dropped = altered(driver, "DROP PARTITION FIELD region")
    assert dropped["partitioning"] == [transform("months", "ts")]
    replaced = altered(driver, "REPLACE PARTITION FIELD months(ts) WITH days(ts)")
    assert replaced["partitioning"] == [transform("days", "ts")]


def test_an_aborted_write_leaves_the_table_as_it_was(driver: Driver) -> None:
    table = driver.create(["shop", "orders"], ORDERS, BY_DAY_AND_BUCKET)
    planned = driver.ask("plan_write", table=table["table"], schema=table["schema"])
    reply = driver.connection.upload(planned["write"], orders(100))
    assert reply["rows"] == 100
    assert driver.ask("abort_write", write=planned["write"], staged=reply["staged"]) == {}
    assert driver.scan(loaded(driver, "shop", "orders"))[1].num_rows == 0


def test_writes_at_once_are_both_there(driver: Driver, worker: Worker) -> None:
    table = driver.create(["shop", "orders"], ORDERS, BY_DAY_AND_BUCKET)

    def write(_: int) -> None:
        with worker.connect() as own:
            other = Driver(own, Path(str(driver.catalog["root"])))
            other.insert(table, orders(100))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert driver.select(loaded(driver, "shop", "orders")).num_rows == 400


def test_many_reads_at_once(driver: Driver, worker: Worker) -> None:
    table = driver.create(["shop", "orders"], ORDERS, BY_DAY_AND_BUCKET)
    driver.insert(table, orders())
    plan, splits = driver.scan(loaded(driver, "shop", "orders"))

    def read(split: str) -> int:
        with worker.connect() as own:
            return sum(own.rows(plan["scan"], split).num_rows for _ in range(3))

    with ThreadPoolExecutor(16) as pool:
        counts = list(pool.map(read, splits["split"].to_pylist() * 4))
    assert sum(counts) == 1000 * 12


def test_a_plain_dataset_is_one_leaf_and_takes_appends(driver: Driver, tmp_path: Path) -> None:
    vectors = pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2))
    plain = pa.table({"a": [1, 2, 3], "n": pa.array([1, 2, 2**32 - 1], pa.uint32()), "v": vectors})
    lance.write_dataset(plain, str(tmp_path / "lake" / "plain.lance"))
    table = loaded(driver, "plain")
    assert [row["type"] for row in table["schema"]["fields"][:2]] == ["long", "long"]
    assert (table["partitioning"], driver.ask("list_tables", namespace=[])["tables"]) == (
        [],
        ["plain"],
    )
    assert driver.select(table, ["`a` >= CAST(2 AS BIGINT)"])["n"].to_pylist() == [2, 2**32 - 1]
    rows = pa.table(
        {
            "a": [9],
            "n": pa.array([9], pa.int64()),
            "v": pa.array([[3.0, 4.0]], pa.list_(pa.float32())),
        }
    )
    driver.insert(table, rows)
    assert driver.select(loaded(driver, "plain"))["a"].to_pylist() == [1, 2, 3, 9]
    assert driver.select(loaded(driver, "plain", version="1"))["a"].to_pylist() == [1, 2, 3]
    assert driver.select(loaded(driver, str(tmp_path / "lake" / "plain.lance"))).num_rows == 4


def test_time_travel_by_version_and_time(driver: Driver) -> None:
    table = driver.create(["shop", "orders"], ORDERS, BY_DAY_AND_BUCKET)
    first = driver.insert(table, orders(10))
    between = int(dt.datetime.now(dt.UTC).timestamp() * 1_000_000)
    driver.insert(loaded(driver, "shop", "orders"), orders(10))
    assert driver.select(loaded(driver, "shop", "orders", version=str(first))).num_rows == 10
    assert driver.select(loaded(driver, "shop", "orders", timestamp_micros=between)).num_rows == 10
    with pytest.raises(WorkerFailed, match="whole numbers") as failed:
        loaded(driver, "shop", "orders", version="first")
    assert failed.value.condition == "TABLE_VERSION_NOT_FOUND"


def test_a_metadata_table_without_a_namespace_tells_its_whole_name(driver: Driver) -> None:
    driver.create(["shop", "orders"], ORDERS, [])
    for name in ("snapshots", "Files"):
        with pytest.raises(WorkerFailed, match=rf"did you mean \w+.shop.orders.{name}\.") as failed:
            driver.ask("load_table", identifier=["orders", name])
        assert failed.value.condition == "TABLE_NOT_FOUND"
    with pytest.raises(WorkerFailed, match="there is no namespace"):
        driver.ask("load_table", identifier=["orders", "anything"])
    with pytest.raises(WorkerFailed, match=r"Cannot find table \w+.shop.order: .*orders"):
        driver.ask("load_table", identifier=["shop", "order", "partitions"])
    driver.ask("create_namespace", namespace=["shop", "below"], properties={})
    with pytest.raises(WorkerFailed, match=r"Cannot find table \w+.shop.below.partitions: "):
        driver.ask("load_table", identifier=["shop", "below", "partitions"])
    with pytest.raises(WorkerFailed, match=r"namespace \w+.shop.orders: it is a table\."):
        driver.ask("list_tables", namespace=["shop", "orders"])
    with pytest.raises(WorkerFailed, match=r"namespace \w+.shop.orders: it is a table\."):
        driver.ask("list_tables", namespace=["shop", "orders", "v1"])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("vanish", "there is none. "),
        ("chek", "there is none, did you mean check. "),
        # As Iceberg calls it.
        ("rewrite_data_files", "there is none, did you mean compact. "),
    ],
)
def test_an_unknown_procedure_lists_the_known(driver: Driver, name: str, why: str) -> None:
    with pytest.raises(WorkerFailed, match=f"{why}Procedures are") as failed:
        driver.ask("call", procedure=f"system.{name}", time_zone="UTC", arguments={})
    assert failed.value.condition == "UNKNOWN_PROCEDURE"


def test_a_plan_of_many_partitions_is_quick() -> None:

    from pennon.execution import LeafRead
    from pennon.planning.splits import ASSIGNED
    from pennon.worker.wire.tokens import leaf_reads, packed_splits, split_column, splits_of

    def read(text: str) -> tuple[LeafRead, ...]:
        return leaf_reads(splits_of(text), ("a > 1", "b > 1"))

    count = 100_000
    leaves = pa.table(
        {
            "object_id": pa.array([f"leaf {at}" for at in range(count)]),
            "location": pa.array([f"0a1b2c3d_v1${at:016}$dataset" for at in range(count)]),
            "read_version": pa.array([2**63 + at for at in range(count)], pa.uint64()),
            "residual": pa.array([at % 3 - 1 for at in range(count)], pa.int32()),
        }
    )
    splits = split_column(leaves)
    (split,) = read(splits[7].as_py())
    assert split == LeafRead(leaves["location"][7].as_py(), 2**63 + 7, "a > 1")
    pieces = [(0, 0, 7, None, None), (0, 1, 8, 0, 3), (0, 1, 8, 3, 4), (0, 1, 9, None, None)]
    rows = pa.Table.from_pylist([dict(zip(ASSIGNED.names, it, strict=True)) for it in pieces])
    tasks = packed_splits(leaves, rows.cast(ASSIGNED))
    assert tasks["object_id"].to_pylist() == ["leaf 7", "leaf 8,leaf 9"]
    packed = [read(split) for split in tasks["split"].to_pylist()]
    assert packed[0] == (split,)
    assert [(one.version, one.fragments) for one in packed[1]] == [
        (2**63 + 8, (0, 3)),
        (2**63 + 8, (3, 4)),
        (2**63 + 9, None),
    ]
    counts = pa.array([5 if at == 8 else None for at in range(count)], pa.int64())
    counted = split_column(leaves.append_column("num_rows", counts)).to_pylist()
    assert [read(counted[at])[0].num_rows for at in (7, 8)] == [None, 5]
    odd = pa.table({"location": ['a"b\\c\n'], "read_version": [1], "residual": [-1]})
    assert read(split_column(odd)[0].as_py())[0].location == 'a"b\\c\n'
