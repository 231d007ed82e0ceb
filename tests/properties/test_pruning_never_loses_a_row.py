"""Whatever the spec, the rows and the predicate: pruning loses no row and residuals lose none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import datafusion
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.strategies.predicates import SCHEMA, TYPES, Predicate, Row, predicates, rows

from pennon.manifest.dataset.select import LeafQuery
from pennon.manifest.table_layout import TableLayout
from pennon.planning.binding.bind import bind
from pennon.planning.binding.bound_predicate import conjuncts
from pennon.planning.manifest_query import NO_RESIDUAL, Residuals, exact_and_whole, manifest_query
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate
from pennon.spec.partition_spec import PartitionField, PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.transform import Transform
from pennon.transforms.truncate import Truncate

Field = tuple[Transform, tuple[str, ...]]
_NUMBERS = {name: number for number, name in enumerate(TYPES)}
_ONE_COLUMN: list[Sequence[Field]] = [
    *[[(Identity(), (name,))] for name in TYPES],
    *[[(Bucket(4), (name,))] for name in TYPES if name != "f"],
    *[[(Truncate(10), (name,))] for name in ("i", "l", "m")],
    *[[(Truncate(width), ("s",))] for width in (1, 2)],
    *[[(of, (name,))] for of in (Year(), Month(), Day()) for name in ("d", "ts", "n")],
    [(Hour(), ("ts",))],
]
_LEVELS: list[Sequence[Field]] = [
    [(of, (name,)) for of in (Day(), Year(), Month())] for name in ("d", "ts", "n")
] + [
    [(of, ("ts",)) for of in (Year(), Month(), Day(), Hour())],
    [(of, ("n",)) for of in (Month(), Year())],
    [(of, ("d",)) for of in (Year(), Day())],
]
_SEVERAL_COLUMNS: list[Sequence[Field]] = [
    [(MultiBucket(8), ("i", "s"))],
    [(MultiBucket(4), ("d", "l"))],
    [(Expression("coalesce(lower(col0), 'x')"), ("s",))],
    [(Expression("concat(col0, col1)"), ("s", "s"))],
    [(Expression("CASE WHEN col0 > 5 THEN 1 ELSE 0 END"), ("i",))],
]
fields = st.lists(
    st.sampled_from(_ONE_COLUMN + _LEVELS * 3 + _SEVERAL_COLUMNS * 2), max_size=3
).map(lambda groups: [field for group in groups for field in group])


@dataclass(frozen=True)
class Leaves:
    """What planning needs of a snapshot, over rows in memory."""

    schema: NamespaceSchema
    specs: Mapping[int, PartitionSpec]
    table: pa.Table
    layout: ClassVar = TableLayout.PARTITIONED

    @property
    def partition_columns(self) -> list[str]:
        return [name for name in self.table.column_names if name.startswith("partition_field_")]

    def partition_type(self, field_id: str) -> pa.DataType:
        return self.table.schema.field("partition_field_" + field_id).type

    def leaves(
        self, condition: exp.Expression | None, flags: Sequence[exp.Expression]
    ) -> LeafQuery:
        context = datafusion.SessionContext()
        context.register_record_batches("leaves", [self.table.to_batches()])
        columns = ["*", *(f"{f.sql(dialect=DataFusion)} AS flag_{n}" for n, f in enumerate(flags))]
        where = "TRUE" if condition is None else condition.sql(dialect=DataFusion)
        sql = f"SELECT {', '.join(columns)} FROM leaves WHERE {where}"
        return LeafQuery(sql, context.sql(sql).to_arrow_table())


def _spec(version: int, chosen: Sequence[Field]) -> PartitionSpec:
    made: dict[str, PartitionField] = {}
    for transform, columns in chosen:
        field_id = "_".join([transform.type, *columns, str(transform.__hash__() % 9973)])
        types = [TYPES[name] for name in columns]
        is_expression = isinstance(transform, Expression)
        made[field_id] = PartitionField(
            field_id,
            tuple(_NUMBERS[name] for name in columns),
            None if is_expression else transform,
            transform.expression_sql if isinstance(transform, Expression) else None,
            transform.result_type(types),
        )
    return PartitionSpec(version, tuple(made.values()))


def _namespace(
    specs: Sequence[PartitionSpec], data: pa.Table
) -> tuple[Leaves, dict[str, list[int]]]:
    """Partition the rows, alternately by each spec, and list the rows of each leaf."""
    members: dict[str, list[int]] = {}
    records: dict[str, dict[str, pa.Scalar]] = {}
    names = list(TYPES)
    for at, spec in enumerate(specs):
        computed = {
            field.column: field.derivation.apply([data.column(names[i]) for i in field.source_ids])
            for field in spec.fields
        }
        for row in range(at, data.num_rows, len(specs)):
            values = {column: array[row] for column, array in computed.items()}
            key = f"v{spec.spec_version}${'/'.join(map(repr, values.values()))}".replace("$", "§")
            members.setdefault(key, []).append(row)
            records[key] = values
    keys = list(records)
    types = {field.column: field.result_type for spec in specs for field in spec.fields}
    columns = {
        "object_id": pa.array(
            [f"{key.split('§')[0]}$k{n}$dataset" for n, key in enumerate(keys)], pa.string()
        ),
        **{
            name: pa.array(
                [records[key].get(name, pa.scalar(None, kind)).as_py() for key in keys], kind
            )
            for name, kind in types.items()
        },
    }
    table = pa.table(columns)
    leaves = Leaves(NamespaceSchema(SCHEMA), {spec.spec_version: spec for spec in specs}, table)
    return leaves, dict(zip(columns["object_id"].to_pylist(), members.values(), strict=True))


def _filtered(data: pa.Table, filters: Sequence[str]) -> list[set[int]]:
    """Row numbers that pass each filter, evaluated by DataFusion."""
    context = datafusion.SessionContext()
    context.register_record_batches("leaf", [data.to_batches()])
    columns = ["0", *filters]
    selected = ", ".join(f"{text} AS c{number}" for number, text in enumerate(columns))
    found = context.sql(f"SELECT {selected} FROM leaf").to_arrow_table()
    return [
        {row for row, passes in enumerate(found.column(f"c{n + 1}").to_pylist()) if passes}
        for n in range(len(filters))
    ]


@dataclass(frozen=True)
class Planned:
    leaves: LeafQuery
    residuals: Residuals


def _planned(namespace: Leaves, predicate: Predicate) -> Planned:
    parts = conjuncts(bind(parse_predicate(predicate.sql), SCHEMA))
    query = manifest_query(namespace, parts)  # type: ignore[arg-type]
    chosen = namespace.leaves(query.condition, query.flags)
    return Planned(chosen, exact_and_whole(parts, query.flagged, chosen.table)[1])


@pytest.mark.spec(
    "Compatibility with Partition Pruning 1",
    "Compatibility with Partition Pruning 2",
    "Partition Pruning 1",
    "Partition Pruning 2",
)
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
@given(fields, fields, rows, st.data())
def test_pruning_and_residuals_give_the_rows_of_a_full_scan(
    first: list[Field], second: list[Field], given_rows: list[Row], asked: st.DataObject
) -> None:
    data = pa.Table.from_pylist([dict(row) for row in given_rows], schema=pa.schema(TYPES.items()))
    namespace, members = _namespace([_spec(1, first), _spec(2, second)], data)
    columns = sorted({name for _, names in first + second for name in names})
    trees = asked.draw(st.lists(predicates(columns), min_size=4, max_size=10))
    checked = [_planned(namespace, predicate) for predicate in trees]
    passing = _filtered(data, [text for plan in checked for text in plan.residuals.texts])
    for predicate, plan in zip(trees, checked, strict=True):
        of_texts = [passing.pop(0) for _ in plan.residuals.texts]
        wanted = {n for n, row in enumerate(given_rows) if predicate.oracle(row) is True}
        kept = plan.leaves.table.column("object_id").to_pylist()
        reachable = {row for leaf in kept for row in members[leaf]}
        assert wanted <= reachable, f"{predicate.sql}: lost partitions, by {plan.leaves.sql}"
        read: set[int] = set()
        for leaf, index in zip(kept, plan.residuals.indices.to_pylist(), strict=True):
            of_leaf = set(members[leaf])
            read |= of_leaf if index == NO_RESIDUAL else of_leaf & of_texts[index]
        assert read == wanted, f"{predicate.sql}: {plan.residuals.texts}, by {plan.leaves.sql}"
