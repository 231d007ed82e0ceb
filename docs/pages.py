"""Pages of the site that are made of the code, and of documents that stand outside ``docs/``.

MkDocs calls ``on_files`` (see ``mkdocs.yml``); nothing made here is stored in the repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from pennon import errors
from pennon.errors import PennonError
from pennon.maintenance.procedures import PROCEDURES
from pennon.settings import ROOT as ROOT_SETTING
from pennon.settings import SETTINGS, Place

ROOT = Path(__file__).parent.parent
# Documents beside docs/: where the site has them, and the link to what it has not.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
}
NOTEBOOK = "notebooks/first_table.ipynb"
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#]*)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files of ``docs/``."""
    pages = {page: _outside(name) for name, page in OUTSIDE.items()}
    pages |= {
        "settings.md": "\n".join(_settings()),
        "errors.md": "\n".join(_errors()),
        "procedures.md": "\n".join(_procedures()),
        "reference.md": "\n".join(_classes()),
        "notebook.md": "\n\n".join(_notebook()),
    }
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Take links to what the site does not have for what they say: files of the repository."""
    return _LINK.sub(_in_site, markdown)


def _outside(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    return text.replace("](docs/", "](")


def _in_site(link: re.Match[str]) -> str:
    text, path, anchor = link[1], link[2].removeprefix("../"), link[3] or ""
    if path == NOTEBOOK:
        return f"[{text}](notebook.md)"
    if path in OUTSIDE:
        return f"[{text}]({OUTSIDE[path]}{anchor})"
    return link[0] if path.endswith(".md") else text


def _notebook() -> Iterator[str]:
    for cell in json.loads((ROOT / NOTEBOOK).read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    heads = list(heads)
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _settings() -> Iterator[str]:
    yield "# Settings\n"
    yield (
        "Strongest first: the option of a read or a write, the catalog's option"
        " (`spark.sql.catalog.<name>.<option>`), the table's property, the environment variable,"
        " the default.\n"
    )
    for place in Place:
        yield f"## {str(place).capitalize()}\n"
        here = [one for one in SETTINGS if one.place is place]
        yield from _table(
            ["name", "value", "default", "meaning"],
            (
                (
                    f"`{one.name}`",
                    one.kind,
                    "required"
                    if one is ROOT_SETTING
                    else f"`{one.default}`"
                    if one.default
                    else "",
                    one.meaning,
                )
                for one in here
            ),
        )
        yield ""


def _errors() -> Iterator[str]:
    yield "# Errors\n"
    yield (
        "Each message begins with its condition in brackets. In Python, the class is"
        " `pennon.errors.<Name>`; SQL clients see the SQLSTATE.\n"
    )
    known = {one for one in vars(errors).values() if isinstance(one, type)}
    kinds = {one.condition: one for one in known if issubclass(one, PennonError)}
    kinds.pop(PennonError.condition)
    for name, kind in sorted(kinds.items()):
        yield f"## {name}\n"
        yield f"SQLSTATE {kind.sql_state}, `{kind.__name__}`\n"
        text = re.sub(r"{(.*?)}", r"&lt;\1&gt;", kind.template)
        yield f"> {text}\n"


def _procedures() -> Iterator[str]:
    yield "# Procedures\n"
    yield "`CALL lance.system.<procedure>(name => value, …)`. Arguments in bold are required.\n"
    for name, procedure in sorted(PROCEDURES.items()):
        yield f"## {name}\n\n{procedure.description}\n"
        yield from _table(
            ["argument", "type", "meaning"],
            (
                (f"**{one.name}**" if one.is_required else one.name, one.type, one.meaning)
                for one in procedure.parameters
                if one.instead is None
            ),
        )
        columns = ", ".join(f"`{one.name}` {one.type}" for one in procedure.columns)
        yield f"\nRows: {columns}\n"


def _classes() -> Iterator[str]:
    yield "# Python classes\n"
    for path in (
        "namespace.open_namespace",
        "namespace.create_namespace",
        "namespace.connect",
        "session.spark",
        "session.configure",
        "namespace.PartitionedNamespace",
        "namespace.Lake",
        "namespace.Scan",
        "namespace.rows.row_merge.Merge",
        "namespace.upkeep.Maintenance",
    ):
        name = path.split(".")[-1].removesuffix("_namespace")
        yield f"## `{name}`\n\n::: pennon.{path}"
        yield "    options: {show_root_heading: false, heading_level: 3}\n"
