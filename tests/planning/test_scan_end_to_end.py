"""Plans over real files: written, committed, planned and read back."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from pennon import manifest
from pennon.errors import PredicateNotEvaluable
from pennon.manifest.commits.manifest_commit import LeafChange, commit_leaves
from pennon.manifest.format.names import leaf_name
from pennon.manifest.snapshot import Snapshot
from pennon.namespace import Scan, read_plan
from pennon.planning import explain, plan_scan
from pennon.spec.partition_spec import PartitionField, PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.bucket import Bucket
from pennon.transforms.identity import Identity

_SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("day", pa.date32())])
_ROWS = pa.table(
    {
        "id": [1, 6, 3, 4, 5, None],
        "country": ["US", "US", "DE", None, "it's", "DE"],
        "day": [dt.date(2025, 12, day) for day in (10, 11, 10, 10, 12, 11)],
    },
    schema=_SCHEMA,
)


def _namespace(location: Path, *, strong: bool) -> Snapshot:
    schema = NamespaceSchema.with_fresh_ids(_SCHEMA)
    spec = PartitionSpec(
        1,
        (
            PartitionField("country", (1,), Identity(), None, pa.string()),
            PartitionField("id_bucket", (0,), Bucket(4), None, pa.int32()),
        ),
    )
    snapshot = manifest.create(str(location), schema, spec, strong=strong)
    buckets = Bucket(4).apply([_ROWS.column("id")])
    changes: list[LeafChange] = []
    for row in range(_ROWS.num_rows):
        values = {"country": _ROWS.column("country")[row], "id_bucket": buckets[row]}
        name = leaf_name(snapshot.salt, 1, list(values.values()))
        dataset = lance.write_dataset(
            _ROWS.slice(row, 1), str(location / name.directory), schema=_SCHEMA, mode="append"
        )
        changes = [change for change in changes if change.object_id != name.object_id]
        version = dataset.version if strong else None
        rows = dataset.count_rows()
        changes.append(LeafChange(name.object_id, name.directory, values, version, rows, 10, 1))
    commit_leaves(snapshot, changes)
    return Snapshot.open(str(location))


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return _namespace(tmp_path_factory.mktemp("strong") / "orders", strong=True)


@pytest.mark.spec("Partition Pruning 1", "Partition Pruning 5")
@pytest.mark.parametrize(
    ("predicate", "ids", "partitions"),
    [
        (None, [1, 6, 3, 4, 5, None], 6),
        ("country = 'US'", [1, 6], 2),
        ("COUNTRY = 'US' AND day > DATE '2025-12-10'", [6], 2),
        ("id = 3", [3], 2),
        ("country IS NULL", [4], 1),
        ("country = 'it\\'s' OR id IS NULL", [5, None], 2),
        ("country LIKE 'D%' AND year(day) = 2025", [3, None], 2),
        ("id + 1 = 2", [1], 6),
        ("id / 2 = 2", [4], 6),
        ("country = 'it''s'", [5], 1),
        ("length(country) = 4 AND country LIKE '%\\'_'", [5], 6),
        ("`id` % 2 = 1 AND upper(country) <> 'US'", [3, 5], 6),
        ("day < '2025-12-11' AND NOT country IN ('DE')", [1], 3),
        ("FALSE", [], 0),
        ("id = NULL", [], 0),
    ],
)
def test_the_rows_of_a_plan_are_those_of_the_predicate(
    namespace: Snapshot, predicate: str | None, ids: list[int | None], partitions: int
) -> None:
    plan = plan_scan(namespace, predicate, ["id"])
    assert plan.partitions_total == 6
    assert sorted(read_plan(plan).to_arrow().column("id").to_pylist(), key=str) == sorted(
        ids, key=str
    )
    assert len(plan.partitions) <= partitions
    assert sum(batch.num_rows for batch in read_plan(plan).batches) == len(ids)


def test_what_partition_values_decide_is_not_residual(namespace: Snapshot) -> None:
    plan = plan_scan(namespace, ["country = 'US'", "day > DATE '2025-12-10'", "id + 1 = 7"])
    assert plan.residuals == ("`day` > DATE '2025-12-10'",)
    (row_filter,) = plan.row_filters
    assert row_filter.startswith("`day` > DATE '2025-12-10' AND CASE WHEN ")
    assert "country" not in row_filter
    first = plan.partitions[0]
    assert first.values["country"] == "US"
    assert first.residual == plan.row_filters[0]
    assert plan.table.column("residual").to_pylist() == [0] * len(plan.partitions)
    assert "2 of 6" in explain(plan)


@pytest.mark.spec("Partition Pruning 3")
def test_a_plan_over_strong_leaves_opens_none_of_them(
    namespace: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a leaf was opened")

    monkeypatch.setattr(lance, "dataset", refuse)
    plan = plan_scan(namespace, "country = 'DE'")
    assert plan.num_rows == 2
    assert plan.num_bytes == 20


@pytest.mark.spec("Multi-Partition Transaction (Weak) 4")
def test_weak_leaves_are_pinned_at_planning(tmp_path: Path) -> None:
    weak = _namespace(tmp_path / "weak", strong=False)
    plan = plan_scan(weak, "country = 'US'")
    for partition in plan.partitions:
        lance.write_dataset(
            _ROWS.slice(0, 1), str(Path(weak.location) / partition.location), mode="append"
        )
    assert read_plan(plan).to_arrow().num_rows == 2
    assert Scan(weak, "country = 'US'").to_arrow().num_rows == 4


@pytest.mark.parametrize("predicate", ["my_udf(id) = 3", "country = 5"])
def test_a_conjunct_that_nobody_understands_is_an_error_of_the_reader(
    namespace: Snapshot, predicate: str
) -> None:
    plan = plan_scan(namespace, predicate)
    assert plan.residuals == ()
    with pytest.raises(PredicateNotEvaluable, match="Cannot evaluate the predicate"):
        read_plan(plan).to_arrow()
