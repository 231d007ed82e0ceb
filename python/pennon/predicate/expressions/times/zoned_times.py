"""Timestamps with a zone as the clocks of the session show them, and back.

NULL rules: NULL stays NULL.

In UTC both are the same number. Elsewhere functions of ``execution/batches/zone_functions.py``
compute with the offsets that the session's Java has of its zone; DataFusion's own may be of another
year.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.predicate.semantics import Declined
from pennon.predicate.typed import NTZ, ZONED, Typed, call, cast

if TYPE_CHECKING:
    from sqlglot import exp

    from pennon.predicate.semantics import Semantics

CLOCK: Final = "zone_clock"
MOMENT: Final = "zone_moment"
MOMENT_NEAR: Final = "zone_moment_near"
MOMENT_OF_DAY: Final = "zone_moment_of_day"
MOMENT_OF_DAY_NEAR: Final = "zone_moment_of_day_near"
_LONG: Final = pa.int64()


def uses_zone(sql: str) -> bool:
    """Whether a query calls one of the functions."""
    return f"{CLOCK}(" in sql or MOMENT in sql


def knows_zone(semantics: Semantics) -> bool:
    """Whether timestamps with a zone have a local time here."""
    return semantics.is_utc or bool(semantics.zone_offsets)


def clock(value: Typed, semantics: Semantics) -> Typed:
    """Take a timestamp with a zone as one without: what the session's clocks show.

    Raises:
        Declined: The session's zone is not known.
    """
    _check_known(semantics)
    micros = cast(value.tree, _LONG)
    return Typed(cast(micros if semantics.is_utc else call(CLOCK, micros), NTZ), NTZ)


def moment(value: Typed, semantics: Semantics, *, near: Typed | None = None) -> Typed:
    """Give the moment at which the session's clocks show a time; of a date, at which it begins.

    Args:
        value: A date, or a timestamp without a zone.
        semantics: The session's.
        near: A timestamp with a zone, whose offset is preferred where clocks show the time twice.

    Raises:
        Declined: The session's zone is not known.
    """
    _check_known(semantics)
    micros = cast(cast(value.tree, NTZ) if pa.types.is_date(value.type) else value.tree, _LONG)
    return Typed(cast(_moment(micros, value, semantics, near), ZONED), ZONED)


def _moment(micros: exp.Expr, value: Typed, semantics: Semantics, near: Typed | None) -> exp.Expr:
    if semantics.is_utc:
        return micros
    is_day = pa.types.is_date(value.type)
    if near is None:
        return call(MOMENT_OF_DAY if is_day else MOMENT, micros)
    function = MOMENT_OF_DAY_NEAR if is_day else MOMENT_NEAR
    return call(function, micros, cast(near.tree.copy(), _LONG))


def _check_known(semantics: Semantics) -> None:
    if not knows_zone(semantics):
        raise Declined(why="a timestamp in a zone that is not UTC")
