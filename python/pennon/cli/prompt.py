"""The prompt of ``pennon sql``: reads statements and keeps their history.

At a terminal with prompt_toolkit: history that is kept, completion, colours, statements of several
lines that are edited as one. Without a terminal, or that package, lines are read as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pennon.cli.completion import completions
from pennon.cli.statements import cut_statements, has_sql

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from pennon.cli.completion import LakeNames

__all__ = ["HELP", "TypedStatements"]

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
