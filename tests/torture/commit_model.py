"""What a table must hold after statements of which some were killed on their way."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pennon

__all__ = ["MERGED", "PARTS", "Model", "Told"]

PARTS = 4
MERGED = 100  # ids from here on are inserted and updated by MERGE alone


@dataclass(slots=True)
class Told:
    """What a writer said of one statement."""

    kind: str
    part: int
    low: int
    is_acknowledged: bool = False
    is_refused: bool = False
    version: int = 0
    is_undone: bool = False  # by a rollback

    @property
    def is_without_effect(self) -> bool:
        """Whether nothing of it may be there."""
        return self.is_refused or self.is_undone


@dataclass(slots=True)
class Model:
    """Every statement that was begun."""

    statements: dict[int, Told] = field(default_factory=dict)
    rollbacks: list[tuple[int, int]] = field(default_factory=list)  # to which version, as which
    strange: list[str] = field(default_factory=list)

    @property
    def num_acknowledged(self) -> int:
        """How many statements were told to be done."""
        return sum(
            statement.is_acknowledged or statement.is_undone
            for statement in self.statements.values()
        )

    def read(self, text: str) -> None:
        """Take what a writer wrote to its output."""
        for line in text.splitlines():
            try:
                told = json.loads(line)
            except json.JSONDecodeError:
                continue
            if "begin" in told:
                self.statements[told["begin"]] = Told(told["kind"], told["part"], told["low"])
            elif "refused" in told:
                self.statements[told["end"]].is_refused = True
            else:
                known = self.statements[told["end"]]
                known.is_acknowledged, known.version = True, told["version"]

    def _is_undone(self, version: int) -> bool:
        """Whether a version is not among those that the newest one goes back to."""
        last = None  # the newest version
        for to, made in sorted(self.rollbacks, key=lambda rollback: -rollback[1]):
            if last is not None and made > last:
                continue  # undone itself
            if version >= made:
                break
            last = to
        return last is not None and version > last

    def problems(self, location: str) -> list[str]:
        """Compare the table with what happened, in the order of its versions."""
        for told in self.statements.values():
            if told.is_acknowledged and told.version and self._is_undone(told.version):
                told.is_acknowledged, told.is_undone = False, True
            elif told.is_undone and not self._is_undone(told.version):
                told.is_acknowledged, told.is_undone = True, False
        table = pennon.open(location)
        found = table.scan().to_arrow().to_pylist()
        counted = Counter((row["statement"], row["part"], row["id"]) for row in found)
        wrong = [f"row {row} is there {count} times" for row, count in counted.items() if count > 1]
        held: dict[tuple[int, int], set[int]] = defaultdict(set)
        for statement, part, id_ in counted:
            if id_ < MERGED:
                held[statement, part].add(id_)
        wrong += self._merged([row for row in found if row["id"] >= MERGED])
        wrong += self._updated([row for row in found if row["id"] < MERGED])
        removals = [
            statement for statement in self.statements.values() if not statement.is_without_effect
        ]
        for statement, told in self.statements.items():
            parts = {
                "append": [told.part, (told.part + 1) % PARTS],
                "overwrite": [told.part],
                "seed": list(range(PARTS)),
            }
            rows_of = {
                part: held.pop((statement, part), set()) for part in parts.get(told.kind, ())
            }
            for part, there in rows_of.items():
                if told.is_without_effect and there:
                    wrong.append(f"statement {statement} was not made, and has rows in {part}")
                # What was under way when its writer was killed is there as a whole or not at all.
                if told.is_acknowledged or any(rows_of.values()):
                    wrong += self._lost(statement, told, part, there, removals)
                if told.is_acknowledged and there:
                    wrong += self._kept(statement, told, part, there)
        return wrong + [f"rows of no statement: {row}" for row in held]

    def _after(self, told: Told, kinds: tuple[str, ...], part: int, low: int | None) -> list[Told]:
        """Acknowledged statements of some kinds that came after another acknowledged one."""
        return [
            statement
            for statement in self.statements.values()
            if statement.is_acknowledged
            and statement.kind in kinds
            and statement.part == part
            and low in (None, statement.low)
            and told.is_acknowledged
            and statement.version > told.version
        ]

    def _merged(self, found: list[dict[str, Any]]) -> list[str]:
        """Rows that MERGE made: one for each key, of the last merge, unless its partition went."""
        keys = Counter((row["part"], row["id"] - MERGED) for row in found)
        wrong = [
            f"key {key} was merged into {count} rows" for key, count in keys.items() if count > 1
        ]
        for row in found:
            part, low = row["part"], row["id"] - MERGED
            told = self.statements.get(row["statement"])
            if told is None or told.is_without_effect or (told.part, told.low) != (part, low):
                wrong.append(f"row {row} is of no merge that was made")
                continue
            later = self._after(told, ("merge",), part, low)
            later += self._after(told, ("drop", "overwrite"), part, None)
            wrong += [
                f"row {row} outlived a {statement.kind} of {statement.version}"
                for statement in later
            ]
        for statement, told in self.statements.items():
            gone = told.kind == "merge" and told.is_acknowledged and not keys[told.part, told.low]
            if gone and not any(
                statement.kind in ("drop", "overwrite")
                and statement.part == told.part
                and not statement.is_without_effect
                for statement in self.statements.values()
                if not (statement.is_acknowledged and statement.version < told.version)
            ):
                wrong.append(f"merge {statement} lost its row")
        return wrong

    def _updated(self, found: list[dict[str, Any]]) -> list[str]:
        """Rows have the value of the last update of their place, or of one that may be the last."""
        wrong = []
        for row in found:
            tag, told = row["tag"], self.statements.get(row["statement"])
            setter = None if tag is None else self.statements.get(tag)
            place = (row["part"], row["id"])
            if tag is not None and (
                setter is None or setter.is_without_effect or (setter.part, setter.low) != place
            ):
                wrong.append(f"row {row} has a value that no update gave it")
            before = told if setter is None else setter
            later = [] if before is None else self._after(before, ("update",), *place)
            wrong += [
                f"row {row} lost the update of version {statement.version}" for statement in later
            ]
        return wrong

    def _lost(
        self, statement: int, told: Told, part: int, there: set[int], removals: list[Told]
    ) -> list[str]:
        """Rows that are gone though no statement that may have come later took them out."""
        later = [
            removal
            for removal in removals
            if removal.part == part
            and not (removal.is_acknowledged and removal.version < told.version)
        ]
        all_gone = any(
            change.kind in ("drop", "overwrite") and change is not told for change in later
        )
        may_go = {change.low for change in later if change.kind == "delete"}
        missing = set(range(10)) - there
        if all_gone or missing <= may_go:
            return []
        return [f"statement {statement} lost rows {sorted(missing - may_go)} of part {part}"]

    def _kept(self, statement: int, told: Told, part: int, there: set[int]) -> list[str]:
        """Rows that an acknowledged later statement must have taken out."""
        wrong = []
        for change in self.statements.values():
            if change.part != part or not change.is_acknowledged or change.version <= told.version:
                continue
            gone = {change.low} if change.kind == "delete" else set(range(10))
            if change.kind in ("delete", "drop", "overwrite") and gone & there:
                wrong.append(
                    f"rows {sorted(gone & there)} of statement {statement} (version"
                    f" {told.version}) in part {part} outlived a {change.kind} of {change.version}"
                )
        return wrong
