"""The lines of EXPLAIN FORMATTED about a fragment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennon.plan import Scan
from pennon.planning import summary
from pennon.predicate.values.long_lists import with_short_lists
from pennon.worker.plans.key_text import function_text, key_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.plan import Plan
    from pennon.planning import ScanPlan
    from pennon.pushdown import Candidate
    from pennon.pushdown.partners import Restriction
    from pennon.pushdown.runtime_pruning import KeyFilter, RuntimePruning
    from pennon.pushdown.tasks import FragmentTasks

__all__ = ["FragmentDetails"]


@dataclass(frozen=True, slots=True)
class FragmentDetails:
    """What people are told of a fragment.

    Args:
        candidate: What is computed.
        plan: The query that it is a part of.
        plans: What each scan reads.
        num_threads: How many threads compute each task.
    """

    candidate: Candidate
    plan: Plan
    plans: Mapping[int, ScanPlan]
    num_threads: int

    def text(
        self,
        tasks: FragmentTasks,
        prunings: Sequence[RuntimePruning],
        filters: Sequence[KeyFilter],
    ) -> str:
        """Tell what is computed, of what, and what is left out while it runs.

        Args:
            tasks: Its tasks.
            prunings: Which leaves they may leave out.
            filters: Which rows they may leave out.
        """
        query, count = self.candidate.query, len(tasks.keys)
        threads = f" of {self.num_threads} threads" if self.num_threads > 1 else ""
        reporting = "" if self.candidate.surroundings is None else ", with their key"
        lines = [
            f"fragment: {self.candidate.mode} in {count} tasks{threads}{reporting}",
            f"query: {query.sql}",
        ]
        for at, scan in enumerate(query.scans):
            lines += self._read(f"r{at}", scan)
            functions, note = tasks.groupings.get(scan, ((), ""))
            grouping = key_text(functions, self.plans[scan], note) if functions else "none"
            lines.append(f"r{at} grouping: {grouping}")
            chosen_by = [
                f"{function_text(pruning.function, self.plans[scan])} in p{pruning.part}"
                for pruning in prunings
                if pruning.scan == scan
            ]
            # Specs have fields in common.
            lines += [
                f"r{at} at run time: partitions with {text}" for text in dict.fromkeys(chosen_by)
            ]
            lines += [
                f"r{at} at run time: rows with {filter_.name} in p{filter_.part}"
                for filter_ in filters
                if filter_.scan == scan
            ]
        if self.candidate.restriction is not None:
            lines.append(f"only groups of {self._restriction(self.candidate.restriction)}")
        for at, part in enumerate(query.parts):
            lines.append(f"p{at} in every worker: {part.sql}")
            for number, scan in enumerate(part.scans):
                lines += self._read(f"p{at}.r{number}", scan)
        return with_short_lists("\n".join(lines))

    def _read(self, relation: str, scan: int) -> Iterator[str]:
        """Tell what a relation reads."""
        node = self.plan[scan]
        yield f"{relation}: {node.table if isinstance(node, Scan) else ''}"
        for line in summary(self.plans[scan]).splitlines():
            yield f"{relation} {line}"

    def _restriction(self, restriction: Restriction) -> str:
        """Tell which groups of an aggregate are computed."""
        roots = [part.root for part in self.candidate.query.parts]
        at = roots.index(restriction.part)
        return f"c{restriction.key} in p{at}.c{restriction.column}"
