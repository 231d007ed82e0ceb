"""Dates and timestamps of years that Python does not have, before 1 and after 9999."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FragmentCalendar, HoursOutOfRange

if TYPE_CHECKING:
    from pathlib import Path

_YEAR = 31_556_952_000_000
# 9999-12-31T23:59:59Z, which is of the year 10000 in Tokyo, and 2000-01-01.
_LAST, _PLAIN = 253_402_300_799_000_000, 946_684_800_000_000
_MICROS = [_LAST, 248_000 * _YEAR, -7_000 * _YEAR, _PLAIN, None]
_LITERALS = {
    _LAST: "TIMESTAMP '9999-12-31 23:59:59'",
    _PLAIN: "TIMESTAMP '2000-01-01 00:00:00'",
}
_TYPES = [pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("us", "UTC"), pa.timestamp("us")]
_SPECS = ["bucket(4, ts)", "multi_bucket(4, ts, id)", "ts", "days(ts)", "hour(ts)"]


@pytest.mark.slow
@pytest.mark.parametrize("spec", _SPECS)
@pytest.mark.parametrize("data_type", _TYPES, ids=str)
def test_times_of_every_year_are_found(tmp_path: Path, spec: str, data_type: pa.DataType) -> None:
    rows = pa.table({"id": range(5), "ts": pa.array(_MICROS, pa.int64()).cast(data_type)})
    table = pennon.create(str(tmp_path / "t"), rows.schema, [spec])
    table.append(rows)
    conditions: dict[str, set[int]] = {
        f"ts {operator} {literal}": {
            at for at, micros in enumerate(_MICROS) if micros is not None and holds(micros, asked)
        }
        for asked, literal in _LITERALS.items()
        for operator, holds in (("=", int.__eq__), (">", int.__gt__), ("<=", int.__le__))
    }
    conditions[f"ts IN ({', '.join(_LITERALS.values())})"] = {0, 3}
    for condition, expected in conditions.items():
        found = table.scan(condition).to_arrow()["id"].to_pylist()
        assert (condition, set(found)) == (condition, expected)
        assert len(found) == len(expected)
    assert table.delete(f"ts = {_LITERALS[_LAST]}") is not None
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]


def test_hours_that_no_integer_counts_are_refused_with_their_column(tmp_path: Path) -> None:
    def rows(micros: int) -> pa.Table:
        return pa.table({"ts": pa.array([micros], pa.int64()).cast(pa.timestamp("us", "UTC"))})

    table = pennon.create(str(tmp_path / "t"), rows(0).schema, ["hours(ts)"])
    last = ((1 << 31) - 1) * 3_600_000_000
    table.append(rows(last))
    with pytest.raises(HoursOutOfRange, match=r"hours\(ts = 246953-10-09T08Z\).* 2147483648 hours"):
        table.append(rows(last + 3_600_000_000))
    assert table.scan().to_arrow()["ts"].cast(pa.int64()).to_pylist() == [last]


def test_what_became_of_rows_is_told_of_every_year(tmp_path: Path) -> None:
    nested = pa.struct([("ts", pa.timestamp("us", "UTC")), ("l", pa.list_(pa.date32()))])
    moment = pa.scalar(248_000 * _YEAR, pa.int64()).cast(pa.timestamp("us", "UTC"))
    value = {"ts": moment, "l": [pa.scalar(4_000_000, pa.int32()).cast(pa.date32())]}
    rows = pa.table({"id": [1, 2], "s": pa.array([pa.scalar(value, nested)] * 2, nested)})
    table = pennon.create(str(tmp_path / "t"), rows.schema)
    table.append(rows)
    first = table.version
    table.overwrite(rows.slice(0, 1))
    changes = table.changes(first)
    assert changes.column_names[:2] == ["id", "s"]
    assert changes["id"].to_pylist() == [2]


@pytest.mark.parametrize("spec", [["id"], ["d"], ["months(d)"]])
def test_days_beyond_the_calendar_of_the_engine_are_found_or_refused(
    tmp_path: Path, spec: list[str]
) -> None:
    days = pa.array([0, 104_000_123, None], pa.int32()).cast(pa.date32())
    table = pennon.create(
        str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("d", days.type)]), spec
    )
    table.append(pa.table({"id": pa.array([1, 2, 3]), "d": days}))
    assert table.scan("year(d) = 1970").to_arrow()["id"].to_pylist() == [1]
    assert table.scan("d > DATE '2000-01-01'").to_arrow()["id"].to_pylist() == [2]
    try:
        found = table.scan("date_format(d, 'MM') = '01'").to_arrow()["id"].to_pylist()
    except FragmentCalendar:
        return
    assert spec == ["months(d)"]
    assert found == [1]
