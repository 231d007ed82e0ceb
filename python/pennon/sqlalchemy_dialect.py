"""A dialect of SQLAlchemy for Spark's Thrift server: ``pennon://host:10000/shop``, by PyHive.

PyHive's own dialect reads the answers of Hive: of Spark it takes the namespace for the table's
name, and fails at the blank lines of ``DESCRIBE``. SQLAlchemy finds this one by its entry point.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar, Final

from pyhive import hive
from pyhive.exc import OperationalError
from pyhive.sqlalchemy_hive import HiveCompiler, HiveDialect, HiveTypeCompiler
from sqlalchemy import exc, types
from sqlalchemy.engine import Connection
from sqlalchemy.sql.compiler import SQLCompiler
from sqlglot import exp

__all__ = ["PennonDialect"]

_TYPES: Final[Mapping[str, Callable[..., types.TypeEngine[Any]]]] = {
    **dict.fromkeys(("tinyint", "smallint"), types.SmallInteger),
    **dict.fromkeys(("string", "varchar", "char"), types.String),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), types.DateTime),
    "boolean": types.Boolean,
    "int": types.Integer,
    "bigint": types.BigInteger,
    "float": types.Float,
    "double": types.Double,
    "decimal": types.Numeric,
    "binary": types.LargeBinary,
    "date": types.Date,
}
_TYPE: Final = re.compile(r"^(\w+)(?:\((\d+)(?:,(\d+))?\))?$")
_VALUES: Final = " VALUES "
_ROWS_PER_INSERT: Final = 10_000


class _Date(types.Date):
    """A date, which PyHive reads as text."""

    def result_processor(self, dialect: object, coltype: object) -> Callable[[Any], Any]:
        return lambda value: date.fromisoformat(value) if isinstance(value, str) else value


class _Types(HiveTypeCompiler):  # type: ignore[misc]
    """Types as Spark writes them: PyHive's are those of Hive, a date for one a timestamp."""

    def visit_DATE(self, type_: types.Date, **_: object) -> str:
        return "DATE"

    def visit_NUMERIC(self, type_: types.Numeric[Any], **_: object) -> str:
        return f"DECIMAL({type_.precision or 38}, {type_.scale or 0})"

    visit_DECIMAL = visit_NUMERIC

    def visit_DOUBLE(self, type_: object, **_: object) -> str:
        return "DOUBLE"

    visit_FLOAT = visit_DOUBLE_PRECISION = visit_REAL = visit_DOUBLE


class _Statements(HiveCompiler):  # type: ignore[misc]
    """Statements as Spark reads them: the columns of an INSERT are named, in any order."""

    def visit_insert(self, *args: Any, **kwargs: Any) -> str:
        written: str = SQLCompiler.visit_insert(self, *args, **kwargs)  # type: ignore[no-untyped-call]
        return written


class PennonDialect(HiveDialect):  # type: ignore[misc]
    """Tables of a catalog behind a Thrift server of Spark.

    ``create_engine("pennon://localhost:10000/shop")``: what has no schema is in ``shop``.
    """

    name = "pennon"
    statement_compiler = _Statements
    type_compiler = type_compiler_cls = _Types
    colspecs: ClassVar[Mapping[Any, Any]] = {types.Date: _Date}
    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls) -> Any:
        """PyHive."""
        return hive

    def get_table_names(
        self, connection: Connection, schema: str | None = None, **_: object
    ) -> list[str]:
        """The tables of a schema, or of the one that the URL names."""
        listed = f"SHOW TABLES IN {self._quoted(schema)}" if schema else "SHOW TABLES"
        # Temporary views have no schema.
        return [row[1] for row in self._rows(connection, listed) if row[0]]

    def _nothing(self, *_: object, **__: object) -> list[Any]:
        return []

    # The catalog has no views, and partitions are not indexes that a client names.
    get_view_names = get_indexes = _nothing

    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> bool:
        """Whether there is a table of that name, whatever its case."""
        names = self.get_table_names(connection, schema)
        return table_name.lower() in (name.lower() for name in names)

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> list[dict[str, object]]:
        """Name, type and comment of each column."""
        return [
            {
                "name": name,
                "type": _type_of(written),
                "nullable": True,
                "default": None,
                "comment": comment,
            }
            for name, written, comment in self._described(connection, table_name, schema)
        ]

    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: object
    ) -> dict[str, str | None]:
        """The comment of a table."""
        described = f"DESCRIBE TABLE EXTENDED {self._quoted(schema, table_name)}"
        rows = {row[0]: row[1] for row in self._rows(connection, described)}
        return {"text": rows.get("Comment")}

    def do_execute(
        self, cursor: Any, statement: str, parameters: Mapping[str, object], context: Any = None
    ) -> None:
        """Run a statement with its values written as Spark's literals: PyHive's dates are text."""
        if parameters or (context is not None and context.compiled is not None):
            statement %= _written(parameters)
        _run(cursor, statement)

    def do_executemany(
        self,
        cursor: Any,
        statement: str,
        parameters: Sequence[Mapping[str, object]],
        context: Any = None,
    ) -> None:
        """Insert many rows by few statements: each is a commit."""
        inserted, values, row = statement.partition(_VALUES)
        if not (values and inserted.startswith("INSERT INTO")):
            for one in parameters:
                self.do_execute(cursor, statement, one, context)
            return
        for at in range(0, len(parameters), _ROWS_PER_INSERT):
            rows = parameters[at : at + _ROWS_PER_INSERT]
            written = ", ".join(row % _written(values) for values in rows)
            _run(cursor, f"{inserted}{_VALUES}{written}")

    def _described(
        self, connection: Connection, table_name: str, schema: str | None
    ) -> Iterator[tuple[str, str, str | None]]:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(table_name)
        described = self._rows(connection, f"DESCRIBE TABLE {self._quoted(schema, table_name)}")
        for name, written, comment in described:
            # A blank line, and what follows it, is of the partitions.
            if not name or name.startswith("# "):
                return
            yield name, written, comment

    def _quoted(self, *names: str | None) -> str:
        return ".".join(self.identifier_preparer.quote_identifier(name) for name in names if name)

    def _rows(self, connection: Connection, statement: str) -> list[Any]:
        return list(connection.exec_driver_sql(statement))


def _run(cursor: Any, statement: str) -> None:
    """Run a statement; a failure is the server's message, without the stack that it sends along."""
    try:
        cursor.execute(statement)
    except OperationalError as error:
        status = getattr(error.args[0] if error.args else None, "status", None)
        if status is None or not status.errorMessage:
            raise
        message = status.errorMessage.rpartition("org.apache.spark.sql.AnalysisException: ")[2]
        raise OperationalError(message) from None


def _written(values: Mapping[str, object]) -> dict[str, str]:
    return {name: exp.convert(value).sql(dialect="spark") for name, value in values.items()}


def _type_of(written: str) -> types.TypeEngine[Any]:
    parts = _TYPE.match(written)
    if parts is None or parts[1] not in _TYPES:  # an array, a map or a struct arrives as text
        return types.String()
    return _TYPES[parts[1]](*(int(number) for number in parts.groups()[1:] if number is not None))
