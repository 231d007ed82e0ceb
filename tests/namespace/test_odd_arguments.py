"""Arguments of the Python API that have no meaning: refused where they are given, by their name."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentRefused, InvalidTableName, PennonError, TransformSyntax
from pennon.namespace import Lake, PartitionedNamespace
from pennon.namespace.rows.row_merge import Merge
from pennon.namespace.upkeep import Maintenance

SCHEMA: Final = pa.schema({"region": pa.string(), "v": pa.int64()})
# No annotation of the public methods but ``object`` takes all of these.
ODD: Final[tuple[object, ...]] = (0.5, b"x", dt.time(), {3: 4}, [[]])
# What the parameters beside the odd one get.
PLAIN: Final[dict[str, object]] = {
    "column": "v",
    "q": [1.0],
    "query": "v",
    "field": "region",
    "key": ["v"],
    "mode": "strong",
    "name": "v",
    "on": "v",
    "path": "/nowhere",
    "properties": {},
    "rows": [{"v": 1}],
    "schema": SCHEMA,
    "since": 1,
    "source": [{"v": 1}],
    "to": "w",
    "transform": "v",
    "type": pa.int64(),
    "values": {"v": "v + 1"},
    "where": "v = 1",
}


@pytest.fixture
def table(tmp_path: Path) -> PartitionedNamespace:
    made = pennon.create(tmp_path / "t", SCHEMA, ["region"])
    made.append([{"region": "eu", "v": 1}, {"region": "us", "v": 2}])
    return made


def calls(owner: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every public method, with each of its parameters odd in turn."""
    for name, method in inspect.getmembers(owner, inspect.ismethod):
        if name.startswith("_"):
            continue
        parameters = {
            key: one
            for key, one in inspect.signature(method).parameters.items()
            if one.kind is not one.VAR_KEYWORD
        }
        needed = [one.name for one in parameters.values() if one.default is one.empty]
        for parameter in parameters.values():
            if parameter.annotation in ("object", "pa.Schema"):  # which have errors of their own
                continue
            for odd in ODD:
                given = {one: PLAIN[one] for one in needed} | {parameter.name: odd}
                label = f"{type(owner).__name__}.{name}({parameter.name}={odd!r})"
                yield label, partial(method, **given)


def test_every_public_method_refuses_arguments_of_other_types(
    table: PartitionedNamespace, tmp_path: Path
) -> None:
    lake = pennon.connect(tmp_path / "lake")
    lake.create_namespace("v")
    owners: list[Lake | PartitionedNamespace | Maintenance | Merge] = [
        lake,
        table,
        table.maintenance,
        table.merge([{"v": 1}], "v"),
    ]
    before, content = table.version, table.scan().to_arrow()
    offences = []
    for owner in owners:
        for label, call in calls(owner):
            try:
                call()
            except ArgumentRefused:
                continue
            except Exception as error:  # noqa: BLE001 - it is told below
                offences.append(f"{label}: {error!r}")
            else:
                offences.append(f"{label}: taken")
    assert offences == []
    assert table.refresh().version == before
    assert table.scan().to_arrow().equals(content)


@pytest.mark.parametrize("function", [pennon.open, pennon.create, pennon.connect])
@pytest.mark.parametrize("odd", [0, None, b"x", ["x"], "", "~nobody_of_this_name"])
def test_a_path_is_a_text_or_a_path(function: Callable[..., object], odd: object) -> None:
    schema = {"schema": SCHEMA} if function is pennon.create else {}
    with pytest.raises(ArgumentRefused, match="Give "):
        function(odd, **schema)


def test_the_message_says_what_was_given_and_what_is_needed(table: PartitionedNamespace) -> None:
    with pytest.raises(ArgumentRefused) as refused:
        table.maintenance.vacuum(older_than="yesterday")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "[ARGUMENT_REFUSED] Cannot call vacuum with this older_than: it is of type str. "
        "Give datetime | None."
    )
    with pytest.raises(ArgumentRefused) as refused:
        pennon.open(table.location, storage_options={"secret": 17})  # type: ignore[dict-item]
    assert "of its value for 'secret', it is of type int" in str(refused.value)
    assert "17" not in str(refused.value)


def test_numbers_and_words_without_a_meaning_are_refused(table: PartitionedNamespace) -> None:
    upkeep = table.maintenance
    refused: list[Callable[[], object]] = [
        lambda: upkeep.expire_snapshots(retain_last=-1),
        lambda: upkeep.expire_snapshots(retain_last=0),
        lambda: upkeep.compact(target_bytes=0),
        lambda: upkeep.compact(strategy="zorder"),
        lambda: upkeep.set_transaction_mode("loose"),
        lambda: table.history(-1),
        lambda: table.update({}),
        lambda: table.alter_column("v"),
        lambda: table.alter_column("missing"),
        lambda: table.create_tag("a", retain=dt.timedelta(days=-1)),
    ]
    for call in refused:
        with pytest.raises(ArgumentRefused):
            call()


def test_a_time_without_a_zone_is_one_of_utc(table: PartitionedNamespace) -> None:
    assert table.maintenance.vacuum(dt.datetime(2020, 1, 1)).files == []  # noqa: DTZ001 - the case
    assert table.maintenance.expire_snapshots(dt.datetime(2020, 1, 1)).versions == []  # noqa: DTZ001


def test_one_name_need_not_stand_in_a_list(table: PartitionedNamespace) -> None:
    assert table.scan(columns="region").to_arrow().column_names == ["region"]
    assert table.maintenance.analyze("region").num_rows == 2
    before = table.version
    table.update({"v": 5}, "v = 2")
    kinds = table.changes(before, key="v")["_change_type"].to_pylist()
    assert sorted(kinds) == ["delete", "insert"]


# Lance asks for a second or two again and again for a name that is too long: once is enough.
@pytest.mark.parametrize(
    "place",
    ["x" * 256, "a\0b", "\ud800", "/nowhere/a\0b", "/nowhere/\ud800"],
    ids=["long", "nul", "surrogate", "nul below a folder", "surrogate below a folder"],
)
def test_what_cannot_be_a_path_is_refused_by_a_message(tmp_path: Path, place: str) -> None:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("shop")
    calls: list[Callable[[], object]] = [
        lambda: lake.register_table("shop.orders", place),
        lambda: pennon.open(place),
        lambda: pennon.create(place, SCHEMA),
        lambda: pennon.connect(place).create_namespace("shop"),
    ]
    for call in calls:
        with pytest.raises(PennonError):
            call()
    assert lake.list_tables() == []


@pytest.mark.parametrize("name", ["", "a..b", "a/b", "a\x00b"])
def test_a_namespace_has_a_name_that_can_be_typed(tmp_path: Path, name: str) -> None:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("a")
    with pytest.raises(InvalidTableName if name != "a..b" else PennonError):
        lake.create_namespace(name)
    assert lake.list_namespaces() == ["a"]


@pytest.mark.parametrize("text", ["truncate(2, region) AS initial", "region AS who"])
def test_a_transform_with_a_name_behind_it_is_told_where_the_name_goes(
    table: PartitionedNamespace, text: str
) -> None:
    with pytest.raises(TransformSyntax, match=r"'AS \w+' at its end .* second argument of add_par"):
        table.add_partition_field(text)


def test_a_rollback_has_one_target(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"v": pa.int64()}))
    with pytest.raises(ArgumentRefused, match="it is left out. Give a version or a timestamp"):
        table.maintenance.rollback()
    with pytest.raises(ArgumentRefused, match="a timestamp is given, too"):
        table.maintenance.rollback(1, timestamp=dt.datetime.now(dt.UTC))
