"""A fragment over the leaves of one key group, run in this process, as a stream of batches."""

from pennon.execution.batches import BatchStream
from pennon.execution.fragment import (
    NO_PRUNING_KEY,
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
    "NO_PRUNING_KEY",
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
