"""dbt on a lake with the macros of ``dbt/``: over the Thrift server, and in a session of its own.

Its files are those of docs/dbt.md, with other addresses. dbt is fetched, as its users install it.
Run by ``make test-deployments``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.fetched import virtual_environment
from tests.document_snippets import snippets
from tests.separate_process import ENVIRONMENT, ROOT, serving

import pennon

DBT = ("dbt-core==1.11.16", "dbt-spark[PyHive]==1.11.0")
PROJECT = Path(__file__).parent / "dbt_project"
PAGE = snippets(ROOT / "docs" / "dbt.md")
THRIFT, PACKAGES, _, STATED, SESSION = [part.text for part in PAGE if part.language == "yaml"]
*SETTINGS, BUILD = next(part.text for part in PAGE if "mkdir" in part.text).splitlines()


class Project:
    """A project of dbt in a folder of its own, and the lake that it fills."""

    def __init__(self, programs: Path, folder: Path, lake: Path, profile: str) -> None:
        self.programs, self.folder, self.root = programs, folder, lake
        self.environment = {
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "PENNON_PYTHON": sys.executable,
        }
        shutil.copytree(PROJECT, folder)
        (folder / "profiles.yml").write_text(profile)
        (folder / "packages.yml").write_text(PACKAGES.replace("../pennon/dbt", str(ROOT / "dbt")))
        own = folder / "dbt_project.yml"
        own.write_text(STATED + own.read_text())

    def dbt(self, *arguments: str, fails: bool = False) -> str:
        done = subprocess.run(
            [self.programs / "dbt", "--no-use-colors", *arguments, "--profiles-dir", "."],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env=ENVIRONMENT | self.environment,
        )
        assert (done.returncode != 0) == fails, done.stdout[-6000:] + done.stderr[-2000:]
        return done.stdout

    def build(self, run: int, *arguments: str) -> str:
        return self.dbt("build", "--vars", json.dumps({"run": run}), *arguments)

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        read = (
            pennon.connect(self.root).load_table(f"shop.{table}").scan(columns=columns).to_arrow()
        )
        return sorted((tuple(row.values()) for row in read.to_pylist()), key=str)

    def versions(self, table: str) -> int:
        return len(pennon.connect(self.root).load_table(f"shop.{table}").history())


@pytest.fixture(params=["thrift", "session"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    programs = virtual_environment("dbt", *DBT)
    if programs is None:
        pytest.skip("dbt cannot be had here")
    folder = tmp_path / "project"
    if request.param == "thrift":
        with serving("thrift", tmp_path / "lake") as port:
            profile = THRIFT.replace("port: 10000", f"port: {port}")
            yield Project(programs, folder, tmp_path / "lake", profile)
        return
    site = Path(sysconfig.get_path("purelib", vars={"base": str(programs.parent)}))
    # Behind dbt's own packages: pyspark and what Pennon needs.
    (site / "pennon.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT / 'python'}\n")
    made = Project(programs, folder, folder / "lake", SESSION)
    place = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        ["sh", "-e", "-c", "\n".join(SETTINGS)],
        cwd=folder,
        check=True,
        env=ENVIRONMENT | {"PATH": place},
    )
    variable, _, command = BUILD.partition(" ")
    assert command == "dbt build"
    made.environment |= dict([variable.split("=")])
    yield made


def test_dbt_builds_changes_and_documents_a_lake(project: Project) -> None:
    project.dbt("deps")
    winter = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-03-01")
    project.build(1, "--exclude", "viewed", *winter)
    assert project.rows("merged", "id", "run", "removed") == [
        (1, 1, "first"),
        (2, 1, "first"),
        (3, 1, "first"),
    ]
    begun = {table: project.versions(table) for table in ("raw", "orders", "sold")}

    seed = project.folder / "seeds" / "raw.csv"
    changed = seed.read_text().replace("1,north,10.5", "1,north,11.5")
    changed = "".join(changed.splitlines(keepends=True)[:3]) + "4,west,40.0,2026-01-07 10:00:00\n"
    seed.write_text(changed)
    project.build(2, "--exclude", "viewed")

    assert project.rows("orders", "id", "amount") == [(1, 11.5), (2, 20.0), (4, 40.0)]
    # The table was never gone, and its history goes on.
    assert {table: project.versions(table) for table in begun} == {
        table: versions + 1 for table, versions in begun.items()
    }
    orders = pennon.connect(project.root).load_table("shop.orders")
    assert orders.properties["team"] == "sales"
    comment = (orders.schema.field("id").metadata or {})[b"comment"]
    assert comment.decode() == "the key, isn't it"
    assert project.rows("appended", "id", "run") == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (4, 2)]
    # January alone had new rows.
    assert project.rows("overwritten", "id", "run") == [(1, 2), (2, 1), (3, 1)]
    # Row 2 is of the south and in no source; row 3 has no region.
    assert project.rows("merged", "id", "run", "added") == [
        (1, 2, "later"),
        (3, 1, None),
        (4, 2, "later"),
    ]
    sold = project.rows("sold", "id", "amount", "dbt_is_deleted")
    assert sold == [
        (1, 10.5, "False"),
        (1, 11.5, "False"),
        (2, 20.0, "False"),
        (3, 30.25, "False"),
        (3, 30.25, "True"),
        (4, 40.0, "False"),
    ]

    january = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-02-01")
    project.build(3, "--select", "batched", *january)
    # That month anew, though the table's partitions are days; February as it was.
    assert project.rows("batched", "id", "run") == [(1, 3), (2, 1), (3, 1), (4, 3)]

    refused = project.dbt("run", "--vars", "{run: 1}", "--select", "viewed", fails=True)
    assert "Cannot build the view shop.viewed: the catalog keeps tables alone." in refused
    assert "+materialized: table" in refused

    (project.folder / "models" / "viewed.sql").write_text(
        "{{ config(file_format='parquet') }} select 1"
    )
    refused = project.dbt("run", "--vars", "{run: 1}", "--select", "viewed", fails=True)
    assert "shop.viewed: its file_format is parquet, and the catalog stores Lance." in refused

    project.dbt("docs", "generate", "--vars", "{run: 1}")
    catalog = json.loads((project.folder / "target" / "catalog.json").read_text())
    shown = catalog["nodes"]["model.shop.orders"]
    assert shown["stats"]["rows"]["value"] == 3
    assert [column["type"] for column in shown["columns"].values()] == [
        "bigint",
        "string",
        "double",
        "timestamp",
    ]

    seed.write_text("id,region,amount,sold_at\n")
    project.dbt("seed", "--vars", "{run: 1}")
    assert project.rows("raw") == []
    assert project.versions("raw") == begun["raw"] + 2
