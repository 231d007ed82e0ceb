"""A table that a query fills: there as a whole, or not at all, and without anything left of it."""

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
from pennon.catalog.directory import Directory
from pennon.catalog.tables.loaded_table import load
from pennon.errors import TableAlreadyExists, TableNotFound

if TYPE_CHECKING:
    from pennon.catalog.tables.loaded_table import Table

SCHEMA = pa.schema({"id": pa.int64()})


PLACES = pytest.mark.parametrize("is_path", [True, False], ids=["by path", "by name"])


def identifier(tmp_path: Path, name: str, *, is_path: bool) -> tuple[str, ...]:
    return (str(tmp_path / name),) if is_path else ("shop", name)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    pennon.connect(tmp_path / "lake").create_namespace("shop")
    return Catalog("lance", str(tmp_path / "lake"))


def stage(catalog: Catalog, name: tuple[str, ...]) -> Table:
    table = table_ddl.stage(
        catalog, name, schema=SCHEMA, transforms=(), properties={}, mode="create"
    )
    pennon.open(table.snapshot.location).append([{"id": 1}])
    return table


def publish(catalog: Catalog, name: tuple[str, ...], table: Table) -> None:
    table_ddl.publish(catalog, name, table.snapshot.location, "create")


def rows(catalog: Catalog, name: tuple[str, ...]) -> int:
    return pennon.open(load(catalog, name).snapshot.location).scan().count_rows()


def make_old(folder: Path) -> None:
    last_week = time.time() - timedelta(days=7).total_seconds()
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (last_week, last_week))


@PLACES
def test_a_killed_query_leaves_no_table_and_the_next_one_makes_it(
    catalog: Catalog, tmp_path: Path, *, is_path: bool
) -> None:
    name = identifier(tmp_path, "orders", is_path=is_path)
    killed = stage(catalog, name)
    assert killed.name == catalog.full_name(name) if not is_path else name[0]
    with pytest.raises(TableNotFound):
        load(catalog, name)
    table = stage(catalog, name)
    publish(catalog, name, table)
    publish(catalog, name, table)  # a request whose answer was lost is sent again
    assert rows(catalog, name) == 1
    with pytest.raises(TableAlreadyExists):
        publish(catalog, name, killed)
    pennon.open(load(catalog, name).snapshot.location).append([{"id": 2}])
    assert rows(catalog, name) == 2


@PLACES
def test_what_killed_queries_left_goes_when_it_is_old(
    catalog: Catalog, tmp_path: Path, *, is_path: bool
) -> None:
    names = [identifier(tmp_path, name, is_path=is_path) for name in ("a", "b", "c", "d")]
    old, running, made = (stage(catalog, name) for name in names[:3])
    left = Path(old.snapshot.location)
    publish(catalog, names[2], made)
    make_old(left)
    make_old(Path(load(catalog, names[2]).snapshot.location))
    stage(catalog, names[3])
    assert not left.exists()
    assert rows(catalog, names[2]) == 1
    publish(catalog, names[1], running)
    assert rows(catalog, names[1]) == 1


def test_a_query_that_loses_its_name_at_the_last_moment_leaves_nothing(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, register = ("shop", "orders"), Directory.register
    mine, theirs = stage(catalog, name), stage(catalog, name)

    def after_another(directory: Directory, identifier: tuple[str, ...], location: str) -> None:
        monkeypatch.undo()
        publish(catalog, name, theirs)
        register(directory, identifier, location)

    monkeypatch.setattr(Directory, "register", after_another)
    with pytest.raises(TableAlreadyExists):
        publish(catalog, name, mine)
    table_ddl.discard(catalog, name, mine.stored)
    folders = {folder.name for folder in Path(catalog.root).iterdir() if folder.is_dir()}
    assert folders == {"__manifest", Path(load(catalog, name).snapshot.location).name}
    assert rows(catalog, name) == 1


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept place", "place beside"])
@PLACES
def test_a_table_that_was_made_is_as_it_is_loaded(
    catalog: Catalog, tmp_path: Path, *, is_path: bool, is_kept: bool
) -> None:
    """It is loaded no more where it was filled at its place, as in object stores."""
    name = identifier(tmp_path, "t", is_path=is_path)
    properties = {"location": str(tmp_path / "elsewhere")} if is_kept and not is_path else {}
    if is_kept and is_path:
        Path(name[0]).mkdir()
    made = table_ddl.create(
        catalog, name, schema=SCHEMA, transforms=(), properties=properties, mode="create"
    )
    loaded = load(catalog, name)
    assert made == loaded
    assert (made.identity, made.table_id) == (loaded.identity, loaded.table_id)
    assert made.properties == loaded.properties
