"""Evolution: the next spec version, field ids used again, names, levels of time."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from pennon.errors import (
    InvalidPartitionFieldName,
    InvalidPartitionSpec,
    PartitionFieldExists,
    PartitionFieldIdKept,
    PartitionFieldNotFound,
    PartitionSourceNotFound,
    TransformOnWrongType,
)
from pennon.spec import (
    NamespaceSchema,
    PartitionSpec,
    add_field,
    drop_field,
    replace_field,
    spec_of,
)
from pennon.transforms.registry import TransformCall, from_sql

SCHEMA = NamespaceSchema.with_fresh_ids(
    pa.schema(
        {
            "id": pa.int32(),
            "ts": pa.timestamp("us", "UTC"),
            "Region Name": pa.utf8(),
            "s": pa.struct({"x": pa.int64(), "day": pa.date32()}),
            "price": pa.float64(),
        }
    )
)


def call(function: str, *arguments: object) -> TransformCall:
    described = [
        {"column": name.split(".")} if isinstance(name, str) else {"literal": name}
        for name in arguments
    ]
    return from_sql(function, described)


def expression(sql: str, *columns: str) -> TransformCall:
    return from_sql("expression", [{"literal": sql}, *({"column": [column]} for column in columns)])


def ids(spec: PartitionSpec) -> list[str]:
    return [field.field_id for field in spec.fields]


def specs_of(*calls: TransformCall) -> dict[int, PartitionSpec]:
    return {1: spec_of(SCHEMA, calls)}


def followed(specs: Mapping[int, PartitionSpec], spec: PartitionSpec) -> dict[int, PartitionSpec]:
    assert spec.spec_version == max(specs) + 1
    return {**specs, spec.spec_version: spec}


def test_a_level_that_comes_back_is_refused_another_name_as_it_was_typed() -> None:
    specs = specs_of()
    specs = followed(specs, add_field(specs, SCHEMA, call("months", "ts"), "m"))
    specs = followed(specs, drop_field(specs, SCHEMA, "m"))
    with pytest.raises(PartitionFieldIdKept, match=r"Leave the name out \(AS y in SQL\)") as caught:
        add_field(specs, SCHEMA, call("years", "ts"), "y")
    assert caught.value.parameters == {"name": "y", "field_id": "m_year"}
    assert "lower-case" not in str(caught.value)
    # What the advice says is so.
    assert ids(add_field(specs, SCHEMA, call("years", "ts"))) == ["m_year"]


@pytest.mark.spec("reading 19")
def test_default_names_tell_columns_and_transform() -> None:
    spec = spec_of(
        SCHEMA,
        [
            call("identity", "Region Name"),
            call("bucket", 16, "id"),
            call("bucket", 4, "id", "s.x"),
            call("truncate", 10, "s.x"),
            call("month", "s.day"),
            call("days", "ts"),
            expression("lower(col0)", "Region Name"),
            call("bucket", 8, "id"),
        ],
    )
    assert ids(spec) == [
        "region_name",
        "id_bucket",
        "id_s_x_bucket",
        "s_x_trunc",
        "s_day_month",
        "ts_year",
        "ts_month",
        "ts_day",
        "region_name_expr",
        "id_bucket_2",
    ]
    assert [field.source_ids for field in spec.fields][2] == (0, 4)
    assert spec.fields[8].expression == "lower(col0)"
    assert spec.fields[8].result_type == pa.utf8()
    assert PartitionSpec.from_json(spec.to_json()) == spec


@pytest.mark.spec("Evolution Scenarios 1")
def test_a_finer_time_adds_the_missing_level_beside_its_own() -> None:
    specs = specs_of(call("months", "ts"), call("bucket", 4, "id"))
    spec = add_field(specs, SCHEMA, call("days", "ts"))
    assert ids(spec) == ["ts_year", "ts_month", "ts_day", "id_bucket"]
    assert spec.spec_version == 2
    with pytest.raises(PartitionFieldExists, match=r"days\(ts\).*'ts_day' of spec v2"):
        add_field(followed(specs, spec), SCHEMA, call("days", "ts"))
    with pytest.raises(PartitionFieldExists, match=r"years\(ts\)"):
        add_field(followed(specs, spec), SCHEMA, call("years", "ts"))


@pytest.mark.spec("Evolution Scenarios 3")
def test_dropping_a_composed_time_drops_its_levels_only() -> None:
    specs = specs_of(call("bucket", 4, "id"), call("days", "ts"), call("year", "s.day"))
    spec = drop_field(specs, SCHEMA, call("days", "ts"))
    assert ids(spec) == ["id_bucket", "s_day_year"]
    # The spec is partitioned by days(ts), not by months(ts).
    with pytest.raises(PartitionFieldNotFound, match=r"months\(ts\).*'ts_day' = day\(ts\)"):
        drop_field(specs, SCHEMA, call("months", "ts"))
    assert ids(drop_field(specs, SCHEMA, "ts_month")) == [
        "id_bucket",
        "ts_year",
        "ts_day",
        "s_day_year",
    ]
    assert ids(drop_field(specs, SCHEMA, "ts")) == ["id_bucket", "s_day_year"]


@pytest.mark.spec("Evolution Scenarios 2")
def test_replacing_a_time_keeps_the_levels_that_both_need() -> None:
    specs = specs_of(call("days", "ts"), call("bucket", 4, "id"))
    coarser = replace_field(specs, SCHEMA, call("days", "ts"), call("months", "ts"))
    assert ids(coarser) == ["ts_year", "ts_month", "id_bucket"]
    specs = followed(specs, coarser)
    finer = replace_field(specs, SCHEMA, call("months", "ts"), call("hours", "ts"))
    assert ids(finer) == ["ts_year", "ts_month", "ts_day", "ts_hour", "id_bucket"]
    with pytest.raises(PartitionFieldExists):
        replace_field(specs, SCHEMA, call("months", "ts"), call("months", "ts"))


def test_a_field_keeps_its_place_when_it_is_replaced() -> None:
    specs = specs_of(call("bucket", 4, "id"), call("identity", "Region Name"))
    spec = replace_field(specs, SCHEMA, "id_bucket", call("bucket", 8, "id"), "buckets")
    assert ids(spec) == ["buckets", "region_name"]


@pytest.mark.spec(
    "Field ID Reuse 1",
    "Field ID Reuse 2",
    "Partition Field ID 1",
    "Partition Field ID 3",
    "reading 17",
)
def test_the_field_id_of_any_earlier_version_is_used_again() -> None:
    specs = {1: spec_of(SCHEMA, [])}
    specs = followed(specs, add_field(specs, SCHEMA, call("bucket", 4, "id"), "customers"))
    specs = followed(specs, drop_field(specs, SCHEMA, "customers"))
    assert specs[3].fields == ()
    again = add_field(specs, SCHEMA, call("bucket", 4, "id"))
    assert ids(again) == ["customers"]
    with pytest.raises(PartitionFieldIdKept, match="'customers' since an earlier"):
        add_field(specs, SCHEMA, call("bucket", 4, "id"), "others")
    # Another transform may not take a name that was ever used, in any case.
    with pytest.raises(InvalidPartitionFieldName, match="has or had it"):
        add_field(specs, SCHEMA, call("bucket", 8, "id"), "customers")
    other = add_field(specs, SCHEMA, call("bucket", 8, "id"))
    assert ids(other) == ["id_bucket"]
    lowered = followed(specs, add_field(specs, SCHEMA, expression("lower(col0)", "Region Name")))
    lowered = followed(lowered, drop_field(lowered, SCHEMA, "region_name_expr"))
    same = add_field(lowered, SCHEMA, expression(" LOWER(col0) ", "Region Name"))
    assert ids(same) == ["region_name_expr"]


def test_a_name_is_the_prefix_of_levels() -> None:
    spec = add_field(specs_of(), SCHEMA, call("months", "ts"), "event")
    assert ids(spec) == ["event_year", "event_month"]
    assert drop_field({2: spec}, SCHEMA, "event").fields == ()


@pytest.mark.spec("reading 19")
@pytest.mark.parametrize("name", ["", "Id", "a b", "ü", "a$b", "a-b"])
def test_names_that_no_column_carries_safely_are_refused(name: str) -> None:
    with pytest.raises(InvalidPartitionFieldName, match="other characters"):
        add_field(specs_of(), SCHEMA, call("bucket", 8, "id"), name)


@pytest.mark.spec("reading 16")
def test_what_is_there_is_named_when_something_is_not() -> None:
    specs = specs_of(call("bucket", 4, "id"), call("identity", "Region Name"))
    with pytest.raises(
        PartitionFieldNotFound,
        match=r"'nowhere': spec v1 has 'id_bucket' = bucket\(4, id\), 'region_name'",
    ):
        drop_field(specs, SCHEMA, "nowhere")
    with pytest.raises(PartitionFieldNotFound, match=r"bucket\(5, id\)"):
        drop_field(specs, SCHEMA, call("bucket", 5, "id"))
    with pytest.raises(PartitionFieldNotFound, match=r"months\(id\): spec v1 has 'id_bucket'"):
        drop_field(specs, SCHEMA, call("months", "id"))
    with pytest.raises(PartitionFieldNotFound, match="spec v1 has no field"):
        drop_field(specs_of(), SCHEMA, "x")
    with pytest.raises(PartitionSourceNotFound, match="no column nowhere. The columns are id, ts"):
        add_field(specs, SCHEMA, call("bucket", 4, "nowhere"))
    with pytest.raises(PartitionFieldExists, match=r"bucket\(4, id\).*'id_bucket' of spec v1"):
        add_field(specs, SCHEMA, call("bucket", 4, "id"))
    with pytest.raises(PartitionFieldExists):
        spec_of(SCHEMA, [call("identity", "id"), call("identity", "ID")])


def test_a_transform_on_the_wrong_type_is_refused() -> None:
    with pytest.raises(TransformOnWrongType):
        add_field(specs_of(), SCHEMA, call("bucket", 4, "price"))
    with pytest.raises(TransformOnWrongType):
        spec_of(SCHEMA, [call("hours", "s.day")])


@pytest.mark.spec("reading 18")
def test_a_promoted_column_widens_result_types_in_the_next_version_only() -> None:
    specs = specs_of(call("identity", "id"), call("truncate", 10, "id"), call("bucket", 4, "id"))
    wider = SCHEMA.arrow.set(0, SCHEMA.arrow.field(0).with_type(pa.int64()))
    promoted = SCHEMA.evolved(wider)
    specs[1].check(promoted)
    spec = add_field(specs, promoted, call("identity", "Region Name"))
    assert [field.result_type for field in spec.fields[:3]] == [pa.int64(), pa.int64(), pa.int32()]
    assert specs[1].fields[0].result_type == pa.int32()
    # The id is the same: one column holds both versions' values.
    dropped = followed(specs, drop_field(specs, promoted, "id"))
    again = add_field(dropped, promoted, call("identity", "id"))
    assert again.fields[-1].field_id == "id"
    assert again.fields[-1].result_type == pa.int64()


@pytest.mark.spec("reading 21")
def test_a_dropped_source_column_leaves_a_spec_that_can_still_evolve() -> None:
    specs = specs_of(call("bucket", 4, "id"), call("identity", "Region Name"))
    rest = SCHEMA.evolved(pa.schema(list(SCHEMA.arrow)[1:]))
    spec = add_field(specs, rest, call("days", "ts"))
    assert ids(spec) == ["id_bucket", "region_name", "ts_year", "ts_month", "ts_day"]
    with pytest.raises(PartitionFieldNotFound, match=r"bucket\(4, <dropped column 0>\)"):
        drop_field(specs, rest, "nowhere")
    assert ids(drop_field(specs, rest, "id_bucket")) == ["region_name"]


@pytest.mark.spec("reading 15")
def test_a_replaced_table_goes_on_counting_versions_and_ids() -> None:
    specs = specs_of(call("bucket", 4, "id"))
    spec = spec_of(SCHEMA, [call("bucket", 8, "id"), call("bucket", 4, "id")], specs)
    assert spec.spec_version == 2
    assert ids(spec) == ["id_bucket_2", "id_bucket"]


def test_an_expression_that_does_not_evaluate_is_refused() -> None:
    from pennon.errors import PennonError

    with pytest.raises(PennonError, match="no_such_function"):
        add_field(specs_of(), SCHEMA, expression("no_such_function(col0)", "id"))
    assert issubclass(InvalidPartitionSpec, PennonError)
