"""Who executes a query over several catalogs, and within which limits."""

from __future__ import annotations

import pytest

from pennon.catalog.configured_catalog import ExecutionOptions
from pennon.errors import BytesUnknown, ExecutionUnknown


def test_all_catalogs_have_to_leave_a_query_to_the_workers_and_the_least_limit_holds() -> None:
    settings = {
        "spark.sql.catalog.a.execution": " Worker ",
        "spark.sql.catalog.b.execution": "spark",
        "spark.sql.catalog.a.execution.replicatedBytes": "1k",
        "spark.sql.catalog.b.execution.oneTaskBytes": "0",
    }
    of_a = ExecutionOptions.of_catalogs(["a"], settings)
    assert of_a == ExecutionOptions(
        in_workers=True, one_task_bytes=16 << 20, one_executor_bytes=4 << 30, replicated_bytes=1024
    )
    assert ExecutionOptions.of_catalogs(["b", "a"], settings) == ExecutionOptions(
        in_workers=False, one_task_bytes=0, one_executor_bytes=4 << 30, replicated_bytes=1024
    )
    assert ExecutionOptions.of_catalogs(["a", "c"], settings) == of_a


def test_an_option_that_means_nothing_is_refused_by_its_whole_name() -> None:
    name = "spark.sql.catalog.lance.execution"
    with pytest.raises(ExecutionUnknown, match=f"Cannot use {name} = wroker: "):
        ExecutionOptions.of_catalog("lance", {name: "wroker"})
    for amount in ("much", "-1", "1.5g", ""):
        with pytest.raises(BytesUnknown, match=f"Cannot use {name}.oneTaskBytes = {amount}: "):
            ExecutionOptions.of_catalog("lance", {f"{name}.oneTaskBytes": amount})
