"""Plans of the scans of this process: kept for a while, made again when they are gone.

A query asks about one scan several times (the plan, runtime filters, derived keys). A plan of
100,000 partitions has 12 MB, so what is kept is bounded by bytes as well.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pennon.catalog.loaded_table import reopen
from pennon.errors import MalformedMessage, PlanNotRepeated
from pennon.planning import plan_scan
from pennon.worker.wire.tokens import TableToken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.manifest import Snapshot
    from pennon.planning import ScanPlan

_KEPT = 64
_KEPT_BYTES = 256 << 20


@dataclass(frozen=True)
class _Kept:
    plan: ScanPlan

    @cached_property
    def fingerprint(self) -> int:
        """Which partitions the plan chose, and in which order."""
        names = self.plan.table.select(["object_id"]).combine_chunks()
        return sum(map(zlib.crc32, (batch.serialize() for batch in names.to_batches())))


_plans: OrderedDict[str, _Kept] = OrderedDict()
_lock = threading.Lock()


def plan_of(catalog: Catalog, table: str, predicates: Sequence[str]) -> tuple[str, ScanPlan]:
    """Plan a scan.

    Args:
        catalog: Brings the storage options.
        table: The token of ``load_table``.
        predicates: Spark SQL texts.

    Returns:
        The token of the plan, and the plan.
    """
    asked = _asked(table, predicates)
    kept = _kept(catalog, asked)
    return json.dumps({"asked": asked, "leaves": kept.fingerprint}), kept.plan


def planned(catalog: Catalog, table: str, predicates: Sequence[str]) -> ScanPlan:
    """Plan a scan that nobody asks about again: ``plan_of`` without the token."""
    return _kept(catalog, _asked(table, predicates)).plan


def find_plan(catalog: Catalog, token: str) -> ScanPlan:
    """Find a plan by its token, or make it again.

    Raises:
        PlanNotRepeated: The same question has another answer now: derived keys and splits name
            partitions by their places in the plan.
    """
    try:
        stored = json.loads(token)
        asked, fingerprint = str(stored["asked"]), int(stored["leaves"])
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise MalformedMessage(why="the text plan is not one of the worker's") from error
    kept = _kept(catalog, asked)
    if kept.fingerprint != fingerprint:
        snapshot = kept.plan.snapshot
        raise PlanNotRepeated(location=snapshot.location, version=snapshot.version)
    return kept.plan


def _asked(table: str, predicates: Sequence[str]) -> str:
    return json.dumps({"table": table, "predicates": list(predicates)})


def _kept(catalog: Catalog, asked: str) -> _Kept:
    key = f"{catalog.root}\n{asked}"
    with _lock:
        known = _plans.get(key)
        if known is not None:
            _plans.move_to_end(key)
            return known
    try:
        stored = json.loads(asked)
        table, predicates = TableToken.from_json(stored["table"]), list(stored["predicates"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise MalformedMessage(why="the text plan is not one of the worker's") from error
    made = _Kept(plan_scan(_reopened(catalog, table), predicates))
    with _lock:
        _plans[key] = made
        num_bytes = sum(each.plan.table.nbytes for each in _plans.values())
        while len(_plans) > _KEPT or (num_bytes > _KEPT_BYTES and len(_plans) > 1):
            _, oldest = _plans.popitem(last=False)
            num_bytes -= oldest.plan.table.nbytes
    return made


def snapshot_of(catalog: Catalog, table: str) -> Snapshot:
    """Open the snapshot that a table's token pins.

    Args:
        catalog: Brings the storage options.
        table: The token of ``load_table``.
    """
    return _reopened(catalog, TableToken.from_json(table))


def _reopened(catalog: Catalog, table: TableToken) -> Snapshot:
    return reopen(table.location, table.version, catalog.storage, is_plain=table.is_plain)
