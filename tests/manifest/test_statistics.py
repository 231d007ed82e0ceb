"""Statistics in metadata texts: both ways of reading them agree with a JSON parser."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pennon.manifest.format.column_statistics import STATISTICS, statistics_columns, with_statistics

OURS = [with_statistics(None, {"num_rows": 3, "num_bytes": 2**40, "num_fragments": None}), "{}"]
FOREIGN = [
    '{"num_rows": 7, "num_bytes" : "8"}',
    json.dumps({"num_fragments": 2, "note": 'says "num_rows": 99'}, indent=1),
    '{"num_rows": "many"}',
    "no JSON at all",
]


@pytest.mark.parametrize("texts", [OURS, [*OURS, None], FOREIGN, [*OURS, *FOREIGN, None], []])
def test_statistics_are_those_of_a_json_parser(texts: list[str | None]) -> None:
    def number(text: str | None, name: str) -> int | None:
        try:
            return int(json.loads(text or "{}").get(name))
        except (ValueError, TypeError):
            return None

    found = statistics_columns(pa.chunked_array([texts], pa.utf8()))
    wanted = {name: [number(text, name) for text in texts] for name in STATISTICS}
    assert {name: column.to_pylist() for name, column in found.items()} == wanted


def test_other_keys_stay_and_unknown_statistics_go() -> None:
    text = with_statistics('{"note":"x","num_rows":"1"}', {"num_rows": None, "num_bytes": 5})
    assert json.loads(text) == {"note": "x", "num_bytes": "5"}
