"""What an error says of a predicate: little of a long one, and nothing of the parser's classes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp

from pennon.errors import PredicateNotEvaluable, PredicateSyntaxError
from pennon.execution.run import ComputedColumns
from pennon.planning.binding.bind import bind
from pennon.planning.binding.bound_predicate import check_evaluable
from pennon.predicate.parse import parse_predicate

_SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("s", pa.string())])
_CLASSES = {name for name in vars(exp) if name[:1].isupper() and not name.isupper()}


def _refused(predicate: str) -> str:
    with pytest.raises(PredicateNotEvaluable) as raised:
        check_evaluable(bind(parse_predicate(predicate), _SCHEMA), "db.t")
    return str(raised.value)


def _tuples(count: int) -> str:
    return f"(a, b) IN ({', '.join(f'({number}, {number})' for number in range(count))})"


def test_more_tuples_than_are_compared_are_refused_with_the_limit() -> None:
    check_evaluable(bind(parse_predicate(_tuples(500)), _SCHEMA), "db.t")
    for count in (501, 2000):
        message = _refused(_tuples(count))
        assert "an IN of more than 500 tuples" in message
        assert len(message) < 500


def test_a_text_that_is_no_predicate_is_cited_by_its_beginning() -> None:
    with pytest.raises(PredicateSyntaxError, match=r"a = AND b+…'.* line 1, column 7") as raised:
        parse_predicate("a = AND " + "b" * 100_000)
    assert len(str(raised.value)) < 400


def test_a_computed_value_is_cited_by_its_beginning() -> None:
    text = f"{'a + ' * 50} a ILIKE {'x' * 100_000!r}"
    with pytest.raises(PredicateNotEvaluable) as raised:
        ComputedColumns([text], _SCHEMA, "db.t")
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    ("predicate", "named"),
    [
        ("(a, b) = (1, 2, 3)", "a tuple"),
        ("a IN (SELECT b FROM t)", "IN of a query"),
        ("a > (SELECT max(b) FROM t)", "a query"),
        ("s LIKE ANY ('x', 'y')", "ANY"),
        ("s LIKE ALL ('x', 'y')", "ALL"),
        ("s ILIKE 'x%'", "ILIKE"),
        ("s SIMILAR TO 'x'", "SIMILAR TO"),
        ("s COLLATE utf8_lcase = 'x'", "COLLATE"),
        ("CASE a WHEN 1 THEN true END", "CASE"),
        ("sum(a) OVER () > 1", "OVER"),
        ("count(*) FILTER (WHERE a > 1) > 1", "FILTER"),
        ("a[0] = 1", "an element of an array or a map"),
        ("transform(a, x -> x + 1) = 2", "transform"),
        (":parameter = a", ":parameter"),
    ],
)
def test_what_is_not_computed_is_named_as_users_write_it(predicate: str, named: str) -> None:
    message = _refused(predicate)
    reason = message.rpartition("computes it as Spark does (")[2].partition("). Use ")[0]
    assert reason == named
    assert reason not in _CLASSES
