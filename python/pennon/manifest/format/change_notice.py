"""What ``pennon.transaction`` says while writers are kept away: why, who does it, and how long.

The text is ``changing to``, the target, a name drawn for this one change, and a JSON object. A
process that is killed leaves it behind, and whoever writes next has to see that nobody will end it:

* where it ran on this machine, by its process, which is gone;
* else by the time, of which it uses the first half only where nothing would refuse it later. Who
  needs longer states a later one while it works.

A table that another one replaces may have lost its name already when the process is killed. So the
notice says where the name is looked up.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, replace
from typing import Final, Self

from pennon.manifest.format.properties import CHANGING
from pennon.manifest.format.running_process import RunningProcess

__all__ = ["ALTERED", "REPLACED", "ChangeNotice", "NamedAt"]

ALTERED: Final = "altered"
"""No mode: a column is added that every row has to have a value in, and no row may come."""
REPLACED: Final = "replaced"
"""No mode: another table is about to get the name, and nothing may be written any more."""

_LASTS_SECONDS: Final = {ALTERED: 60, REPLACED: 600}
_OF_MODES_SECONDS: Final = 600  # and again as long while the process works


@dataclass(frozen=True, slots=True)
class NamedAt:
    """The name of a table in a directory namespace.

    Args:
        root: Path or URL of the directory namespace.
        name: The parts of the name below it.
        location: The ``location`` property that it has there.
    """

    root: str
    name: tuple[str, ...]
    location: str


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """A change during which nobody writes.

    Args:
        target: What the transactions become, or ``ALTERED`` or ``REPLACED``.
        name: Tells it from every other change.
        machine: Where it is made; empty where that is not known.
        process: By whom, on that machine.
        until: When it is over at the latest, in milliseconds UTC; None where nobody can tell.
        named_at: The name that another table is about to get.
    """

    target: str
    name: str
    machine: str = ""
    process: str = ""
    until: int | None = None
    named_at: NamedAt | None = None

    @classmethod
    def of_this_process(cls, target: str, named_at: NamedAt | None = None) -> Self:
        """Announce a change that this process makes."""
        name = secrets.token_hex(8)
        by = RunningProcess.of_this_one()
        return cls(target, name, by.machine, by.process, named_at=named_at).renewed()

    @property
    def lasts_seconds(self) -> float:
        """How long it lasts from the moment at which it was stated."""
        return _LASTS_SECONDS.get(self.target, _OF_MODES_SECONDS)

    def renewed(self) -> Self:
        """Give the same change with all of its time before it."""
        return replace(self, until=int((time.time() + self.lasts_seconds) * 1000))

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read what ``pennon.transaction`` says; None where no change is under way.

        Example:
            >>> notice = ChangeNotice.of_this_process("weak")
            >>> ChangeNotice.read(str(notice)) == notice, notice.is_abandoned()
            (True, False)
            >>> ChangeNotice.read("changing to weak 1f2e").target
            'weak'
            >>> ChangeNotice.read("weak") is None
            True
        """
        if not text.startswith(CHANGING):
            return None
        target, _, rest = text.removeprefix(CHANGING).partition(" ")
        name, _, stated = rest.partition(" ")
        try:
            notice = json.loads(stated or "{}")
            named = notice.get("named_at")
            return cls(
                target,
                name,
                str(notice.get("machine", "")),
                str(notice.get("process", "")),
                notice.get("until"),
                named and NamedAt(named["root"], tuple(named["name"]), named["location"]),
            )
        except (ValueError, KeyError, AttributeError, TypeError):  # of a later version of Pennon
            return cls(target, name)

    def __str__(self) -> str:
        """Write it."""
        stated: dict[str, object] = {
            "machine": self.machine,
            "process": self.process,
            "until": self.until,
        }
        if self.named_at is not None:
            at = self.named_at
            stated["named_at"] = {"root": at.root, "name": at.name, "location": at.location}
        return f"{CHANGING}{self.target} {self.name} {json.dumps(stated)}"

    def is_abandoned(self) -> bool:
        """Whether its process is gone, or its time is over."""
        if RunningProcess(self.machine, self.process).is_gone():
            return True
        return self.until is not None and time.time() * 1000 > self.until

    def is_nearly_over(self) -> bool:
        """Whether half of its time has passed: what others cannot refuse must not begin now."""
        half = self.lasts_seconds / 2
        return self.until is not None and time.time() + half > self.until / 1000
