"""The specification's own example: which SQL its predicate becomes, and which rows it finds."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from pennon.manifest.snapshot import Snapshot
from pennon.planning import plan_scan

_METADATA = {
    "partition_spec_v1": '{"id":1,"fields":[{"field_id":"event_date","source_ids":[1],'
    '"transform":{"type":"identity"},"result_type":{"type":"date32"}}]}',
    "partition_spec_v2": '{"id":2,"fields":[{"field_id":"event_year","source_ids":[1],'
    '"transform":{"type":"year"},"result_type":{"type":"int32"}},'
    '{"field_id":"country","source_ids":[2],"transform":{"type":"identity"},'
    '"result_type":{"type":"utf8"}}]}',
    "schema": '{"fields":['
    '{"name":"id","nullable":false,"type":{"type":"int64"},"metadata":{"lance:field_id":"0"}},'
    '{"name":"event_date","nullable":true,"type":{"type":"date32"},'
    '"metadata":{"lance:field_id":"1"}},'
    '{"name":"country","nullable":true,"type":{"type":"utf8"},"metadata":{"lance:field_id":"2"}}]}',
}
_V1, _V2 = "v1$k7m2n9p4q8r5s3t6$dataset", "v2$e9f0g1h2i3j4k5l6$m7n8o9p0q1r2s3t4$dataset"
_OTHER = "v2$e9f0g1h2i3j4k5l6$zzzzzzzzzzzzzzzz$dataset"
_WHERE = (
    "(`object_id` LIKE 'v1$%' AND `partition_field_event_date` = DATE '2025-12-10')"
    " OR (`object_id` LIKE 'v2$%' AND `partition_field_event_year` = 2025"
    " AND `partition_field_country` = 'US')"
)


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Appendix D's manifest, written with pylance alone."""
    location = tmp_path_factory.mktemp("appendix_d")
    columns: list[tuple[str, pa.DataType, list[object]]] = [
        ("object_id", pa.string(), [_V1, _V2, _OTHER]),
        ("object_type", pa.string(), ["table"] * 3),
        ("location", pa.string(), [f"b4a3c2d1_{_V1}", f"aabbccdd_{_V2}", f"aabbccde_{_OTHER}"]),
        ("metadata", pa.string(), ["{}"] * 3),
        ("base_objects", pa.list_(pa.string()), [[], [], []]),
        ("read_version", pa.uint64(), [18446744073709551615, 16045690984833335022, 1]),
        ("partition_field_event_date", pa.date32(), [dt.date(2025, 12, 10), None, None]),
        ("partition_field_event_year", pa.int32(), [None, 2025, 2025]),
        ("partition_field_country", pa.string(), [None, "US", "DE"]),
    ]
    table = pa.table({name: pa.array(values, kind) for name, kind, values in columns})
    dataset = lance.write_dataset(table, str(location / "__manifest"))
    dataset.update_metadata({**_METADATA})
    return Snapshot.open(str(Path(location)))


@pytest.mark.spec(
    "Appendix D 1", "Appendix D 2", "Appendix D 3", "Compatibility with Partition Pruning 2"
)
@pytest.mark.spec("Appendix D")
def test_the_manifest_query_has_the_shape_of_appendix_d(namespace: Snapshot) -> None:
    plan = plan_scan(namespace, "event_date = '2025-12-10' AND country = 'US'")
    assert f"WHERE `object_type` = 'table' AND ({_WHERE})" in plan.manifest_sql
    found = {partition.object_id: partition for partition in plan.partitions}
    assert list(found) == [_V1, _V2]
    assert found[_V1].version == 18446744073709551615
    assert found[_V1].location == f"b4a3c2d1_{_V1}"
    assert found[_V2].version == 16045690984833335022


@pytest.mark.spec("Appendix D 4", "Compatibility with Partition Pruning 1")
@pytest.mark.spec("Appendix D")
def test_each_spec_version_has_its_own_residual(namespace: Snapshot) -> None:
    plan = plan_scan(namespace, "event_date = '2025-12-10' AND country = 'US'")
    by_id = {partition.object_id: partition.residual for partition in plan.partitions}
    assert by_id == {_V1: "`country` = 'US'", _V2: "`event_date` = DATE '2025-12-10'"}
