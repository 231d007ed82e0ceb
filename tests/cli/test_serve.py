"""What ``pennon serve`` runs; the servers themselves are in ``tests/spark/deployments/``."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from pennon.cli import serve
from pennon.errors import ServerDidNotStart


@pytest.mark.parametrize("name", sorted(serve.SERVERS))
def test_settings_go_into_a_private_file_and_not_on_the_command_line(
    name: str, tmp_path: Path
) -> None:
    serving = serve.Serving(
        serve.SERVERS[name], "s3://bucket/lake", conf={"spark.sql.catalog.lance.storage.k": "a\\b"}
    )
    command = serving.command(tmp_path)
    assert not any("storage" in argument for argument in command)
    properties = tmp_path / "spark.properties"
    assert properties.stat().st_mode & 0o077 == 0
    lines = properties.read_text(encoding="utf-8").splitlines()
    assert "spark.sql.catalog.lance.storage.k=a\\\\b" in lines
    assert "spark.sql.catalog.lance.root=s3://bucket/lake" in lines


@pytest.mark.parametrize("name", sorted(serve.SERVERS))
def test_names_without_a_catalog_are_in_the_lake_unless_another_one_is_asked_for(
    name: str, tmp_path: Path
) -> None:
    def settings(**asked: Any) -> list[str]:
        serve.Serving(serve.SERVERS[name], "/lake", "my", **asked).command(tmp_path)
        return (tmp_path / "spark.properties").read_text(encoding="utf-8").splitlines()

    begun = settings()
    assert "spark.sql.defaultCatalog=my" in begun
    assert "spark.sql.catalog.my.defaultNamespace=default" in begun
    assert "spark.sql.defaultCatalog=spark_catalog" in settings(catalog="spark_catalog")
    assert "spark.sql.defaultCatalog=ice" in settings(conf={"spark.sql.defaultCatalog": "ice"})


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        serving = serve.Serving(serve.CONNECT, str(tmp_path), port=port)
        with pytest.raises(ServerDidNotStart, match=f"port {port} of 127.0.0.1 is taken"):
            serve.serve(serving)
