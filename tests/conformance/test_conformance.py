"""Every sentence of the specification has a test that is marked with it."""

from __future__ import annotations

from tests.conformance.document import known, marked, needing_a_test, readings, statements


def test_every_marker_names_a_sentence_a_section_or_a_reading() -> None:
    names = known()
    assert [(name, test) for name, test in marked() if name not in names] == []


def test_every_sentence_and_reading_has_a_test_of_its_own() -> None:
    tested = {name for name, _ in marked()}
    assert [name for name in needing_a_test() if name not in tested] == []


def test_all_readings_and_appendices_are_listed() -> None:
    assert list(readings()) == [f"reading {number}" for number in range(1, 42)]
    sections = {name.rpartition(" ")[0] for name in statements()}
    assert {f"Appendix {letter}" for letter in "ABCDEF"} <= sections
