"""Going back to an older version: what stays known of the versions between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import pennon

if TYPE_CHECKING:
    from pathlib import Path


def test_the_id_of_a_column_that_was_rolled_back_is_not_given_again(tmp_path: Path) -> None:
    columns = pa.schema({"region": pa.utf8(), "amount": pa.int64()})
    sales = pennon.create(tmp_path / "sales", columns, ["region"])
    sales.append([{"region": "eu", "amount": 1}])
    before = sales.snapshot.version
    sales.add_column("discount", pa.int64())
    sales.append([{"region": "eu", "amount": 2, "discount": 50}])
    discount = sales.snapshot.schema.field_by_path(["discount"])

    sales.maintenance.rollback(before)
    sales.add_column("tax", pa.int64())
    sales.append([{"region": "eu", "amount": 3, "tax": 19}])

    tax = sales.snapshot.schema.field_by_path(["tax"])
    assert discount is not None
    assert tax is not None
    assert tax.id > discount.id
    rows = sales.scan(columns=["amount", "tax"]).to_arrow().sort_by("amount")
    assert rows.to_pylist() == [{"amount": 1, "tax": None}, {"amount": 3, "tax": 19}]
