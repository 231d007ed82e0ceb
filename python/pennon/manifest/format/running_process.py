"""The name of a process, by which another one on the same machine sees that it is gone.

Whoever announces a change that others wait for may be killed before the end of it.
"""

from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

__all__ = ["RunningProcess"]

_OF_A_PROCESS: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process, and the machine that numbers it.

    Args:
        machine: Where it runs; empty where that is not known.
        process: Its number and its start, with ``@`` between them; empty where that is not known.
    """

    machine: str = ""
    process: str = ""

    @classmethod
    def of_this_one(cls) -> Self:
        """Name the process that asks.

        Example:
            >>> RunningProcess.of_this_one().is_gone()
            False
        """
        return cls(_machine(), _process(os.getpid()) or "")

    def is_gone(self) -> bool:
        """Tell whether it has ended for certain, which nobody can of one on another machine."""
        if not self.machine or not self.process or self.machine != _machine():
            return False
        return _process(int(self.process.partition("@")[0])) != self.process


def _machine() -> str:
    """Name what numbers processes: the machine as it was started, or a container on it."""
    try:
        boot = (_OF_A_PROCESS / "sys/kernel/random/boot_id").read_text().strip()
        numbering = str((_OF_A_PROCESS / "self/ns/pid").readlink())
    except OSError:  # another system: the time has to tell
        return ""
    text = f"{socket.gethostname()} {boot} {numbering}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _process(number: int) -> str | None:
    """Name a process by its number and its start; None where it is gone."""
    try:
        stated = (_OF_A_PROCESS / str(number) / "stat").read_text()
    except OSError:
        return None
    fields = stated.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else f"{number}@{fields[19]}"
