"""What Spark answers for expressions over rows, compared with what workers compute: without Spark.

``make golden`` records the answers of a version of Spark: the rows, and of each expression the text
that the shim sends for it, and a value for each row, or that it is an error.
"""

from __future__ import annotations

import datetime as dt
import json
import lzma
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from tests.pushdown.computed import scan_of
from tests.pushdown.stated_nodes import output_of

from pennon.catalog.columns.spark_types import arrow_type
from pennon.errors import PennonError, UnsupportedColumnType
from pennon.execution.engine import rows_over
from pennon.execution.engine_failures import VALUE_FAILURES
from pennon.execution.fragment import Query
from pennon.leaf.schema.reconciliation import stream_type
from pennon.plan import PlanNode, Project
from pennon.predicate.expressions import Declined, Semantics
from pennon.pushdown.query import fragment_query

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "expressions"
RECORDED: Final = GOLDEN / "recorded"
DECLINED: Final = "-- declined: "
"""What is left to Spark: how its line begins."""
_MANY: Final = 1_000_000
_MOST_FAILING: Final = 200
_SESSIONS, _TEXT, _TYPE = "sessions", "text", "type"


def golden_lines(subject: str = "*", *, declined: bool = True) -> list[str]:
    """List the expressions that have golden values: every function that workers take.

    Args:
        subject: Their file; all of them by default.
        declined: Whether those come, too, that workers leave to Spark.
    """
    paths = sorted(GOLDEN.glob(f"{subject}.sql"))
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    if declined:
        lines = [line.removeprefix(DECLINED) for line in lines]
    return list(dict.fromkeys(line for line in lines if line and not line.startswith("--")))


@dataclass(frozen=True)
class Compared:
    """What became of expressions: those that Spark is left with, and why; those that differ."""

    declined: dict[str, str]
    different: dict[str, object]


@dataclass(frozen=True)
class Answer:
    """An expression as the shim writes it, its type as Spark's JSON, and Spark's answer.

    Args:
        text: In the names of the rows' columns; None where the shim writes it not.
        kind: The type.
        values: For each row a struct of the value, and NULL where it is an error.
    """

    text: str | None
    kind: object
    values: pa.ChunkedArray

    def is_same(self, other: Answer | None) -> bool:
        return other is not None and (
            (self.text, self.kind) == (other.text, other.kind)
            and self.values.is_valid().equals(other.values.is_valid())
            and [*map(normal, values_of(pc.struct_field(self.values, "v")))]
            == [*map(normal, values_of(pc.struct_field(other.values, "v")))]
        )


@dataclass(frozen=True)
class SparkAnswers:
    """Answers of one session of Spark.

    Args:
        rows: What the expressions are computed over, with the columns ``c0``, ``c1``, …
        answers: By the expressions, as they stand in SQL.
    """

    rows: pa.Table
    answers: Mapping[str, Answer]

    def compare(self, semantics: Semantics) -> Compared:
        """Compute those expressions that are taken.

        What is an error of Spark for a row has to be one of DataFusion, and nothing else may be.
        """
        declined: dict[str, str] = {}
        different: dict[str, object] = {}
        most_failing = max(2, _MOST_FAILING // len(self.answers))
        for expression, answer in self.answers.items():
            output = output_of(_MANY, answer.text, _arrow_type(answer.kind))
            nodes: list[PlanNode] = [scan_of(self.rows), Project(0, (output,))]
            try:
                query = fragment_query(nodes, 1, semantics).select
            except Declined as reason:
                declined[expression] = str(reason)
                continue
            rows, answered = self.rows, answer.values
            bad: list[object] = []
            if answered.null_count:
                failing = rows.filter(answered.is_null())
                for at in range(0, failing.num_rows, failing.num_rows // most_failing + 1):
                    row = failing.slice(at, 1)
                    if isinstance(_computed(query, row), pa.Table):
                        bad.append(("an error in Spark", row.to_pylist()))
                rows, answered = rows.filter(answered.is_valid()), answered.drop_null()
            bad += _differing(rows, pc.struct_field(answered, "v"), _computed(query, rows))
            if bad:
                different[f"{expression}: {output.value}"] = bad[:3]
        return Compared(declined, different)


def record(path: Path, sessions: Mapping[str, tuple[SparkAnswers, Mapping[str, object]]]) -> None:
    """Write what sessions answer over the same rows: of later ones what differs from the first.

    Args:
        path: Where.
        sessions: Their answers and what their semantics are, by their names.
    """
    (first, (base, _)), *_ = sessions.items()
    fields, columns = list(base.rows.schema), list(base.rows.columns)
    for name, (answers, _) in sessions.items():
        for expression, answer in answers.answers.items():
            if name == first or not answer.is_same(base.answers[expression]):
                described = {_TEXT: answer.text or "", _TYPE: json.dumps(answer.kind)}
                kind = answer.values.type
                fields.append(pa.field(f"{name}|{expression}", kind, metadata=described))
                columns.append(answer.values)
    stated = {_SESSIONS: json.dumps({name: of for name, (_, of) in sessions.items()})}
    table = pa.table(columns, pa.schema(fields, metadata=stated)).combine_chunks()
    with lzma.open(path, "wb", preset=9) as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


@cache
def recorded(path: Path) -> dict[str, tuple[SparkAnswers, Semantics]]:
    """Read what ``record`` wrote."""
    with lzma.open(path) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all()
    sessions: dict[str, dict[str, Any]] = json.loads(_stated(table.schema.metadata, _SESSIONS))
    rows = table.select([name for name in table.column_names if "|" not in name])
    rows = rows.take(pa.array(range(rows.num_rows)))  # Lance wants decimals at every 16 bytes
    found: dict[str, tuple[SparkAnswers, Semantics]] = {}
    answers: dict[str, Answer] = {}
    for session, stated in sessions.items():
        answers = dict(next(iter(found.values()))[0].answers) if found else {}
        for at, field in enumerate(table.schema):
            name, separator, expression = field.name.partition("|")
            if separator and name == session:
                text, kind = (_stated(field.metadata, key) for key in (_TEXT, _TYPE))
                answers[expression] = Answer(text or None, json.loads(kind), table.column(at))
        offsets = tuple(stated.pop("zone_offsets", ()))
        semantics = Semantics(zone_offsets=offsets, in_fragments=True, **stated)
        found[session] = SparkAnswers(rows.replace_schema_metadata(), answers), semantics
    return found


def _stated(metadata: Mapping[bytes, bytes] | None, key: str) -> str:
    return (metadata or {})[key.encode()].decode()


def _arrow_type(kind: object) -> pa.DataType | None:
    try:
        return stream_type(arrow_type(kind, "a column"))
    except UnsupportedColumnType:
        return None


def _computed(query: Query, rows: pa.Table) -> pa.Table | PennonError:
    """Compute an expression in DataFusion; give the error if it is one."""
    try:
        return rows_over(query.sql, {"r0": rows}, query.zone_offsets)
    except VALUE_FAILURES as error:
        return error


def values_of(column: pa.ChunkedArray) -> list[object]:
    """Give values, and of dates and timestamps the numbers: Python's years have four digits."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32()).to_pylist()
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()


def _differing(
    rows: pa.Table, expected: pa.ChunkedArray, actual: pa.Table | PennonError
) -> list[object]:
    """Give the rows of which a column has other values than in Spark, or the error that it is."""
    if isinstance(actual, PennonError):
        return [repr(actual)]
    pairs = zip(values_of(expected), values_of(actual.column(0)), strict=True)
    return [
        (*pair, {name: values_of(rows.slice(at, 1)[name])[0] for name in rows.column_names})
        for at, pair in enumerate(pairs)
        if normal(pair[0]) != normal(pair[1])
    ]


def normal(value: object) -> object:
    """Give a value a form in which NaN equals itself and the zeros differ."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return str(value) if isinstance(value, dt.datetime | Decimal) else value
