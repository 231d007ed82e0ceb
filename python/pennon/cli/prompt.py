"""The prompt of ``pennon sql``: reads statements and keeps their history.

At a terminal with prompt_toolkit: history that is kept, completion, colours, statements of several
lines that are edited as one. Without a terminal, or that package, lines are read as they are.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pennon.cli import quiet_start
from pennon.cli.query_run import (
    Cancelled,
    Format,
    Output,
    Statement,
    cut_statements,
    execute,
    has_sql,
    silence_query_context,
    statements_of,
)
from pennon.errors import FileNotReadable, PennonError
from pennon.maintenance.procedures import PROCEDURES

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from pyspark.sql import SparkSession

    from pennon.namespace.lake import Lake

__all__ = ["LakeNames", "completions"]

# What Tab completes at the prompt: names of tables and columns where they can stand, keywords.
#
# Behind FROM, JOIN, INTO and the like stand tables, behind CALL procedures; elsewhere the columns
# of the tables that the statement names, by their aliases, too. Names are asked for when they are
# needed and kept for some seconds, so that a large lake is not listed with each key.

# fmt: off
KEYWORDS: Final = (
    "ADD", "ALTER", "AND", "AS", "ASC", "BETWEEN", "BY", "CALL", "CASE", "CHANGES", "COLUMN",
    "COMMENT", "CREATE", "CROSS", "DATE", "DELETE", "DESC", "DESCRIBE", "DISTINCT", "DROP", "ELSE",
    "END", "EXISTS", "EXPLAIN", "EXTENDED", "FIELD", "FROM", "FULL", "GROUP", "HAVING", "IN",
    "INNER", "INSERT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "MATCHED", "MERGE",
    "NAMESPACE", "NAMESPACES", "NOT", "NULL", "ON", "OR", "ORDER", "OUTER", "OVER", "OVERWRITE",
    "PARTITION", "PARTITIONED", "PARTITIONS", "PROPERTIES", "RENAME", "REPLACE", "RIGHT", "SELECT",
    "SET", "SHOW", "TABLE", "TABLES", "TAG", "TBLPROPERTIES", "THEN", "TIMESTAMP", "TO", "TRUNCATE",
    "UNION", "UPDATE", "USING", "VALUES", "VERSION", "WHEN", "WHERE", "WITH",
)
# fmt: on
_TABLE_FOLLOWS: Final = frozenset(
    [
        *("FROM", "JOIN", "INTO", "TABLE", "UPDATE", "DESCRIBE", "DESC", "EXTENDED", "OVERWRITE"),
        *("PARTITIONS", "TBLPROPERTIES", "EXISTS"),
    ]
)
_PROCEDURES: Final = (*PROCEDURES, "explain_scan", "explain_join")
_TYPED: Final = re.compile(r"[\w.`$]*$")
_WORD_BEFORE: Final = re.compile(r"(\w+)\s+$")
_NAMED: Final = re.compile(
    r"\b(?:FROM|JOIN|INTO|TABLE|UPDATE|USING)\s+([\w.`$]+)(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE
)
_KEPT_SECONDS: Final = 10.0


@dataclass
class LakeNames:
    """The names of a catalog, as they were some seconds ago.

    Args:
        catalog: The catalog's name in SQL.
        lake: Opens it, when the first name is asked for.
    """

    catalog: str
    lake: Callable[[], Lake]
    _kept: dict[str, tuple[float, Sequence[str]]] = field(default_factory=dict)

    def tables(self) -> Sequence[str]:
        """Give the full names of all tables."""
        return self._fresh("", lambda: [f"{self.catalog}.{n}" for n in self.lake().list_tables()])

    def columns(self, table: str) -> Sequence[str]:
        """Give the columns of a table by its full name; none where there is no such table."""
        name = table.removeprefix(f"{self.catalog}.")
        return self._fresh(table, lambda: self.lake().load_table(name).schema.names)

    def _fresh(self, key: str, ask: Callable[[], Sequence[str]]) -> Sequence[str]:
        asked, names = self._kept.get(key, (0.0, ()))
        if not asked or time.monotonic() - asked > _KEPT_SECONDS:
            try:
                names = ask()
            except PennonError:
                names = ()
            self._kept[key] = time.monotonic(), names
        return names


def completions(statement: str, before: str, names: LakeNames) -> list[tuple[str, int]]:
    """Tell what can stand where the cursor is.

    Args:
        statement: The whole text.
        before: What of it is left of the cursor.
        names: The catalog's names.

    Returns:
        Texts, each with how many characters left of the cursor it takes the place of.
    """
    match = _TYPED.search(before)
    typed = match.group() if match is not None else ""
    lead = before[: len(before) - len(typed)]
    word = _WORD_BEFORE.search(lead)
    previous = word.group(1).upper() if word is not None else ""
    begins = _no_quotes(typed)
    texts = dict.fromkeys(_candidates(previous, typed, statement, names))
    # A word that is half typed may look like a table's alias.
    fitting = (text for text in texts if _no_quotes(text).startswith(begins) and text != typed)
    return [(text, len(typed)) for text in fitting]


def _candidates(previous: str, typed: str, statement: str, names: LakeNames) -> Iterator[str]:
    if previous == "CALL":
        yield from (f"{names.catalog}.system.{procedure}(" for procedure in _PROCEDURES)
        return
    if previous in _TABLE_FOLLOWS:
        yield from names.tables()
        if previous != "EXTENDED" and "." not in typed:
            yield from KEYWORDS
        return
    named = _named_tables(statement, names)
    if "." in typed:
        head = typed.partition(".")[0]
        yield from (f"{head}.{column}" for column in _columns(named.get(head, ""), names))
        yield from names.tables()
        return
    for table in dict.fromkeys(named.values()):
        yield from _columns(table, names)
    yield from (alias for alias in named if alias)
    yield from KEYWORDS


def _named_tables(statement: str, names: LakeNames) -> Mapping[str, str]:
    """Give the tables that a statement names, by alias or last name."""
    tables: dict[str, str] = {}
    for table, alias in _NAMED.findall(statement):
        full = table if table.startswith(f"{names.catalog}.") else ""
        if full:
            is_alias = alias and alias.upper() not in KEYWORDS
            tables[alias if is_alias else full.rpartition(".")[2]] = full
    return tables


def _columns(table: str, names: LakeNames) -> Iterator[str]:
    for column in names.columns(table) if table else ():
        yield column if re.fullmatch(r"[A-Za-z_]\w*", column) else f"`{column}`"


def _no_quotes(text: str) -> str:
    return text.replace("`", "").lower()


PROMPT, CONTINUED = "pennon> ", "      > "
HELP: Final = """\
Statements of Spark SQL end with ;  and may have several lines.
  SHOW NAMESPACES IN lance;        SHOW TABLES IN lance.shop;
  DESCRIBE EXTENDED lance.shop.orders;
  EXPLAIN SELECT …;                which partitions a query reads
  CALL lance.system.explain_join('SELECT …');
Ctrl-C cancels a statement or forgets what is typed, Tab completes, Up goes back in history,
exit; or Ctrl-D leaves.  docs/sql.md describes what is Pennon's own."""
_LEAVING: Final = ("exit", "quit")


class TypedStatements:
    """The statements that a person types, or that stand in what is piped in.

    Args:
        names: The names that Tab completes.
        is_prompt: Whether a person types.
    """

    def __init__(self, names: LakeNames | None, *, is_prompt: bool) -> None:
        self.is_prompt = is_prompt
        self._session = _session(names) if is_prompt else None

    def __iter__(self) -> Iterator[str]:
        """Give one statement after the other, without its ``;``; Ctrl-C forgets what is typed."""
        begun = ""
        while True:
            try:
                begun += self._line(begun) + "\n"
            except EOFError:
                break
            except KeyboardInterrupt:
                begun = ""
                continue
            word = begun.strip().rstrip(";").strip().lower()
            if word in _LEAVING:
                return
            if word == "help":
                print(HELP)
                begun = ""
                continue
            pieces, begun = cut_statements(begun)
            yield from (piece.strip() for piece in pieces if has_sql(piece))
        if has_sql(begun):
            yield begun.strip()

    def _line(self, begun: str) -> str:
        if self._session is not None:
            typed: str = self._session.prompt(PROMPT)
            return typed
        return input((CONTINUED if begun.strip() else PROMPT) if self.is_prompt else "")


def _session(names: LakeNames | None) -> PromptSession[str] | None:
    try:
        from prompt_toolkit import PromptSession  # noqa: PLC0415 - optional package
        from prompt_toolkit.completion import Completer, Completion  # noqa: PLC0415
        from prompt_toolkit.history import FileHistory  # noqa: PLC0415
        from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415
    except ImportError:
        return None

    keys = KeyBindings()

    def enter(event: Any) -> None:
        """Run what is complete; else begin a new line."""
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    keys.add("enter")(enter)

    def complete(_: object, document: Any, __: object) -> Iterator[Completion]:
        """Complete the word before the cursor, by the statement around it."""
        before = document.text_before_cursor
        candidates = completions(document.text, before, names) if names is not None else ()
        for completed, taken in candidates:
            yield Completion(completed, start_position=-taken)

    completer = type("Names", (Completer,), {"get_completions": complete})()
    return PromptSession(
        history=FileHistory(str(_history_file())),
        completer=completer,
        complete_while_typing=False,
        complete_in_thread=True,
        lexer=_lexer(),
        multiline=True,
        prompt_continuation=CONTINUED,
        key_bindings=keys,
        enable_open_in_editor=True,
    )


def is_complete(text: str) -> bool:
    """Tell whether Enter runs what is typed: a ``;`` ends it, or it needs none.

    Example:
        >>> is_complete("SELECT 1"), is_complete("SELECT 1;"), is_complete("BEGIN SELECT 1;")
        (False, True, False)
    """
    word = text.strip().rstrip(";").strip().lower()
    if not word or word in (*_LEAVING, "help"):
        return True
    _, rest = cut_statements(text)
    return not has_sql(rest)


def _lexer() -> Any:
    try:
        from prompt_toolkit.lexers import PygmentsLexer  # noqa: PLC0415 - optional package
        from pygments.lexers.sql import SqlLexer  # noqa: PLC0415
    except ImportError:
        return None
    return PygmentsLexer(SqlLexer)


def _history_file() -> Path:
    stated = os.environ.get("XDG_STATE_HOME")
    folder = (Path(stated) if stated else Path.home() / ".local" / "state") / "pennon"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "sql_history"


# ``pennon sql``: runs statements from a prompt, from ``-e`` or from files.
#
# An error is one message: the stack of the JVM and of Python stays in the log.

_ROWS_AT_A_TERMINAL: Final = 1000
_INTERRUPTED: Final = 130


def run(
    builder: SparkSession.Builder,
    *,
    statements: Sequence[str] = (),
    files: Sequence[str] = (),
    output_format: Format = Format.TABLE,
    limit: int | None = None,
    names: LakeNames | None = None,
) -> int:
    """Run what is given and end, or show a prompt when nothing is given.

    Args:
        builder: A builder with Pennon's catalog.
        statements: SQL texts, each of one or more statements that ``;`` separates.
        files: Paths of files with such texts, run after the statements.
        output_format: How rows are printed.
        limit: So many rows of a statement at most; None for all, at a terminal for the first 1,000.
        names: The names that a prompt completes; none where it is not given.

    Returns:
        The exit code: 0; 1 when a statement failed (the following ones are not run); 130 after
        Ctrl-C.
    """
    texts = list(statements)
    log = Path(tempfile.gettempdir()) / f"pennon-sql-{os.getpid()}.log"
    try:
        texts += [_read(Path(path)) for path in files]
        spark = quiet_start.start(builder, log)
    except PennonError as error:
        print(error, file=sys.stderr)
        return 1
    silence_query_context()
    if threading.current_thread() is threading.main_thread():
        # PySpark's own handler talks to the JVM in the middle of a call to it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    is_terminal = sys.stdout.isatty()
    if limit is None and is_terminal:
        limit = _ROWS_AT_A_TERMINAL
    try:
        if texts:
            pieces = [piece for text in texts for piece in statements_of(text)]
            return _run_all(spark, pieces, Output(output_format, limit))
        is_prompt = sys.stdin.isatty()
        output = Output(
            output_format, limit, is_timed=is_prompt, is_paged=is_prompt and is_terminal
        )
        return _run_typed(spark, output, log, TypedStatements(names, is_prompt=is_prompt))
    finally:
        spark.stop()
        log.unlink(missing_ok=True)


def _run_all(spark: SparkSession, pieces: Sequence[Statement], output: Output) -> int:
    try:
        done = all(execute(spark, piece.sql, output, piece.expected) for piece in pieces)
    except Cancelled:
        return _INTERRUPTED
    return 0 if done else 1


def _run_typed(spark: SparkSession, output: Output, log: Path, typed: TypedStatements) -> int:
    if typed.is_prompt:
        print(f"Spark {spark.version}; its log, while this runs, is {log}.")
        print(
            "End a statement with ;  Ctrl-C cancels it, help; tells more, exit; or Ctrl-D leaves."
        )
    has_failed = False
    for sql in typed:
        try:
            succeeded = execute(spark, sql, output)
        except Cancelled:
            if not typed.is_prompt:
                return _INTERRUPTED
            succeeded = False
        has_failed = has_failed or not succeeded
    return 1 if has_failed and not typed.is_prompt else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileNotReadable(path=os.fspath(path), problem=error.strerror) from error
