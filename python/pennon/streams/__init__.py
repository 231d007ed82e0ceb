"""Tables read as streams: which rows each batch has, and how a position is kept."""

from pennon.streams.stream_batch import batch_end, planned_batch
from pennon.streams.stream_start import StreamOptions, StreamPosition, batch_start, check_source

__all__ = [
    "StreamOptions",
    "StreamPosition",
    "batch_end",
    "batch_start",
    "check_source",
    "planned_batch",
]
