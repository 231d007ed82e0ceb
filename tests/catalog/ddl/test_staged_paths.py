"""A table that a query fills, and that is named by its path: there as a whole, or not at all."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import table_ddl
from pennon.catalog.tables.loaded_table import load
from pennon.errors import TableAlreadyExists, TableNotFound

if TYPE_CHECKING:
    from pennon.catalog.tables.loaded_table import Table

SCHEMA = pa.schema({"id": pa.int64()})


def stage(catalog: Catalog, path: Path) -> Table:
    table = table_ddl.stage(
        catalog, (str(path),), schema=SCHEMA, transforms=(), properties={}, mode="create"
    )
    pennon.open(table.snapshot.location).append([{"id": 1}])
    return table


def publish(catalog: Catalog, path: Path, table: Table) -> None:
    table_ddl.publish(catalog, (str(path),), table.snapshot.location, "create")


def test_a_killed_query_leaves_no_table_and_the_next_one_makes_it(tmp_path: Path) -> None:
    catalog, path = Catalog("lance", str(tmp_path / "lake")), tmp_path / "orders"
    killed = stage(catalog, path)
    assert killed.name == str(path)
    with pytest.raises(TableNotFound):
        load(catalog, (str(path),))
    table = stage(catalog, path)
    publish(catalog, path, table)
    publish(catalog, path, table)  # a request whose answer was lost is sent again
    assert pennon.open(path).scan().count_rows() == 1
    with pytest.raises(TableAlreadyExists):
        publish(catalog, path, killed)
    pennon.open(path).append([{"id": 2}])
    assert pennon.open(path).scan().count_rows() == 2


def test_what_killed_queries_left_goes_when_it_is_old(tmp_path: Path) -> None:
    catalog = Catalog("lance", str(tmp_path / "lake"))
    old, running = (stage(catalog, tmp_path / name) for name in ("a", "b"))
    last_week = time.time() - timedelta(days=7).total_seconds()
    left = Path(old.snapshot.location)
    for path in (left, *left.rglob("*")):
        os.utime(path, (last_week, last_week))
    stage(catalog, tmp_path / "c")
    assert not left.exists()
    publish(catalog, tmp_path / "b", running)
    assert pennon.open(tmp_path / "b").scan().count_rows() == 1
