"""The requests of a stream that reads a table; positions are opaque to the jar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pennon.worker.messages.messages import TableRequest


@dataclass(frozen=True, slots=True)
class StreamRequest(TableRequest):
    """A request of a stream: ``table`` as it was when the stream began, and the user's options."""

    options: Mapping[str, str]
    time_zone: str


@dataclass(frozen=True, slots=True)
class StartStream(StreamRequest):
    """Where a stream without a checkpoint begins."""

    op: ClassVar[str] = "start_stream"


@dataclass(frozen=True, slots=True)
class FindBatchEnd(StreamRequest):
    """How far the batch behind a position goes.

    ``until`` is where the stream ends, if it does; ``takes_all`` says that the batch is the only
    one, so that it has all there is, however much the options give a batch.
    """

    op: ClassVar[str] = "find_batch_end"
    start: str
    until: str | None
    takes_all: bool


@dataclass(frozen=True, slots=True)
class PositionReply:
    """A position, which Spark keeps in the checkpoint."""

    position: str


@dataclass(frozen=True, slots=True)
class PlanBatch(StreamRequest):
    """The splits of the rows between two positions."""

    op: ClassVar[str] = "plan_batch"
    start: str
    end: str
    plan: str
    num_tasks: int
    max_bytes: int
