"""Tests that are written for a disk, run with their lake and their folders on an S3 server.

    python -m tests.stores.suite tests/spark/catalog tests/maintenance

Started by ``make test-store``. The fixtures ``lake`` and ``tmp_path`` are places in a bucket then;
a test that looks at files itself is skipped, for they are not on this machine's disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

import pytest
from tests.stores.server import BUCKET, serving, variables

PLACE = os.environ.get("PENNON_TEST_STORE", "")


# What a store does otherwise: it moves no dataset, its folders without rows of the manifest are not
# listed, a vacuum leaves young files alone, and a partition begins without a main branch. And one
# looks at files in a task of Spark, where nothing can be skipped.
OTHERWISE = [
    f"tests/{test}"
    for test in (
        "spark/catalog/test_ctas.py::test_a_path_is_created_by_a_query",
        "spark/catalog/test_format_in_sql.py::test_a_leaf_is_read_on_its_branch",
        "maintenance/test_adopt.py::test_a_dataset_elsewhere_is_moved_only_on_request",
        "maintenance/test_check.py::test_every_damage_is_told_with_its_section[without_leaf]",
        "maintenance/test_check.py::test_strays_are_notes_and_the_command_says_what_it_did",
        "maintenance/test_compact.py::test_rows_of_which_nobody_knows_any_more_where_they_went_are_a_conflict",
        "maintenance/test_expire.py::test_leaves_with_branches_are_not_touched_and_told",
        "maintenance/test_mode_change.py::test_rows_stay_and_are_written_on_in_the_new_mode[weak]",
        "maintenance/test_repair.py::test_a_version_that_cannot_be_told_stops_the_repair",
        "maintenance/test_vacuum.py::test_leaves_of_expired_versions_go_as_a_whole",
        "maintenance/test_vacuum.py::test_the_commands_and_the_procedures_do_it",
        "maintenance/test_vacuum.py::test_a_version_that_an_expiry_removes_while_it_is_looked_at_stops_no_vacuum",
    )
]


class Folder(os.PathLike[str]):
    """A place in the bucket, as far as a path is one: what else a path can do skips the test."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    def __fspath__(self) -> str:
        """Give its address."""
        return self._address

    __str__ = __fspath__

    def __truediv__(self, name: str | Self) -> Folder:
        """Give a place below it."""
        return Folder(f"{self._address}/{name}")

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self._address.rpartition("/")[2]

    def mkdir(self, **_: object) -> None:
        """Do nothing: a store has no folders."""

    def __getattr__(self, name: str) -> Any:
        """Skip the test, unless Python asks whether the object can do something."""
        if name.startswith("__"):
            raise AttributeError(name)
        pytest.skip(f"it looks at files ({name}), which are on a store")


def skip_looks_at_files() -> None:
    """Skip a test that makes a path of the disk of an address on the store."""
    made = Path.__new__

    def checked(kind: type[Path], *parts: Any, **options: Any) -> Path:
        if parts and str(parts[0]).startswith("s3:"):
            pytest.skip("it looks at files, which are on a store")
        return made(kind, *parts, **options)

    Path.__new__ = checked  # type: ignore[method-assign, assignment]
    make = os.mkdir

    def made_here(path: Any, *arguments: Any, **options: Any) -> None:
        # ``shutil.copytree`` of a lake would make a folder of this name in the working folder.
        if str(path).startswith("s3:"):
            pytest.skip("it copies files, which are on a store")
        make(path, *arguments, **options)

    os.mkdir = made_here


def main() -> int:
    """Start the server, run pytest with the arguments, and stop the server."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as port:
        place = {"PENNON_TEST_STORE": f"s3://{BUCKET}/suite"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *sys.argv[1:]]
        command += [f"--deselect={test}" for test in OTHERWISE]
        return subprocess.call(command, env={**os.environ, **variables(port), **place})


if __name__ == "__main__":
    sys.exit(main())
