"""The six requirements on partition expressions: what is taken, what is refused, and why."""

from __future__ import annotations

import datafusion
import pyarrow as pa
import pytest

from pennon.catalog.partitioning import FieldChange, evolved_spec
from pennon.errors import PartitionExpressionRejected
from pennon.spec.evolution import add_field, replace_field, spec_of
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.evaluation import probes, versions
from pennon.transforms.expression import Expression
from pennon.transforms.expression_checks import check_expression
from pennon.transforms.registry import TransformCall, from_sql

INT, LONG, TEXT, DAY = pa.int32(), pa.int64(), pa.string(), pa.date32()
INSTANT = pa.timestamp("us", "UTC")

ACCEPTED = [
    ("col0", [LONG]),
    ("lower(col0)", [TEXT]),
    ("upper(col0) -- as people type it", [TEXT]),
    ("'now()' || col0", [TEXT]),
    ("date_part('year', col0)", [DAY]),
    ("date_trunc('month', col0)", [INSTANT]),
    ("extract(year FROM col0) * 100 + extract(month FROM col0)", [INSTANT]),
    ("coalesce(col0, 'x')", [TEXT]),
    ("coalesce(col0, 0)", [INT]),
    ("concat(col0, '-', col1)", [TEXT, INT]),
    ("col0 || '/' || col1", [TEXT, TEXT]),
    ("CASE WHEN col0 > 10 THEN 'big' ELSE 'small' END", [INT]),
    ("col0 - (col0 % 10)", [INT]),
    ("(col0 - col0 % 10) / 10", [LONG]),
    ("col0 % 10", [pa.uint64()]),
    ("CAST(col0 AS VARCHAR)", [pa.decimal128(38, 2)]),
    ("100 % col0", [LONG]),  # fails for 0 alone
    ("CAST(col0 AS BIGINT)", [TEXT]),  # of texts that are numbers
    ("abs(CAST(col0 AS BIGINT)) % 8", [pa.int16()]),
    ("repeat('a', col0)", [INT]),  # not tried with 2**31
    ("floor(col0)", [pa.float32()]),
    ("col0 + 1", [pa.decimal128(10, 2)]),
    ("murmur3(col0) % 8", [INT]),
    ("murmur3(col0) % 8", [TEXT]),
    ("abs(murmur3_multi(col0, col1)) % 8", [LONG, TEXT]),
]


@pytest.mark.spec(
    "Partition Expression 1", "Partition Expression 3", "Transform vs Expression 3", "reading 23"
)
@pytest.mark.parametrize(("sql", "types"), ACCEPTED)
def test_expressions_that_keep_the_requirements_are_taken(
    sql: str, types: list[pa.DataType]
) -> None:
    check_expression(Expression(sql), types)


def refusal(sql: str, *types: pa.DataType, declared: pa.DataType | None = None) -> str:
    with pytest.raises(PartitionExpressionRejected) as caught:
        check_expression(Expression(sql, declared), types)
    return caught.value.message


@pytest.mark.spec("Partition Expression 4", "Partition Expression 5")
@pytest.mark.parametrize(
    ("sql", "function"),
    [
        ("now()", "now"),
        ("random()", "random"),
        ("uuid()", "uuid"),
        ("current_date", "current_date"),
        ("CURRENT_TIMESTAMP", "current_timestamp"),
        ("today()", "today"),
        ("concat(col0, CAST(date_part('year', now()) AS VARCHAR))", "now"),
        ("concat(col0, version())", "version"),
        ("arrow_typeof(col0)", "arrow_typeof"),
    ],
)
def test_a_function_that_changes_is_named(sql: str, function: str) -> None:
    message = refusal(sql, TEXT)
    assert "it is not deterministic and stateless, since the value of " in message
    assert function in message.split("since the value of ")[1]


@pytest.mark.spec("Partition Expression 4", "Partition Expression 5")
def test_every_function_that_datafusion_reports_as_changing_is_refused() -> None:
    context = datafusion.SessionContext(
        datafusion.SessionConfig().with_information_schema(enabled=True)
    )
    reported = context.sql(
        "SELECT DISTINCT routine_name AS name FROM information_schema.routines"
        " WHERE NOT is_deterministic"
    ).to_pydict()["name"]
    assert {"now", "random", "uuid", "current_date"} <= set(reported)
    for name in reported:
        assert "deterministic" in refusal(f"{name}()", TEXT)


@pytest.mark.spec("Partition Expression 1", "Partition Expression 2", "Source Field IDs 3")
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("sum(col0)", "Aggregate"),
        ("count(*)", "Aggregate"),
        ("row_number() OVER ()", "WindowAggr"),
        ("sum(col0) OVER (ORDER BY col0)", "WindowAggr"),
        ("unnest(make_array(col0, 2))", "Unnest"),
        ("(SELECT 1)", "subquery"),
        ("col0 IN (SELECT 1)", "subquery"),
        ("col1", "No field named col1"),
        ("no_such(col0)", "Invalid function 'no_such'"),
        ("lower(", "ParserError"),
        ("", "ParserError"),
        ("1) AS a, (col0", "2 expressions"),
        ("murmur3(CAST(col0 AS DOUBLE))", "TRANSFORM_ON_WRONG_TYPE"),
        ("$1", "Placeholder"),
        ("source_rows.col0", "without a table"),
    ],
)
def test_only_one_expression_over_the_columns_is_taken(sql: str, reason: str) -> None:
    message = refusal(sql, INT)
    assert "it is not one DataFusion expression over its columns" in message
    assert reason in message


@pytest.mark.spec("Partition Expression 6", "reading 22")
@pytest.mark.parametrize(
    ("sql", "types", "shown"),
    [
        ("col0 * col0", [INT], ["col0 = 2147483647", "int32", "int64"]),
        ("col0 * col0", [LONG], ["col0 = 2147483647", "int32", "int64"]),
        ("col0 * col1", [INT, INT], ["col1 = 2147483647"]),
        ("col0 / 2", [INT], ["col0 = 7", "gives 3 ", "3.5"]),
        ("abs(col0) % 8", [INT], ["col0 = -2147483648", "overflow"]),
        ("sqrt(col0)", [pa.float32()], ["col0 = 2.5", "float", "double"]),
        ("CAST(col0 AS VARCHAR)", [pa.float64()], ["float", "double"]),
    ],
)
def test_a_value_that_its_width_decides_is_shown(
    sql: str, types: list[pa.DataType], shown: list[str]
) -> None:
    message = refusal(sql, *types)
    assert "it is not type-promotion resistant" in message
    assert [text for text in shown if text not in message] == []


@pytest.mark.spec("Partition Expression 7", "Partition Expression 8")
def test_an_expression_that_fails_on_null_is_refused() -> None:
    message = refusal("1 / (CASE WHEN col0 IS NULL THEN 0 ELSE 1 END)", TEXT)
    assert "it is not NULL safe, since with NULL in every column" in message
    one_gone = "1 / (CASE WHEN col0 IS NULL AND col1 IS NOT NULL THEN 0 ELSE 1 END)"
    message = refusal(one_gone, TEXT, TEXT)
    assert "it is not column removal resistant, since for col0 = NULL, col1 = 'AbC'" in message


@pytest.mark.spec("Partition Expression 9", "reading 24")
def test_the_declared_type_is_the_natural_one_up_to_width_and_views() -> None:
    check_expression(Expression("col0 % 8", pa.int32()), [INT])
    check_expression(Expression("left(col0, 2)", pa.large_utf8()), [TEXT])
    message = refusal("lower(col0)", TEXT, declared=pa.int32())
    assert "its type is string, but int32 is declared" in message
    assert "but double is declared" in refusal("floor(col0)", pa.float32(), declared=pa.float64())
    assert "list<item: int32>" in refusal("make_array(col0)", INT)
    assert "struct" in refusal("col0, col0", INT)


SCHEMA = NamespaceSchema.with_fresh_ids(pa.schema({"id": INT, "name": TEXT}))


def call(sql: str, column: str) -> TransformCall:
    return from_sql("expression", [{"literal": sql}, {"column": [column]}])


@pytest.mark.spec("Partition Expression")
def test_every_way_to_make_a_field_checks_its_expression() -> None:
    spec = spec_of(SCHEMA, [call("lower(col0)", "name")])
    squared = call("col0 * col0", "id")
    for make in (
        lambda: spec_of(SCHEMA, [squared]),
        lambda: add_field({1: spec}, SCHEMA, squared),
        lambda: evolved_spec(
            {1: spec},
            SCHEMA,
            FieldChange(
                "add",
                {
                    "function": "expression",
                    "arguments": [{"literal": "now()"}, {"column": ["name"]}],
                },
            ),
        ),
        lambda: replace_field({1: spec}, SCHEMA, spec.fields[0].field_id, squared),
    ):
        with pytest.raises(PartitionExpressionRejected):
            make()


@pytest.mark.spec("Partition Expression")
def test_a_spec_of_another_writer_is_read_without_the_checks() -> None:
    text = (
        '{"id":1,"fields":[{"field_id":"sq","source_ids":[0],"expression":"col0 * col0",'
        '"result_type":{"type":"int32"}}]}'
    )
    spec = PartitionSpec.from_json(text, "partition_spec_v1")
    spec.check(SCHEMA)
    following = add_field({1: spec}, SCHEMA, from_sql("identity", [{"column": ["name"]}]))
    assert next(field.field_id for field in following.fields) == "sq"


@pytest.mark.parametrize("kind", [pa.int8(), LONG, pa.float32(), pa.decimal128(5, 2), pa.uint8()])
def test_probes_hold_in_their_type_and_its_wider_versions(kind: pa.DataType) -> None:
    values = probes(kind)
    assert len(values) >= 5
    assert versions(kind)[0] == kind
    assert pa.array(values, kind).null_count == 0


@pytest.mark.parametrize("sql", ["col0 / 0", "col0 % 0", "1 / (col0 - col0)", "CAST(1 / 0 AS INT)"])
def test_what_no_value_can_be_computed_of_is_refused(sql: str) -> None:
    assert "Divide by zero" in refusal(sql, LONG)
    assert "Divide by zero" in refusal(sql, pa.int8())
