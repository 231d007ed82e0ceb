"""What is kept of a directory's names is never older than its manifest."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import lance_namespace as upstream
import pytest

from pennon.catalog.configured_catalog import Catalog, known_name
from pennon.catalog.directory import Directory
from pennon.manifest.registered_location import move_registration, rename_registration

NAME = ("shop", "orders")


def registered(catalog: Catalog, location: str) -> None:
    directory = Directory(catalog)
    directory.create_namespace(NAME[:1], {}, if_not_exists=True)
    directory.register(NAME, catalog.address(location))


def location_of(catalog: Catalog) -> str | None:
    found = Directory(catalog).find(NAME)
    return None if found is None else Path(found.location).name


def moved(catalog: Catalog) -> None:
    assert move_registration(catalog.root, NAME, "first", "second", {})


def renamed(catalog: Catalog) -> None:
    assert rename_registration(catalog.root, NAME, ("shop", "other"), {})


def dropped(catalog: Catalog) -> None:
    client = upstream.connect("dir", {"root": catalog.root})
    client.drop_namespace(upstream.DropNamespaceRequest(id=list(NAME)))


@pytest.mark.parametrize(("change", "after"), [(moved, "second"), (renamed, None), (dropped, None)])
def test_a_change_by_another_client_is_seen_at_once(
    tmp_path: Path, change: Callable[[Catalog], None], after: str | None
) -> None:
    catalog = Catalog("lance", str(tmp_path))
    registered(catalog, "first")
    assert [location_of(catalog), location_of(catalog)] == ["first", "first"]
    change(catalog)
    assert location_of(catalog) == after


def test_a_directory_made_anew_with_as_many_versions_is_another_one(tmp_path: Path) -> None:
    versions = []
    for location in ("first", "second"):
        # A client of upstream does not survive that; there is one for each name of a catalog.
        catalog = Catalog(location, str(tmp_path / "lake"))
        shutil.rmtree(catalog.root, ignore_errors=True)
        registered(catalog, location)
        assert location_of(catalog) == location
        versions.append(lance.dataset(f"{catalog.root}/__manifest").version)
    assert versions[0] == versions[1]


def test_a_name_is_asked_for_once_at_a_version(tmp_path: Path) -> None:
    catalog = Catalog("lance", str(tmp_path))
    registered(catalog, "first")
    asked = 0

    def location(name: tuple[str, ...]) -> str:
        def describe() -> dict[str, str]:
            nonlocal asked
            asked += 1
            return {"location": f"{name[-1]} {asked}"}

        return (known_name(catalog, name, describe).properties or {})["location"]

    assert location(NAME) == "orders 1"
    assert location(NAME) == "orders 1"
    assert location(("shop", "parts")) == "parts 2"
    Directory(catalog).create_namespace(("store",), {}, if_not_exists=False)
    assert location(NAME) == "orders 3"
