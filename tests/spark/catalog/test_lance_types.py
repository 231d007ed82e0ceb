"""Vectors, blobs and extension types of Lance: made from Spark, read, changed, never flattened."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from lance.arrow import BFloat16Type
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, FloatType, IntegerType, StructField, StructType

import pennon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BIG = b"z" * 100_000
_VECTORS = ((pa.float32(), 2), (pa.float16(), 2), (pa.int8(), 1))


def _opened(spark: SparkSession, name: str) -> pennon.PartitionedNamespace:
    root = str(spark.conf.get("spark.sql.catalog.lance.root"))
    return pennon.connect(root).load_table(name.partition(".")[2])


def _stored(spark: SparkSession, name: str, column: str) -> set[str]:
    """The types in which the leaves of a table have a column."""
    location = Path(_opened(spark, name).snapshot.location)
    leaves = [leaf for leaf in location.iterdir() if leaf.name.endswith("$dataset")]
    found = set()
    for leaf in leaves:
        versions = (leaf / "_versions").glob("d*.manifest")
        newest = max(versions, key=lambda version: version.stat().st_mtime_ns)
        dataset = lance.dataset(str(leaf), version=int(newest.stem.removeprefix("d")))
        found.add(str(dataset.schema.field(column).type))
    return found


def test_vectors_keep_their_dimension(spark: SparkSession, namespace: str) -> None:
    name = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id INT, part STRING, v ARRAY<FLOAT>, h ARRAY<FLOAT>,"
        " b ARRAY<TINYINT>) PARTITIONED BY (part)"
        " TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2',"
        " 'h.arrow.fixed-size-list.size' = '2', 'h.arrow.float16' = 'true',"
        " 'b.arrow.fixed-size-list.size' = '1')"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 'a', array(1, 2), array(0.5, 1), array(7)),"
        " (2, 'b', NULL, NULL, NULL), (3, 'a', array(3, NULL), array(1, 1), array(8))"
    )
    spark.sql(f"UPDATE {name} SET v = array(9, 9) WHERE id = 2")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 4 AS id, array(4.0F, 4.0F) AS v) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, part, v) VALUES (id, 'b', s.v)"
    )
    spark.sql(f"ALTER TABLE {name} ADD COLUMN more INT")
    spark.sql(f"INSERT INTO {name} VALUES (5, 'c', NULL, NULL, NULL, 1)")
    spark.sql(f"CALL lance.system.compact('{name}')")
    rows = spark.sql(f"SELECT id, v, h, b FROM {name} ORDER BY id").collect()
    assert [row.v for row in rows] == [[1, 2], [9, 9], [3, None], [4, 4], None]
    assert [row.h for row in rows] == [[0.5, 1], None, [1, 1], None, None]
    assert _stored(spark, name, "v") == {"fixed_size_list<item: float>[2]"}
    assert _stored(spark, name, "h") == {"fixed_size_list<item: halffloat>[2]"}
    assert _stored(spark, name, "b") == {"fixed_size_list<item: int8>[1]"}
    kinds = [pa.list_(kind, size) for kind, size in _VECTORS]
    for made in ("c1", "c2"):
        replacing = "OR REPLACE " if made == "c2" else ""
        spark.sql(f"CREATE {replacing}TABLE {namespace}.{made} AS SELECT id, v, h, b FROM {name}")
        shown = spark.sql(f"SHOW TBLPROPERTIES {namespace}.{made}").collect()
        assert ("h.arrow.float16", "true") in [(row.key, row.value) for row in shown]
        assert _opened(spark, f"{namespace}.{made}").schema.types[1:] == kinds
    spark.sql(f"INSERT INTO {namespace}.c1 SELECT id, v, h, b FROM {name}")
    assert _stored(spark, f"{namespace}.c1", "v") == {"fixed_size_list<item: float>[2]"}
    changes = spark.sql(f"SELECT v FROM {name}.changes WHERE id = 2 AND _change_type = 'insert'")
    assert [9, 9] in [row.v for row in changes.collect()]
    with pytest.raises(PySparkException, match=r"to column v .* a vector of 3 values is none of 2"):
        spark.sql(f"INSERT INTO {name} (id, part, v) VALUES (6, 'a', array(1, 2, 3))")
    statement = spark.sql(f"SHOW CREATE TABLE {name}").first()
    assert statement is not None
    spark.sql(f"DROP TABLE {name}")
    spark.sql(statement[0])
    assert _opened(spark, name).schema.field("h").type == pa.list_(pa.float16(), 2)


def test_the_metadata_of_a_data_frame_makes_vectors(spark: SparkSession, namespace: str) -> None:
    of_vectors = {"arrow.fixed-size-list.size": 2, "arrow.float16": "true"}
    columns = [
        StructField("id", IntegerType()),
        StructField("v", ArrayType(FloatType(), containsNull=False), metadata=of_vectors),
        StructField("w", ArrayType(FloatType())),
    ]
    frame = spark.createDataFrame([(1, [1.0, 2.0], [1.0]), (2, None, None)], StructType(columns))
    writer = frame.writeTo(f"{namespace}.t").tableProperty("w.arrow.fixed-size-list.size", "1")
    writer.create()
    frame.writeTo(f"{namespace}.t").append()
    made = _opened(spark, f"{namespace}.t")
    assert made.schema.field("v").type == pa.list_(pa.float16(), 2)
    assert made.schema.field("w").type == pa.list_(pa.float32(), 1)
    assert spark.table(f"{namespace}.t").where("v[1] = 2").count() == 2


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("w.arrow.fixed-size-list.size' = '2", "there is no column w"),
        ("id.arrow.fixed-size-list.size' = '2", "no array of numbers"),
        ("v.arrow.fixed-size-list.size' = 'two", "a whole number"),
        ("v.arrow.float16' = 'true", "fixed-size-list.size, too"),
        ("v.arrow.float32' = 'true", "it is none of"),
        ("v.lance.encoding' = 'blob", "no BINARY"),
    ],
)
def test_a_property_that_no_column_can_have_is_refused(
    spark: SparkSession, namespace: str, named: str, why: str
) -> None:
    with pytest.raises(PySparkException, match=rf"\[TABLE_PROPERTY_REFUSED\] .*{why}"):
        spark.sql(f"CREATE TABLE {namespace}.t (id INT, v ARRAY<FLOAT>) TBLPROPERTIES ('{named}')")


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_blobs_are_read_as_bytes_and_go_with_their_rows(
    spark: SparkSession, namespace: str, mode: str
) -> None:
    name = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id INT, part STRING, image BINARY) PARTITIONED BY (part)"
        f" TBLPROPERTIES ('image.lance.encoding' = 'blob', 'write.update.mode' = '{mode}',"
        f" 'write.delete.mode' = '{mode}', 'write.merge.mode' = '{mode}')"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 'a', CAST(repeat('z', 100000) AS BINARY)), (2, 'a', NULL),"
        " (3, 'a', X''), (4, 'b', X'71')"
    )
    spark.sql(f"UPDATE {name} SET part = 'b' WHERE id = 1")
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 4 AS id UNION ALL SELECT 5) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET part = 'c' WHEN NOT MATCHED THEN INSERT (id, part, image)"
        " VALUES (id, 'c', CAST(repeat('y', 200000) AS BINARY))"
    )
    spark.sql(f"CALL lance.system.compact('{name}')")
    kept = {1: _BIG, 2: None, 4: b"q", 5: b"y" * 200_000}
    rows = spark.sql(f"SELECT * FROM {name}").collect()
    assert {row.id: row.image if row.image is None else bytes(row.image) for row in rows} == kept
    sizes = {number: None if blob is None else len(blob) for number, blob in kept.items()}
    for columns in ("id, image__blob_size", "id, image__blob_size, image, image__blob_pos"):
        rows = spark.sql(f"SELECT {columns} FROM {name}").collect()
        assert {row.id: row.image__blob_size for row in rows} == sizes
        assert all("image" not in row or len(row.image or b"") == (row[1] or 0) for row in rows)
    for condition, ids in {
        "image IS NOT NULL": {1, 4, 5},
        "image IS NULL AND part = 'a'": {2},
        "image = X'71'": {4},
        "length(image) > 10": {1, 5},
        "image__blob_size = 1": {4},
    }.items():
        found = spark.sql(f"SELECT id FROM {name} WHERE {condition}").collect()
        assert {row.id for row in found} == ids, condition
    assert all("lance.blob.v2" in kind for kind in _stored(spark, name, "image"))
    spark.sql(f"CREATE TABLE {namespace}.c AS SELECT * FROM {name} WHERE image IS NOT NULL")
    assert all("lance.blob.v2" in kind for kind in _stored(spark, f"{namespace}.c", "image"))
    joined = (
        f"SELECT count(*), max(length(b.image)) FROM {name} a"
        f" JOIN {namespace}.c b ON a.image = b.image"
    )
    assert spark.sql(joined).first() == (3, 200_000)
    assert spark.sql(f"SELECT part, count(image) AS n FROM {name} GROUP BY part").count() == 3


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_of_a_plain_dataset_are_bytes_too(
    spark: SparkSession, namespace: str, tmp_path: Path, version: str
) -> None:
    blob = pa.field("image", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    columns = pa.schema([pa.field("id", pa.int32()), blob])
    rows = pa.table([pa.array([1, 2, 3], pa.int32()), pa.array([_BIG, None, b"q"])], columns)
    path, name = str(tmp_path / "plain"), f"lance.`{tmp_path}/plain`"
    lance.write_dataset(rows, path, data_storage_version=version)  # type: ignore[arg-type]
    spark.sql(f"INSERT INTO {name} SELECT id + 10, image FROM {name}")
    spark.sql(f"UPDATE {name} SET id = 20 WHERE image = X'71' AND id = 13")
    spark.sql(f"CREATE TABLE {namespace}.t AS SELECT * FROM {name}")
    spark.sql(f"CREATE TABLE {namespace}.u LIKE {namespace}.t")
    spark.sql(f"INSERT INTO {namespace}.u SELECT * FROM {namespace}.t")
    for table in (name, f"{namespace}.t", f"{namespace}.u"):
        found = spark.sql(f"SELECT id, image, image__blob_size FROM {table}").collect()
        sizes = {row.id: None if row.image is None else len(row.image) for row in found}
        assert sizes == {1: 100_000, 2: None, 3: 1, 11: 100_000, 12: None, 20: 1}
        assert sizes == {row.id: row.image__blob_size for row in found}
    changed = spark.sql(f"SELECT length(image) AS n FROM {namespace}.t.changes").collect()
    assert sorted(row.n or 0 for row in changed) == [0, 0, 1, 1, 100_000, 100_000]


_NUMBER = uuid.UUID(int=7).bytes
_EXTENSIONS: dict[str, tuple[pa.BaseExtensionType, Any, Any]] = {
    "uuid": (pa.uuid(), _NUMBER, bytearray(_NUMBER)),
    "json": (pa.json_(), '{"a":1}', '{"a":1}'),
    "bool8": (pa.bool8(), 1, 1),
    "tensor": (pa.fixed_shape_tensor(pa.float32(), [2, 1]), [1.0, 2.0], [1.0, 2.0]),
}


@pytest.mark.parametrize("is_plain", [False, True], ids=["partitioned", "plain"])
def test_extension_types_are_read_as_what_stores_them(
    spark: SparkSession, namespace: str, lake: Path, *, is_plain: bool
) -> None:
    path = str(lake / namespace.partition(".")[2] / "given")
    columns = {"id": pa.array([1, 2], pa.int32())} | {
        kind: pa.ExtensionArray.from_storage(
            data_type, pa.array([value, None], data_type.storage_type)
        )
        for kind, (data_type, value, _) in _EXTENSIONS.items()
    }
    half = pa.array([b"\x80\x3f", None], pa.binary(2))
    rows = pa.table({**columns, "half": pa.ExtensionArray.from_storage(BFloat16Type(), half)})
    if is_plain:
        lance.write_dataset(rows, path)
    else:
        pennon.create(path, rows.schema).append(rows)
    name = f"lance.`{path}`"
    assert spark.table(name).columns == ["id", *_EXTENSIONS]
    first = spark.sql(f"SELECT * FROM {name} ORDER BY id").first()
    assert first is not None
    assert first[1:] == tuple(read for _, _, read in _EXTENSIONS.values())
    told = {row.col_name: row.comment for row in spark.sql(f"DESCRIBE {name}").collect()}
    assert told["half"] == "hidden: Spark has no type for lance.bfloat16 of half"
    spark.sql(f"INSERT INTO {name} SELECT id + 2, {', '.join(_EXTENSIONS)} FROM {name}")
    for condition in ("""json = '{"a":1}'""", "json LIKE '%a%'", "uuid IS NOT NULL", "bool8 = 1"):
        found = spark.sql(f"SELECT id FROM {name} WHERE {condition}").collect()
        assert sorted(row.id for row in found) == [1, 3], condition
    assert spark.sql(f"SELECT json, count(*) FROM {name} GROUP BY json").count() == 2
    spark.sql(f"CREATE TABLE {namespace}.c AS SELECT * FROM {name}")
    assert spark.table(f"{namespace}.c").columns == ["id", *_EXTENSIONS]
