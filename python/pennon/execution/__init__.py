"""A fragment over the leaves of one key group, run in this process, as a stream of batches."""

from pennon.execution.fragment import Fragment, LeafRead, Relation
from pennon.execution.run import BatchStream, run

__all__ = ["BatchStream", "Fragment", "LeafRead", "Relation", "run"]
