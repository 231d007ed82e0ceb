"""A portion of ``make torture-statements``: after each statement the rows are those of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.torture.statements.changing_table import ChangingTable


@pytest.mark.parametrize(("seed", "is_strong"), [(2, True), (7, False)])
def test_random_statements_leave_the_rows_of_a_model(
    tmp_path: Path, seed: int, *, is_strong: bool
) -> None:
    ChangingTable(tmp_path / "t", seed, is_strong=is_strong).run(14)
