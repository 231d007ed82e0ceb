"""Rows through a socket: as they were sent, however the system and the frames cut them."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from pennon.worker.wire import framing
from pennon.worker.wire.framing import ArrowStreamReader, ArrowStreamWriter, FrameSocket

_ROWS = 1000


def _rows(columns: int) -> pa.RecordBatch:
    """Numbers, texts and lists, some of them NULL."""
    numbers = [None if number % 7 == 0 else number for number in range(_ROWS)]
    texts = [None if number is None else f"text {number}" * (number % 5) for number in numbers]
    lists = [None if number is None else [number, None] for number in numbers]
    kinds = [
        pa.array(numbers, pa.int64()),
        pa.array(texts),
        pa.array(lists, pa.list_(pa.int32())),
        pa.array([bool((number or 0) % 2) for number in numbers]),
        pa.nulls(_ROWS),
    ]
    return pa.record_batch({f"c{at}": kinds[at % len(kinds)] for at in range(columns)})


def _through_a_socket(schema: pa.Schema, batches: list[pa.RecordBatch]) -> pa.Table:
    """What arrives; the buffers of the socket are smaller than a batch."""
    ends = socket.socketpair()

    def send(frames: FrameSocket) -> None:
        writer = ArrowStreamWriter(frames, schema)
        for batch in batches:
            writer.write(batch)
        writer.close()

    with ends[0], ends[1], ThreadPoolExecutor(1) as sender:
        source, target = FrameSocket(ends[0]), FrameSocket(ends[1])
        ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
        sending = sender.submit(send, source)
        reader = ArrowStreamReader(target)
        rows = reader.open().read_all()
        reader.drain()
        sending.result()
        source.send_json({"next": True})
        assert target.receive_json() == {"next": True}
    return rows


@pytest.mark.parametrize("columns", [1, 5, 2000])
def test_slices_arrive_as_they_are(columns: int) -> None:
    rows = _rows(columns)
    batches = [rows, rows.slice(3, 77), rows.slice(500, 0), rows.slice(999)]
    arrived = _through_a_socket(rows.schema, batches)
    assert arrived.equals(pa.Table.from_batches(batches))
    arrived.validate(full=True)


@pytest.mark.parametrize("largest", [1, 64, 100, 4096])
def test_frames_are_cut_anywhere(monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    monkeypatch.setattr(framing, "_LARGEST_CHUNK_BYTES", largest)
    rows = _rows(5).slice(1, 200)
    assert _through_a_socket(rows.schema, [rows, rows]).equals(pa.Table.from_batches([rows, rows]))


def test_no_rows_have_a_schema() -> None:
    schema = _rows(5).schema
    assert _through_a_socket(schema, []).equals(schema.empty_table())
