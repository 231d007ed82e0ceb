"""Expressions that the workers compute: what was recorded of Spark is what it is sent and has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
import pytest
from tests.pushdown.spark_answers import RECORDED, recorded
from tests.spark.assert_join import conf
from tests.spark.expressions.golden import recordings
from tests.spark.expressions.spark_expressions import Expressions, settings_of

from pennon.predicate.expressions import Semantics

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FOLDER = RECORDED / pyspark.__version__


@pytest.mark.skipif(not FOLDER.is_dir(), reason="this Spark is not recorded")
def test_the_recorded_texts_are_those_that_the_shim_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Else `make golden` records what there is now; a few values show that it was this Spark."""
    for name, recording in recordings().items():
        sessions = recorded(FOLDER / f"{name}.arrow.xz")
        for (ansi, zone), (answers, _) in zip(recording.sessions, sessions.values(), strict=True):
            with conf(spark, settings_of(ansi=ansi, zone=zone)):
                over = Expressions.over(spark, recording.rows, tmp_path / name)
                written = over.written(recording.lines)
                some = over.answers(recording.lines[:: len(recording.lines) // 4])
            kept = [(answer.text, answer.kind) for answer in answers.answers.values()]
            assert dict(zip(recording.lines, written, strict=True)) == dict(
                zip(answers.answers, kept, strict=True)
            )
            for line, answer in some.answers.items():
                assert answer.is_same(answers.answers[line]), line


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="an older Unicode, of fewer letters")
def test_every_character_has_one_upper_and_one_lower_case(
    spark: SparkSession, tmp_path: Path
) -> None:
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    # A space between two keeps either from being the other's context.
    lines = [" ".join(characters[at : at + 256]) for at in range(0, len(characters), 256)]
    final_sigmas = ["ΑΣ", "ΑΣ.", "ΑΣΑ", "Σ", "aΣ b", "Σα", "a'Σ", "ΑΣ\u0301", "İi", "i\u0307"]
    rows = pa.table({"s": [*lines, *final_sigmas]})
    semantics = Semantics(ansi=True, is_utc=True)
    compared = Expressions.over(spark, rows, tmp_path).compare(["upper(s)", "lower(s)"], semantics)
    assert compared.declined == {}
    assert compared.different == {}
