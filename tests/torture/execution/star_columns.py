"""What random queries ask of a column, by its name: conditions, values of its type, keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KEYS: Final = ("id", "ck", "pk", "rk", "d")
_TEXTS: Final = (
    "rpad({c}, 4, 'x') > 's1'",
    "concat_ws('-', {c}, 'a') < 's2'",
    "reverse({c}) > '1'",
)
_NUMBERS: Final = ("floor({c}) <= 100", "ceil({c} / 3) > 10", "sign({c}) < 0")
_DAYS: Final = (
    "next_day({c}, 'TUE') > DATE'2020-02-05'",
    "last_day({c}) < DATE'2020-03-15'",
    "{c} IS NULL",
    "date_format({c}, 'yyyy-MM') = '2020-02'",
    "CAST({c} AS STRING) LIKE '2020-01-1%'",
)
CONDITIONS: Final[Mapping[str, Sequence[str]]] = {
    "q": (
        "{c} < 4",
        "{c} = 3",
        "{c} IN (1, 2, 5)",
        "{c} IS NOT NULL",
        "NOT {c} > 5",
        "pmod({c} - 3, 4) = 1",
        "{c} & 2 = 2",
        "{c} = {c}",
        "{c} <=> {c}",
        "NOT {c} <> {c}",
        "{c} ^ {c} = 0",
        "{c} - {c} = 0",
        "coalesce({c}, {c}) = {c}",
    ),
    "s": ("{c} = 's1'", "{c} <> 'b2'", "{c} LIKE 's%'", "{c} >= 'n3'", "{c} IS NULL", *_TEXTS),
    "amt": ("{c} > 100", "{c} BETWEEN -50 AND 900", "{c} IS NULL", "{c} < 0", *_NUMBERS),
    "d": ("{c} >= DATE'2020-03-01'", "{c} < DATE'2020-02-10'", "year({c}) = 2020", *_DAYS),
    "ck": ("{c} > 10", "{c} IS NOT NULL"),
    "pk": ("{c} < 12",),
    "id": ("{c} < 200", "{c} IN (1, 7, 30, 31, 99)"),
    "rk": ("{c} <> 1",),
    "v": (
        "{c} = 0",
        "{c} > 3",
        "sqrt({c}) < 4",
        "signum({c}) >= 0",
        "{c} = {c}",
        "{c} <> {c}",
        "{c} <=> DOUBLE('NaN')",
        "isnan({c})",
        "{c} IN (0D, DOUBLE('NaN'))",
    ),
    "w": ("{c} = {c}", "{c} > 1E21", "{c} < 0.5", "{c} - {c} = 0", "round({c}, 2) = 0"),
    "e": (
        "{c} > DATE'9999-12-31'",
        "{c} < DATE'0001-01-01'",
        "year({c}) > 0",
        "month({c}) = 12",
        "{c} = {c}",
        "CAST({c} AS STRING) LIKE '%-12-31'",
        "weekday({c}) < 5",
    ),
    "ts": (
        "{c} >= TIMESTAMP'2020-01-01 05:30:00'",
        "{c} < TIMESTAMP'2020-02-02 00:00:00'",
        "hour({c}) < 12",
        "CAST({c} AS DATE) = DATE'2020-01-03'",
        "date_trunc('MONTH', {c}) = TIMESTAMP'2020-02-01 00:00:00'",
        "{c} IS NULL",
    ),
}
VALUES: Final[Mapping[str, Sequence[str]]] = {
    "q": (
        "CAST({c} % 4 + 1 AS INT)",
        "CAST(pmod({c} * 3, 7) AS INT)",
        "nullif({c}, 3)",
        "greatest({c}, 2)",
        "CASE WHEN {c} > 3 THEN 1 ELSE {c} END",
        "{c} & 3",
        "{c} | 4",
        "{c} ^ 1",
        "~{c}",
        "abs({c} - 3)",
        "coalesce({c}, 9)",
        "shiftleft({c}, 2)",
        "{c} ^ {c}",
        "{c} & {c}",
        "{c} | {c}",
        "CAST({c} * {c} AS INT)",
        "{c} - {c}",
        "if({c} = {c}, 1, 0)",
        "CASE WHEN {c} <> {c} THEN 1 WHEN {c} IS NULL THEN 7 END",
    ),
    "s": (
        "lpad({c}, 4, 'z')",
        "concat_ws('-', {c}, 'w')",
        "reverse({c})",
        "upper({c})",
        "substr({c}, 2)",
        "concat({c}, {c})",
        "replace({c}, 's', 'n')",
        "left({c}, 1)",
        "CASE WHEN {c} > 's5' THEN 'n1' ELSE {c} END",
    ),
    "d": (
        "next_day({c}, 'MO')",
        "last_day({c})",
        "date_add({c}, 3)",
        "add_months({c}, 1)",
        "trunc({c}, 'MM')",
    ),
    "amt": (
        "CAST({c} / 3 AS DECIMAL(12, 2))",
        "CAST(round({c}, 1) AS DECIMAL(12, 2))",
        "CAST(ceil({c}) AS DECIMAL(12, 2))",
        "-{c}",
        "abs({c})",
    ),
    "v": ("sqrt({c})", "-{c}", "coalesce({c}, 0D)", "abs({c})", "{c} - {c}", "nullif({c}, {c})"),
    "w": (
        "-{c}",
        "abs({c})",
        "CAST(round({c}, 3) AS DECIMAL(38, 12))",
        "CAST({c} + {c} AS DECIMAL(38, 12))",
        "CAST({c} / 7 AS DECIMAL(38, 12))",
        "CAST({c} * 0.5 AS DECIMAL(38, 12))",
    ),
    "e": ("last_day({c})", "trunc({c}, 'YEAR')", "add_months({c}, -1)", "next_day({c}, 'FR')"),
    "id": ("{c} + 1", "{c} % 100", "{c} - {c}", "{c} ^ {c}"),
    "ck": ("coalesce({c}, 3)",),
    "ts": ("date_trunc('HOUR', {c})", "{c} + INTERVAL 1 DAY"),
}
GROUPED: Final[Mapping[str, Sequence[str]]] = {
    "v": ("{c} + 0D", "isnan({c})", "{c} = {c}"),
    "w": ("CAST({c} AS DECIMAL(30, 2))", "sign({c})", "{c} > 0"),
    "e": ("year({c})", "month({c})", "CAST({c} AS STRING)", "dayofweek({c})"),
    "d": ("year({c})", "date_format({c}, 'yyyy-MM')", "CAST({c} AS STRING)", "weekday({c})"),
    "ts": ("hour({c})", "CAST({c} AS DATE)", "date_trunc('MONTH', {c})"),
    "amt": ("floor({c} / 100)", "sign({c})"),
    "s": ("substr({c}, 1, 1)", "length({c})"),
    "q": ("{c} & 1", "{c} % 3"),
    "id": ("{c} DIV 50",),
}
"""What a column may be grouped by instead of itself."""
