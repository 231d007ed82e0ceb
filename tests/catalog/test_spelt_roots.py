"""A root means one folder, however it is spelt and wherever a task runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import pennon
from pennon.catalog.configured_catalog import Catalog


def test_a_path_as_hadoop_spells_it_is_that_path(tmp_path: Path) -> None:
    """Spark prints ``file:/path``, with one slash, and people paste it."""
    lake = pennon.connect(f"file:{tmp_path}/lake")
    lake.create_namespace("shop")
    assert pennon.connect(tmp_path / "lake").list_namespaces() == ["shop"]
    catalog = Catalog("lance", f"file:{tmp_path}/lake")
    assert catalog.is_local
    assert catalog.address("leaf") == catalog.address(f"file:{tmp_path}/lake/leaf")


def test_a_relative_root_is_below_the_folder_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting that is written by hand: executors work in folders of their own."""
    monkeypatch.chdir(tmp_path)
    catalog = Catalog("lance", "lake")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert catalog.address("leaf") == str(tmp_path / "lake" / "leaf")
    assert Catalog("lance", "~/lake").address("leaf") == str(tmp_path / "home/lake/leaf")
    assert Catalog("lance", "s3://bucket/lake/").address("leaf") == "s3://bucket/lake/leaf"
