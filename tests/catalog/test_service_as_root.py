"""A catalog whose names are a service's: upstream's REST adapter over a directory namespace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.namespace import RestAdapter

import pennon
from pennon.errors import (
    CatalogRefused,
    TableNotFound,
    UnknownImplementation,
)
from pennon.namespace import Lake

SCHEMA = pa.schema({"id": pa.int64(), "region": pa.string()})
HEADER = {"header.Authorization": "Bearer of-nobody-else"}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "lake").mkdir()
    with RestAdapter("dir", {"root": str(tmp_path / "lake")}, host="127.0.0.1", port=0) as service:
        yield f"http://127.0.0.1:{service.port}"


def connected(root: Path, address: str) -> Lake:
    options = {"uri": address, **HEADER}
    return pennon.connect(root, implementation="rest", namespace_options=options)


def test_names_and_places_of_tables_are_those_of_the_service(tmp_path: Path, address: str) -> None:
    lake = connected(tmp_path / "lake", address)
    lake.create_namespace("shop")
    orders = lake.create_table("shop.orders", SCHEMA, ["region"])
    orders.append([{"id": 1, "region": "eu"}, {"id": 2, "region": "us"}])
    lance.write_dataset(pa.table({"a": [7]}), f"{tmp_path}/lake/plain.lance")
    other = connected(tmp_path, address)  # whose new tables would be elsewhere
    assert other.list_tables() == ["plain", "shop.orders"]
    assert other.load_table("shop.orders").scan("region = 'us'").to_arrow()["id"].to_pylist() == [2]
    assert other.location_of("shop.orders") == orders.location
    assert other.load_table("plain").scan().count_rows() == 1
    other.rename_table("shop.orders", "shop.sales")
    assert pennon.connect(tmp_path / "lake").list_tables("shop") == ["shop.sales"]
    with pytest.raises(TableNotFound, match="the tables there are sales"):
        lake.load_table("shop.orders")
    lake.drop_table("shop.sales")
    lake.drop_namespace("shop")
    assert lake.list_namespaces() == []


def test_an_implementation_is_named_by_the_path_of_its_class(tmp_path: Path) -> None:
    pennon.connect(tmp_path).create_namespace("shop")
    lake = pennon.connect(tmp_path, implementation="lance.namespace.DirectoryNamespace")
    assert lake.list_namespaces() == ["shop"]


def test_what_a_service_lacks_is_told(tmp_path: Path, address: str) -> None:
    with pytest.raises(UnknownImplementation, match="Missing required property 'uri'"):
        pennon.connect(tmp_path, implementation="rest").list_namespaces()
    with pytest.raises(CatalogRefused, match="Service unavailable") as refused:
        connected(tmp_path, "http://127.0.0.1:9").list_namespaces()
    assert HEADER["header.Authorization"] not in str(refused.value)
    assert HEADER["header.Authorization"] not in repr(connected(tmp_path, address))
