"""A table in plain Python that changes as a real one does: the oracle of random evolution.

Columns are known by a token that never changes; rows keep values by token. A row that has no
value for a column was written before the column: it has the column's default.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from decimal import Decimal

WIDER = {
    "byte": ["short", "integer", "long", "double"],
    "short": ["integer", "long"],
    "integer": ["long", "double"],
    "float": ["double"],
    "decimal(5,2)": ["decimal(9,2)", "decimal(12,4)"],
}
VALUES: dict[str, list[object]] = {
    "byte": [0, 1, -7, 127, -128],
    "short": [0, 1, 300, -32768],
    "integer": [0, 1, 5, -1, 70000, 2**31 - 1],
    "long": [0, 1, 5, 2**40, -(2**62)],
    "float": [0.0, 0.5, -1.25, 1e10],
    "double": [0.0, 0.5, 1e300, -(2.0**60)],
    "string": ["", "a", "b", "it's", "ä€😀"],
    "decimal(5,2)": [Decimal("0.00"), Decimal("1.50"), Decimal("-999.99")],
    "decimal(9,2)": [Decimal("1.50"), Decimal("1234567.89")],
    "decimal(12,4)": [Decimal("1.5000"), Decimal("12345678.9000")],
    "date": [0, 19000, -1],
    "boolean": [True, False],
}
ABSENT = object()
_tokens = itertools.count()


@dataclass
class Column:
    """A column or nested field; ``kind`` is a type's name, struct, array or map."""

    name: str
    kind: str
    children: list[Column] = field(default_factory=list)
    default: object = None
    token: int = field(default_factory=lambda: next(_tokens))

    def spark_type(self) -> object:
        """The type as Spark's JSON has it."""
        if self.kind == "struct":
            fields = [
                {"name": child.name, "type": child.spark_type(), "nullable": True, "metadata": {}}
                for child in self.children
            ]
            return {"type": "struct", "fields": fields}
        if self.kind == "array":
            inner = self.children[0].spark_type()
            return {"type": "array", "elementType": inner, "containsNull": True}
        if self.kind == "map":
            value = self.children[0].spark_type()
            return {
                "type": "map",
                "keyType": "string",
                "valueType": value,
                "valueContainsNull": True,
            }
        return self.kind

    def shown(self, value: object) -> object:
        """A stored value as it reads now."""
        if value is None:
            return None
        if self.kind == "struct":
            assert isinstance(value, dict)
            return {child.name: child.shown(value.get(child.token)) for child in self.children}
        if self.kind == "array":
            assert isinstance(value, list)
            return [self.children[0].shown(item) for item in value]
        if self.kind == "map":
            assert isinstance(value, list)
            return [(key, self.children[0].shown(item)) for key, item in value]
        if isinstance(value, Decimal):
            return value.quantize(Decimal(1).scaleb(-int(self.kind[-2])))
        return float(value) if self.kind == "double" else value  # type: ignore[arg-type]


@dataclass
class Model:
    """The columns and the rows."""

    columns: list[Column]
    rows: list[dict[int, object]] = field(default_factory=list)

    def shown(self) -> list[dict[str, object]]:
        """All rows as they read now."""
        return [
            {
                column.name: column.shown(row.get(column.token, column.default))
                for column in self.columns
            }
            for row in self.rows
        ]

    def siblings(self, path: list[Column]) -> list[Column]:
        """The columns beside and including the last of a path."""
        return path[-2].children if len(path) > 1 else self.columns


def paths(columns: list[Column], above: tuple[Column, ...] = ()) -> list[list[Column]]:
    """Every column and nested field with those above it."""
    found = []
    for column in columns:
        found.append([*above, column])
        found += paths(column.children, (*above, column))
    return found


def spark_path(path: list[Column]) -> list[str]:
    """The names of a path as Spark has them."""
    names = []
    for above, column in zip([None, *path], path, strict=False):
        kind = None if above is None else above.kind
        names.append({"array": "element", "map": "value"}.get(str(kind), column.name))
    return names
