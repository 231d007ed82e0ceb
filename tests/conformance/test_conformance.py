"""The table of the specification's sentences and their tests is the one of the markers."""

from __future__ import annotations

from tests.conformance.document import DOCUMENT, document, known, marked, readings, statements


def test_every_marker_names_a_sentence_a_section_or_a_reading() -> None:
    names = known()
    assert [(name, test) for name, test in marked() if name not in names] == []


def test_the_document_is_not_stale() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run `make docs`"


def test_all_readings_and_appendices_are_listed() -> None:
    assert list(readings()) == [f"reading {number}" for number in range(1, 42)]
    sections = {name.rpartition(" ")[0] for name in statements()}
    assert {f"Appendix {letter}" for letter in "ABCDEF"} <= sections
