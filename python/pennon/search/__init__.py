"""Search of a table by vectors, over all partitions at once, and the indexes that serve it."""

from pennon.search.index_upkeep import create_index, drop_index, refresh_indexes
from pennon.search.indexes import define_index
from pennon.search.nearest import merge, nearest_rows, search_leaves, take
from pennon.search.nearest_join import NearestJoin
from pennon.search.search_functions import search_table
from pennon.search.search_plan import (
    SearchLeaf,
    SearchOptions,
    SearchPlan,
    explain_search,
    plan_search,
)

__all__ = [
    "NearestJoin",
    "SearchLeaf",
    "SearchOptions",
    "SearchPlan",
    "create_index",
    "define_index",
    "drop_index",
    "explain_search",
    "merge",
    "nearest_rows",
    "plan_search",
    "refresh_indexes",
    "search_leaves",
    "search_table",
    "take",
]
