"""The table of functions: its rows, their golden lines, and the page that is written from it."""

from __future__ import annotations

import re

import pytest
from tests import function_page
from tests.pushdown.spark_answers import golden_lines
from tests.strategies.edge_values import VALUES

from pennon.predicate.condition import Declined
from pennon.predicate.dialect import DataFusion, read_condition
from pennon.predicate.expressions import Semantics, typed_expression
from pennon.predicate.expressions.functions import SECTIONS
from pennon.predicate.parse import parse_with_lists


def test_the_page_of_what_workers_compute_is_that_of_the_table() -> None:
    assert function_page.page() == function_page.DOCUMENT.read_text(encoding="utf-8")


def test_every_function_has_golden_lines() -> None:
    """Others than those that only Spark's plans spell so."""
    named = [
        function.names
        for functions in SECTIONS.values()
        for function in functions
        if function.nodes == function.names or not isinstance(function.nodes, str)
    ]
    assert set(named) - set(function_page.examples()) == set()


def test_what_is_written_for_datafusion_is_read_again_with_the_same_functions() -> None:
    """A residual is a text, which is read again where columns get other names."""
    types = {name: kind for name, (kind, _) in VALUES.items()}
    for line in golden_lines(declined=False):
        try:
            tree = typed_expression(parse_with_lists(line), types, Semantics(is_utc=True)).tree
        except Declined:
            continue
        sql = tree.sql(dialect=DataFusion)
        again = read_condition(sql).sql(dialect=DataFusion)
        assert re.findall(r"\w+`?\(|'.*?'", again) == re.findall(r"\w+`?\(|'.*?'", sql), line


@pytest.mark.parametrize(
    "call", ["octet_length()", "weekday(1, 2)", "date_format('a')", "typeof(1)", "right('a', 1, 2)"]
)
def test_calls_that_no_row_reads_are_left_to_spark(call: str) -> None:
    with pytest.raises(Declined):
        typed_expression(parse_with_lists(call), {}, Semantics())
