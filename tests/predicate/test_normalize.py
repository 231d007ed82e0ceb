"""Normalised predicates pass the rows that the written ones pass."""

from __future__ import annotations

import datafusion
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from pennon.errors import PredicateSyntaxError, PredicateTooDeep
from pennon.planning.binding.bind import bind
from pennon.planning.binding.bound_predicate import AnyOf, Compared
from pennon.planning.manifest_query import row_condition
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate

_NUMBERS = [None, -3, 0, 1, 2, 5]
_TEXTS = [None, "", "a", "ab", "a%b", "abc", "b_c", "\\"]
_FLAGS = [None, True, False]
_ROWS = [(a, b, s, f) for a in _NUMBERS for b in (None, 1, 2) for s in _TEXTS for f in _FLAGS]


def _context() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    names = ("a", "b", "s", "f")
    columns = {
        name: list(values) for name, values in zip(names, zip(*_ROWS, strict=True), strict=True)
    }
    context.from_arrow(pa.table({**columns, "n": list(range(len(_ROWS)))}), name="t")
    return context


_CONTEXT = _context()


def _passing(where: str) -> set[int]:
    return set(_CONTEXT.sql(f"SELECT n FROM t WHERE {where}").to_pydict()["n"])


_number = st.sampled_from(["-3", "0", "1", "2", "CAST(NULL AS INT)"])
_known = st.sampled_from(["-3", "0", "1", "2"])
_operator = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
_leaf = st.one_of(
    st.builds("a {} {}".format, _operator, _number),
    st.builds("{} {} a".format, _number, _operator),
    st.builds("a {} b".format, _operator),
    st.builds("(a IS {}DISTINCT FROM {})".format, st.sampled_from(["", "NOT "]), _number),
    st.builds("(a IS {}DISTINCT FROM b)".format, st.sampled_from(["", "NOT "])),
    st.builds("a {}BETWEEN {} AND {}".format, st.sampled_from(["", "NOT "]), _number, _number),
    # DataFusion 54 gives rows for `a IN (1, 2) AND a NOT IN (1, NULL)`: no NULL here.
    st.builds("a {}IN ({}, {}, {})".format, st.sampled_from(["", "NOT "]), _known, _known, _known),
    st.builds("a IS {}NULL".format, st.sampled_from(["", "NOT "])),
    st.builds(
        "s {}LIKE '{}'".format,
        st.sampled_from(["", "NOT "]),
        st.sampled_from(["a%", "%", "", "ab", "_b%", "a\\%b", "%c", "a%%", "b\\_%", "\\\\"]),
    ),
    st.builds("starts_with(s, '{}')".format, st.sampled_from(["a", "", "ab"])),
    st.sampled_from(["f", "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"]),
    st.builds(
        "(f IS {}{})".format, st.sampled_from(["", "NOT "]), st.sampled_from(["TRUE", "FALSE"])
    ),
)
_predicate = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(_predicate)
def test_the_same_rows_pass(written: str) -> None:
    # the strings hold backslashes as they are in DataFusion, and as escapes in Spark
    tree = parse_predicate(written.replace("\\", "\\\\"))
    # DataFusion 54 merges lists, and then forgets NULL: the dialect writes them otherwise.
    plain = parse_one(written, dialect=DataFusion).sql(dialect=DataFusion)
    assert _passing(tree.sql(dialect=DataFusion)) == _passing(plain), tree.sql(dialect=DataFusion)
    for negation in tree.find_all(exp.Not):
        assert isinstance(negation.this, exp.In | exp.Is | exp.StartsWith | exp.EndsWith | exp.Like)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("5 > c", "`c` < 5"),
        ("NOT (c = 1 OR d <> 2)", "`c` <> 1 AND `d` = 2"),
        ("c NOT IN (1, NULL)", "FALSE"),
        ("c IN (1, 1, NULL)", "`c` = 1"),
        ("NULL", "FALSE"),
        ("c <=> NULL", "`c` IS NULL"),
        ("c <=> 5", "(`c` IS NOT DISTINCT FROM 5)"),
        ("s LIKE 'a!%%' ESCAPE '!'", "starts_with(`s`, 'a%')"),
        ("s NOT LIKE 'p%'", "NOT starts_with(`s`, 'p')"),
        ("year(t) = 2013", "date_part('year', `t`) = 2013"),
        ("a.b.c.d.e = 1", "`a`.`b`.`c`.`d`.`e` = 1"),
        ("(a = 1 OR b = 2) AND c = 3", "(`a` = 1 OR `b` = 2) AND `c` = 3"),
    ],
)
def test_forms(written: str, expected: str) -> None:
    assert parse_predicate(written).sql(dialect=DataFusion) == expected


@pytest.mark.slow
def test_long_lists_and_chains_are_no_burden() -> None:
    schema = pa.schema([("c", pa.int64()), ("d", pa.int64())])
    members = bind(parse_predicate(f"c IN ({', '.join(map(str, range(100_000)))})"), schema)
    assert isinstance(members, Compared)
    assert len(members.comparison.literals) == 100_000
    choices = parse_predicate(" OR ".join(f"(c = {n} AND d = {n})" for n in range(5000)))
    assert choices.copy().sql(dialect=DataFusion).count("OR") == 4999
    bound = bind(choices, schema)
    assert isinstance(bound, AnyOf)
    assert len(bound.parts) == 5000


def _nested(levels: int, step: str) -> str:
    text = "c"
    for number in range(levels):
        text = step.format(text, number)
    return text


@pytest.mark.parametrize(
    "text",
    [
        _nested(200, "({} OR c = {})").replace("(c OR", "(c = 0 OR", 1),
        f"{_nested(500, '({} + {})')} = 1",
        f"{' + '.join(['c'] * 5000)} = 1",
        f"{' || '.join(['s'] * 500)} = 'x'",
        f"{'NOT ' * 500}f",
        f"{'- ' * 300}c = 5",
        f"{_nested(200, 'CASE WHEN c = {1} THEN 1 ELSE {0} END')} = 1",
    ],
    ids=["or", "sum in parentheses", "sum", "texts", "not", "minus", "case"],
)
def test_what_nests_too_deep_is_declined_before_anything_walks_over_it(text: str) -> None:
    with pytest.raises(PredicateTooDeep):
        parse_predicate(text)


def test_two_hundred_choices_in_one_chain_are_read() -> None:
    choices = parse_predicate(" OR ".join(f"(c = {n})" for n in range(200)))
    assert len(list(choices.flatten())) == 200


def test_a_pattern_that_is_no_text_is_left_as_it_is() -> None:
    schema = pa.schema([("s", pa.string())])
    assert "LIKE 5" in row_condition(bind(parse_predicate("s LIKE 5"), schema)).sql(
        dialect=DataFusion
    )


@pytest.mark.parametrize("text", ["a = 1 AND", "SELECT 1", "a = 'x", "a = 1; b = 2", "", "a b c ="])
def test_what_is_no_expression_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(PredicateSyntaxError, match=r"at line \d+, column \d+"):
        parse_predicate(text)


@pytest.mark.parametrize("condition", [None, 5, pa.compute.field("id") == 5])
def test_what_is_no_text_is_refused_with_what_it_is(condition: object) -> None:
    with pytest.raises(PredicateSyntaxError, match=f"it is {type(condition).__name__}, no text"):
        parse_predicate(condition)  # type: ignore[arg-type]
