"""What is published: a wheel that works alone, and a jar that says what it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.session import find_jar

ROOT = Path(__file__).parent.parent
QUICKSTART = """
import pennon, pyarrow as pa
print(pennon.__file__)
orders = pennon.connect("lake")
orders.create_namespace("shop")
table = orders.create_table("shop.orders", pa.schema({"id": pa.int64()}), ["bucket(4, id)"])
table.append([{"id": 1}, {"id": 2}])
spark = pennon.spark(root="lake").master("local[1]").getOrCreate()
spark.sql("INSERT INTO lance.shop.orders VALUES (3)")
print(spark.sql("SELECT sum(id) FROM lance.shop.orders").collect()[0][0])
"""


def built(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build a wheel of a copy of the sources, so that nothing is left among them."""
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(source / name, copy)
    shutil.copytree(
        source / "python",
        copy / "python",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "jars"),
    )
    if (source / "python/pennon/jars").is_dir() and folder.name != "without":
        shutil.copytree(source / "python/pennon/jars", copy / "python/pennon/jars")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--no-index", "--wheel-dir", str(folder / "dist"), str(copy)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_jar_states_its_coordinates_and_its_licence_and_no_time() -> None:
    with zipfile.ZipFile(find_jar()) as jar:
        names = jar.namelist()
        place = "META-INF/maven/dev.pennon/pennon-spark/"
        properties = jar.read(place + "pom.properties").decode()
        assert f"version={pennon.__version__}" in properties
        assert f"<version>{pennon.__version__}</version>" in jar.read(place + "pom.xml").decode()
        assert jar.read("META-INF/LICENSE") == (ROOT / "LICENSE").read_bytes()
        # What makes two builds differ is their time and the order of their files.
        assert {entry.date_time for entry in jar.infolist()} == {(1980, 2, 1, 0, 0, 0)}
        classes = [name for name in names if name.endswith(".class")]
        assert len(classes) > 50


@pytest.mark.slow
def test_a_wheel_without_the_jar_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "without"
    folder.mkdir()
    done = built(ROOT, folder)
    assert done.returncode != 0
    assert "Cannot build the wheel" in done.stdout + done.stderr
    assert "make dist" in done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_alone_runs_the_quickstart_from_another_folder(tmp_path: Path) -> None:
    done = built(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("pennon-*.whl")
    assert pennon.__version__ in wheel.name
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    (library,) = (environment / "lib").glob("python*/site-packages")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*command, "--target", str(library), str(wheel)], check=True, timeout=300)
    # What the wheel needs is borrowed from here; this checkout is not among it.
    (library / "borrowed.pth").write_text(str(Path(pa.__file__).parents[1]) + "\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    answer = subprocess.run(
        [str(environment / "bin" / "python"), "-c", QUICKSTART],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        cwd=tmp_path,
        env=kept,
    )
    assert answer.stdout.splitlines() == [str(library / "pennon" / "__init__.py"), "6"], (
        answer.stderr
    )
