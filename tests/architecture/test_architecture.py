"""The house rules that a reader can rely on, held by reading the source.

Each rule is a function that returns its offences, so that a failure lists all of them.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pennon.catalog.layouts import STORED_TABLES, StoredTable
from pennon.manifest.table_layout import TableLayout
from pennon.transforms.transform import Transform

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "pennon"
SHIM = ROOT / "jvm-shim" / "src" / "main" / "java"
PYTHON = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
JAVA = sorted(SHIM.rglob("*.java"))

# From left to right; a subject may import what stands further left, and itself.
LEVELS = (
    {"errors", "starting_jvm"},
    {"settings", "arguments", "predicate", "caching", "notebook"},
    {"transforms"},
    {"spec"},
    {"manifest", "leaf"},
    {"execution", "plan", "planning", "grouping", "transaction", "draft", "metadata_tables"},
    {"pushdown", "search", "streams"},
    {"catalog", "maintenance"},
    {"namespace", "java_runtime"},
    {"session", "sqlalchemy_dialect", "worker"},
    {"cli"},
    {"demo"},
)
LEVEL_OF = {subject: level for level, subjects in enumerate(LEVELS) for subject in subjects}

# Peers of one level that one may import from the other, each with its reason.
PEERS: set[tuple[str, str]] = {
    ("transaction", "planning"),  # a commit looks for what a statement read as its scan did
    ("metadata_tables", "planning"),  # conditions on partition tuples choose leaves as a scan's do
    ("leaf", "manifest"),  # a writer looks up, or names, the leaf of each partition tuple
    ("maintenance", "catalog"),  # CALL names its tables as the catalog does
    ("grouping", "planning"),  # a grouping describes the partitions of a plan
    ("grouping", "plan"),  # which scans share a key is found by a walk over the query's tree
}

FORBIDDEN_NAMES = re.compile(r"(^|_)(utils?|helpers?|common|misc|manager|base)(_|$)")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in PYTHON:
        yield path, parsed(path)


def subject_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_subjects(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            modules = [node.module]
            if node.module == "pennon":
                modules = [f"pennon.{alias.name}" for alias in node.names]
        else:
            continue
        for module in modules:
            parts = module.split(".")
            if parts[0] == "pennon" and len(parts) > 1:
                yield node.lineno, parts[1]


def test_imports_point_one_way() -> None:
    offences = []
    for path, tree in trees():
        own = subject_of(path)
        if own == "__init__":
            continue
        for line, other in imported_subjects(tree):
            if other == own or (own, other) in PEERS or other not in LEVEL_OF:
                continue
            if LEVEL_OF[other] >= LEVEL_OF[own]:
                offences.append(f"{named(path)}:{line}: {own} imports {other}")
    assert offences == []


def test_rooms_of_one_subject_import_one_way() -> None:
    """A subject's rooms use what stands in the subject itself, and no two of them each other."""
    uses: dict[tuple[str, str], list[str]] = {}
    for path, tree in trees():
        own = path.relative_to(PACKAGE).parts[:-1]
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            other = tuple(node.module.split(".")[1:])
            while other and not (PACKAGE / Path(*other)).is_dir():
                other = other[:-1]
            if len(own) == len(other) == 2 and own[0] == other[0] and own != other:
                uses.setdefault((own[1], other[1]), []).append(f"{named(path)}:{node.lineno}")
    assert {pair: lines for pair, lines in uses.items() if pair[::-1] in uses} == {}


def test_no_two_folders_import_each_other() -> None:
    """Neither directly nor through a third; what a package re-exports does not count."""
    uses: dict[str, set[str]] = {}
    for path, tree in trees():
        own = path.relative_to(PACKAGE).parent.as_posix()
        if path.name == "__init__.py" or own == ".":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                other = Path(*node.module.split(".")[1:])
                while other.parts and not (PACKAGE / other).is_dir():
                    other = other.parent
                if node.module.startswith("pennon.") and other.parts and other.as_posix() != own:
                    uses.setdefault(own, set()).add(other.as_posix())
    reached = {folder: everything_below(folder, uses) for folder in uses}
    assert {folder for folder, others in reached.items() if folder in others} == set()


def test_no_two_modules_import_each_other() -> None:
    """Neither directly nor through others, nor late, nor for types alone."""
    uses = {module_of(path): imported_modules(tree) for path, tree in trees()}
    packages = {module_of(path) for path in PYTHON if path.name == "__init__.py"}
    uses = {
        module: {other for other in others if other in uses} - packages
        for module, others in uses.items()
        if module not in packages
    }
    assert {name for name in uses if name in everything_below(name, uses)} == set()


def module_of(path: Path) -> str:
    return ".".join(("pennon", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


def imported_modules(tree: ast.AST) -> set[str]:
    """What a module imports anywhere: for types alone, and in functions, too."""
    modules: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        waiting += ast.iter_child_nodes(node)
    return modules


def everything_below(folder: str, uses: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [*uses.get(folder, ())]
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting += uses.get(current, ())
    return reached


def test_every_subject_has_its_level() -> None:
    subjects = {subject_of(path) for path in PYTHON} - {"__init__"}
    assert subjects - set(LEVEL_OF) == set()


def test_files_are_chapters_of_at_most_700_lines() -> None:
    long = [
        f"{named(path)}: {count}"
        for path in [*PYTHON, *TESTS, *JAVA]
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 700
    ]
    assert long == []


def test_tables_are_told_apart_in_one_place() -> None:
    """How a table is stored is asked by nobody but those who open it: see ``StoredTable``."""
    may_ask = PACKAGE / "catalog" / "layouts"
    classes = {"PlainSnapshot", "DraftSnapshot", *(cls.__name__ for cls in all_stored_tables())}
    offences = []
    for path, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in (
                "isinstance",
                "type",
            ):
                continue
            asked = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} & classes
            if asked and may_ask not in path.parents:
                offences.append(f"{named(path)}:{node.lineno}: {asked}")
    assert offences == []


def test_layouts_are_asked_for_what_differs_and_not_for_their_names() -> None:
    """A fourth layout answers the properties of ``TableLayout``; it would be missed by a name."""
    may_compare = (PACKAGE / "catalog" / "layouts", PACKAGE / "manifest" / "table_layout.py")
    offences = [
        f"{named(path)}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in trees()
        if not any(place in (path, *path.parents) for place in may_compare)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.MatchValue)
        and any(
            isinstance(part, ast.Attribute) and ast.unparse(part.value) == "TableLayout"
            for part in ast.walk(node)
        )
    ]
    assert offences == []


def test_transforms_are_told_apart_in_their_own_package() -> None:
    """Others ask for what differs: see ``Transform``; ``transforms.registry`` makes one by name."""
    folder = PACKAGE / "transforms"
    classes = set(all_transforms())
    modules = {cls.__module__ for cls in classes} - {Transform.__module__}
    assert len(modules) == 6
    private = modules | {
        f"{module_of(path)}.{cls.__name__}" for path in folder.glob("*.py") for cls in classes
    }
    private |= {f"pennon.transforms.{cls.__name__}" for cls in classes}
    types = {cls.type for cls in classes if hasattr(cls, "type")}
    offences = []
    for path, tree in trees():
        if folder in path.parents:
            continue
        offences += [f"{named(path)}: {name}" for name in imported_modules(tree) & private]
        offences += [
            f"{named(path)}:{node.lineno}: {ast.unparse(node)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Attribute)
            and node.left.attr == "type"
            and any(
                isinstance(side, ast.Constant) and side.value in types for side in node.comparators
            )
        ]
    assert offences == []


# What asks Lance for rows, whatever it is called on; and what does on a dataset or a fragment.
SCANS = {"scanner", "_take_rows", "take_blobs", "FFILanceTableProvider", "LanceScanner"}
SCANS_OF_DATASETS = {"to_table", "to_batches", "take", "head", "sample", "to_reader"}


def test_rows_of_a_leaf_are_read_in_one_place() -> None:
    """``LeafSource`` has the only scans of leaves; the manifest's rows are read in its folder."""
    may_scan = [PACKAGE / "leaf" / "read" / "source.py", PACKAGE / "manifest"]
    # Rows of manifests that are damaged, or are shown as they are.
    may_scan += [PACKAGE / "maintenance" / name for name in ("repair.py", "checks/findings.py")]
    may_scan.append(PACKAGE / "demo")
    sources = [(path, tree) for path, tree in trees() if not {path, *path.parents} & {*may_scan}]
    datasets = {name for _, tree in sources for name in names_of_datasets(tree)}
    assert "dataset" in datasets
    offences = [
        f"{named(path)}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in sources
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and (
            node.attr in SCANS
            or (node.attr in SCANS_OF_DATASETS and last_name(node.value) in datasets)
        )
    ]
    offences += [
        f"{named(path)}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in sources
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "count_rows"
        and (node.args or node.keywords)
    ]
    assert offences == []


def names_of_datasets(tree: ast.AST) -> Iterator[str]:
    """Give what is declared to be a dataset or a fragment of Lance, or to return one."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=declared) if declared is not None:
                pass
            case ast.AnnAssign(target=target, annotation=declared):
                name = last_name(target)
            case ast.FunctionDef(name=name, returns=declared) if declared is not None:
                pass
            case _:
                continue
        if re.fullmatch(r"(lance\.)?Lance(Dataset|Fragment)( \| None)?", ast.unparse(declared)):
            yield name


def last_name(node: ast.AST) -> str:
    """Give the last name of an expression: of ``a.dataset``, ``dataset``, ``dataset()`` one."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def all_transforms(root: type[Transform] = Transform) -> Iterator[type[Transform]]:
    for child in root.__subclasses__():
        yield child
        yield from all_transforms(child)


def all_stored_tables(root: type[StoredTable] = StoredTable) -> Iterator[type[StoredTable]]:
    yield root
    for child in root.__subclasses__():
        yield from all_stored_tables(child)


def test_every_layout_is_a_whole_table() -> None:
    assert set(STORED_TABLES) == set(TableLayout)
    unfinished = {cls.__name__: cls.__abstractmethods__ for cls in STORED_TABLES.values()}
    assert {name: methods for name, methods in unfinished.items() if methods} == {}


def test_functions_have_at_most_60_lines() -> None:
    long = [
        f"{named(path)}:{node.lineno}: {node.name} has {length}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := code_lines(node)) > 60
    ]
    assert long == []


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its docstring, which may be as long as it needs."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def test_modules_are_named_after_what_they_hold() -> None:
    names = [path for path in PYTHON if FORBIDDEN_NAMES.search(path.stem)]
    names += [path for path in JAVA if re.search(r"(Utils?|Helpers?|Manager|Factory)$", path.stem)]
    allowed = re.compile(r"(Reader|Writer|Batch)Factory$")  # Spark's own names for its interfaces
    assert [named(path) for path in names if not allowed.search(path.stem)] == []


def test_functions_are_named_after_what_they_do() -> None:
    offences = [
        f"{named(path)}:{node.lineno}: {node.name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and path.name != "sqlalchemy_dialect.py"  # whose methods SQLAlchemy names
        and (node.name.lstrip("_").startswith("get_") or node.name.endswith("Factory"))
    ]
    assert offences == []


@pytest.mark.slow
def test_variables_are_named_after_what_they_hold() -> None:
    """`for each in fields` says less than `for field in fields`, two lines further on nothing."""
    offences = [
        f"{named(path)}:{node.lineno}"
        for path in [*PYTHON, *TESTS, *BENCHMARKS]
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.arg) and node.arg == "each")
        or (isinstance(node, ast.Name) and node.id == "each" and isinstance(node.ctx, ast.Store))
    ]
    offences += [
        f"{named(path)}:{number}"
        for path in JAVA
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\beach\b", line) and not line.lstrip().startswith(("*", "//", "/*"))
    ]
    assert offences == []


def test_packages_only_re_export() -> None:
    """``__init__`` holds a docstring, imports, ``__all__``; the top one may import lazily."""
    offences = []
    for path in PYTHON:
        if path.name != "__init__.py":
            continue
        for node in parsed(path).body:
            plain = isinstance(node, ast.Import | ast.ImportFrom | ast.Expr | ast.If | ast.Assign)
            plain |= isinstance(node, ast.AnnAssign)
            lazy = path.parent == PACKAGE and getattr(node, "name", "") in (
                "__getattr__",
                "__dir__",
            )
            if not plain and not lazy:
                offences.append(f"{named(path)}:{node.lineno}")
    assert offences == []


def test_public_things_have_docstrings() -> None:
    offences = []
    for path, tree in trees():
        if ast.get_docstring(tree) is None:
            offences.append(f"{named(path)}: module")
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if ast.get_docstring(node) is None:
                offences.append(f"{named(path)}:{node.lineno}: {node.name}")
    assert offences == []


def test_errors_are_pennon_errors_and_broad_handlers_stay_at_the_worker() -> None:
    offences = []
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and subject_of(path) != "worker":
                caught = ast.unparse(node.type) if node.type is not None else "everything"
                if caught in ("Exception", "BaseException", "everything"):
                    offences.append(f"{named(path)}:{node.lineno}: except {caught}")
            if isinstance(node, ast.Raise) and node.exc is not None:
                raised = ast.unparse(node.exc).split("(")[0]
                if raised in ("Exception", "ValueError", "RuntimeError", "TypeError"):
                    offences.append(f"{named(path)}:{node.lineno}: raise {raised}")
    assert offences == []


def test_only_the_manifest_folder_names_the_manifest_table() -> None:
    """Elsewhere the word may stand in a docstring or a message, never as a path or a table."""
    offences = [
        f"{named(path)}:{node.lineno}"
        for path, tree in trees()
        if subject_of(path) not in ("manifest", "errors", "demo")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in ("__manifest", "/__manifest")
    ]
    assert offences == []


# Small modules that one other imports, and that stand alone all the same, each with its reason.
ALONE = {
    "pennon.catalog.upstream.namespace_alias",  # runs at `import pennon`, which imports nothing
    "pennon.metadata_tables.known_tables",  # the list of all metadata tables
    "pennon.worker.handshake",  # imported behind Arrow
    "pennon.worker.wire.protocol",  # written by `make wire`
}


def code_of(tree: ast.Module, source: str) -> int:
    """Count the lines of a module that are no docstring, import, comment or blank."""
    left_out = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = [line.strip() for line in source.splitlines()]
    return sum(
        bool(line) and not line.startswith("#") and number not in left_out
        for number, line in enumerate(lines, 1)
    )


def test_small_modules_belong_to_the_one_that_imports_them() -> None:
    """A room of its own is for an interface, or for what is imported late for a reason."""
    importers: dict[str, set[str]] = {}
    for path, tree in trees():
        for module in imported_modules(tree):
            importers.setdefault(module, set()).add(module_of(path))
    small = {
        module_of(path)
        for path, tree in trees()
        if path.name not in ("__init__.py", "__main__.py")
        and len(importers.get(module_of(path), ())) == 1
        and code_of(tree, path.read_text(encoding="utf-8")) < 60
    }
    assert small == ALONE
