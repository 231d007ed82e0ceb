"""Every condition that a user can meet: one class, one text in the house's form, a test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.worker import wire_declaration

from pennon.errors import PennonError

ROOT = Path(__file__).parent.parent
TESTS = sorted((ROOT / "tests").rglob("*.py"))
JAVA = sorted((ROOT / "jvm-shim" / "src" / "main" / "java").rglob("*.java"))


def all_errors(root: type[PennonError] = PennonError) -> Iterator[type[PennonError]]:
    for child in root.__subclasses__():
        if child.__module__.startswith("pennon"):
            yield child
        yield from all_errors(child)


def test_every_condition_is_one_class_and_its_text_has_the_house_form() -> None:
    classes = list(all_errors())
    conditions = [one.condition for one in classes if "condition" in vars(one)]
    assert sorted(conditions) == sorted(set(conditions))
    offences = [
        one.condition
        for one in classes
        if not re.search(r"\. .*\.$", one.template, re.DOTALL)
        or not one.template.startswith(("Cannot ", "{what}"))
    ]
    assert offences == []


def test_every_condition_is_raised_in_a_test() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in TESTS)
    untested = [
        one.condition
        for one in all_errors()
        if one.condition not in texts and not re.search(rf"\b{one.__name__}\b", texts)
    ]
    assert untested == []


def test_java_raises_what_the_package_has_a_text_for() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in JAVA)
    declared = wire_declaration.jar_errors()
    raised = set(re.findall(r'(?:WorkerFailure\.|return )of\(\s*(?:LOST|"(\w+)")', texts))
    assert (raised - {""}) | {"WORKER_LOST"} == set(declared)
    for condition, one in declared.items():
        named = set(re.findall(r"{(\w+)}", one.template))
        for call in re.findall(rf'of\(\s*"{condition}"(.*?)\)(?:;|\s+\.)', texts, re.DOTALL):
            assert {name for name in named if f'"{name}"' not in call} == set(), condition
