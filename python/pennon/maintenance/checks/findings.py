"""What a check finds: violations, warnings and notes, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pennon.maintenance.calls.procedure_declaration import Column

__all__ = ["CheckReport", "Finding", "Severity"]


class Severity(StrEnum):
    """How much a finding matters."""

    VIOLATION = "violation"
    """A rule of the specification is broken."""
    WARNING = "warning"
    """Legal to read, but not what a writer should leave."""
    NOTE = "note"
    """Nothing wrong: an object of another writer, or what could not be checked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found.

    Args:
        severity: Violation, warning or note.
        section: The section of the specification, by its title.
        where: The metadata key, manifest row or leaf.
        problem: What is there and what should be.

    Example:
        >>> print(Finding(Severity.NOTE, "Schema", "leaf a", "it has one more column"))
        note: leaf a: it has one more column [Schema]
    """

    severity: Severity
    section: str
    where: Annotated[str, Column("object")]
    problem: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.problem} [{self.section}]"

    def to_object(self) -> dict[str, str]:
        """Give the JSON object."""
        return {
            "severity": str(self.severity),
            "section": self.section,
            "where": self.where,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of checking one namespace.

    Args:
        location: The namespace.
        version: The checked version of its manifest; None where it could not be opened.
        leaves: Leaves that were checked.
        rows: Rows whose partition values were computed again.
        findings: What was found, in the order of the check.
    """

    location: str
    version: int | None
    leaves: int
    rows: int
    findings: Sequence[Finding]

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that break a rule."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.VIOLATION)

    @property
    def is_valid(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    def to_object(self) -> dict[str, object]:
        """Give the JSON object."""
        return {
            "location": self.location,
            "version": self.version,
            "valid": self.is_valid,
            "leaves": self.leaves,
            "rows": self.rows,
            "findings": [finding.to_object() for finding in self.findings],
        }


def violation(section: str, where: str, problem: str) -> Finding:
    """Make a violation."""
    return Finding(Severity.VIOLATION, section, where, problem)


def warning(section: str, where: str, problem: str) -> Finding:
    """Make a warning."""
    return Finding(Severity.WARNING, section, where, problem)


def note(section: str, where: str, problem: str) -> Finding:
    """Make a note."""
    return Finding(Severity.NOTE, section, where, problem)
