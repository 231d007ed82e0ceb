"""What a notebook shows: tables as HTML with small bars, and how far a long read or upkeep is."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import pyarrow as pa

__all__ = [
    "Bar",
    "html_table",
    "load_ipython_extension",
    "progress_bar",
    "rows_shown",
    "show_progress",
]

# What is over sooner shows no progress.
_SECONDS_WITHOUT: Final = 1.0
_WIDTH: Final = 120


@dataclass(frozen=True, slots=True)
class Bar:
    """A number, with a bar as long as its part of the largest one.

    Args:
        value: The number; None for an unknown one.
        most: The largest of its column.
    """

    value: int | None
    most: int

    def html(self) -> str:
        """Write it as the content of a cell."""
        if self.value is None:
            return ""
        width = round(_WIDTH * self.value / max(self.most, 1))
        bar = f"display:inline-block;height:0.7em;margin-right:0.5em;width:{width}px"
        return f'<span style="{bar};background:#4c8bf5"></span>{self.value:,}'


def html_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Write a table.

    Args:
        header: The names of the columns.
        rows: Their cells: text, numbers and bars.

    Example:
        >>> html_table(["n"], [[1]])
        '<table><tr><th>n</th></tr><tr><td>1</td></tr></table>'
    """
    body = "".join(_html_row("td", row) for row in rows)
    return f"<table>{_html_row('th', header)}{body}</table>"


def _html_row(tag: str, cells: Iterable[object]) -> str:
    shown = (cell.html() if isinstance(cell, Bar) else escape(str(cell)) for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in shown)}</tr>"


@contextlib.contextmanager
def progress_bar(what: str, total: int | None, unit: str) -> Iterator[Callable[[int], object]]:
    """Show how far something is, where IPython runs and tqdm is installed; else nothing.

    Args:
        what: What is done.
        total: How many there are; None where nobody knows.
        unit: Of what.

    Yields:
        Told of how many more are done.
    """
    bars = _bars()
    if bars is None:
        yield lambda _: None
        return
    stated = {"desc": what, "total": total, "unit": f" {unit}", "unit_scale": True}
    with bars(**stated, delay=_SECONDS_WITHOUT, leave=False) as bar:
        yield bar.update


def rows_shown(
    batches: Iterable[pa.RecordBatch], what: str, total: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Hand batches on, and show how many rows there were, as ``progress_bar`` does."""
    with progress_bar(what, total, "rows") as update:
        for batch in batches:
            update(batch.num_rows)
            yield batch


@contextlib.contextmanager
def show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show what maintenance tells of itself, as ``progress_bar`` does."""
    with contextlib.ExitStack() as stack:
        shown: dict[str, tuple[Callable[[int], object], int]] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in shown:
                shown[what] = stack.enter_context(progress_bar(what, total, "")), 0
            update, before = shown[what]
            update(done - before)
            shown[what] = update, done

        yield show


def _bars() -> Any:
    """The class of tqdm for where this runs; None outside of IPython, or without tqdm."""
    interactive = sys.modules.get("IPython")
    if interactive is None or interactive.get_ipython() is None:
        return None
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415 - only where a person looks on
    except ImportError:
        return None
    return tqdm


def load_ipython_extension(shell: Any) -> None:
    """Bring ``%sql`` and ``%%sql``: one statement of Spark SQL, its first rows as a table.

    ``%load_ext pennon.notebook`` calls it.
    """
    shell.register_magic_function(_sql, magic_kind="line_cell", magic_name="sql")


def _sql(line: str, cell: str | None = None) -> object:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - for %sql alone

    session = SparkSession.active()
    session.conf.set("spark.sql.repl.eagerEval.enabled", "true")
    return session.sql(cell or line)
