"""SQL of DataFusion is the same after it was read and written again."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from pennon.predicate.dialect import DataFusion


@pytest.mark.parametrize("sql", ["isnan(`a`.`b`)", "to_hex(`a`)", "starts_with(`a`, 'x')"])
def test_a_function_keeps_datafusions_name(sql: str) -> None:
    assert parse_one(sql, dialect=DataFusion).sql(dialect=DataFusion) == sql
