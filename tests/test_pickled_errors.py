"""Errors travel between processes: a pool of them, dask, a function of Spark."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from string import Formatter

import pytest
from tests.test_error_texts import all_errors

import pennon
from pennon.errors import PennonError


@pytest.mark.parametrize("kind", list(all_errors()), ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_after_a_journey(kind: type[PennonError]) -> None:
    names = [name for _, name, _, _ in Formatter().parse(kind.template) if name]
    error = kind(**dict.fromkeys(names, "x"))
    for arrived in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(arrived) is kind
        assert (str(arrived), arrived.parameters) == (str(error), error.parameters)


def test_an_error_arrives_from_another_process(tmp_path: Path) -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(PennonError, match="nowhere"),
    ):
        pool.submit(pennon.open, str(tmp_path / "nowhere")).result()
