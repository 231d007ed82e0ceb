"""A fragment over the leaves of one key group, run in this process, as a stream of batches."""

from pennon.execution.batches import BatchStream
from pennon.execution.fragment import (
    KEPT,
    Fragment,
    LeafPruning,
    LeafRead,
    Query,
    Relation,
    ReplicatedPart,
    RowFilter,
)
from pennon.execution.run import run, run_ahead

__all__ = [
    "KEPT",
    "BatchStream",
    "Fragment",
    "LeafPruning",
    "LeafRead",
    "Query",
    "Relation",
    "ReplicatedPart",
    "RowFilter",
    "run",
    "run_ahead",
]
