"""The resolved key groups: the scans of each, and the operators that it serves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.grouping.resolve.verdict import Verdict
    from pennon.spec.functions.partition_layout import LayoutFunction


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """Scans that have one key in common, and the operators that it serves.

    Args:
        scans: Positions of the scans.
        joins: Positions of the served joins.
        groupings: Positions of the served aggregates and windows.
        computed: Positions of the served joins where Spark computes the key of one side.
        carriers: Positions of the unions and expansions that bring the key to an operator.
    """

    scans: tuple[int, ...]
    joins: tuple[int, ...]
    groupings: tuple[int, ...]
    computed: tuple[int, ...]
    carriers: tuple[int, ...] = ()

    @property
    def operators(self) -> frozenset[int]:
        """Positions of all operators that the key serves."""
        return frozenset({*self.joins, *self.groupings, *self.carriers})


@dataclass(frozen=True, slots=True)
class ReportedGroup:
    """A group that needs no derived key, and the functions of the one that it could have.

    Args:
        group: The group, of one scan.
        functions: Those of the scan's key.
        computed: For each join where Spark computes the key of a side, those there.
    """

    group: KeyGroup
    functions: tuple[LayoutFunction, ...]
    computed: Mapping[int, tuple[LayoutFunction, ...]]


@dataclass(frozen=True, slots=True)
class DerivedKeys:
    """The answer to the rule.

    Args:
        scans: The functions behind the key of each scan that gets one.
        served: The joins, groupings, windows, unions and expansions that use a key.
        computed: For each served join with a side that has no partitioning, the functions from
            which Spark computes the key there; their sources are attributes.
        verdicts: What was found at each join, aggregate and window.
        groups: Which of the scans have their key in common.
        reported: Groups of one scan that Spark serves by what the scan reports.
        moved: Scans that get no key because they are shuffled onto others.
    """

    scans: Mapping[int, tuple[LayoutFunction, ...]]
    served: frozenset[int]
    computed: Mapping[int, tuple[LayoutFunction, ...]]
    verdicts: Mapping[int, Verdict] = field(default_factory=dict, compare=False)
    groups: tuple[KeyGroup, ...] = ()
    reported: tuple[ReportedGroup, ...] = field(default=(), compare=False)
    moved: frozenset[int] = frozenset()

    def using(self, reported: ReportedGroup) -> DerivedKeys:
        """Derive a key for a group that Spark serves, too."""
        group = reported.group
        return replace(
            self,
            scans={**self.scans, group.scans[0]: reported.functions},
            served=self.served | group.operators,
            computed={**self.computed, **reported.computed},
            groups=(*self.groups, group),
            reported=tuple(other for other in self.reported if other is not reported),
        )

    def without(self, group: KeyGroup, reason: str, remedy: str) -> DerivedKeys:
        """Take a group back, its operators judged by a reason and what would remedy it."""
        operators = group.operators
        gone = {*group.scans, *group.computed}
        return replace(
            self,
            scans={scan: kept for scan, kept in self.scans.items() if scan not in gone},
            served=self.served - operators,
            computed={join: kept for join, kept in self.computed.items() if join not in gone},
            verdicts={
                position: replace(verdict, reason=reason, remedy=remedy)
                if position in operators
                else verdict
                for position, verdict in self.verdicts.items()
            },
            groups=tuple(other for other in self.groups if other != group),
        )

    def divided(self, group: KeyGroup, note: str) -> DerivedKeys:
        """Say at the operators of a group that some of its keys are read by several tasks."""
        operators = group.operators
        return replace(
            self,
            verdicts={
                position: replace(verdict, common=f"{verdict.common}; {note}")
                if position in operators
                else verdict
                for position, verdict in self.verdicts.items()
            },
        )
