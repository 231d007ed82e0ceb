"""The functions of times in a session's zone, which DataFusion calls for each batch.

NULL rules: NULL stays NULL.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import udf

from pennon.predicate.expressions.times.zoned_times import (
    CLOCK,
    MOMENT,
    MOMENT_NEAR,
    MOMENT_OF_DAY,
    MOMENT_OF_DAY_NEAR,
)
from pennon.predicate.values.zone_offsets import zone_offsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from datafusion import SessionContext

    from pennon.predicate.values.zone_offsets import Micros

_LONG: Final = pa.int64()


def register_zone_functions(context: SessionContext, numbers: tuple[int, ...]) -> None:
    """Make the functions of a zone known to the queries of a context.

    Args:
        context: DataFusion's.
        numbers: The offsets of the zone, as ``ZoneOffsets`` takes them; none of a query that has
            no time of a zone.
    """
    if not numbers:
        return
    zone = zone_offsets(numbers)
    for name, compute, arity in (
        (CLOCK, zone.clocks, 1),
        (MOMENT, zone.moments, 1),
        (MOMENT_NEAR, zone.moments, 2),
        (MOMENT_OF_DAY, zone.midnights, 1),
        (MOMENT_OF_DAY_NEAR, zone.midnights, 2),
    ):
        computed = partial(_computed, compute)
        context.register_udf(udf(computed, [_LONG] * arity, _LONG, "immutable", name))


def _computed(compute: Callable[..., Micros], *arguments: pa.Array) -> pa.Array:
    """Compute the values of a batch; what stands where one of them is NULL does not matter."""
    is_null = pc.is_null(arguments[0])
    values = [np.asarray(pc.fill_null(argument, 0), np.int64) for argument in arguments]
    return pa.array(compute(*values), _LONG, mask=np.asarray(is_null))
