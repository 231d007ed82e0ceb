"""The stubs of pyarrow promise no more than the installed pyarrow has."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

STUBS = Path(__file__).parents[2] / "typings"
# Known to checkers alone before Python 3.12.
PROTOCOLS = {"Buffer.__buffer__"}


def every_kind(kind: type[object]) -> Iterator[type[object]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from every_kind(narrower)


def names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def lacking(module: ModuleType, stub: ast.Module) -> Iterator[str]:
    """Names of the stub that the module has not; a member may be one of a narrower class."""
    for node in stub.body:
        for name in names_of(node):
            if name.startswith("_") and not name.endswith("_"):
                continue
            if not hasattr(module, name):
                yield name
                continue
            if not isinstance(node, ast.ClassDef):
                continue
            kinds = list(every_kind(getattr(module, name)))
            members = [member for inner in node.body for member in names_of(inner)]
            yield from (
                f"{name}.{member}"
                for member in members
                if not any(hasattr(kind, member) for kind in kinds)
            )


@pytest.mark.parametrize(
    "path", sorted(STUBS.rglob("*.pyi")), ids=lambda path: str(path.relative_to(STUBS))
)
def test_everything_in_a_stub_is_there(path: Path) -> None:
    name = ".".join(path.relative_to(STUBS).with_suffix("").parts).removesuffix(".__init__")
    stub = ast.parse(path.read_text(encoding="utf-8"))
    assert set(lacking(importlib.import_module(name), stub)) <= PROTOCOLS
