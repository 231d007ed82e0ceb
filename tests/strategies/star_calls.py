"""Calls of aggregates and of windows over the columns of a random query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.strategies.star_columns import CONDITIONS

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence


class StarCalls:
    """Writes calls whose results are exact in any order of the rows.

    Args:
        rng: What draws them.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def direction(self) -> str:
        """Write how a column is ordered."""
        nulls = ["NULLS FIRST", "NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"]
        return self.rng.choice(["", "", "DESC", *nulls])

    def windows(self, keys: Sequence[str], every: Sequence[str]) -> str:
        """Write functions over windows; in their order, rows that tie are the same rows."""
        order = ", ".join(f"{column} {self.direction()}" for column in every)
        partition = self.rng.choice([f"PARTITION BY {', '.join(keys)} "] * 5 + [""])
        calls = []
        for at in range(self.rng.choice([1, 1, 2, 3])):
            column, other = self.rng.choice(every), self.rng.choice(keys)
            ranks = ["rank()", "dense_rank()", "cume_dist()", "percent_rank()"]
            moves = ["row_number()", "ntile(3)", f"lag({column})", f"lead({column}, 2)"]
            moves += [f"lag({column}, 2) IGNORE NULLS", f"lead({column}) IGNORE NULLS"]
            framed = [f"count({column})", f"min({column})", f"first_value({column})", "count(*)"]
            if self.rng.random() < 0.3:
                framed += [f"last_value({column}) IGNORE NULLS", f"first({column}, true)"]
            if column.endswith((".q", ".amt", ".pk")):
                framed += [f"sum({column})", f"avg({column})"]
            dates = [date for date in every if date.endswith((".d", ".e", ".dd"))]
            match self.rng.randrange(5 if dates else 4):
                case 0:
                    over = f"{self.rng.choice(ranks)} OVER ({partition}ORDER BY {other})"
                case 1:
                    over = f"{self.rng.choice(moves)} OVER ({partition}ORDER BY {order})"
                case 2:
                    within = f"{partition}ORDER BY {order} {self.frame()}"
                    over = f"{self.rng.choice(framed)} OVER ({within})"
                case 3:
                    over = f"{self.rng.choice(framed[:2])} OVER ({partition.strip()})"
                case _:
                    # The first of values near the row's would be any of those that tie.
                    call = self.rng.choice(
                        [one for one in framed if not one.startswith(("first", "last"))]
                    )
                    near = f"{partition}ORDER BY {self.rng.choice(dates)} {self.direction()}"
                    over = f"{call} OVER ({near} {self.near()})"
            calls.append(f"{over} AS w{at}")
        return ", ".join(calls)

    def window_over_groups(self, keys: Sequence[str], call: str) -> str:
        """Write a window over groups, whose order or sum is an aggregate."""
        partition = self.rng.choice([f"PARTITION BY {keys[0]} ", ""])
        if call.startswith("round"):  # its last digit may be another one
            call = "count(*)"
        calls = [f"rank() OVER ({partition}ORDER BY {call} {self.direction()})"]
        calls += [f"dense_rank() OVER ({partition}ORDER BY {keys[-1]} {self.direction()})"]
        calls += [f"sum(count(*)) OVER ({partition.strip()})"]
        calls += [f"count(*) / sum(count(*)) OVER ({partition.strip()})"]
        calls += [f"max({call}) OVER ({partition.strip()})"]
        return self.rng.choice(calls)

    def frame(self) -> str:
        """Write a frame."""
        start = ["UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW"]
        end = ["CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING"]
        if self.rng.random() < 0.4:
            return self.rng.choice(["", f"RANGE BETWEEN CURRENT ROW AND {end[2]}"])
        return f"ROWS BETWEEN {self.rng.choice(start)} AND {self.rng.choice(end)}"

    def near(self) -> str:
        """Write a frame of the dates near that of the row."""
        start = ["UNBOUNDED PRECEDING", "30 PRECEDING", "3 PRECEDING", "2 FOLLOWING", "CURRENT ROW"]
        if self.rng.random() < 0.3:
            return "RANGE BETWEEN INTERVAL 9 DAYS PRECEDING AND INTERVAL 20 DAYS FOLLOWING"
        end = ["3 FOLLOWING", "40 FOLLOWING", "UNBOUNDED FOLLOWING"]
        if self.rng.random() < 0.3:
            return f"RANGE BETWEEN {self.rng.choice(start[:3])} AND CURRENT ROW"
        return f"RANGE BETWEEN {self.rng.choice(start)} AND {self.rng.choice(end)}"

    def aggregates(self, every: Sequence[str]) -> str:
        """Write a few aggregates."""
        calls = [self.aggregate(every) for _ in range(self.rng.choice([1, 2, 3]))]
        return ", ".join(f"{call} AS a{at}" for at, call in enumerate(calls))

    def aggregate(self, every: Sequence[str]) -> str:
        """Write an aggregate, or what is computed of some."""
        column, other = self.rng.choice(every), self.rng.choice(every)
        kinds = ["count({c})", "min({c})", "max({c})", "count(DISTINCT {c})"]
        computed = ["count({c}) / (count(*) + 1)", "min({c}) = max({c})"]
        # Spark computes it itself, by the key of what is below.
        computed += ["size(collect_list({c}))"]
        if not other.endswith((".arr", ".st")):
            kinds.append(f"count({self.rng.choice(['', 'DISTINCT '])}{{c}}, {other})")
            kinds.append(f"max(CASE WHEN {other} IS NOT NULL THEN struct({{c}}, {other}) END)")
        if column.endswith((".q", ".pk")):
            kinds += ["bit_or({c})", "bit_and({c})", "bit_xor({c})"]
            kinds += ["sum({c} * 2 + 1)", "sum(CASE WHEN {c} > 2 THEN {c} ELSE 0 END)"]
            kinds += ["count(CASE WHEN {c} IN (1, 3) THEN 1 END)"]
            computed += ["max({c}) - min({c})"]
        if column.endswith((".q", ".amt", ".pk")):
            kinds += ["avg(DISTINCT {c})", "max(round({c} / 7D, 2))", "max(floor({c}))"]
            kinds += ["sum({c})", "sum({c})", "avg({c})", "sum(DISTINCT {c})"]
            kinds += [
                "try_sum({c})",
                "try_avg({c})",
                "max_by({c} % 5, {c})",
                "min_by({c}, {c} + 1)",
            ]
            kinds += ["median({c})", "percentile_cont(0.3) WITHIN GROUP (ORDER BY {c} DESC)"]
            computed += ["sum({c}) / count({c})", "100.0 * sum({c}) / (1 + abs(max({c})))"]
            computed += ["CAST(avg({c}) AS DECIMAL(15, 4))"]
            computed += ["round(stddev({c}), 4)", "round(var_pop({c}) + 0.1234567D, 0)"]
            computed += ["round(corr({c}, {c}), 3)", "round(covar_samp({c}, {c}) + 0.1234567D, 0)"]
        conditions = CONDITIONS.get(column.rpartition(".")[2], ())
        if self.rng.random() < 0.15:
            return self.rng.choice(computed).format(c=column)
        call = self.rng.choice(kinds).format(c=column)
        if not conditions:
            return call
        condition = self.rng.choice(conditions).format(c=column)
        if self.rng.random() < 0.1:
            return f"{self.rng.choice(['count_if', 'bool_and', 'bool_or'])}({condition})"
        return f"{call} FILTER (WHERE {condition})" if self.rng.random() < 0.2 else call
