"""Names: the grammar of Appendix B and C, and that writers agree on the names of partitions."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot

from pennon.errors import InternalError
from pennon.manifest.format.names import (
    ObjectId,
    canonical_bytes,
    leaf_name,
    of_spec_version,
    spec_version_asked,
    spec_version_of,
)
from pennon.spec.partition_spec import leaf_prefix

GOLDEN = Path(__file__).parent.parent / "golden"
SALT = bytes(range(16))


@pytest.mark.spec(
    "Appendix C 3",
    "Manifest Table Schema 4",
    "Manifest Table Schema 5",
    "Physical Layout and Naming 5",
)
def test_every_object_id_of_appendix_c_is_read_and_written_back() -> None:
    lines = (GOLDEN / "appendix_c.tsv").read_text(encoding="utf-8").splitlines()[1:]
    for line in lines:
        object_id, object_type, *_ = line.split("\t")
        parsed = ObjectId.parse(object_id)
        if object_type == "table_version":
            continue
        assert parsed is not None
        assert str(parsed) == object_id
        assert parsed.is_table == (object_type == "table")


@pytest.mark.spec(
    "Appendix B 1",
    "Partition Namespace Naming 1",
    "Partition Namespace Naming 2",
    "Partition Namespace Naming 3",
    "reading 34",
)
def test_directories_have_the_form_of_appendix_b() -> None:
    form = re.compile(r"[0-9a-f]{8}_v\d+(\$[a-z0-9]{16})*\$dataset")
    for line in (GOLDEN / "appendix_b.txt").read_text(encoding="utf-8").splitlines():
        assert form.fullmatch(line)
    values = [pa.scalar("a/b$c=.. %"), pa.scalar(None, pa.int32()), pa.scalar("🏴" * 5000)]
    made = leaf_name(SALT, 3, values)
    assert form.fullmatch(made.directory)
    assert [name.count("$") for name in made.namespaces] == [1, 2, 3]
    assert made.object_id == made.namespaces[-1] + "$dataset"


@pytest.mark.parametrize("version", [1, 2, 12, 120])
def test_the_spec_version_of_a_leaf_is_read_as_it_is_asked_for(version: int) -> None:
    object_id = leaf_name(SALT, version, [pa.scalar("US")]).object_id
    assert spec_version_of(object_id) == version
    assert [n for n in (1, 2, 12, 120) if object_id.startswith(leaf_prefix(n))] == [version]
    condition = of_spec_version(version)
    assert spec_version_asked(sqlglot.condition(condition.sql())) == version


@pytest.mark.parametrize(
    "condition",
    ["\"object_id\" LIKE 'v1%'", "\"k\" LIKE 'v1$%'", "\"object_id\" LIKE 'v01$%'", '"k" = 1'],
)
def test_other_conditions_ask_for_no_spec_version(condition: str) -> None:
    assert spec_version_asked(sqlglot.condition(condition)) is None


def test_an_id_without_a_spec_version_is_a_bug_and_no_version() -> None:
    with pytest.raises(InternalError, match=r"sales\$orders"):
        spec_version_of("sales$orders")


@pytest.mark.spec("reading 15")
def test_a_spec_without_fields_has_one_leaf() -> None:
    assert leaf_name(SALT, 1, []).object_id == "v1$dataset"


@pytest.mark.spec("reading 35")
@pytest.mark.parametrize("foreign", ["sales", "v1$$dataset", "vx", "v", "v-1$a", "v²$dataset"])
def test_foreign_object_ids_are_not_ours(foreign: str) -> None:
    assert ObjectId.parse(foreign) is None


@pytest.mark.spec("reading 33", "reading 40")
def test_equal_values_have_one_name_whatever_their_width() -> None:
    alike = [
        (pa.scalar(5, pa.int8()), pa.scalar(5, pa.int64())),
        (pa.scalar(-1, pa.int16()), pa.scalar(-1, pa.int32())),
        (pa.scalar(0.0), pa.scalar(-0.0)),
        (pa.scalar(math.nan), pa.scalar(-math.nan)),
        (pa.scalar(1.5, pa.float32()), pa.scalar(1.5, pa.float64())),
        (pa.scalar("x"), pa.scalar("x", pa.large_utf8())),
        (pa.scalar(7, pa.timestamp("s", "UTC")), pa.scalar(7_000_000, pa.timestamp("us", "UTC"))),
        (
            pa.scalar(Decimal("1.50"), pa.decimal128(5, 2)),
            pa.scalar(Decimal("1.50"), pa.decimal128(30, 2)),
        ),
    ]
    for one, other in alike:
        assert leaf_name(SALT, 1, [one]) == leaf_name(SALT, 1, [other])


def test_different_tuples_salts_and_versions_have_different_names() -> None:
    null = pa.scalar(None, pa.utf8())
    tuples = [
        [pa.scalar("ab"), pa.scalar("c")],
        [pa.scalar("a"), pa.scalar("bc")],
        [pa.scalar("abc"), pa.scalar("")],
        [null, pa.scalar("abc")],
        [pa.scalar("abc"), null],
        [pa.scalar(0), pa.scalar(1)],
        [pa.scalar(dt.date(1970, 1, 1)), pa.scalar(1)],
        [pa.scalar(b"\x00"), pa.scalar(1)],
        [pa.scalar(False), pa.scalar(1)],
        *([pa.scalar(number), pa.scalar("")] for number in (127, 128, 255, 256, -128, -129)),
    ]
    names = {leaf_name(SALT, 1, values).object_id for values in tuples}
    assert len(names) == len(tuples)
    assert (
        leaf_name(SALT, 2, tuples[0]).object_id[3:] != leaf_name(SALT, 1, tuples[0]).object_id[3:]
    )
    assert leaf_name(b"x" * 16, 1, tuples[0]) != leaf_name(SALT, 1, tuples[0])


@pytest.mark.spec("Physical Layout and Naming 4")
def test_partitions_below_one_value_share_its_namespace() -> None:
    us = leaf_name(SALT, 1, [pa.scalar(2025), pa.scalar("US")])
    fr = leaf_name(SALT, 1, [pa.scalar(2025), pa.scalar("FR")])
    assert us.namespaces[0] == fr.namespaces[0]
    assert us.namespaces[1] != fr.namespaces[1]


def test_a_deep_specs_directory_fits_a_file_name() -> None:
    deep = [pa.scalar(level) for level in range(20)]
    made = leaf_name(SALT, 1, deep)
    assert len(made.directory) <= 255
    assert made.directory != leaf_name(SALT, 1, [*deep[:-1], pa.scalar(99)]).directory


def test_nulls_of_all_types_are_one_value() -> None:
    assert canonical_bytes(pa.scalar(None, pa.int8())) == canonical_bytes(
        pa.scalar(None, pa.utf8())
    )
