"""Where credentials come from, a service among it, and what a store answers to wrong ones."""

from __future__ import annotations

import json
import os
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import lance_namespace as upstream
import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace
from tests.separate_process import ROOT, run_script
from tests.stores.server import KEY, ROLE, SECRET, Fault, Proxy, kinds, options

import pennon
from pennon.errors import StorageFailure
from pennon.namespace import Lake

SECONDS = 3
SCHEMA = pa.schema({"id": pa.int64(), "region": pa.string()})
ROWS = [{"id": 1, "region": "eu"}, {"id": 2, "region": "us"}]


class Vending(DirectoryNamespace):
    """A directory namespace with credentials of its own, which gives those of tables away."""

    asked: ClassVar[list[float]] = []

    def __init__(self, log: str = "", **properties: Any) -> None:
        super().__init__(**properties)
        self._log = log

    def describe_table(self, request: Any) -> Any:
        if not request.vend_credentials:
            return super().describe_table(request)
        self.asked.append(time.time())
        if self._log:
            with Path(self._log).open("a") as log:
                log.write(f"{os.getpid()}\n")
        until = str(int((time.time() + SECONDS) * 1000))
        given = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        return upstream.DescribeTableResponse(
            storage_options={**given, "expires_at_millis": until, "refresh_offset_millis": "500"}
        )


def of_service(port: int, place: str) -> dict[str, dict[str, str]]:
    """The options of a catalog that has no credentials, and of its service, which has."""
    own = {key: value for key, value in options(port).items() if "access" not in key}
    storage = {f"storage.{key}": value for key, value in options(port).items()}
    return {"storage_options": own, "namespace_options": {"root": place, **storage}}


IMPLEMENTATION = f"{__name__}.Vending"


@pytest.fixture(autouse=True)
def no_credentials_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def made(port: int, place: str) -> None:
    owner = pennon.connect(place, storage_options=options(port))
    owner.create_namespace("shop")
    owner.create_table("shop.t", SCHEMA, ["region"]).append(ROWS)


def ids(lake: Lake) -> list[int]:
    return sorted(lake.load_table("shop.t").scan().to_arrow()["id"].to_pylist())


def test_credentials_of_the_environment_and_of_a_profile_do(
    store: int, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(store, place)
    own = of_service(store, place)["storage_options"]
    with monkeypatch.context() as around:
        around.setenv("AWS_ACCESS_KEY_ID", KEY)
        around.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        assert ids(pennon.connect(place, storage_options={**own, "timeout": "21s"})) == [1, 2]
    profile = f"[tests]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    (tmp_path / "credentials").write_text(profile, encoding="utf-8")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "tests")
    assert ids(pennon.connect(place, storage_options={**own, "timeout": "22s"})) == [1, 2]


class _Machine(BaseHTTPRequestHandler):
    """What a container and a virtual machine are told: the credentials of their role."""

    shared = "of-the-role"
    roles = "/latest/meta-data/iam/security-credentials/"

    def do_GET(self) -> None:
        sent = ("Authorization", "x-aws-ec2-metadata-token")
        if self.shared not in [self.headers[name] for name in sent]:
            self.answer(403, "")
        elif self.path == self.roles:
            self.answer(200, "writer")
        elif self.path in ("/role", f"{self.roles}writer"):
            given = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "", "Code": "Success"}
            self.answer(200, json.dumps({**given, "Expiration": "2099-01-01T00:00:00Z"}))
        else:
            self.answer(404, "")

    def do_PUT(self) -> None:
        self.answer(200, self.shared)

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("x-aws-ec2-metadata-token-ttl-seconds", "600")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("kind", ["container", "machine"])
def test_the_role_of_a_container_and_of_a_machine_do(
    store: int, place: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    made(store, place)
    with HTTPServer(("127.0.0.1", 0), _Machine) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        if kind == "container":
            monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{address}/role")
            monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", _Machine.shared)
        else:
            monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
            monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
        own = {**of_service(store, place)["storage_options"], "user_agent": kind}
        assert ids(pennon.connect(place, storage_options=own)) == [1, 2]
        server.shutdown()


def test_a_role_is_taken_and_its_token_is_sent(
    proxy: Proxy, store: int, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(store, place)
    own = {**of_service(store, place)["storage_options"], "user_agent": "role"}
    source = f"[owner]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    (tmp_path / "credentials").write_text(source, encoding="utf-8")
    role = f"[profile role]\nrole_arn = {ROLE}\nsource_profile = owner\nregion = us-east-1\n"
    (tmp_path / "config").write_text(role, encoding="utf-8")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "role")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{proxy.port}")
    lake = pennon.connect(place, storage_options=own)
    table = lake.load_table("shop.t")
    table.append([{"id": number, "region": f"r{number}"} for number in range(3, 50)])
    assert len(ids(lake)) == 49
    # The token service is asked by each client of the store, and not by each partition.
    assert 1 <= kinds(proxy.taken())["POST"] <= 10


def test_a_wrong_session_token_is_refused(store: int, place: str) -> None:
    made(store, place)
    wrong = pennon.connect(place, storage_options={**options(store), "aws_session_token": "none"})
    with pytest.raises(StorageFailure, match="403"):  # the key alone would do
        ids(wrong)


def test_catalogs_of_one_process_have_credentials_of_their_own(store: int, place: str) -> None:
    made(store, place)
    right = options(store)
    assert ids(pennon.connect(place, storage_options=right)) == [1, 2]
    wrong = pennon.connect(place, storage_options={**right, "aws_secret_access_key": "none-of-it"})
    with pytest.raises(StorageFailure, match="SignatureDoesNotMatch") as refused:
        ids(wrong)
    assert "none-of-it" not in str(refused.value)
    assert ids(pennon.connect(place, storage_options=right)) == [1, 2]


@pytest.mark.parametrize(
    ("changed", "root", "told"),
    [
        ({"aws_access_key_id": "nobody"}, "", r"403 InvalidAccessKeyId.* Check the access key"),
        ({"aws_secret_access_key": "nothing"}, "", r"403 SignatureDoes.* Check the access key"),
        ({}, "s3://no-such-bucket/lake", r"404 NoSuchBucket.* Check the name of the bucket"),
        ({"aws_endpoint": "http://127.0.0.1:9"}, "", r"error sending request.* the network"),
        ({"allow_http": "false"}, "", r"allow_http = true"),
    ],
)
def test_what_is_wrong_is_told_in_the_store_s_words(
    store: int, place: str, changed: dict[str, str], root: str, told: str
) -> None:
    lake = pennon.connect(root or place, storage_options={**options(store), **changed})
    with pytest.raises(StorageFailure, match=told):
        lake.list_namespaces()


def test_who_may_not_write_is_told_so(proxy: Proxy, bucket: Lake) -> None:
    table = bucket.create_table("shop.t", SCHEMA, ["region"])
    with proxy.failing(Fault("403", "PUT.*", count=-1)):
        for write in (partial(bucket.create_namespace, "other"), partial(table.append, ROWS)):
            with pytest.raises(StorageFailure, match="the right to list, read, write and delete"):
                write()
    assert table.append(ROWS) > 0


def test_credentials_of_a_table_are_asked_for_and_renewed(store: int, place: str) -> None:
    made(store, place)
    lake = pennon.connect(place, implementation=IMPLEMENTATION, **of_service(store, place))
    table = lake.load_table("shop.t")
    assert table.scan("region = 'eu'").to_arrow()["id"].to_pylist() == [1]
    before = len(Vending.asked)
    assert before >= 1
    time.sleep(SECONDS)  # what was given, and what is open, has expired
    table.append([{"id": 3, "region": "eu"}])
    table.update({"id": "id + 10"}, "region = 'us'")
    assert len(Vending.asked) > before
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 12]
    table.maintenance.compact(strategy="all")
    assert table.maintenance.check().is_valid
    assert SECRET not in repr(table.snapshot)
    with pytest.raises(StorageFailure):  # by its path nobody gives credentials for it
        pennon.open(table.location, storage_options=of_service(store, place)["storage_options"])


_IN_SPARK = """
import json, sys
import pennon
port, place, log, name = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
told = json.loads(sys.argv[5])
builder = pennon.spark(root=place, storage_options=told["storage_options"], implementation=name)
for key, value in {**told["namespace_options"], "log": log}.items():
    builder = builder.config(f"spark.sql.catalog.lance.namespace.{key}", value)
spark = builder.master("local-cluster[1,2,1024]").getOrCreate()
spark.sql("INSERT INTO lance.shop.t VALUES (3, 'eu'), (4, 'br')")
joined = spark.sql("SELECT a.id FROM lance.shop.t a JOIN lance.shop.t b ON a.id = b.id")
assert sorted(row.id for row in joined.collect()) == [1, 2, 3, 4], joined.collect()
assert "no-secret" not in joined._jdf.queryExecution().toString()
spark.sql("DELETE FROM lance.shop.t WHERE id = 2")
print("rows", spark.table("lance.shop.t").count())
spark.stop()
"""


def test_drivers_and_executors_ask_for_credentials_themselves(
    store: int, place: str, tmp_path: Path
) -> None:
    made(store, place)
    log, told = tmp_path / "asked", json.dumps(of_service(store, place))
    paths = f"{ROOT / 'python'}{os.pathsep}{ROOT}"  # of the workers: the service is a class of here
    script = f"import os; os.environ['PYTHONPATH'] = {paths!r}\n{_IN_SPARK}"
    printed = run_script(script, str(store), place, str(log), IMPLEMENTATION, told)
    assert "rows 3" in printed
    assert len(set(log.read_text().split())) == 2, "the driver's worker and the executor's"
