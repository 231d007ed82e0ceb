"""What of a query DataFusion computes beside the leaves, exactly as Spark would (design §5)."""

from pennon.pushdown.candidates import Candidate, FragmentMode, candidates
from pennon.pushdown.plan import (
    AggregateCall,
    Filter,
    Group,
    Join,
    Limit,
    Node,
    Opaque,
    Output,
    Project,
    Scan,
    SortKey,
)
from pennon.pushdown.query import FragmentQuery
from pennon.pushdown.semantics import Semantics

__all__ = [
    "AggregateCall",
    "Candidate",
    "Filter",
    "FragmentMode",
    "FragmentQuery",
    "Group",
    "Join",
    "Limit",
    "Node",
    "Opaque",
    "Output",
    "Project",
    "Scan",
    "Semantics",
    "SortKey",
    "candidates",
]
