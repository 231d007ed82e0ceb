"""Handlers of the requests of a stream that reads a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.failures_by_name import by_name
from pennon.catalog.tables.loaded_table import reopen_newest
from pennon.streams import (
    StreamOptions,
    StreamPosition,
    batch_end,
    batch_start,
    planned_batch,
)
from pennon.worker.messages import stream_messages as m
from pennon.worker.messages.scan_messages import SplitsReply
from pennon.worker.plans.kept_plans import snapshot_of
from pennon.worker.plans.packed_splits import packed_splits
from pennon.worker.wire.tokens import PlanToken, TableToken

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pennon.manifest import Snapshot

__all__ = ["find_batch_end", "plan_batch", "start_stream"]


def start_stream(request: m.StartStream) -> m.PositionReply:
    """Answer ``start_stream``."""
    with _named(request):
        return m.PositionReply(batch_start(_newest(request), _options(request)).to_json())


def find_batch_end(request: m.FindBatchEnd) -> m.PositionReply:
    """Answer ``find_batch_end``."""
    until = None if request.until is None else StreamPosition.from_json(request.until)
    start = StreamPosition.from_json(request.start)
    with _named(request):
        options = _options(request)
        if request.takes_all:
            options = replace(options, most_versions=None)
        end = batch_end(_newest(request), start, options, until)
    return m.PositionReply(end.to_json())


def plan_batch(request: m.PlanBatch) -> tuple[SplitsReply, pa.Table]:
    """Answer ``plan_batch``."""
    start, end = StreamPosition.from_json(request.start), StreamPosition.from_json(request.end)
    with _named(request):
        leaves, tasks = planned_batch(
            snapshot_of(request.catalog, request.table),
            start,
            end,
            _options(request),
            num_tasks=request.num_tasks,
            max_bytes=request.max_bytes,
            constants=PlanToken.from_json(request.plan).constants,
        )
    return SplitsReply(arrow=True), packed_splits(leaves, tasks)


def _named(request: m.StreamRequest) -> AbstractContextManager[None]:
    return by_name(TableToken.from_json(request.table).name)


def _newest(request: m.StreamRequest) -> Snapshot:
    table = TableToken.from_json(request.table)
    return reopen_newest(request.catalog, table.name, table.location, table.table_id)


def _options(request: m.StreamRequest) -> StreamOptions:
    name = TableToken.from_json(request.table).name
    return StreamOptions.of(request.options, name, request.time_zone)
