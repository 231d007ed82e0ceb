"""Statistics drop no leaf in which a computed condition is TRUE of a row, or an error of one.

The oracle computes row by row, by Spark's rules for ANSI arithmetic, and knows no bounds.
"""

from __future__ import annotations

import datetime as dt
import operator as comparing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.test_statistics_lose_no_row import Leaves, counted_leaf, manifest_rows
from tests.strategies.predicates import SCHEMA, Row, order_key, rows, sql_literal

from pennon.planning.binding.bind import bind
from pennon.planning.binding.bound_predicate import conjuncts
from pennon.planning.statistics_pruning import has_possible_row, may_prune
from pennon.predicate.parse import parse_predicate

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": comparing.eq,
    "<>": comparing.ne,
    "<": comparing.lt,
    "<=": comparing.le,
    ">": comparing.gt,
    ">=": comparing.ge,
}


class _ErrorInSpark(Exception):
    """ARITHMETIC_OVERFLOW."""


@dataclass(frozen=True)
class Expression:
    """SQL text, the kind of its value, and what it is of a row; kinds of integers are widths."""

    sql: str
    kind: int | str
    value: Callable[[Row], object]


def _plain(value: object) -> object:
    """Give a day by its number, for Spark has more of them than Python."""
    is_day = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return value.toordinal() if is_day else value  # type: ignore[attr-defined]


def _literal(value: object, kind: int | str) -> Expression:
    return Expression(sql_literal(value), kind, lambda _: _plain(value))


def _column(name: str, kind: int | str) -> Expression:
    return Expression(name, kind, lambda row: _plain(row[name]))


def _fitted(value: int, width: int) -> int:
    if not -(2 ** (width - 1)) <= value < 2 ** (width - 1):
        raise _ErrorInSpark
    return value


def _arithmetic(left: Expression, operator: str, right: Expression) -> Expression:
    width = max(int(left.kind), int(right.kind))

    def value(row: Row) -> object:
        a, b = left.value(row), right.value(row)
        if a is None or b is None:
            return None
        assert isinstance(a, int)
        assert isinstance(b, int)
        return _fitted({"+": a + b, "-": a - b, "*": a * b}[operator], width)

    return Expression(f"({left.sql} {operator} {right.sql})", width, value)


def _one_sided(name: str, of: Expression) -> Expression:
    def value(row: Row) -> object:
        a = of.value(row)
        if a is None:
            return None
        assert isinstance(a, int)
        return _fitted(abs(a) if name == "abs" else -a, int(of.kind))

    return Expression(f"abs({of.sql})" if name == "abs" else f"(- {of.sql})", of.kind, value)


def _coalesced(first: Expression, second: Expression) -> Expression:
    kind = first.kind if isinstance(first.kind, str) else max(int(first.kind), int(second.kind))

    def value(row: Row) -> object:
        a = first.value(row)
        return second.value(row) if a is None else a

    return Expression(f"coalesce({first.sql}, {second.sql})", kind, value)


def _moved(name: str, day: Expression, count: Expression) -> Expression:
    def value(row: Row) -> object:
        a, b = day.value(row), count.value(row)
        if a is None or b is None:
            return None
        assert isinstance(a, int)
        assert isinstance(b, int)
        return a + b if name == "date_add" else a - b

    return Expression(f"{name}({day.sql}, {count.sql})", "d", value)


def _chosen(condition: Expression, first: Expression, second: Expression) -> Expression:
    def value(row: Row) -> object:
        return first.value(row) if condition.value(row) is True else second.value(row)

    sql = f"if({condition.sql}, {first.sql}, {second.sql})"
    return Expression(sql, max(int(first.kind), int(second.kind)), value)


def _decimal_sum(left: Expression, operator: str, right: Expression) -> Expression:
    def value(row: Row) -> object:
        a, b = left.value(row), right.value(row)
        if a is None or b is None:
            return None
        assert isinstance(a, Decimal)
        assert isinstance(b, Decimal)
        return {"+": a + b, "-": a - b, "*": a * b}[operator]

    return Expression(f"({left.sql} {operator} {right.sql})", "m", value)


_small = st.integers(-12, 12).map(lambda value: _literal(value, 32))
_integers: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(
        st.sampled_from([_column("i", 32), _column("l", 64)]),
        st.sampled_from([_column("i", 32), _column("l", 64)]),
        _small,
        st.sampled_from([2**31 - 1, -7, 5, 3_000_000_000]).map(
            lambda value: _literal(value, 32 if value < 2**31 else 64)
        ),
    ),
    lambda inner: st.one_of(
        st.builds(_arithmetic, inner, st.sampled_from("+-*"), inner),
        st.builds(_one_sided, st.sampled_from(["abs", "-"]), inner),
        st.builds(_coalesced, inner, inner),
        inner.map(lambda one: Expression(f"CAST({one.sql} AS BIGINT)", 64, one.value)),
        st.builds(
            _chosen, st.builds(lambda a, b: _compared(a, "<", b), inner, inner), inner, inner
        ),
    ),
    max_leaves=4,
)
_texts = st.builds(
    _coalesced,
    st.just(_column("s", "s")),
    st.sampled_from(["", "ab", "é"]).map(lambda value: _literal(value, "s")),
)
_booleans = st.builds(
    _coalesced, st.just(_column("o", "o")), st.booleans().map(lambda value: _literal(value, "o"))
)
_days: st.SearchStrategy[Expression] = st.recursive(
    st.just(_column("d", "d")),
    lambda inner: st.one_of(
        st.builds(_moved, st.sampled_from(["date_add", "date_sub"]), inner, _small),
        st.builds(_coalesced, inner, st.just(_literal(dt.date(2013, 1, 1), "d"))),
    ),
    max_leaves=2,
)
_moments = st.just(
    _coalesced(_column("n", "n"), _literal(dt.datetime(2013, 1, 1, 5), "n"))  # noqa: DTZ001
)
_cents = st.sampled_from(["0.00", "12.34", "-0.01"]).map(lambda text: _literal(Decimal(text), "m"))
_decimals: st.SearchStrategy[Expression] = st.recursive(
    st.just(_column("m", "m")),
    lambda inner: st.one_of(
        st.builds(_decimal_sum, inner, st.sampled_from("+-*"), _cents),
        st.builds(_coalesced, inner, _cents),
    ),
    max_leaves=2,
)


def _compared(left: Expression, operator: str, right: Expression) -> Expression:
    def value(row: Row) -> object:
        a, b = left.value(row), right.value(row)
        if operator == "<=>":
            return a == b if a is not None and b is not None else a is b
        return None if a is None or b is None else _COMPARISONS[operator](a, b)

    return Expression(f"({left.sql} {operator} {right.sql})", "o", value)


def _is_null(of: Expression) -> Expression:
    return Expression(f"({of.sql} IS NULL)", "o", lambda row: of.value(row) is None)


def _listed(of: Expression, literals: Sequence[int]) -> Expression:
    def value(row: Row) -> object:
        a = of.value(row)
        return None if a is None else a in literals

    return Expression(f"({of.sql} IN ({', '.join(map(str, literals))}))", "o", value)


def _inverted(of: Expression) -> Expression:
    def value(row: Row) -> object:
        a = of.value(row)
        return None if a is None else not a

    return Expression(f"(NOT {of.sql})", "o", value)


def _joined(left: Expression, connector: str, right: Expression) -> Expression:
    def value(row: Row) -> object:
        both = left.value(row), right.value(row)
        decided = connector == "OR"
        if decided in both:
            return decided
        return None if None in both else not decided

    return Expression(f"({left.sql} {connector} {right.sql})", "o", value)


_operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
_comparisons = st.one_of(
    *[st.builds(_compared, kind, _operators, kind) for kind in (_texts, _days, _moments)],
    st.builds(_compared, _decimals, _operators, _cents),
    *[st.builds(_compared, _integers, _operators, st.one_of(_small, _integers))] * 3,
    st.builds(_listed, _integers, st.lists(st.integers(-12, 30), min_size=2, max_size=4)),
    st.builds(_is_null, _integers),
    _booleans,
)
_conditions: st.SearchStrategy[Expression] = st.recursive(
    _comparisons,
    lambda inner: st.one_of(
        st.builds(_joined, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds(_inverted, inner),
    ),
    max_leaves=3,
)


def _fails_or_is_true(condition: Expression, row: Row) -> bool:
    try:
        return condition.value(row) is True
    except _ErrorInSpark:
        # What another conjunct decides Spark need not compute: no error that has to appear.
        return " AND " not in condition.sql and " OR " not in condition.sql


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
@given(rows, st.sampled_from(["i", "l", "s", "d", "m", "n"]), st.data())
def test_a_leaf_pruned_by_a_computed_condition_has_no_such_row(
    given_rows: list[Row], sorted_by: str, asked: st.DataObject
) -> None:
    ordered = sorted(
        given_rows, key=lambda row: (row[sorted_by] is None, order_key(row[sorted_by]))
    )
    groups = [ordered[at : at + 4] for at in range(0, len(ordered), 4)]
    leaves = manifest_rows([*map(counted_leaf, groups[:-1]), None])
    for condition in asked.draw(st.lists(_conditions, min_size=5, max_size=15)):
        parts = conjuncts(bind(parse_predicate(condition.sql), SCHEMA))
        kept = has_possible_row(Leaves(len(groups)), leaves, parts)  # type: ignore[arg-type]
        for at, group in enumerate(groups):
            matching = [row for row in group if _fails_or_is_true(condition, row)]
            assert kept[at].as_py() or not matching, f"{condition.sql} lost {matching}"


def _kept(condition: str, column: str, leaves: Sequence[Any]) -> list[bool]:
    """Tell which leaves a condition keeps, of which only one column is given."""
    others: Row = dict.fromkeys(SCHEMA.names)
    groups = [[{**others, column: value} for value in values] for values in leaves]
    bound = bind(parse_predicate(condition), SCHEMA)
    assert may_prune(bound), condition
    kept = has_possible_row(
        Leaves(len(groups)),  # type: ignore[arg-type]
        manifest_rows([counted_leaf(group) for group in groups]),
        conjuncts(bound),
    )
    return [bool(value) for value in kept.to_pylist()]


def test_what_computed_conditions_prune() -> None:
    numbers = [[0, 9], [10, 19], [None, None], [5, None]]
    for condition, wanted in {
        "i + 1 = 6": [True, False, False, True],
        "1 + i >= 12": [False, True, False, False],
        "i - 1 > 8": [False, True, False, False],
        "20 - i < 5": [False, True, False, False],
        "-i < -12": [False, True, False, False],
        "i * 2 = 30": [False, True, False, False],
        "i + 1 IN (3, 4)": [True, False, False, False],
        "i + 1 NOT IN (6, 7)": [True, True, False, False],
        "abs(i) > 9": [False, True, False, False],
        "CAST(i AS BIGINT) + 1 = 6": [True, False, False, True],
        "coalesce(i, 12) = 12": [False, True, True, True],
        "nvl(i, 0) = 0": [True, False, True, True],
        "ifnull(i, 0) > 9": [False, True, False, False],
        "coalesce(i, 0) <=> 5": [True, False, False, True],
        "i + 1 IS NULL": [False, False, True, True],
        "if(i > 9, 100, 1) = 100": [False, True, False, False],
        "i + 1.5 = 6.5": [True, False, False, True],
        "NOT (i + 1 = 6)": [True, True, False, False],
        "i + 1 = 6 OR coalesce(i, 12) = 12": [True, True, True, True],
    }.items():
        assert _kept(condition, "i", numbers) == wanted, condition


def test_a_leaf_in_which_an_overflow_may_arise_is_kept() -> None:
    numbers = [[0, 9], [2**31 - 2], [2**31 - 1], [-(2**31)], [2**31 - 1, None]]
    assert _kept("i + 1 = -5", "i", numbers) == [False, False, True, False, True]
    assert _kept("-i = 100", "i", numbers) == [False, False, False, True, False]
    assert _kept("abs(i) < -5", "i", numbers) == [False, False, False, True, False]
    assert _kept("i * 2 = 5000", "i", numbers) == [False, True, True, True, True]
    longs = [[0], [2**63 - 1], [2**62]]
    assert _kept("l * 2 = 7", "l", longs) == [False, True, True]
    assert _kept("coalesce(l + 1, 0) = 7", "l", longs) == [False, True, False]


def test_days_texts_and_booleans_are_computed_with() -> None:
    days = [[dt.date(2024, 1, 1), dt.date(2024, 1, 31)], [dt.date(2024, 2, 1)], [None]]
    assert _kept("date_add(d, 5) = DATE '2024-02-06'", "d", days) == [False, True, False]
    assert _kept("date_sub(d, 1) < DATE '2024-01-15'", "d", days) == [True, False, False]
    filled = "coalesce(d, DATE '2020-01-01') < DATE '2021-01-01'"
    assert _kept(filled, "d", days) == [False, False, True]
    texts = [["a", "m"], ["n", "z"], [None, "p"]]
    assert _kept("coalesce(s, 'b') = 'b'", "s", texts) == [True, False, True]
    truths = [[True], [False], [None], [True, None]]
    assert _kept("coalesce(o, false)", "o", truths) == [True, False, False, True]
    assert _kept("NOT coalesce(o, false)", "o", truths) == [False, True, True, True]
    prices = [[Decimal("1.00"), Decimal("2.00")], [Decimal("99999999.99")], [None]]
    assert _kept("m * 1.5 > 4", "m", prices) == [False, True, False]
    assert _kept("abs(m) - 1 > 1.5", "m", prices) == [False, True, False]


def test_what_is_not_computed_with_bounds_prunes_nothing() -> None:
    for condition in ("f + 1 = 3", "coalesce(f, 0) = 1", "i % 3 = 1", "upper(s) = 'A'"):
        assert not may_prune(bind(parse_predicate(condition), SCHEMA)), condition


def test_columns_are_compared_with_each_other() -> None:
    others: Row = dict.fromkeys(SCHEMA.names)
    groups = [[{**others, "i": low, "l": high}] for low, high in ((1, 5), (7, 5), (5, 5))]
    leaves = manifest_rows([counted_leaf(group) for group in groups])
    parts = conjuncts(bind(parse_predicate("i > l"), SCHEMA))
    kept = has_possible_row(Leaves(3), leaves, parts)  # type: ignore[arg-type]
    assert kept.equals(pa.array([False, True, False]))
