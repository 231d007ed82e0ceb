"""Update and merge without Spark, beside DuckDB, which computes the same on its own tables."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import (
    ArgumentRefused,
    MergeCardinality,
    MergeKeyRefused,
    NamespacePinned,
    PredicateNotEvaluable,
    PredicateSyntaxError,
    UnknownColumn,
    WriteColumnUnknown,
    WriteConflict,
    WriteTypeMismatch,
)
from pennon.namespace import PartitionedNamespace
from pennon.transaction import Transaction

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "region": pa.string(),
        "day": pa.date32(),
        "v": pa.int32(),
        "tags": pa.list_(pa.string()),
    }
)
LAYOUTS = ["region", "copied", "evolved", "none", "weak", "plain"]
COPIES = {f"write.{statement}.mode": "copy-on-write" for statement in ("delete", "update", "merge")}
Rows = list[dict[str, object]]


def rows(drawn: random.Random, count: int, first: int = 0) -> pa.Table:
    """Rows with NULLs in every column that may be a key or a partition."""
    return pa.table(
        {
            "id": [None if drawn.random() < 0.05 else first + at for at in range(count)],
            "region": [drawn.choice([None, "eu", "us", "it's"]) for _ in range(count)],
            "day": [drawn.choice([None, 19_000, 19_400]) for _ in range(count)],
            "v": [drawn.choice([None, *range(9)]) for _ in range(count)],
            "tags": [drawn.choice([None, [], ["a", None]]) for _ in range(count)],
        },
        schema=SCHEMA,
    )


def made(path: Path, layout: str, given: pa.Table) -> PartitionedNamespace:
    if layout == "plain":
        lance.write_dataset(given, str(path / "plain"))
        return pennon.open(path / "plain")
    fields = [] if layout == "none" else ["region"]
    properties = {"transaction": "weak"} if layout == "weak" else {}
    properties |= COPIES if layout in ("copied", "weak", "evolved") else {}
    table = pennon.create(path / "t", SCHEMA, fields, properties=properties)
    table.append(given.slice(0, len(given) // 2))
    if layout == "evolved":
        table.add_partition_field("bucket(2, id)")
        table.drop_partition_field("region")
        table.add_partition_field("months(day)")
    table.append(given.slice(len(given) // 2))
    return table


def content(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.select(SCHEMA.names).to_pylist()))


def assert_same(table: PartitionedNamespace, oracle: duckdb.DuckDBPyConnection) -> None:
    expected = oracle.sql("SELECT * FROM t").to_arrow_table().cast(SCHEMA)
    assert content(table.scan().to_arrow()) == content(expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_changed_as_duckdb_changes_them(tmp_path: Path, layout: str) -> None:
    drawn = random.Random(LAYOUTS.index(layout))  # noqa: S311 - test data
    given = rows(drawn, 60)
    table = made(tmp_path, layout, given)
    oracle = duckdb.connect()
    oracle.sql("CREATE TABLE t AS SELECT * FROM given")
    for statement, values, where in (
        ("v = v + 1", {"v": "v + 1"}, "region = 'eu' AND v > 2"),
        ("region = 'new', v = NULL", {"region": "'new'", "v": None}, "id IN (3, 4, 5)"),
        (
            "v = id % 7, id = id + 1000",
            {"v": "CAST(id % 7 AS INT)", "id": "id + 1000"},
            "v IS NULL",
        ),
    ):
        table.update(values, where)
        oracle.sql(f"UPDATE t SET {statement} WHERE {where}")
        assert_same(table, oracle)
    source = pa.concat_tables([rows(drawn, 20, 10), rows(drawn, 20, 500)])
    done = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all()
    changed = done.execute()
    oracle.sql("CREATE TABLE s AS SELECT * FROM source")
    [(before,)] = oracle.sql("SELECT count(*) FROM t").fetchall()
    oracle.sql(
        "UPDATE t SET region = s.region, day = s.day, v = s.v, tags = s.tags FROM s"
        " WHERE t.id = s.id"
    )
    oracle.sql("INSERT INTO t SELECT * FROM s ANTI JOIN t ON s.id = t.id")
    assert_same(table, oracle)
    [(after,)] = oracle.sql("SELECT count(*) FROM t").fetchall()
    assert changed.num_inserted_rows == after - before
    assert changed.num_updated_rows + changed.num_inserted_rows == len(source)
    partial = pa.table({"ID": [1, 2, 3, 3000], "region": ["eu", None, "us", "eu"]})
    table.merge(partial, on=["id"]).when_matched_update_all().execute()
    oracle.sql("UPDATE t SET region = p.region FROM partial p WHERE t.id = p.id")
    assert_same(table, oracle)
    merge = table.merge(source.select(["id", "region"]), ["id", "region"]).when_matched_delete()
    merge.when_not_matched_by_source_delete("v = 3").execute()
    same = "SELECT 1 FROM s WHERE s.id = t.id AND s.region = t.region"
    oracle.sql(f"DELETE FROM t WHERE EXISTS ({same}) OR v = 3")
    assert_same(table, oracle)
    if layout != "plain":
        assert table.maintenance.check().is_valid


def test_a_merge_of_many_keys_reads_what_can_have_them(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", SCHEMA.remove(4), ["truncate(1000, id)"])
    ids = pa.table({"id": range(6_000), "v": pa.array([0] * 6_000, pa.int32())})
    table.append(ids)
    source = pa.table({"id": range(4_000, 8_000), "v": pa.array([1] * 4_000, pa.int32())})
    other = pennon.open(table.location)
    before = {
        partition.object_id: partition.version for partition in other.scan().plan().partitions
    }
    done = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all()
    assert done.execute().num_updated_rows == 2_000
    found = table.scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(8_000))
    assert sum(found["v"].to_pylist()) == 4_000
    after = {partition.object_id: partition.version for partition in table.scan().plan().partitions}
    assert sum(before.get(key) == version for key, version in after.items()) == 4


def test_the_columns_of_an_update_have_any_case(tmp_path: Path) -> None:
    table = pennon.create(str(tmp_path / "t"), SCHEMA)
    table.append([{"id": 1, "v": 2}])
    table.update({"V": "v + ID"}, where="Id = 1")
    assert table.scan(columns=["v"]).to_arrow().to_pylist() == [{"v": 3}]


def test_what_no_merge_can_do_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    table = made(tmp_path, "region", rows(random.Random(1), 20))  # noqa: S311 - test data
    version = table.version
    twice = pa.table({"id": [7, 7], "v": pa.array([1, 2], pa.int32())})
    with pytest.raises(MergeCardinality):
        table.merge(twice, "id").when_matched_update_all().execute()
    refused: tuple[str | list[str], ...] = ("absent", "region", [], "tags")
    for on in refused:
        with pytest.raises(MergeKeyRefused):
            table.merge(twice, on).when_matched_update_all().execute()
    with pytest.raises(ArgumentRefused, match="does nothing with any row"):
        table.merge(twice, "id").execute()
    for values, error in (
        ({"absent": 1}, WriteColumnUnknown),
        ({"v": "'text'"}, WriteTypeMismatch),
        ({"v": 1.5}, WriteTypeMismatch),
        ({"v": 2**70}, WriteTypeMismatch),
        ({"v": "rand()"}, PredicateNotEvaluable),
        ({"region": "eu"}, UnknownColumn),
        ({"region": "no text"}, PredicateSyntaxError),
    ):
        with pytest.raises(error):
            table.update(values)
    with pytest.raises(WriteColumnUnknown, match="column vv to .* columns are id, region, day, v"):
        table.merge([{"id": 1, "vv": 2}], "id").when_matched_update_all().execute()
    with pytest.raises(NamespacePinned):
        pennon.open(table.location, version).update({"v": 1})
    assert table.refresh().version == version
    assert table.merge([], "id").when_matched_update_all().execute().version == version


def test_of_two_merges_of_one_key_one_inserts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, "region", rows(random.Random(1), 20))  # noqa: S311 - test data
    late = pennon.open(table.location)
    new = [{"id": 777, "region": "eu"}]
    merge = late.merge(new, "id").when_not_matched_insert_all()
    commit = Transaction.commit

    def behind_the_other(transaction: Transaction) -> object:
        monkeypatch.setattr(Transaction, "commit", commit)
        pennon.open(table.location).merge(new, "id").when_not_matched_insert_all().execute()
        return commit(transaction)

    monkeypatch.setattr(Transaction, "commit", behind_the_other)
    with pytest.raises(WriteConflict):
        merge.execute()
    assert merge.execute().num_inserted_rows == 0
    assert table.refresh().scan("id = 777").count_rows() == 1


def test_a_condition_that_a_scan_takes_chooses_the_rows_of_statements_too(tmp_path: Path) -> None:
    """Conditions that Spark has to evaluate again behind a leaf's filter were refused here."""
    table = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64(), "f": pa.float64()}))
    table.append([{"id": id_, "f": f} for id_, f in enumerate([1.5, -0.0, float("nan"), None])])
    table.update({"f": 7.0}, where="f > 1.0 AND id % 3 = 2")
    assert table.scan("f = 7.0").to_arrow()["id"].to_pylist() == [2]
    table.merge([], "id").when_not_matched_by_source_delete("coalesce(f, 8D) = 8D").execute()
    table.delete("f = 0.0")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 2]
    with pytest.raises(PredicateNotEvaluable):
        table.delete("soundex(id) = 'A'")


@pytest.mark.parametrize("properties", [{}, COPIES], ids=["marked", "copied"])
@pytest.mark.parametrize("statement", ["delete", "update", "merge"])
def test_the_last_row_takes_its_partition_along(
    tmp_path: Path, properties: dict[str, str], statement: str
) -> None:
    """Of older specs, too; the version before has it, and what comes and goes is told once."""
    schema = pa.schema({"id": pa.int64(), "region": pa.string()})
    table = pennon.create(str(tmp_path / "t"), schema, ["region"], properties=properties)
    table.append([{"id": at, "region": "eu" if at < 2 else "us"} for at in range(4)])
    table.add_partition_field("bucket(1, id)")
    before = table.append([{"id": 9, "region": "asia"}])
    for ids in ([0], [1, 9]):
        if statement == "delete":
            table.delete(f"id IN {(*ids, -1)}")
        elif statement == "update":
            table.update({"region": "'us'"}, where=f"id IN {(*ids, -1)}")
        else:
            source = [{"id": id_, "region": "x"} for id_ in ids]
            table.merge(source, on="id").when_matched_delete().execute()
    left = [(part.values["region"], part.num_rows) for part in table.scan().plan().partitions]
    moved = 3 if statement == "update" else 0
    assert sorted(left) == ([("us", 2), ("us", 3)] if moved else [("us", 2)])
    assert len(table.metadata("partitions")) == len(left)
    assert table.scan(version=before).count_rows() == 5
    types = sorted(table.changes(before, key=["id"])["_change_type"].to_pylist())
    updated = ["update_postimage"] * 3 + ["update_preimage"] * 3
    assert types == (updated if moved else ["delete"] * 3)
    table.append([{"id": 0, "region": "eu"}])
    table.maintenance.rollback(before)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 9]
    assert table.maintenance.check().is_valid
