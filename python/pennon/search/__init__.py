"""Search of a table by vectors and texts, over all partitions at once, and its indexes."""

from pennon.search.index_upkeep import (
    create_index,
    drop_index,
    refresh_indexes,
    turn_to_build,
)
from pennon.search.indexes import define_index
from pennon.search.nearest import (
    FirstRows,
    first_rows,
    merge,
    nearest_rows,
    search_leaves,
    take,
)
from pennon.search.search_functions import (
    METRICS_OF_RANKINGS,
    NearestJoin,
    check_zone,
    search_table,
)
from pennon.search.search_plan import (
    HybridPlan,
    SearchLeaf,
    SearchOptions,
    SearchPlan,
    TextPlan,
    plan_hybrid,
    plan_search,
    plan_text,
    search_details,
)
from pennon.search.text import best_rows

__all__ = [
    "METRICS_OF_RANKINGS",
    "FirstRows",
    "HybridPlan",
    "NearestJoin",
    "SearchLeaf",
    "SearchOptions",
    "SearchPlan",
    "TextPlan",
    "best_rows",
    "check_zone",
    "create_index",
    "define_index",
    "drop_index",
    "first_rows",
    "merge",
    "nearest_rows",
    "plan_hybrid",
    "plan_search",
    "plan_text",
    "refresh_indexes",
    "search_details",
    "search_leaves",
    "search_table",
    "take",
    "turn_to_build",
]
