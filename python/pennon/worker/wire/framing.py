"""Frames of the socket between the JVM and the worker.

A frame is one byte of kind, four bytes of big-endian length, and the payload. An Arrow IPC stream
travels as ``A`` frames that are cut anywhere, closed by one ``E`` frame: empty, or a message of
what the rows took. A record batch is serialised once (one copy, 10 GB/s) and leaves in one system
call; writing Arrow's own stream through a Python file costs a call and a copy per column buffer.
"""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa

from pennon.errors import MalformedMessage

_HEADER = struct.Struct("!cI")
_LARGEST_JSON_BYTES = 1 << 30
_LARGEST_CHUNK_BYTES = 1 << 28
_SOCKET_BUFFER_BYTES = 4 << 20
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


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

    def send(self, kind: FrameKind, payload: bytes | memoryview = b"") -> None:
        """Send one frame; header and payload leave in one system call where they fit."""
        header = _HEADER.pack(kind.encode(), len(payload))
        try:
            sent = self._socket.sendmsg([header, payload])
            if sent < len(header):
                self._socket.sendall(header[sent:])
                sent = len(header)
            if sent < len(header) + len(payload):
                self._socket.sendall(memoryview(payload)[sent - len(header) :])
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


class ArrowStreamWriter:
    """Sends record batches as one Arrow IPC stream in ``A`` frames.

    Args:
        frames: the connection.
        schema: the schema of every batch; without dictionaries.
    """

    def __init__(self, frames: FrameSocket, schema: pa.Schema) -> None:
        self._frames = frames
        self._send(schema.serialize())

    def write(self, batch: pa.RecordBatch) -> None:
        """Send one batch, compacted to the rows that it shows."""
        self._send(batch.serialize())

    def close(self, message: Mapping[str, object] | None = None) -> None:
        """Send the end of the stream.

        Args:
            message: What the end frame holds; None for nothing.
        """
        self._frames.send(FrameKind.ARROW, _END_OF_STREAM)
        if message is None:
            self._frames.send(FrameKind.END)
        else:
            self._frames.send_json(message, FrameKind.END)

    def _send(self, message: pa.Buffer) -> None:
        view = memoryview(message)
        for start in range(0, len(view), _LARGEST_CHUNK_BYTES):
            self._frames.send(FrameKind.ARROW, view[start : start + _LARGEST_CHUNK_BYTES])


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
