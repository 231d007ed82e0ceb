"""The rows that hold the first ones by a distance, beside Spark's arithmetic written out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.search import FirstRows, first_rows, plan_search

if TYPE_CHECKING:
    from pathlib import Path

_Vector = list[float | None] | None


def place_of(
    vector: _Vector, query: list[float | None], *, is_nulls_first: bool
) -> tuple[int, float]:
    """Where Spark 4.3 sorts a vector: it adds the squares of eight elements, then these sums."""
    if vector is None or None in vector:
        return (0 if is_nulls_first else 3, 0.0)
    apart = [np.float64(one or 0) - (two or 0) for one, two in zip(vector, query, strict=True)]
    whole = len(apart) // 8 * 8
    total = np.float64(0)
    with np.errstate(all="ignore"):
        for at in range(0, whole, 8):
            block = apart[at] * apart[at]
            for one in apart[at + 1 : at + 8]:
                block += one * one
            total += block
        for one in apart[whole:]:
            total += one * one
        far = float(np.float32(np.sqrt(total)))
    return (2, 0.0) if math.isnan(far) else (1, far)


@pytest.mark.parametrize("seed", range(6))
def test_the_first_rows_are_among_those_that_are_given(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    size, count = int(random.integers(1, 20)), int(random.integers(20, 200))
    # Integers, of which many are as far away; and numbers whose squares are no FLOATs.
    drawn = (
        random.integers(-2, 3, (count, size)).astype(np.float64)
        if seed % 2
        else random.normal(size=(count, size)) * 10.0 ** random.integers(-25, 25)
    )
    rows: list[_Vector] = [list(vector) for vector in drawn.astype(np.float32).tolist()]
    query = list(rows[0] or [])
    if seed < 4:
        for one in random.permutation(count)[: count // 4].tolist():
            change = random.integers(4)
            vector = rows[one] or []
            vector[int(random.integers(size))] = (None, math.nan, math.inf, 1.0)[change]
            rows[one] = None if change == 3 else vector
    kind = pa.list_(pa.float32(), size)
    schema = pa.schema({"id": pa.int64(), "part": pa.int64(), "v": kind})
    table = pennon.create(tmp_path / "t", schema, partition_by=["part"])
    parts = [one % 3 for one in range(count)]
    table.append(pa.table([pa.array(range(count)), parts, pa.array(rows, kind)], schema))
    for is_nulls_first in (True, False):
        places = [place_of(one, query, is_nulls_first=is_nulls_first) for one in rows]
        for k, where in ((1, None), (5, "id % 3 <> 1"), (60, "part > 0"), (1_000, None)):
            search = plan_search(table.snapshot, query, k=k, where=where, metric="l2", exact=True)
            given = first_rows(FirstRows(search, is_nulls_first))["id"].to_pylist()
            chosen = table.scan(where).to_arrow()["id"].to_pylist()
            assert set(given) <= set(chosen)
            assert len(given) == len(set(given))
            firsts = sorted(places[one] for one in chosen)[:k]
            assert sorted(places[one] for one in given)[:k] == firsts
