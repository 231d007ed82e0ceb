"""Lists of values beside each other: DataFusion and Lance against SQL's three values in Python."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import datafusion
import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from pennon.predicate.dialect import DataFusion
from pennon.predicate.values.literals import LiteralList

VALUES = [None, 0, 1, 2, 3, 4]
Answer = Callable[[int | None], bool | None]
Condition = tuple[str, Answer]


def listed(members: list[int], *, is_chain: bool) -> Condition:
    names = ", ".join(map(str, members))
    chain = " OR ".join(f"a = {member}" for member in members)
    text = f"({chain})" if is_chain else f"a IN ({names})"
    return text, lambda value: None if value is None else value in members


def negated(condition: Condition) -> Condition:
    text, answer = condition
    return f"NOT ({text})", lambda value: None if answer(value) is None else not answer(value)


def connected(word: str, one: Condition, other: Condition) -> Condition:
    decisive = word == "OR"

    def answer(value: int | None) -> bool | None:
        answers = (one[1](value), other[1](value))
        return decisive if decisive in answers else None if None in answers else not decisive

    return f"({one[0]}) {word} ({other[0]})", answer


CONDITIONS = st.recursive(
    st.builds(
        listed,
        st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True),
        is_chain=st.booleans(),
    ),
    lambda inner: (
        inner.map(negated) | st.builds(connected, st.sampled_from(["AND", "OR"]), inner, inner)
    ),
    max_leaves=5,
)
ROWS = pa.table({"a": pa.array(VALUES, pa.int32())})


@pytest.mark.slow
@hypothesis_settings(max_examples=300, deadline=None)
@given(condition=CONDITIONS)
def test_null_is_neither_in_a_list_nor_outside(condition: Condition) -> None:
    text, answer = condition
    written = parse_one(text, read="spark").sql(dialect=DataFusion)
    again = parse_one(written, dialect=DataFusion).sql(dialect=DataFusion)
    context = datafusion.SessionContext()
    context.register_record_batches("t", [ROWS.to_batches()])
    expected = [answer(value) for value in VALUES]
    for sql in (written, again):
        found = context.sql(f"SELECT ({sql}) AS r FROM t").collect()
        assert [value for batch in found for value in batch["r"].to_pylist()] == expected
    with tempfile.TemporaryDirectory() as folder:
        dataset = lance.write_dataset(ROWS, f"{folder}/leaf")
        kept = dataset.to_table(filter=written)["a"].to_pylist()
    assert kept == [value for value, is_kept in zip(VALUES, expected, strict=True) if is_kept]


def test_a_long_list_may_itself_be_compared() -> None:
    listed_values = LiteralList.of([pa.scalar(1), pa.scalar(2)])
    is_listed = exp.paren(exp.In(this=exp.column("a"), field=listed_values))
    either = exp.or_(is_listed.eq(exp.true()), is_listed.eq(exp.false()))
    context = datafusion.SessionContext()
    context.register_record_batches("t", [ROWS.to_batches()])
    answer = context.sql(f"SELECT ({either.sql(dialect=DataFusion)}) AS r FROM t").collect()
    values = [value for batch in answer for value in batch["r"].to_pylist()]
    assert values == [None if value is None else True for value in VALUES]
