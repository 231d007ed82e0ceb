"""Conditions that are an error for some rows: in Python, too, only of rows that others leave."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FragmentDivision, FragmentPart, FragmentText, PredicateNotEvaluable
from pennon.namespace import PartitionedNamespace


@pytest.fixture
def table(tmp_path: Path) -> PartitionedNamespace:
    """Rows 0 to 9; of 9 the text is no number, and another one is NULL."""
    columns = pa.schema({"k": pa.int64(), "s": pa.utf8(), "v": pa.int64()})
    made = pennon.create(tmp_path / "t", columns, ["bucket(2, k)"])
    made.append(
        [{"k": k, "s": "none" if k == 9 else str(k), "v": None if k == 3 else k} for k in range(10)]
    )
    return made


CONDITIONS = [
    ("k < 9 AND 100 / (k - 9) < -20", [5, 6, 7, 8]),
    ("100 / (k - 9) < -20 AND k < 9 AND s <> '6'", [5, 7, 8]),
    ("k < 9 AND CAST(s AS INT) > 3 AND 100 / (k - 9) < -20", [5, 6, 7, 8]),
    ("k = 9 OR 100 / (k - 9) < -50", [8, 9]),
    ("CASE WHEN k < 9 THEN 100 / (k - 9) ELSE 0 END < -20", [5, 6, 7, 8]),
    ("k < 9 AND 100 / (v - 9) < 0", [0, 1, 2, 4, 5, 6, 7, 8]),
]


@pytest.mark.parametrize(("condition", "keys"), CONDITIONS)
def test_rows_are_those_for_which_it_holds(
    table: PartitionedNamespace, condition: str, keys: list[int]
) -> None:
    scan = table.scan(where=condition, columns=["k"])
    for rows in (scan.to_arrow(), scan.to_datafusion().to_arrow_table()):
        assert sorted(rows["k"].to_pylist()) == keys
    table.update({"s": "'changed'"}, where=condition)
    assert sorted(table.scan(where="s = 'changed'").to_arrow()["k"].to_pylist()) == keys
    table.delete(f"k IN ({', '.join(map(str, keys))})")


@pytest.mark.parametrize(("condition", "keys"), CONDITIONS)
def test_a_delete_takes_the_same_rows(
    table: PartitionedNamespace, condition: str, keys: list[int]
) -> None:
    table.delete(condition)
    left = table.scan().to_arrow()["k"].to_pylist()
    assert sorted(left) == [k for k in range(10) if k not in keys]


@pytest.mark.parametrize("condition", ["levenshtein(s, '1') = 7", "rand() < 2", "soundex(s) = ''"])
def test_what_may_not_be_computed_as_spark_does_is_refused_in_every_form(
    table: PartitionedNamespace, condition: str
) -> None:
    scan = table.scan(where=condition)
    for read in (scan.to_arrow, scan.to_datafusion, scan.count_rows):
        with pytest.raises(PredicateNotEvaluable, match="as Spark does"):
            read()


def test_a_row_of_which_it_is_an_error_is_one(table: PartitionedNamespace) -> None:
    with pytest.raises(FragmentDivision):
        table.scan(where="100 / (k - 9) < 3").to_arrow()
    with pytest.raises(FragmentText, match="'none'"):
        table.delete("CAST(s AS INT) > 3")
    with pytest.raises(FragmentPart, match="the index 1 is out of bounds.* into 1 parts"):
        table.delete("split(s, ':')[1] = 'a'")
    assert table.scan().to_arrow().num_rows == 10


@pytest.mark.parametrize(
    "condition", ["count(*) > 1", "max(k) OVER () = 1", "k IN (SELECT 1)", "k"]
)
def test_what_is_no_condition_on_a_row_is_refused_where_there_is_none(
    tmp_path: Path, table: PartitionedNamespace, condition: str
) -> None:
    empty = pennon.create(tmp_path / "empty", table.schema, ["bucket(2, k)"])
    pruned = f"k = 77 AND {condition}"
    for asked, where in ((empty, condition), (empty, pruned), (table, pruned)):
        version = asked.version
        scan = asked.scan(where)
        for call in (
            scan.to_arrow,
            scan.to_datafusion,
            scan.count_rows,
            partial(asked.delete, where),
            partial(asked.update, {"v": 1}, where),
            partial(asked.overwrite, [{"k": 1}], where),
        ):
            with pytest.raises(PredicateNotEvaluable, match="as Spark does"):
                call()
        assert asked.refresh().version == version
