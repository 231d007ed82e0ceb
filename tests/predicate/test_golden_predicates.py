"""The rules of the normal form, each as pairs in a file of its own: what comes in, what goes out.

A file of ``tests/golden/predicates`` has blocks of three lines: Spark's text, the tree, and the SQL
of DataFusion. Each block is also computed over rows: DataFusion's answer to the SQL is that of
plain Python to the text.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import datafusion
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.predicate.plain_truth import is_true

from pennon.planning.binding.bind import bind
from pennon.planning.manifest_query import row_condition
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate

GOLDEN = Path(__file__).parent.parent / "golden" / "predicates"
_VALUES: dict[str, list[object]] = {
    "a": [None, -1, 1, 2, 5, 7],
    "b": [None, 1, 5],
    "s": [None, "", "p", "pq", "a%b", "xp", "a_", "\\"],
    "o": [None, True, False],
}
_KINDS = {"a": pa.int32(), "b": pa.int32(), "s": pa.string(), "o": pa.bool_()}
_ROWS = [dict(zip(_VALUES, values, strict=True)) for values in product(*_VALUES.values())]
_SCHEMA = pa.schema(list(_KINDS.items()))


@pytest.fixture(scope="module")
def context() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    table = pa.Table.from_pylist(_ROWS, _SCHEMA)
    numbered = table.append_column("n", pa.array(range(len(_ROWS))))
    context.register_record_batches("t", [numbered.to_batches()])
    return context


def blocks(rule: str) -> list[list[str]]:
    text = (GOLDEN / f"{rule}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [block.splitlines() for block in "\n".join(lines).strip().split("\n\n")]


def shape(node: exp.Expr) -> str:
    """Write a tree as its operators, without the parentheses that SQL needs."""
    match node:
        case exp.Paren():
            return shape(node.this)
        case exp.And() | exp.Or():
            return f"{type(node).__name__}({', '.join(map(shape, node.flatten()))})"
        case exp.Column() | exp.Literal() | exp.Boolean() | exp.Null() | exp.Neg():
            return str(node.sql(dialect=DataFusion))
    operands = ", ".join(shape(child) for child in node.iter_expressions())
    return f"{type(node).__name__}({operands})"


@pytest.mark.parametrize("rule", sorted(path.stem for path in GOLDEN.glob("*.sql")))
def test_each_rule_gives_the_tree_and_the_rows_of_its_file(
    rule: str, context: datafusion.SessionContext
) -> None:
    for written, tree, sql in blocks(rule):
        normal = parse_predicate(written)
        assert (shape(normal), normal.sql(dialect=DataFusion)) == (tree, sql), written
        kept = [number for number, row in enumerate(_ROWS) if is_true(written, row)]
        bound = row_condition(bind(normal, _SCHEMA)).sql(dialect=DataFusion)
        for computed in (sql, bound):
            found = context.sql(f"SELECT n FROM t WHERE {computed} ORDER BY n").to_pydict()["n"]
            assert found == kept, f"{written}: {computed}"
