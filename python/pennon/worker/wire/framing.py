"""Frames of the socket between the JVM and the worker.

A frame is one byte of kind, four bytes of big-endian length, and the payload. An Arrow IPC stream
travels as ``A`` frames that are cut anywhere, closed by one ``E`` frame: empty, or a message of
what the rows took. The buffers of a record batch leave from where they lie in one system call, with
a copy by the system alone; serialised first, twenty columns took a third longer to send.
"""

from __future__ import annotations

import errno
import json
import logging
import select
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from pennon.errors import (
    ArrowFailure,
    FileGone,
    InternalError,
    MalformedMessage,
    PennonError,
    ReadFailure,
    StorageDenied,
    StorageFull,
)

# The message behind the rows of a task: its metrics.


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """What the rows of a task took, for Spark's page of the query.

    Args:
        cpu_millis: Its share of the processor time of the worker.
        compute_millis: How long DataFusion's operators took, all threads added up, waits for a
            processor among it; the other processor time goes into reading leaves and sending rows.
        peak_bytes: The most memory that the worker had while it worked.
        rows_scanned: Rows of the leaves that were looked at, before any filter.
        bytes_scanned: Bytes that were read of the leaves.
        spilled_bytes: Bytes that it wrote to temporary files for want of memory.
    """

    cpu_millis: int
    compute_millis: int
    peak_bytes: int
    rows_scanned: int
    bytes_scanned: int
    spilled_bytes: int


_LOG = logging.getLogger(__name__)
# Converts exceptions into error messages for the JVM; tracebacks go to the log only.
#
# No value of a storage option leaves the process: every one that a request brought is blotted out
# of messages and log lines alike.

_SHORTEST_SECRET = 5
_BLOT = "<hidden>"
_LONGEST_REASON = 400


class StorageOptionValues:
    """The values of storage options that this process has met."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def remember(self, options: Mapping[str, str]) -> None:
        """Keep the values of these options out of messages and log lines from now on."""
        secrets = {value for value in options.values() if len(value) >= _SHORTEST_SECRET}
        secrets -= {"false"}
        if not secrets <= self._values:
            with self._lock:
                self._values |= secrets

    def blotted(self, text: str) -> str:
        """Blot the values out of a text.

        Example:
            >>> values = StorageOptionValues()
            >>> values.remember({"aws_secret_access_key": "hush-hush"})
            >>> values.blotted("signature of hush-hush refused")
            'signature of <hidden> refused'
        """
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, _BLOT)
        return text


STORAGE_OPTION_VALUES = StorageOptionValues()


class BlottingFormatter(logging.Formatter):
    """A log format without the values of storage options, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, then blot."""
        return STORAGE_OPTION_VALUES.blotted(super().format(record))


def describe(error: BaseException) -> dict[str, object]:
    """Turn an exception into the JSON of an ``X`` frame.

    Args:
        error: What a request raised; anything but a ``PennonError`` is logged with its traceback.

    Example:
        >>> describe(FileGone(place="x"))["condition"]
        'FILE_GONE'
    """
    described = error if isinstance(error, PennonError) else _translated(error)
    if described is not error or isinstance(described, InternalError):
        _LOG.error("a request failed: %s", described, exc_info=error)
    else:
        _LOG.debug("a request was refused: %s", described, exc_info=error)
    blotted = STORAGE_OPTION_VALUES.blotted
    return {
        "condition": described.condition,
        "message": blotted(str(described)),
        "parameters": {name: blotted(value) for name, value in described.parameters.items()},
        "sqlState": described.sql_state,
    }


def _translated(error: BaseException) -> PennonError:
    text = str(error)
    lowered = text.lower()
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT) or "no space left" in lowered:
        return StorageFull(verb="write to", location=_place(text))
    if number in (errno.EACCES, errno.EPERM) or any(
        words in lowered for words in ("permission denied", "access denied", "forbidden")
    ):
        return StorageDenied(place=_place(text))
    if isinstance(error, FileNotFoundError) or (
        isinstance(error, OSError | ValueError)
        and any(words in lowered for words in ("not found", "no such file"))
    ):
        return FileGone(place=_place(text))
    if isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError | pa.ArrowTypeError):
        return ArrowFailure(why=_reason(text))
    if isinstance(error, OSError):
        return ReadFailure(why=_reason(text))
    return InternalError(what=f"{type(error).__name__}: {_reason(text)}")


def _reason(text: str) -> str:
    """Take the first line, without the place in upstream's source and without the full stop."""
    line = text.strip().splitlines()[0] if text.strip() else "no message"
    return line.split(", /", 1)[0][:_LONGEST_REASON].rstrip(". ")


def _place(text: str) -> str:
    """Find the path or URL that a message names."""
    for word in text.replace("`", " ").replace("'", " ").replace('"', " ").split():
        stripped = word.strip(",;()[]:")
        if ("://" in stripped or stripped.startswith("/")) and ".rs" not in stripped:
            return stripped
    return _reason(text)


_HEADER = struct.Struct("!cI")
_LARGEST_JSON_BYTES = 1 << 30
_LARGEST_CHUNK_BYTES = 1 << 28
_SOCKET_BUFFER_BYTES = 4 << 20
# IOV_MAX of Linux: what one system call sends of.
_MOST_PIECES_AT_ONCE = 1024


class FrameKind(StrEnum):
    """What a frame holds."""

    JSON = "J"
    ARROW = "A"
    END = "E"
    ERROR = "X"


class ConnectionClosed(ConnectionError):
    """The other side closed the connection: its request is cancelled."""


class FrameSocket:
    """One connection, seen as frames.

    Example:
        >>> left, right = (FrameSocket(end) for end in socket.socketpair())
        >>> left.send_json({"op": "list_namespaces"})
        >>> right.receive_json()
        {'op': 'list_namespaces'}
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
        self._poll = self._new_poll()

    def close(self) -> None:
        """Close the connection; what the other side runs for it is cancelled."""
        self._socket.close()

    def _new_poll(self) -> select.poll:
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        return poll

    def is_open(self) -> bool:
        """Ask, from any thread, whether the other side is still there."""
        return not self._new_poll().poll(0)

    def check_open(self) -> None:
        """Ask, without reading, whether the other side is still there.

        Raises:
            ConnectionClosed: It went away.
        """
        if self._poll.poll(0):
            raise ConnectionClosed("the other side closed the connection")

    def send_json(self, message: Mapping[str, object], kind: FrameKind = FrameKind.JSON) -> None:
        """Send one message, as a ``J`` frame or, for a failure, as an ``X`` frame."""
        self.send(kind, json.dumps(message, ensure_ascii=False).encode())

    def send(self, kind: FrameKind, payload: bytes = b"") -> None:
        """Send one frame; header and payload leave in one system call where they fit."""
        self.send_pieces(kind, [memoryview(payload)])

    def send_pieces(self, kind: FrameKind, pieces: Sequence[memoryview]) -> None:
        """Send one frame whose payload lies in pieces, which only the system copies."""
        header = _HEADER.pack(kind.encode(), sum(map(len, pieces)))
        unsent = [memoryview(header), *pieces]
        try:
            while unsent:
                count = self._socket.sendmsg(unsent[:_MOST_PIECES_AT_ONCE])
                unsent = _after(unsent, count)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosed(str(error)) from error

    def receive_header(self) -> tuple[FrameKind, int]:
        """Read the header of the next frame.

        Raises:
            ConnectionClosed: at the end of the connection.
            MalformedMessage: if the bytes are no frame.
        """
        header = bytearray(_HEADER.size)
        self.receive_into(memoryview(header))
        kind, length = _HEADER.unpack(header)
        try:
            return FrameKind(kind.decode("latin-1")), length
        except ValueError as error:
            raise MalformedMessage(why=f"a frame has the unknown kind {kind!r}") from error

    def receive_into(self, target: memoryview) -> None:
        """Fill ``target`` completely.

        Raises:
            ConnectionClosed: if the connection ends before.
        """
        filled = 0
        while filled < len(target):
            try:
                count = self._socket.recv_into(target[filled:], 0, socket.MSG_WAITALL)
            except (ConnectionResetError, OSError) as error:
                raise ConnectionClosed(str(error)) from error
            if count == 0:
                raise ConnectionClosed("the connection ended")
            filled += count

    def receive_json(self) -> dict[str, object]:
        """Read the next frame, which must be a JSON message."""
        kind, length = self.receive_header()
        if kind not in (FrameKind.JSON, FrameKind.ERROR):
            raise MalformedMessage(why=f"a frame of kind {kind} stands where a message is expected")
        if length > _LARGEST_JSON_BYTES:
            raise MalformedMessage(why=f"a message claims to have {length} bytes")
        payload = bytearray(length)
        self.receive_into(memoryview(payload))
        try:
            message = json.loads(payload)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise MalformedMessage(why=f"a message is not JSON: {error}") from error
        if not isinstance(message, dict):
            raise MalformedMessage(why="a message is no JSON object")
        return message


def _after(pieces: Sequence[memoryview], count: int) -> list[memoryview]:
    """Give what is left of pieces behind their first ``count`` bytes."""
    for number, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[number + 1 :]]
        count -= len(piece)
    return []


class _Pieces:
    """A file that keeps what Arrow writes to it where it lies, until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._written: list[memoryview] = []

    def write(self, piece: pa.Buffer | bytes) -> int:
        """Keep a piece: a buffer of a column, or bytes between them."""
        self._written.append(memoryview(piece))
        return len(self._written[-1])

    def take(self) -> list[memoryview]:
        """Give what was written since the last time."""
        written, self._written = self._written, []
        return written

    def writable(self) -> bool:
        """It can be written."""
        return True

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """Nothing is held that has to be closed."""


class ArrowStreamWriter:
    """Sends record batches as one Arrow IPC stream in ``A`` frames.

    Args:
        frames: the connection.
        schema: the schema of every batch; without dictionaries.
    """

    def __init__(self, frames: FrameSocket, schema: pa.Schema) -> None:
        self._frames = frames
        self._pieces = _Pieces()
        self._stream = pa.ipc.new_stream(pa.PythonFile(self._pieces, mode="w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Send one batch, of which only the rows that it shows."""
        self._stream.write_batch(batch)
        self._send_written()

    def close(self, message: Mapping[str, object] | None = None) -> None:
        """Send the end of the stream, and the schema where no batch did.

        Args:
            message: What the end frame holds; None for nothing.
        """
        self._stream.close()
        self._send_written()
        if message is None:
            self._frames.send(FrameKind.END)
        else:
            self._frames.send_json(message, FrameKind.END)

    def _send_written(self) -> None:
        pieces, length = list[memoryview](), 0
        for piece in self._pieces.take():
            for start in range(0, len(piece), _LARGEST_CHUNK_BYTES):
                chunk = piece[start : start + _LARGEST_CHUNK_BYTES]
                if length + len(chunk) > _LARGEST_CHUNK_BYTES:
                    self._frames.send_pieces(FrameKind.ARROW, pieces)
                    pieces, length = [], 0
                pieces.append(chunk)
                length += len(chunk)
        if pieces:
            self._frames.send_pieces(FrameKind.ARROW, pieces)


class ArrowStreamReader:
    """The upward ``A`` frames of one request as a file that ``pa.ipc.open_stream`` reads.

    The consumer must call :meth:`drain` at the end, so that the connection stands at the next
    message whatever was left unread.
    """

    closed = False

    def __init__(self, frames: FrameSocket) -> None:
        self._frames = frames
        self._left_in_frame = 0
        self._is_ended = False

    def open(self) -> pa.RecordBatchReader:
        """Read the schema and give the batches.

        A stream aligns buffers to 8 bytes, and Lance refuses decimals that stand at less than 16;
        Arrow's own notion of a type's alignment is 8 for them.
        """
        options = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
        return pa.ipc.open_stream(pa.PythonFile(self, mode="r"), options=options)

    def read(self, size: int = -1) -> bytes:
        """Read ``size`` bytes, fewer only at the end of the stream."""
        return bytes(self.read_buffer(size))

    def read_buffer(self, size: int = -1) -> pa.Buffer:
        """As :meth:`read`, received straight into Arrow memory."""
        if size < 0:
            raise MalformedMessage(why="an Arrow stream was read without a length")
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer)
        filled = 0
        while filled < size and self._has_bytes():
            count = min(size - filled, self._left_in_frame)
            self._frames.receive_into(view[filled : filled + count])
            self._left_in_frame -= count
            filled += count
        return buffer if filled == size else buffer.slice(0, filled)

    def drain(self) -> None:
        """Read and forget what the other side still sends of this stream."""
        while self._has_bytes():
            self.read_buffer(min(self._left_in_frame, _LARGEST_CHUNK_BYTES))

    def seekable(self) -> bool:
        """A stream only goes forward."""
        return False

    def readable(self) -> bool:
        """It can be read."""
        return True

    def close(self) -> None:
        """The connection outlives the stream."""

    def _has_bytes(self) -> bool:
        while self._left_in_frame == 0 and not self._is_ended:
            kind, length = self._frames.receive_header()
            match kind:
                case FrameKind.ARROW:
                    self._left_in_frame = length
                case FrameKind.END:
                    self._is_ended = True
                case FrameKind.JSON | FrameKind.ERROR:
                    raise MalformedMessage(why=f"a frame of kind {kind} stands in an Arrow stream")
        return not self._is_ended
