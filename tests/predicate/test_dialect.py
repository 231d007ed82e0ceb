"""SQL of DataFusion is the same after it was read and written again."""

from __future__ import annotations

import runpy

import pytest
from sqlglot import generator, parse_one

from pennon.errors import CompiledSqlglot
from pennon.predicate import dialect
from pennon.predicate.dialect import DataFusion


@pytest.mark.parametrize("sql", ["isnan(`a`.`b`)", "to_hex(`a`)", "starts_with(`a`, 'x')"])
def test_a_function_keeps_datafusions_name(sql: str) -> None:
    assert parse_one(sql, dialect=DataFusion).sql(dialect=DataFusion) == sql


def test_the_compiled_generator_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "__file__", "sqlglot/generator.cpython-311-x86_64-linux-gnu.so")
    with pytest.raises(CompiledSqlglot, match="Uninstall the package sqlglotc"):
        runpy.run_path(dialect.__file__)
