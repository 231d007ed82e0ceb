"""Analyzing: what is counted is what the rows have, and whoever writes meanwhile comes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.present import present

import pennon
from pennon.errors import UnknownColumn
from pennon.manifest.commits.manifest_commit import commit_statistics
from pennon.manifest.format.column_statistics import LeafStatistics
from pennon.namespace import PartitionedNamespace
from pennon.transaction.staging.staged import leaf_states

COMMIT = "pennon.maintenance.statistics.commit_statistics"
ROWS = pa.table(
    {
        "k": pa.array([at % 2 for at in range(6_000)], pa.int32()),
        "id": range(6_000),
        "name": [f"n{at % 7}" if at % 5 else None for at in range(6_000)],
        "place": [{"x": at % 3} if at % 4 else None for at in range(6_000)],
    }
)


def _made(tmp_path: Path, **properties: str) -> PartitionedNamespace:
    named = {f"write.statistics.{name}": value for name, value in properties.items()}
    made = pennon.create(str(tmp_path / "t"), ROWS.schema, ["k"], properties=named)
    made.append(ROWS)
    return made


def _known(table: PartitionedNamespace) -> list[LeafStatistics | None]:
    """What is known of the partitions in the order of their values."""
    rows = table.snapshot.leaves().table["object_id"].to_pylist()
    states = leaf_states(table.snapshot, rows).values()
    return [state.columns for state in sorted(states, key=lambda state: state.values["k"].as_py())]


def test_what_is_counted_is_what_the_rows_have(tmp_path: Path) -> None:
    made = _made(tmp_path, columns="0")
    assert _known(made) == [None, None]
    made.delete("id >= 5990")
    before = [made.scan().plan().table["read_version"].to_pylist(), made.scan().count_rows()]
    done = made.maintenance.analyze(["id", "name", "place.x"])
    assert (len(done.partitions), done.num_rows, done.notes) == (2, 5_990, [])
    for k, found in enumerate(_known(made)):
        assert found is not None
        rows = made.scan(f"k = {k}").to_arrow()
        ids, name, x = (found.columns[number] for number in (1, 2, 4))
        assert found.is_exact
        assert (int(present(ids.lower)), int(present(ids.upper))) == (
            min(rows["id"].to_pylist()),
            max(rows["id"].to_pylist()),
        )
        assert ids.distinct_count == pytest.approx(2_995, rel=0.1)
        assert (name.distinct_count, name.null_count) == (7, rows["name"].null_count)
        assert (x.lower, x.upper, x.distinct_count) == ("0", "2", 3)
        assert x.null_count == rows["place"].null_count
    assert before == [made.scan().plan().table["read_version"].to_pylist(), 5_990]
    assert made.scan("id > 6000").plan().num_pruned == 2
    assert made.maintenance.analyze(["id", "name"]).partitions == []  # nothing is missing any more
    assert made.history()[-1].operation == "analyze"


def test_a_leaf_that_moves_on_meanwhile_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _made(tmp_path, columns="0")
    other = pennon.open(made.location)

    def late(*given: Any) -> object:
        monkeypatch.setattr(COMMIT, commit_statistics)
        other.append(ROWS.slice(0, 1))
        return commit_statistics(*given)

    monkeypatch.setattr(COMMIT, late)
    done = made.maintenance.analyze(["id"])
    assert done.partitions == ["k=1"]
    assert [count is None for count in _known(made)] == [True, False]
    assert made.scan().count_rows() == 6_001


def test_names_and_modes_that_cannot_be_analyzed_are_told(tmp_path: Path) -> None:
    made = _made(tmp_path)
    with pytest.raises(UnknownColumn, match="place.x"):
        made.maintenance.analyze(["plac"])
    weak = pennon.create(
        str(tmp_path / "weak"), ROWS.schema, ["k"], properties={"transaction": "weak"}
    )
    assert "weak mode" in weak.maintenance.analyze().notes[0]
