"""What statements do to rows one after the other: the serial orders of a race."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, Final

import pyarrow as pa

__all__ = [
    "SCHEMA",
    "Impossible",
    "Part",
    "State",
    "Statement",
    "bag",
    "condition_sql",
    "serial_orders",
]

SCHEMA: Final = pa.schema(
    {"uid": pa.int64(), "part": pa.string(), "half": pa.int32(), "v": pa.int32()}
)
Row = Mapping[str, Any]
# A column, an operator, a value; a condition is a list of these, which all have to hold.
Part = tuple[str, str, Any]
Statement = Mapping[str, Any]
# A copy of a row is another row: its number says which statement made it.
COPIED: Final = 1000
_COMES_BEFORE_APPENDS: Final = frozenset({"overwrite", "overwrite_partitions", "delete"})


class Impossible(Exception):
    """The statement is refused in this state: it names a column or a field that is not there."""


def bag(rows: Sequence[Row]) -> Counter[str]:
    """Give rows as a bag."""
    return Counter(str(sorted(row.items())) for row in rows)


def condition_sql(condition: Sequence[Part]) -> str:
    """Write a condition as Spark SQL."""
    texts = []
    for column, operator, value in condition:
        match operator:
            case "IN":
                texts.append(f"{column} IN ({', '.join(map(_literal, value))})")
            case "IS NULL":
                texts.append(f"{column} IS NULL")
            case _:
                texts.append(f"{column} {operator} {_literal(value)}")
    return " AND ".join(texts) or "true"


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True)
class State:
    """A table between two statements.

    Args:
        rows: Its rows.
        columns: Their columns.
        fields: The columns that new rows are partitioned by.
        versions: What rollbacks can bring back, by version.
        defaults: What rows have that are written without a column; NULL where it names none.
    """

    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    fields: tuple[str, ...]
    versions: Mapping[int, State]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def after(self, statement: Statement) -> State:
        """Run a statement.

        Raises:
            Impossible: It is refused.
        """
        done: State = getattr(self, f"_{statement['kind']}")(statement)
        return done

    def chosen(self, condition: Sequence[Part]) -> list[bool]:
        """Say of each row whether a condition is true.

        Raises:
            Impossible: It names a column that is not there.
        """
        self._need(*(column for column, _, _ in condition))
        return [all(_holds(row[column], *rest) for column, *rest in condition) for row in self.rows]

    def made(self, statement: Statement) -> list[Row]:
        """Give the rows that a statement writes: its own, or those that it makes of the table's."""
        if "rows" in statement:
            return [self._filled(row) for row in statement["rows"]]
        read = [
            row
            for row, is_read in zip(self.rows, self.chosen(statement["read"]), strict=True)
            if is_read
        ]
        number, part = statement["number"], statement["part"]
        if statement["makes"] == "total":
            self._need("v")
            total = {"uid": number * COPIED, "part": part, "half": number % 2}
            value = len(read) + sum(row["v"] or 0 for row in read)
            return [{name: {**total, "v": value}.get(name) for name in self.columns}]
        return [{**row, "uid": row["uid"] + number * COPIED, "part": part} for row in read]

    def _filled(self, row: Row) -> Row:
        self._need(*row)
        return {name: row.get(name, self.defaults.get(name)) for name in self.columns}

    def _need(self, *columns: str) -> None:
        if not set(columns) <= set(self.columns):
            raise Impossible

    def _without(self, condition: Sequence[Part]) -> tuple[Row, ...]:
        chosen = self.chosen(condition)
        return tuple(row for row, goes in zip(self.rows, chosen, strict=True) if not goes)

    def _with(self, rows: Sequence[Row]) -> State:
        return replace(self, rows=tuple(rows))

    # Statements

    def _append(self, statement: Statement) -> State:
        return self._with([*self.rows, *self.made(statement)])

    def _overwrite(self, statement: Statement) -> State:
        return self._with([*self._without(statement["where"]), *self.made(statement)])

    def _overwrite_partitions(self, statement: Statement) -> State:
        made = self.made(statement)
        if not self.fields:  # the one partition, be there rows for it or not
            return self._with(made)
        touched = {tuple(row[name] for name in self.fields) for row in made}
        kept = [row for row in self.rows if tuple(row[name] for name in self.fields) not in touched]
        return self._with([*kept, *made])

    def _replace(self, statement: Statement) -> State:
        return replace(self, rows=tuple(self.made(statement)), versions={})

    def _delete(self, statement: Statement) -> State:
        return self._with(self._without(statement["where"]))

    def _update(self, statement: Statement) -> State:
        name, value = statement["column"], statement["value"]
        self._need(name)
        chosen = self.chosen(statement["where"])
        return self._with(
            [
                {**row, name: _new_value(row, name, value)} if is_chosen else row
                for row, is_chosen in zip(self.rows, chosen, strict=True)
            ]
        )

    def _merge(self, statement: Statement) -> State:
        source = {row["uid"]: row for row in statement["rows"]}
        self._need(*statement["rows"][0])
        others = self.chosen(statement["others"]) if statement["others"] is not None else None
        rows = []
        for at, row in enumerate(self.rows):
            like = source.get(row["uid"])
            if like is None:
                rows += [] if others is not None and others[at] else [row]
            elif statement["matched"] == "update":
                rows.append({**row, **like})
            elif statement["matched"] is None:
                rows.append(row)
        if statement["inserts"]:
            known = {row["uid"] for row in self.rows}
            rows += [self._filled(row) for uid, row in source.items() if uid not in known]
        return self._with(rows)

    def _add_column(self, statement: Statement) -> State:
        name, default = statement["column"], statement["default"]
        if name in self.columns:
            raise Impossible
        rows = tuple({**row, name: default} for row in self.rows)
        defaults = {**self.defaults, name: default}
        return replace(self, rows=rows, columns=(*self.columns, name), defaults=defaults)

    def _drop_column(self, statement: Statement) -> State:
        name = statement["column"]
        self._need(name)
        rows = tuple({key: value for key, value in row.items() if key != name} for row in self.rows)
        return replace(self, rows=rows, columns=tuple(one for one in self.columns if one != name))

    def _add_field(self, statement: Statement) -> State:
        if statement["column"] in self.fields:
            raise Impossible
        return replace(self, fields=(*self.fields, statement["column"]))

    def _drop_field(self, statement: Statement) -> State:
        if statement["column"] not in self.fields:
            raise Impossible
        fields = tuple(one for one in self.fields if one != statement["column"])
        return replace(self, fields=fields)

    def _rollback(self, statement: Statement) -> State:
        if statement["version"] not in self.versions:
            raise Impossible
        return replace(self.versions[statement["version"]], versions=self.versions)

    def _same(self, statement: Statement) -> State:
        del statement
        return self

    _compact = _rewrite = _vacuum = _expire = _analyze = _tag = _same


def _holds(value: Any, operator: str, other: Any) -> bool:
    if operator == "IS NULL":
        return value is None
    if value is None:
        return False
    match operator:
        case "IN":
            return value in other
        case "=":
            return bool(value == other)
        case "<":
            return bool(value < other)
        case ">=":
            return bool(value >= other)
    raise ValueError(operator)


def _new_value(row: Row, name: str, value: Any) -> Any:
    if value == "+ 1":
        return None if row[name] is None else row[name] + 1
    return value


def serial_orders(
    state: State, statements: Sequence[Statement], before: Sequence[tuple[int, int]] = ()
) -> Iterator[State]:
    """Give the states that the statements can leave behind, one after the other.

    Rows that are made of the table, and what takes whole partitions out, may come before rows that
    others merely appended meanwhile. Who reads in between sees the appended rows, and not what came
    before them, and so does a statement that changes nothing.

    Args:
        state: The table before.
        statements: All that were acknowledged.
        before: Pairs of them, by position, of which the first had ended when the second began.
    """
    comes_first = any(
        statement.get("read") is not None or statement["kind"] in _COMES_BEFORE_APPENDS
        for statement in statements
    )
    idle = {
        at
        for at in range(len(statements))
        if comes_first and _is_idle(state, statements, before, at)
    }
    for order in permutations(range(len(statements))):
        late = {two for one, two in before if order.index(one) > order.index(two)}
        if not late <= idle:
            continue
        done = state
        try:
            for at in order:
                done = done if at in late else done.after(statements[at])
        except Impossible:
            continue
        yield done


def _is_idle(
    state: State, statements: Sequence[Statement], before: Sequence[tuple[int, int]], at: int
) -> bool:
    """Whether a statement changes nothing of what had ended when it began."""
    try:
        for ended in (one for one, two in before if two == at):
            state = state.after(statements[ended])
        return state.after(statements[at]) == state
    except Impossible:
        return False
