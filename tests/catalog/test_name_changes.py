"""A crash between two steps leaves every table one name, and no name two tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance_namespace as upstream
import pyarrow as pa
import pytest
from lance.dataset import MergeInsertBuilder
from tests.worker.worker_client import field

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import table_ddl as tables
from pennon.catalog.directory import Directory
from pennon.catalog.tables.loaded_table import load
from pennon.errors import TableNotFound, WriteConflict
from pennon.manifest import registered_location

ORDERS, SALES = ("shop", "orders"), ("shop", "sales")


class Crash(BaseException):
    """The process is gone: nothing catches it."""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog("lance", str(tmp_path / "lake"))
    Directory(made).create_namespace(("shop",), {}, if_not_exists=False)
    return made


def create(catalog: Catalog, name: tuple[str, ...], mode: str = "create") -> None:
    schema = {"type": "struct", "fields": [field("new", "long")]}
    tables.create(catalog, name, schema=schema, transforms=[], properties={}, mode=mode)


def plain(catalog: Catalog, name: tuple[str, ...]) -> None:
    sink = pa.BufferOutputStream()
    rows = pa.table({"old": [1, 2]})
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    client = upstream.connect("dir", {"root": catalog.root})
    request = upstream.CreateTableRequest(id=list(name))
    client.create_table(request, sink.getvalue().to_pybytes())


def names(catalog: Catalog) -> dict[str, tuple[str, list[str]]]:
    """Each name, where it points to, and the columns that are read there."""
    directory = Directory(catalog)
    return {
        name: (
            load(catalog, ("shop", name)).snapshot.location,
            load(catalog, ("shop", name)).snapshot.schema.arrow.names,
        )
        for name in directory.tables(("shop",))
    }


def crashing(steps_before: int) -> Callable[..., object]:
    """Count the changes of the catalog's manifest and of files, and crash at one of them."""
    left = steps_before

    def step(real: Callable[..., object], *arguments: Any, **named: object) -> object:
        nonlocal left
        if left == 0:
            raise Crash
        left -= 1
        return real(*arguments, **named)

    return step


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("statement", ["replace a plain table", "rename"])
def test_a_crash_at_any_step_leaves_one_name_per_table(
    catalog: Catalog, statement: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if statement == "rename":
        create(catalog, ORDERS)
    else:
        plain(catalog, ORDERS)
    before = names(catalog)
    step = crashing(at)
    for owner, name in [
        (Directory, "register"),
        (Directory, "deregister"),
        (Directory, "drop_plain"),
        (tables, "drop_dataset"),
        (lance.LanceDataset, "update"),
        (registered_location, "_inserted"),
        (shutil, "rmtree"),
    ]:
        real = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *given, _real=real, **named: step(_real, *given, **named)
        )
    try:
        if statement == "rename":
            tables.rename(catalog, ORDERS, SALES)
        else:
            create(catalog, ORDERS, "create_or_replace")
    except Crash:
        pass
    monkeypatch.undo()
    after = names(catalog)
    places = [place for place, _ in after.values()]
    assert len(places) == len(set(places)) == 1
    [(name, (place, columns))] = after.items()
    if statement == "rename":
        assert name in ("orders", "sales")
        assert (place, columns) == before["orders"]
    else:
        assert name == "orders"
        assert columns in (["old"], ["new"])


def test_a_plain_table_is_replaced_with_its_files(catalog: Catalog) -> None:
    plain(catalog, ORDERS)
    [(place, _)] = names(catalog).values()
    create(catalog, ORDERS, "create_or_replace")
    assert names(catalog)["orders"][1] == ["new"]
    assert not Path(place.removeprefix("file://")).exists()


def test_of_two_renames_to_one_name_the_second_is_refused(catalog: Catalog) -> None:
    for name in (ORDERS, SALES):
        create(catalog, name)
    directory = Directory(catalog)
    [orders, sales] = [directory.registration(name).location for name in (ORDERS, SALES)]
    root = catalog.root
    assert not registered_location.rename_registration(root, ORDERS, SALES, {})
    assert not registered_location.rename_registration(root, ("shop", "gone"), ("shop", "x"), {})
    assert {place for place, _ in names(catalog).values()} == {orders, sales}
    tables.rename(catalog, ORDERS, ("shop", "first"))
    with pytest.raises(TableNotFound):
        tables.rename(catalog, ORDERS, ("shop", "second"))
    assert set(names(catalog)) == {"first", "sales"}


def test_a_rename_that_another_writer_overtakes_is_refused(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, ORDERS)
    real = registered_location._inserted

    def overtaken(*arguments: Any) -> object:
        if "sales" not in names(catalog):
            create(catalog, SALES)
        return real(*arguments)

    monkeypatch.setattr(registered_location, "_inserted", overtaken)
    with pytest.raises(WriteConflict, match="took its new name"):
        tables.rename(catalog, ORDERS, SALES)
    assert set(names(catalog)) == {"orders", "sales"}


def test_a_rename_goes_on_beside_changes_of_other_names(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, ORDERS)
    directory = Directory(catalog)
    real, others = registered_location._inserted, iter(["a", "b"])

    def beside(*arguments: Any) -> object:
        for name in filter(None, [next(others, None)]):
            directory.create_namespace((name,), {}, if_not_exists=False)
            directory.drop_namespace((name,))
        return real(*arguments)

    monkeypatch.setattr(registered_location, "_inserted", beside)
    tables.rename(catalog, ORDERS, SALES)
    assert set(names(catalog)) == {"sales"}


@pytest.mark.parametrize("statement", ["create", "replace", "replace a plain table", "drop"])
def test_a_change_whose_answer_was_lost_is_recognised(
    catalog: Catalog, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is asked again, and refuses what it has done before."""
    if statement == "replace a plain table":
        plain(catalog, ORDERS)
    elif statement != "create":
        create(catalog, ORDERS)
    before = names(catalog)
    for owner, name in [
        (lance.LanceDataset, "update"),
        (Directory, "register"),
        (Directory, "deregister"),
    ]:
        real = getattr(owner, name)

        def asked_again(
            *given: object, _real: Callable[..., object] = real, **named: object
        ) -> object:
            _real(*given, **named)
            return _real(*given, **named)

        monkeypatch.setattr(owner, name, asked_again)
    if statement == "drop":
        assert tables.drop(catalog, ORDERS)
        assert names(catalog) == {}
    else:
        create(catalog, ORDERS, "create" if statement == "create" else "replace")
        [(place, columns)] = names(catalog).values()
        assert columns == ["new"]
        assert place not in [old for old, _ in before.values()]
    folders = [path.name for path in Path(catalog.root).iterdir() if "orders" in path.name]
    assert len(folders) == (0 if statement == "drop" else 1)


def test_a_rename_whose_answer_was_lost_is_recognised(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store tells the client that asks again of a conflict: with the commit that it has made."""
    create(catalog, ORDERS)
    [before] = names(catalog).values()
    real, commits = MergeInsertBuilder.execute, []

    def answer_lost(merge: MergeInsertBuilder, rows: pa.Table) -> object:
        commits.append(real(merge, rows))
        raise OSError("Retryable commit conflict for version 3: changed by a concurrent commit")

    monkeypatch.setattr(MergeInsertBuilder, "execute", answer_lost)
    tables.rename(catalog, ORDERS, SALES)
    monkeypatch.undo()
    assert names(catalog) == {"sales": before}
    assert len(commits) == 1
    create(catalog, ORDERS)
    tables.rename(catalog, SALES, ("shop", "again"))
    assert names(catalog)["again"] == before
