"""Indexes on a store: made, searched, checked, and mended where their files have gone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileSession
from tests.stores.server import Proxy, options

from pennon.namespace import Lake
from pennon.search import text as text_search

SCHEMA = pa.schema(
    {"id": pa.int64(), "part": pa.int32(), "body": pa.string(), "v": pa.list_(pa.float32(), 8)}
)


def rows(count: int, first: int) -> list[dict[str, object]]:
    drawn = np.random.default_rng(first)
    return [
        {"id": at, "part": at % 2, "body": f"word {at % 7}", "v": drawn.normal(size=8)}
        for at in range(first, first + count)
    ]


@pytest.mark.parametrize("few", [0, 1 << 19])
def test_searches_by_indexes_of_a_store_find_what_searches_without_them_find(
    proxy: Proxy, bucket: Lake, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(text_search, "_FEW_PLACES", few)
    table = bucket.create_table("shop.texts", SCHEMA, ["part"])
    table.append(rows(200, 0))
    table.delete("id % 11 = 3")

    def found() -> list[object]:
        best = table.search_text("3 word", "body", 20, columns=["id"]).to_arrow()
        near = table.search([0.5] * 8, k=20, columns=["id"], exact=False).to_arrow()
        return [best.to_pylist(), sorted(near["id"].to_pylist())]

    before = found()
    table.create_index("v", "IVF_FLAT", min_bytes=0, num_partitions=1)
    table.create_index("body", "INVERTED")
    assert found() == before
    assert table.maintenance.check().is_valid
    leaf = table.snapshot.leaves().table["location"][0].as_py()
    store = LanceFileSession(f"{table.location}/{leaf}", storage_options=options(proxy.port))
    names = [name for name in store.list("_indices") if "words_1_0" in name]
    assert len(names) == 3
