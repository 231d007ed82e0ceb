"""A root means one folder, however it is spelt and wherever a task runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.table_name import relative_location
from pennon.errors import SchemeNotSupported, UnknownSetting


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


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3A"])
def test_hadoops_names_of_s3_are_s3_in_roots_and_in_what_is_stored(scheme: str) -> None:
    catalog = Catalog("lance", f"{scheme}://bucket/lake/")
    assert catalog.root == "s3://bucket/lake"
    assert catalog.address(f"{scheme}://other/table") == "s3://other/table"
    assert relative_location(catalog, f"{scheme}://bucket/lake/t") == "t"


@pytest.mark.parametrize(
    "root",
    ["gs://bucket/lake", "az://container/lake", "abfss://c@account.dfs.core.windows.net/lake"],
)
def test_the_stores_of_other_clouds_are_taken_by_their_urls(root: str) -> None:
    assert Catalog("lance", root).address("t") == f"{root}/t"


@pytest.mark.parametrize(
    ("root", "near"),
    [
        ("hdfs://name/lake", "those it has are s3, gs, az"),
        ("gcs://bucket/lake", "did you mean gs"),
        ("wasbs://c@account/lake", "did you mean abfss"),
    ],
)
def test_a_scheme_that_lance_has_no_store_of_is_refused_in_one_sentence(
    root: str, near: str
) -> None:
    with pytest.raises(SchemeNotSupported, match=near):
        pennon.connect(root)


@pytest.mark.parametrize(
    ("option", "near"),
    [
        ("aws_secret_acces_key", "did you mean aws_secret_access_key"),
        ("azure_storage_acount_name", "did you mean azure_storage_account_name"),
        ("google_service_acount", "did you mean google_service_account"),
        ("xyz", "neither has a store"),
    ],
)
def test_a_storage_option_of_no_store_is_refused_with_the_nearest_one(
    tmp_path: Path, option: str, near: str
) -> None:
    with pytest.raises(UnknownSetting, match=near) as refused:
        pennon.connect(tmp_path / "lake", storage_options={option: "hush"})
    assert "hush" not in str(refused.value)
    pennon.connect(tmp_path / "lake", storage_options={"AWS_REGION": "eu"})
