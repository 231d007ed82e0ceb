"""``_partition`` and ``_spec_version`` against the rows' own values and the metadata tables."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from tests.spark.assert_join import EXECUTION, conf

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

KEPT = re.compile(r"partitions: ([\d,]+) of ([\d,]+)")


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    """A table of three spec versions, with NULLs in its partition values."""
    name = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id INT, region STRING, day DATE, price DECIMAL(9, 2))"
        " PARTITIONED BY (region)"
    )
    rows = (
        "SELECT CAST(id AS INT), IF(id % 3 = 0, NULL, concat('r\"', id % 3)),"
        " DATE'1969-12-30' + CAST(id % 4 AS INT), CAST(id % 2 AS DECIMAL(9, 2)) / 4 FROM range(24)"
    )
    spark.sql(f"INSERT INTO {name} {rows}")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id) AS shard")
    spark.sql(f"INSERT INTO {name} {rows}")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD region")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD day AS on_day")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD price AS at_price")
    spark.sql(f"INSERT INTO {name} {rows}")
    return name


def rows(spark: SparkSession, query: str) -> list[Row]:
    return spark.sql(query).collect()


def region_field(spark: SparkSession, table: str) -> str:
    """The name of the first spec's field, which Pennon gave it."""
    found = rows(spark, f"SELECT field_id FROM {table}.specs WHERE spec_version = 1")
    return str(found[0].field_id)


def test_every_row_has_the_partition_values_of_its_spec(spark: SparkSession, table: str) -> None:
    region = region_field(spark, table)
    bucket = "CAST(lance.system.bucket(2, id) AS INT)"
    found = rows(
        spark,
        f"SELECT *, _partition, _spec_version, {bucket} AS shard, _leaf FROM {table}",
    )
    assert Counter(row._spec_version for row in found) == {1: 24, 2: 24, 5: 24}
    for row in found:
        told = row._partition.asDict()
        version = row._spec_version
        assert told == {
            region: None if version == 5 else row.region,
            "shard": None if version == 1 else row.shard,
            "on_day": row.day if version == 5 else None,
            "at_price": row.price if version == 5 else None,
        }
    partitions = rows(spark, f"SELECT leaf, spec_version, partition FROM {table}.partitions")
    assert {(row._leaf, row._spec_version, row._partition) for row in found} == {
        tuple(row) for row in partitions
    }
    assert "_partition" not in spark.table(table).columns


def test_iceberg_s_names_of_a_row_s_place_are_read(spark: SparkSession, table: str) -> None:
    found = rows(
        spark,
        f"SELECT id, _file, _leaf, _pos, _rowaddr, _spec_id, _spec_version FROM {table}",
    )
    assert len({(row._file, row._pos) for row in found}) == len(found) == 72
    for row in found:
        assert (row._file, row._pos, row._spec_id) == (row._leaf, row._rowaddr, row._spec_version)
    alone = rows(spark, f"SELECT _pos, _file FROM {table} WHERE _spec_id = 2")
    assert sorted(alone) == sorted((row._pos, row._file) for row in found if row._spec_id == 2)
    told = rows(spark, f"EXPLAIN FORMATTED SELECT id FROM {table} WHERE _spec_id = 2")
    of_version = rows(spark, f"SELECT count(*) FROM {table}.partitions WHERE spec_version = 2")
    kept = KEPT.search(told[0][0])
    assert kept is not None
    assert int(kept[1]) == of_version[0][0]
    victim = found[0]
    place = f"_file = '{victim._file}' AND _pos = {victim._pos}"
    spark.sql(f"DELETE FROM {table} WHERE {place}")
    assert rows(spark, f"SELECT count(*) FROM {table} WHERE {place}")[0][0] == 0
    assert rows(spark, f"SELECT count(*) FROM {table}")[0][0] == 71


def test_predicates_on_metadata_columns_choose_partitions(spark: SparkSession, table: str) -> None:
    region = region_field(spark, table)
    everything = f"(SELECT *, _partition AS p, _spec_version AS s, _leaf AS leaf FROM {table})"
    cases = {
        f"{{p}}.{region} = 'r\"1'": 3,
        f"{{p}}.{region} IS NULL": None,
        f"{{p}}.{region} IS NULL AND {{s}} < 5": 3,
        f"{{p}}.{region} <=> NULL AND {{p}}.shard = 1 AND {{s}} = 2": 1,
        f"NOT ({{p}}.{region} = 'r\"1') AND {{s}} <> 2": 1,
        f"upper({{p}}.{region}) = 'R\"2'": 3,
        f"{{p}}.{region} LIKE '%2' OR id = 3": None,
        f"NOT contains({{p}}.{region}, '2')": None,
        "{p}.on_day < DATE'1970-01-01' AND {p}.at_price = 0.25": None,
        "{s} IN (1, 7)": 3,
        "{s} = 1 OR (id = 5 AND {s} = 5)": None,
        f"({{p}}.{region} = 'r\"1' AND id > 9) OR id = 2": None,
        "coalesce({p}.shard, -1) = -1 AND id > 3": 3,
        f"{{p}}.{region} IN ('r\"1', NULL) AND id % 2 = 1": 3,
        "{leaf} IS NOT NULL AND {s} = 1": 3,
        "{p} IS NOT NULL AND id = 3": None,
        "{s} = 99": 0,
    }
    for predicate, kept in cases.items():
        pushed = predicate.format(p="_partition", s="_spec_version", leaf="_leaf")
        query = f"SELECT id, _spec_version FROM {table} WHERE {pushed}"
        # Rows that are in a cache or a LIMIT are filtered by Spark alone.
        plain = f"SELECT id, s FROM (SELECT * FROM {everything} LIMIT 1000)"
        checked = f"{plain} WHERE {predicate.format(p='p', s='s', leaf='leaf')}"
        assert sorted(map(tuple, rows(spark, query))) == sorted(map(tuple, rows(spark, checked)))
        told = KEPT.search(rows(spark, f"EXPLAIN FORMATTED {query}")[0][0])
        if kept:
            assert told is not None, predicate
            assert int(told[1]) == kept, predicate


@pytest.mark.parametrize(
    "test", ["{} LIKE '%e%'", "NOT {} LIKE '%zzz'", "contains({}, 'a') OR id = 3"]
)
def test_texts_of_metadata_columns_are_left_to_spark(
    spark: SparkSession, table: str, test: str
) -> None:
    """No leaf has the column: a leaf's filter would find NULL there, and drop every row."""
    counted = f"SELECT count(id) FROM {table} WHERE"
    by_name = rows(spark, f"{counted} {test.format('_leaf')}")
    assert by_name == rows(spark, f"{counted} {test.format('reverse(reverse(_leaf))')}")
    assert by_name[0][0] > 1


@pytest.mark.parametrize("place", ["worker", "spark"])
def test_rows_are_grouped_by_partition(spark: SparkSession, table: str, place: str) -> None:
    with conf(spark, {EXECUTION: place}):
        grouped = rows(
            spark,
            f"SELECT _spec_version, _partition, count(*) AS n, sum(id) AS total FROM {table}"
            " GROUP BY _spec_version, _partition",
        )
        by_version = rows(
            spark,
            f"SELECT t._spec_version, t._partition.shard, count(*) AS n FROM {table} t"
            f" JOIN {table} u ON t.id = u.id AND t._spec_version = u._spec_version"
            " GROUP BY 1, 2",
        )
    partitions = rows(
        spark, f"SELECT spec_version, partition, record_count FROM {table}.partitions"
    )
    assert {(row._spec_version, row._partition, row.n) for row in grouped} == {
        tuple(row) for row in partitions
    }
    assert sum(row.total for row in grouped) == 3 * sum(range(24))
    assert Counter(row._spec_version for row in by_version for _ in range(row.n)) == {
        1: 24,
        2: 24,
        5: 24,
    }


def test_a_table_without_partitions_has_none_and_own_columns_come_first(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    whole, own, plain = f"{namespace}.whole", f"{namespace}.own", f"lance.`{tmp_path}/plain`"
    spark.sql(f"CREATE TABLE {whole} AS SELECT id FROM range(3)")
    lance.write_dataset(pa.table({"id": range(3)}), f"{tmp_path}/plain")
    version = rows(spark, f"SELECT DISTINCT spec_version FROM {whole}.partitions")[0][0]
    for table, expected in ((whole, version), (plain, None)):
        found = rows(spark, f"SELECT _partition, _spec_version FROM {table} WHERE id > 0")
        assert list(map(tuple, found)) == [(None, expected)] * 2
        asked = rows(spark, f"SELECT id FROM {table} WHERE _spec_version = 1")
        assert len(asked) == (3 if expected == 1 else 0)
        grouped = rows(spark, f"SELECT _spec_version, count(*) FROM {table} GROUP BY 1")
        assert list(map(tuple, grouped)) == [(expected, 3)]
    spark.sql(
        f"CREATE TABLE {own} PARTITIONED BY (_spec_id) AS"
        " SELECT id, 'mine' AS _file, CAST(7 AS INT) AS _spec_id FROM range(2)"
    )
    theirs = pa.table({"id": [0, 1], "_partition": ["mine"] * 2, "_spec_version": [7, 7]})
    lance.write_dataset(theirs, f"{tmp_path}/theirs")
    for table, text, number in (
        (own, "_file", "_spec_id"),
        (f"lance.`{tmp_path}/theirs`", "_partition", "_spec_version"),
    ):
        found = rows(spark, f"SELECT * FROM {table} WHERE {text} = 'mine' AND {number} = 7")
        assert sorted(map(tuple, found)) == [(0, "mine", 7), (1, "mine", 7)]
