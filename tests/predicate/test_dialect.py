"""SQL of DataFusion is the same after it was read and written again, and means what it says."""

from __future__ import annotations

import datetime as dt
import runpy

import datafusion
import pyarrow as pa
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


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("d", "DATE '2013-01-01'"),
        ("i", "CAST('5' AS INT)"),
        ("m", "CAST('5.00' AS DECIMAL(10, 2))"),
        ("f", "CAST('5.0' AS DOUBLE)"),
        ("ts", "arrow_cast('2013-01-01', 'Timestamp(Microsecond, None)')"),
        ("s", "'b'"),
    ],
)
@pytest.mark.parametrize(
    "form", ["{v} = {c}", "NOT ({v} <> {c})", "{v} IS NOT DISTINCT FROM {c}", "{c} = {v}"]
)
def test_datafusion_finds_a_value_on_whichever_side_it_stands(
    column: str, value: str, form: str
) -> None:
    rows = pa.table(
        {
            "d": [dt.date(1970, 1, 1), dt.date(2013, 1, 1), None],
            "i": pa.array([0, 5, None], pa.int32()),
            "m": pa.array([0, 5, None], pa.decimal128(10, 2)),
            "f": [0.0, 5.0, None],
            "ts": pa.array([0, 1_356_998_400_000_000, None], pa.timestamp("us")),
            "s": ["a", "b", None],
        }
    )
    context = datafusion.SessionContext()
    context.register_record_batches("t", [rows.to_batches()])
    for other in ("{c} = {v}", "{v} = {c}", "{c} IN ({v})"):
        text = f"({form}) AND ({other})".format(c=column, v=value)
        condition = parse_one(text, dialect=DataFusion).sql(dialect=DataFusion)
        found = context.sql(f"SELECT `s` FROM t WHERE {condition}").to_pydict()
        assert found == {"s": ["b"]}, condition
