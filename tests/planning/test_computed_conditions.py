"""Conditions that are no comparisons: on partition values, on rows, or refused."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FragmentDivision, PredicateNotEvaluable, PredicateTooDeep
from pennon.planning import plan_scan
from pennon.planning.reports.explain import scan_report, summary
from pennon.predicate.parse import parse_predicate, readable_predicates

if TYPE_CHECKING:
    from pathlib import Path

VALUES = [
    ("US", 1, "abc1"),
    ("de", 4, "ab"),
    (None, -2, "a\\bc"),
    ("EU", 7, None),
    ("eu", None, "x"),
]
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Whether plain Python keeps a row.
Keeps = Callable[[dict], bool]
ROWS: list[dict[str, Any]] = [
    {"id": at, "country": country, "k": k, "dec": at, "s": text}
    for at, (country, k, text) in enumerate(VALUES * 3)
]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("country", pa.string()),
        ("k", pa.int32()),
        ("dec", pa.decimal128(12, 2)),
        ("s", pa.string()),
    ]
)


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> pennon.PartitionedNamespace:
    place = tmp_path_factory.mktemp("computed") / "n"
    made = pennon.create(str(place), SCHEMA, ["country", "k"])
    made.append(pa.Table.from_pylist(ROWS, SCHEMA))
    return pennon.open(str(place))


def lower(row: dict) -> str | None:
    return None if row["country"] is None else row["country"].lower()


@pytest.mark.parametrize(
    ("condition", "keeps", "partitions"),
    [
        ("coalesce(country, 'none') = 'none'", lambda row: row["country"] is None, 1),
        ("lower(country) = 'eu'", lambda row: lower(row) == "eu", 2),
        ("k % 3 = 1", lambda row: row["k"] in (1, 4, 7), 3),
        ("NOT (k % 3 = 1)", lambda row: row["k"] == -2, 1),
        (
            "lower(country) = 'eu' AND k % 3 = 1",
            lambda row: lower(row) == "eu" and row["k"] == 7,
            1,
        ),
        ("substring(country, 1, 1) = 'U' OR id = 1", lambda row: row["id"] in (0, 1, 5, 10), 5),
        ("country LIKE '_U' AND dec / 3 > 1", lambda row: row["id"] == 8 or row["id"] == 13, 1),
        ("length(concat(country, s)) = 4", lambda row: row["country"] == "de", 4),
        ("replace(country, 'e') = 'd'", lambda row: row["country"] == "de", 1),
    ],
)
def test_partition_values_decide_what_they_can(
    namespace: pennon.PartitionedNamespace,
    condition: str,
    keeps: Keeps,
    partitions: int,
) -> None:
    scan = namespace.scan(where=condition)
    expected = sorted(row["id"] for row in ROWS if keeps(row))
    assert sorted(scan.to_arrow()["id"].to_pylist()) == expected
    assert len(scan.plan().partitions) == partitions


@pytest.mark.parametrize("field", ["truncate(2, s)", "bucket(2, s)", "multi_bucket(2, s, k)"])
def test_what_is_never_true_of_null_reads_no_partition_of_null(tmp_path: Path, field: str) -> None:
    table = pennon.create(str(tmp_path / "t"), SCHEMA, [field])
    texts = [f"{letter}{end}" for letter in "abcdefgh" for end in ("", "1")]
    table.append(pa.Table.from_pylist([{"s": text} for text in (*texts, None)], SCHEMA))
    everything, of_values = (_leaves(table, where) for where in (None, "s IS NOT NULL"))
    assert len(everything) == len(of_values) + 1
    is_rejected = ["s NOT LIKE 'a_%'", "s LIKE '%_1'", "lower(s) > s OR length(s) = 2"]
    for condition in [*is_rejected, "s || k NOT IN ('x', s)", "NOT (s RLIKE 'a')"]:
        assert _leaves(table, condition) == of_values, condition
    for condition in ["NOT (s <=> k)", "coalesce(s, 'x') LIKE '_'", "s LIKE '_' OR s IS NULL"]:
        assert _leaves(table, condition) == everything, condition


def _leaves(table: pennon.PartitionedNamespace, where: str | None) -> set[str]:
    plan = plan_scan(table.scan().snapshot, where, by_statistics=False)
    return {part.object_id for part in plan.partitions}


def test_what_is_computed_is_told_as_it_was_written(
    namespace: pennon.PartitionedNamespace,
) -> None:
    plan = namespace.scan(where="lower(country) = 'eu' AND k % 3 + id = 7").plan()
    told = scan_report(plan)
    texts = [text for item, text in told if item in ("predicate", "residual")]
    assert texts == [
        "lower(country) = 'eu': keeps 2 of 5 by v1 AND lower(country) = 'eu'",
        "k % 3 + id = 7: keeps 4 of 5 by v1 AND k IS NOT NULL",
        "k % 3 + id = 7 in 1 partitions",
    ]
    assert "CASE" not in summary(plan)


@pytest.mark.parametrize("condition", ["s LIKE 'a\\\\bc%'", "soundex(s) = 'A'", "s + 1 = 2"])
def test_what_may_differ_from_spark_is_refused(
    namespace: pennon.PartitionedNamespace, condition: str
) -> None:
    """LIKE with such an escape is an error in Spark; it was read as ``abc%`` here."""
    with pytest.raises(PredicateNotEvaluable):
        namespace.scan(where=condition).to_arrow()


def test_quotients_of_decimals_are_those_of_spark(namespace: pennon.PartitionedNamespace) -> None:
    """The type is decimal(16,6), rounded half up: 1 / 3 and 2 / 3."""
    scan = namespace.scan(where="dec / 3 IN (0.333333, 0.666667)")
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_division_by_zero_is_an_error_as_in_spark(
    namespace: pennon.PartitionedNamespace,
) -> None:
    scan = namespace.scan(where="dec / (k - 7) > 0")
    with pytest.raises(FragmentDivision, match=r"divided by zero.*nullif") as raised:
        scan.to_arrow()
    assert ".rs" not in raised.value.message


def test_chains_may_be_long_and_nests_are_refused_in_order(
    namespace: pennon.PartitionedNamespace,
) -> None:
    ors = " OR ".join(f"(id = {at} AND k > -10)" for at in range(200))
    assert namespace.scan(where=ors).to_arrow().num_rows == 12
    nested = "id = 1"
    for at in range(500):
        nested = f"({nested} {'AND' if at % 2 else 'OR'} (id <> {at}))"
    with pytest.raises(PredicateTooDeep, match="nested more than"):
        parse_predicate(nested)
    with pytest.raises(PredicateTooDeep):
        parse_predicate("NOT " * 2_000 + "id = 1")
    assert len(readable_predicates([nested, "id = 1"])) == 1
    listed = f"id IN ({', '.join(map(str, range(7, 20_000)))})"
    assert namespace.scan(where=listed).to_arrow().num_rows == 8


@pytest.mark.parametrize(
    ("partitioning", "condition", "keeps", "partitions"),
    [
        ("lower", "lower(country) = 'eu'", lambda row: lower(row) == "eu", 1),
        ("lower", "NOT (lower(country) = 'eu')", lambda row: lower(row) in ("us", "de"), 2),
        ("lower", "lower(country) LIKE 'e%'", lambda row: lower(row) == "eu", 1),
        ("lower", "lower(country) IS NULL", lambda row: lower(row) is None, 1),
        ("lower", "lower(country) = 'eu' OR k = 1", lambda row: row["id"] % 5 in (0, 3, 4), 4),
        ("lower", "lower(country) = 'eu' AND k = 7", lambda row: row["id"] % 5 == 3, 1),
        ("lower", "lower(s) = 'x'", lambda row: row["s"] == "x", 4),
        ("lower", "upper(country) = 'EU'", lambda row: lower(row) == "eu", 4),
        ("left", "left(s, 2) = 'ab'", lambda row: row["id"] % 5 in (0, 1), 1),
        ("left", "substring(s, 1, 1) = 'a'", lambda row: row["id"] % 5 in (0, 1, 2), 2),
        ("left", "substring(s, 2, 1) = 'b'", lambda row: row["id"] % 5 in (0, 1), 3),
        ("left", "left(s, 3) = 'abc'", lambda row: row["id"] % 5 == 0, 3),
    ],
)
def test_what_a_field_is_computed_by_is_its_value(
    tmp_path: Path,
    partitioning: str,
    condition: str,
    keeps: Keeps,
    partitions: int,
) -> None:
    by = {"lower": "expression('lower(col0)', country)", "left": "truncate(2, s)"}[partitioning]
    uncounted = {"write.statistics.columns": "0"}
    made = pennon.create(str(tmp_path / "n"), SCHEMA, [by], properties=uncounted)
    made.append(pa.Table.from_pylist(ROWS, SCHEMA))
    scan = pennon.open(str(tmp_path / "n")).scan(where=condition)
    expected = sorted(row["id"] for row in ROWS if keeps(row))  # type: ignore[operator]
    assert sorted(scan.to_arrow()["id"].to_pylist()) == expected
    assert len(scan.plan().partitions) == partitions


def test_no_name_of_a_column_stands_for_the_value_of_a_field(tmp_path: Path) -> None:
    """Whatever a column is called, a condition on it is not one on a partition field."""
    names = ["value 0", "0", "col0", "partition_field_country", "lower(country)"]
    schema = pa.schema({"country": pa.string(), **dict.fromkeys(names, pa.string())})
    made = pennon.create(str(tmp_path / "n"), schema, ["country"])
    rows = [
        {"country": country, **dict.fromkeys(names, text)}
        for country in ("EU", "us")
        for text in ("x", "y")
    ]
    made.append(pa.Table.from_pylist(rows, schema))
    for name in names:
        found = made.scan(where=f"lower(`{name}`) = 'x'").to_arrow()
        assert sorted(found["country"].to_pylist()) == ["EU", "us"], name
        assert made.scan(where=f"lower(`{name}`) = 'eu'").count_rows() == 0, name


def test_comparisons_of_floats_are_told_without_what_stands_for_the_order_of_nan(
    tmp_path: Path,
) -> None:
    schema = pa.schema([("f", pa.float64())])
    made = pennon.create(str(tmp_path / "n"), schema)
    made.append(pa.table({"f": [1.0, None, float("nan")]}, schema))
    plan = made.scan(where="f > 5 AND f <= 7.5 AND f NOT IN (6, 6.5)").plan()
    told = dict(scan_report(plan))
    assert told["residual"] == "`f` > 5.0 AND `f` <= 7.5 AND `f` NOT IN (6.0, 6.5) in 1 partitions"
    assert "isnan" not in summary(plan)


def test_a_bound_before_year_one_is_told(tmp_path: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    made = pennon.create(str(tmp_path / "n"), schema, ["month(ts)"])
    made.append(pa.table({"ts": [-62_135_596_800_000_000]}, schema))
    plan = plan_scan(made.snapshot, "year(ts) IN (1, 2024)", time_zone="Europe/Berlin")
    assert plan.table.num_rows == 1
    assert summary(plan).startswith("partitions: 1 of 1")


def test_a_value_of_which_the_field_s_expression_fails_decides_nothing(tmp_path: Path) -> None:
    """No partition has such a value, and a foreign one must not fail the query."""
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    made = pennon.create(str(tmp_path / "n"), schema, ["expression('CAST(col0 AS INT)', s)"])
    made.append(pa.table({"id": [1, 2], "s": ["12", "7"]}, schema))
    assert made.scan(where="s IN ('12', 'x')").to_arrow()["id"].to_pylist() == [1]
    assert made.scan(where="s = 'x'").to_arrow().num_rows == 0
    assert len(plan_scan(made.snapshot, parse_predicate("s = '12'")).table) == 1


@pytest.mark.parametrize("unit", ["Q", "w", "Y", "D", "H", "M", "MS", "s", "none"])
def test_a_letter_is_no_unit_of_time(tmp_path: Path, unit: str) -> None:
    """Spark makes NULL of it: no partition is left out for the start of another unit."""
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32())])
    made = pennon.create(str(tmp_path / "n"), schema, ["months(d)"])
    made.append([{"id": month, "d": dt.date(2024, month, 1)} for month in range(1, 4)])
    for call in (f"trunc(d, '{unit}')", f"date_trunc('{unit}', d)"):
        assert len(plan_scan(made.snapshot, f"{call} < DATE '2020-01-01'").table) == 3
        assert len(plan_scan(made.snapshot, f"{call} IS NULL").table) == 3


def test_decimals_are_compared_with_doubles_as_doubles(tmp_path: Path) -> None:
    """Those of 15 digits, of which no two are one double; 0.1D is no tenth, and equal to it."""
    texts = ["-0.02", "0.00", "0.10", "0.30", "1234567890123.45", "1234567890123.46", "2.00"]
    values = [Decimal(text) for text in texts]
    table = pennon.create(str(tmp_path / "t"), pa.schema({"d": pa.decimal128(15, 2)}))
    table.append(pa.table({"d": pa.array([*values, None], pa.decimal128(15, 2))}))
    literals = {"0.1D": 0.1, "0.30000000000000004D": 0.1 + 0.2, "-0.0D": 0.0, "2.0F": 2.0}
    literals |= {f"{value}D": float(value) for value in (*texts, "0.105", "1e300", "-1e300")}
    for text, double in literals.items():
        for sign, is_true in _COMPARISONS.items():
            wanted = [value for value in values if is_true(float(value), double)]
            rows = table.scan(f"d {sign} {text}").to_arrow()["d"].to_pylist()
            assert sorted(rows) == sorted(wanted), (sign, text)
    assert table.scan("d IN (0.1D, 2)").count_rows() == 2
    with pytest.raises(PredicateNotEvaluable):
        table.scan("d IN (0.3D, 0.1000000000000000001BD)").count_rows()
