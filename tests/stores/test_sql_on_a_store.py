"""Spark SQL on tables of a bucket: each kind of statement, beside what it has to leave there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.stores.server import Proxy, kinds, options

from pennon.session import spark_conf


@pytest.fixture
def shop(spark: SparkSession, proxy: Proxy, place: str) -> Iterator[str]:
    """A namespace of a catalog whose root is in the bucket."""
    name = place.rpartition("/")[2]
    for key, value in spark_conf(place, name, storage_options=options(proxy.port)).items():
        if key.startswith("spark.sql.catalog."):
            spark.conf.set(key, value)
    spark.sql(f"CREATE NAMESPACE {name}.shop")
    yield f"{name}.shop"
    spark.sql(f"DROP NAMESPACE {name}.shop CASCADE")


def test_tables_of_a_bucket_are_made_changed_joined_kept_and_followed(
    spark: SparkSession, proxy: Proxy, shop: str, tmp_path: Path
) -> None:
    orders, lines, kept = (f"{shop}.{name}" for name in ("orders", "lines", "kept"))
    catalog = shop.partition(".")[0]

    def rows(query: str) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in spark.sql(query).collect())

    by_id = "PARTITIONED BY (bucket(4, id))"
    spark.sql(f"CREATE TABLE {orders} (id BIGINT, amount BIGINT) {by_id}")
    spark.sql(f"INSERT INTO {orders} SELECT id, id * 10 FROM range(100)")
    spark.sql(f"CREATE TABLE {lines} {by_id} AS SELECT id, id % 3 AS kind FROM range(100)")
    joined = f"SELECT kind, sum(amount) FROM {orders} JOIN {lines} USING (id) GROUP BY kind"
    assert rows(joined) == [(0, 16830), (1, 16170), (2, 16500)]
    again = []
    for _ in range(3):  # upkeep may run behind the writes
        proxy.taken()
        spark.sql(joined).collect()
        again.append(kinds(proxy.taken()))
    # For each table its newest version, twice, and where it is.
    assert {"GET": 6} in again
    spark.sql(f"DELETE FROM {orders} WHERE id >= 90")
    spark.sql(f"UPDATE {orders} SET amount = 0 WHERE id = 1")
    spark.sql(
        f"MERGE INTO {orders} t USING (SELECT id FROM range(85, 95)) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, -1)"
    )
    assert rows(f"SELECT count(*), sum(amount) FROM {orders}") == [(90, 35685)]
    spark.sql(f"ALTER TABLE {orders} CREATE TAG first AS OF VERSION 3")
    assert rows(f"SELECT count(*) FROM {orders} VERSION AS OF 'first'") == [(100,)]
    spark.sql(f"ALTER TABLE {orders} ADD COLUMN note STRING")
    spark.sql(f"ALTER TABLE {orders} REPLACE PARTITION FIELD bucket(4, id) WITH bucket(2, id)")
    spark.sql(f"INSERT OVERWRITE {orders} SELECT id, id, 'new' FROM range(5)")
    assert rows(f"SELECT note, count(*) FROM {orders} GROUP BY note")[-1] == ("new", 5)
    stream = spark.readStream.table(lines).writeStream.trigger(availableNow=True)
    spark.sql(f"CREATE TABLE {kept} (id BIGINT, kind BIGINT)")
    for upto in (110, 120):
        spark.sql(f"INSERT INTO {lines} SELECT id, 0 FROM range({upto - 10}, {upto})")
        query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).toTable(kept)
        assert query.awaitTermination(240)
        assert rows(f"SELECT count(*), count(DISTINCT id) FROM {kept}") == [(upto, upto)]
    spark.sql(f"CALL {catalog}.system.compact(table => '{orders}')").collect()
    found = spark.sql(f"CALL {catalog}.system.check(table => '{orders}')")
    assert found.where("severity = 'violation'").collect() == []
    for table in (orders, lines, kept):
        spark.sql(f"DROP TABLE {table}")
