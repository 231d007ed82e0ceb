"""The requests that stream rows: reads and fragments send them, writes receive them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.catalog.columns.projected_columns import valid_texts, within_lengths
from pennon.catalog.layouts import STORED_TABLES
from pennon.catalog.layouts.stored_tables import missed_by_name
from pennon.execution import Fragment, run
from pennon.execution.memory import ProcessCost, peak_bytes
from pennon.leaf.changes.deleted_rows import collect_deleted
from pennon.maintenance.read_failures import naming_causes
from pennon.worker.messages.messages import Write, WriteDeletes, WriteDeletesReply, WriteReply
from pennon.worker.messages.scan_messages import Read, RunFragment, StreamReply
from pennon.worker.wire.framing import (
    STORAGE_OPTION_VALUES,
    ArrowStreamReader,
    ArrowStreamWriter,
    ConnectionClosed,
    FrameSocket,
    StreamEnd,
)
from pennon.worker.wire.json_fields import decode, encode
from pennon.worker.wire.tokens import (
    FragmentToken,
    ScanToken,
    WriteToken,
    row_keys,
    sent_batch,
    sent_schema,
    splits_of,
)

if TYPE_CHECKING:
    from pennon.execution import BatchStream
    from pennon.execution.batches import StreamWork

_LOG = logging.getLogger(__name__)
_PROCESS: Final = ProcessCost()


def read(request: Mapping[str, object], frames: FrameSocket) -> None:
    """Answer ``read``: stream the rows of one split."""
    message = decode(Read, request)
    scan = ScanToken.from_json(message.scan)
    STORAGE_OPTION_VALUES.remember(scan.relation.storage_options)
    order = scan.relation.order if message.ordered else ()
    keys = None if message.row_keys is None else row_keys(message.row_keys)
    relation = replace(scan.of_task(splits_of(message.split)), order=order, keys=keys)
    _send_task(Fragment((relation,)), frames)


def run_fragment(request: Mapping[str, object], frames: FrameSocket) -> None:
    """Answer ``run_fragment``: compute one task of a fragment and stream its rows."""
    message = decode(RunFragment, request)
    token = FragmentToken.from_json(message.fragment)
    scans = (*token.scans, *(scan for part in token.parts for scan in part.scans))
    for scan in scans:
        STORAGE_OPTION_VALUES.remember(scan.relation.storage_options)
    _send_task(token.fragment(message.split), frames)


def _send_task(fragment: Fragment, frames: FrameSocket) -> None:
    """Send the rows of a task, then its metrics."""
    read = (*fragment.relations, *(one for part in fragment.parts for one in part.relations))
    with _PROCESS.task() as cost, naming_causes(read):
        stream = run(fragment)
        frames.send_json(encode(StreamReply(arrow=True)))
        send_rows(stream, frames, lambda: _end_of(stream.work, _PROCESS.seconds_of(cost)))


def _end_of(work: StreamWork, cpu_seconds: float) -> StreamEnd:
    return StreamEnd(
        cpu_millis=round(cpu_seconds * 1000),
        compute_millis=round(work.compute_nanos / 1_000_000),
        peak_bytes=peak_bytes(),
        rows_scanned=work.rows_scanned,
        bytes_scanned=work.bytes_scanned,
        spilled_bytes=work.spilled_bytes,
    )


def send_rows(
    stream: BatchStream, frames: FrameSocket, end: Callable[[], StreamEnd] | None = None
) -> None:
    """Send rows to a task of Spark, whose reader takes short decimals as numbers.

    Args:
        stream: The rows.
        frames: Where they go.
        end: Gives the metrics of the task once all rows are sent; None where nobody asks for them.

    Raises:
        ConnectionClosed: The other side went away.
    """
    _send(stream, frames, sent_schema(stream.schema), end)


def send_reply(stream: BatchStream, frames: FrameSocket) -> None:
    """Send rows that belong to an answer, and which the JVM takes as Arrow has them.

    Raises:
        ConnectionClosed: The other side went away.
    """
    schema = pa.schema([field.remove_metadata() for field in stream.schema])
    _send(stream, frames, schema, None)


def _send(
    stream: BatchStream,
    frames: FrameSocket,
    schema: pa.Schema,
    end: Callable[[], StreamEnd] | None,
) -> None:
    """Send a stream; stops the scan as soon as the other side closes the connection."""
    batches = stream.batches
    try:
        writer = ArrowStreamWriter(frames, schema)
        for batch in batches:
            frames.check_open()
            writer.write(sent_batch(batch, schema))
        writer.close(None if end is None else encode(end()))
    except ConnectionClosed:
        _LOG.info("a read was cancelled: its scan stops")
        raise
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


def write(request: Mapping[str, object], frames: FrameSocket) -> None:
    """Answer ``write``: the rows that follow become uncommitted fragments.

    A failure is answered at once and closes the connection: nobody has to send the rest of a stream
    of which the first row was refused.
    """
    upward = ArrowStreamReader(frames)
    message = decode(Write, request)
    token = WriteToken.from_json(message.write)
    STORAGE_OPTION_VALUES.remember(token.target.storage_options)
    reply = _staged(token, upward)
    upward.drain()
    frames.send_json(encode(reply))


def write_deletes(request: Mapping[str, object], frames: FrameSocket) -> None:
    """Answer ``write_deletes``: the row ids that follow are brought together leaf by leaf.

    A failure is answered at once, as that of ``write``.
    """
    upward = ArrowStreamReader(frames)
    decode(WriteDeletes, request)
    deleted = collect_deleted(upward.open())
    upward.drain()
    reply = WriteDeletesReply(
        tuple(deletion.to_json() for deletion in deleted),
        sum(len(deletion.addresses) for deletion in deleted),
    )
    frames.send_json(encode(reply))


def _staged(token: WriteToken, upward: ArrowStreamReader) -> WriteReply:
    batches = valid_texts(_cast(upward.open(), token.schema), token.table.name)
    if not token.mode.is_row_level:  # rows that were there keep the texts that they have
        batches = within_lengths(batches, token.schema, token.table.name)
    target = token.target
    with missed_by_name(token.table.name, target.location, target.storage_options):
        staged = STORED_TABLES[token.table.layout].stage(batches, token.schema, target)
    return WriteReply(staged.texts, staged.num_rows, staged.num_bytes)


def _cast(stream: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Take the columns by their place: Spark has resolved the query's names already."""
    for batch in stream:
        if not batch.num_columns:  # arrays alone would not say how many rows there are
            yield batch
        elif batch.num_rows:
            columns = map(with_offsets, batch.columns)
            yield pa.RecordBatch.from_arrays(
                [
                    column if column.type == field.type else column.cast(field.type)
                    for column, field in zip(columns, schema, strict=True)
                ],
                schema=schema,
            )


# Arrow arrays without values and without the one offset that the format requires.
#
# Arrow's Java library writes it from version 19 on; Spark 4.1 has version 18. Arrow's other
# libraries read such a column as an empty one, Lance takes what stands behind it in memory for the
# offset.


def with_offsets(column: pa.Array) -> pa.Array:
    """Give a column whose offsets are all there; the same one where nothing can be missing.

    Args:
        column: Of any type: a map, list or struct may have children without values.

    Spec: "Variable-size Binary Layout" of the Arrow columnar format.
    """
    is_suspect = any(buffer is not None and buffer.size == 0 for buffer in column.buffers())
    # Concatenating writes all offsets anew, where one array alone would be passed on.
    return pa.concat_arrays([column, column.slice(0, 0)]) if is_suspect else column
