"""The functions that DataFusion lacks, and that queries of fragments call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.execution.batches.number_texts import register_number_texts
from pennon.execution.batches.zone_functions import register_zone_functions

if TYPE_CHECKING:
    from datafusion import SessionContext


def register_functions(context: SessionContext, zone_offsets: tuple[int, ...]) -> None:
    """Make them known to the queries of a context.

    Args:
        context: DataFusion's.
        zone_offsets: The offsets of the session's zone; none of a query without times of a zone.
    """
    register_number_texts(context)
    register_zone_functions(context, zone_offsets)
