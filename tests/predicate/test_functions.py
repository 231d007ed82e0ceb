"""The table of functions: its rows, their golden lines, and the page that is written from it."""

from __future__ import annotations

import pytest
from tests import function_page

from pennon.predicate.condition import Declined
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


@pytest.mark.parametrize(
    "call", ["octet_length()", "weekday(1, 2)", "date_format('a')", "typeof(1)", "right('a', 1, 2)"]
)
def test_calls_that_no_row_reads_are_left_to_spark(call: str) -> None:
    with pytest.raises(Declined):
        typed_expression(parse_with_lists(call), {}, Semantics())
