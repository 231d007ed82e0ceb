"""Search of a table by vectors: the rows nearest to a query, over all partitions at once."""

from pennon.search.nearest import merge, nearest_rows, search_leaves, take
from pennon.search.search_plan import SearchLeaf, SearchOptions, SearchPlan, plan_search

__all__ = [
    "SearchLeaf",
    "SearchOptions",
    "SearchPlan",
    "merge",
    "nearest_rows",
    "plan_search",
    "search_leaves",
    "take",
]
