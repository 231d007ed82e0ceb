"""One query over fifty spec versions: pruning in each of them, rows as a full scan has them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.transaction.lake import append, latest

from pennon.manifest import ManifestCommitted, Snapshot, create
from pennon.manifest.commits.root_change import change_root
from pennon.namespace import Scan, read_plan
from pennon.planning import plan_scan
from pennon.spec import NamespaceSchema
from pennon.spec.evolution import spec_of
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Month, Year
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.registry import TransformCall
from pennon.transforms.truncate import Truncate

pytestmark = pytest.mark.slow

_VERSIONS = 50
_SCHEMA = pa.schema(
    [("id", pa.int64()), ("day", pa.date32()), ("region", pa.utf8()), ("part", pa.utf8())]
)
_REGIONS = ["eu", "us", "br", None]


def _calls(version: int) -> list[TransformCall]:
    """Fifty different specs out of every kind of transform."""
    by_id, by_day, by_region = ("id",), ("day",), ("region",)
    kinds = [
        [TransformCall((Bucket(version + 2),), (by_id,))],
        [TransformCall((Year(), Month(), Day()), (by_day,))],
        [TransformCall((Identity(),), (by_region,)), TransformCall((Bucket(version),), (by_id,))],
        [TransformCall((Truncate(version * 10),), (by_id,))],
        [TransformCall((MultiBucket(version),), (by_region, by_id))],
        [TransformCall((Year(),), (by_day,)), TransformCall((Truncate(version),), (by_region,))],
        [TransformCall((Expression(f"upper(left(col0, {version}))"),), (by_region,))],
    ]
    return kinds[version % len(kinds)]


def _row(version: int, at: int) -> dict[str, object]:
    number = version * 4 + at
    day = dt.date(2011, 12, 30) + dt.timedelta(days=number)
    return {"id": number, "day": day, "region": _REGIONS[at], "part": f"v{version}"}


_ROWS = [_row(version, at) for version in range(1, _VERSIONS + 1) for at in range(4)]


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    schema = NamespaceSchema.with_fresh_ids(_SCHEMA)
    folder = tmp_path_factory.mktemp("lake")
    snapshot = create(str(folder / "t"), schema, spec_of(schema, _calls(1)))
    for version in range(1, _VERSIONS + 1):
        if version > 1:
            snapshot = latest(snapshot)  # small fragments may be merged behind the commit
            spec = spec_of(schema, _calls(version), snapshot.specs)
            assert isinstance(change_root(snapshot, spec=spec), ManifestCommitted)
            snapshot = latest(snapshot)
        mine = [row for row in _ROWS if row["part"] == f"v{version}"]
        snapshot = append(snapshot, pa.RecordBatch.from_pylist(mine, _SCHEMA))
    return snapshot


def _expected(evolved: Snapshot, known: dict[str, object]) -> set[str]:
    """The partitions whose fields over known columns have the values of these, by trying all."""
    columns = {field.name: at for at, field in enumerate(_SCHEMA)}
    names = {at: name for name, at in columns.items()}
    kept = set()
    for leaf in evolved.leaves().table.to_pylist():
        spec = evolved.specs[int(leaf["object_id"].partition("$")[0][1:])]
        fits = True
        for field in spec.fields:
            sources = [names[source_id] for source_id in field.source_ids]
            if known.keys() >= set(sources):
                arrays = [pa.array([known[name]], _SCHEMA.field(name).type) for name in sources]
                fits &= leaf[field.column] == field.derivation.apply(arrays)[0].as_py()
        if fits:
            kept.add(leaf["object_id"])
    return kept


@pytest.mark.spec(
    "Compatibility with Partition Pruning 1",
    "Compatibility with Partition Pruning 2",
    "Evolution Scenarios 1",
    "Evolution Scenarios 2",
)
@pytest.mark.parametrize(
    "names", [["id"], ["day"], ["region"], ["region", "id"], ["day", "region"]]
)
@pytest.mark.parametrize("at", [77, 120, 151])
def test_each_of_fifty_spec_versions_prunes_by_its_own_fields(
    evolved: Snapshot, names: list[str], at: int
) -> None:
    assert len(evolved.specs) == _VERSIONS
    known = {name: _ROWS[at][name] for name in names}
    condition = " AND ".join(f"{name} <=> {_text(known[name])}" for name in names)
    plan = plan_scan(evolved, condition, by_statistics=False)
    found = sorted(read_plan(plan).to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [row for row in _ROWS if known.items() <= row.items()]
    assert {partition.object_id for partition in plan.partitions} == _expected(evolved, known)
    assert len(plan.partitions) < evolved.leaves().table.num_rows


@pytest.mark.parametrize(
    ("predicate", "matches"),
    [
        ("region IS NULL AND day >= DATE '2012-06-01'", lambda r: r["at"] == 3 and r["id"] >= 154),
        ("id BETWEEN 40 AND 43 OR region = 'zz'", lambda r: 40 <= r["id"] <= 43),
        ("NOT (id < 190 OR region <> 'br')", lambda r: r["id"] >= 190 and r["at"] == 2),
        ("year(day) = 2011 OR region LIKE 'b%' AND part = 'v49'", lambda r: r["id"] == 198),
    ],
)
def test_other_predicates_give_the_rows_of_a_full_scan(
    evolved: Snapshot, predicate: str, matches: Callable[[dict[str, int]], bool]
) -> None:
    found = Scan(evolved, predicate).to_arrow()["id"].to_pylist()
    wanted = [row["id"] for row in _ROWS if matches({"id": row["id"], "at": row["id"] % 4})]  # type: ignore[operator, dict-item]
    assert sorted(found) == wanted


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return f"DATE '{value}'" if isinstance(value, dt.date) else repr(value)


def test_fifty_spec_versions_without_a_predicate_are_all_read(evolved: Snapshot) -> None:
    found = Scan(evolved).to_arrow().sort_by("id").to_pylist()
    assert found == _ROWS
    known = set(evolved.manifest.schema.names)
    assert {field.column for spec in evolved.specs.values() for field in spec.fields} <= known
