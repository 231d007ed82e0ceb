"""Caches the plans of scans with what Spark was told of them, and makes evicted ones again.

A query asks about one scan several times (the plan, runtime filters, derived keys), and the next
one asks the same. What Spark is told takes four times as long as to find the plan, which has 12 MB
for 100,000 partitions.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.caching import Cache, TableKey, storage_identity
from pennon.catalog.table_name import storage_of
from pennon.catalog.tables.loaded_table import reopen
from pennon.errors import PlanNotRepeated, PredicateNotEvaluable
from pennon.planning import plan_scan
from pennon.planning.binding.bound_predicate import is_exact
from pennon.planning.leaf_constants import Evaluation, evaluations, with_constants
from pennon.planning.splits import filtered
from pennon.predicate.dialect import shortened_predicate
from pennon.predicate.parse import readable_predicates
from pennon.spec.functions import layout_of
from pennon.worker.wire.tokens import PlanToken, TableToken, row_keys

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.manifest import Snapshot
    from pennon.planning import ScanPlan
    from pennon.spec.functions import Layout, LayoutFunction, SpecFunction
    from pennon.worker.messages.scan_messages import PackSplits, PlanScanReply, PruneSplits

# A scan's derived key as EXPLAIN shows it.


def key_text(functions: Sequence[LayoutFunction], plan: ScanPlan, note: str) -> str:
    """Spell the functions of a key over the columns of one scan, and what is said of its groups.

    Example:
        ``bucket(8, customer_id), region as one key (24 groups in 4 tasks)``
    """
    texts = [function_text(function, plan) for function in functions]
    return f"{', '.join(texts)} as one key ({note})"


def function_text(function: LayoutFunction | SpecFunction, plan: ScanPlan) -> str:
    """Spell one function over the columns of one scan: ``bucket(8, customer_id)``."""
    schema = plan.snapshot.schema
    sources = [schema.field_by_id(source_id) for source_id in function.source_ids]
    return function.grouping.transform.sql([str(source) for source in sources])


_PLANS_BYTES: Final = 256 << 20
# A plan without partitions, and what the tree of a condition takes for each letter of its text.
_PLAN_BYTES: Final = 16 << 10
_LETTER_BYTES: Final = 32
# The numbers and names of a reply beside its long texts.
_REPLY_BYTES: Final = 4 << 10
_MOST_REPLIES: Final = 8


def _weight(reply: PlanScanReply) -> int:
    texts = (reply.scan, reply.plan, reply.description, reply.details)
    packed = sum(len(split.object_ids) + len(split.split) for split in reply.packed or ())
    return _REPLY_BYTES + sum(map(len, texts)) + packed


@dataclass(frozen=True)
class CachedPlan:
    """A plan of a scan, and what follows from it, found when it is asked for.

    Args:
        plan: The plan.
        num_letters: How long the texts of its predicates are together.
        readable: The texts of those that could be read; the others are left to Spark.
        replies: What Spark was told lately, by what it asked beside the plan.
    """

    plan: ScanPlan
    num_letters: int
    readable: tuple[str, ...]
    replies: dict[Hashable, PlanScanReply] = field(default_factory=dict, compare=False)

    @cached_property
    def fingerprint(self) -> int:
        """Which partitions the plan chose, and in which order."""
        names = self.plan.table.select(["object_id"]).combine_chunks()
        return sum(map(zlib.crc32, (batch.serialize() for batch in names.to_batches())))

    @cached_property
    def layout(self) -> Layout:
        """How the chosen partitions are laid out."""
        snapshot = self.plan.snapshot
        return layout_of(snapshot.specs, snapshot.schema, self.plan.table, self.plan.fixed)

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes."""
        replies = sum(map(_weight, tuple(self.replies.values())))
        texts = _LETTER_BYTES * self.num_letters + replies
        return int(self.plan.table.nbytes) + _PLAN_BYTES + texts

    @cached_property
    def _evaluations(self) -> dict[str, Evaluation]:
        return dict(zip(self.readable, evaluations(self.plan), strict=True))

    def evaluated(self, predicates: Sequence[str], evaluation: Evaluation) -> tuple[int, ...]:
        """List the predicates that are evaluated in one way, by their positions.

        Args:
            predicates: Those of the plan.
            evaluation: Who evaluates them.
        """
        return tuple(
            position
            for position, text in enumerate(predicates)
            if self._evaluations.get(text) is evaluation
        )

    def check_fully_pushed(self, predicates: Sequence[str]) -> None:
        """Check that the leaves' filters evaluate what nobody evaluates behind them.

        Args:
            predicates: Those of the plan that Spark does not evaluate.

        Raises:
            PredicateNotEvaluable: Rows would come that do not satisfy one of them.
        """
        bound = zip(self.readable, self.plan.given, strict=True)
        exact = {text for text, given in bound if is_exact(given)} if predicates else set()
        for text in predicates:
            if text not in exact:
                raise PredicateNotEvaluable(
                    predicate=shortened_predicate(text),
                    namespace=self.plan.snapshot.location,
                    reason="the leaves' filters do not evaluate it as Spark does",
                )


_plans: Final[Cache[CachedPlan]] = Cache(
    "plans", max_bytes=_PLANS_BYTES, weigh=lambda cached: cached.nbytes
)


def plan_of(
    catalog: Catalog,
    table: str,
    predicates: Sequence[str],
    time_zone: str = "UTC",
    constants: pa.Schema | None = None,
) -> tuple[str, CachedPlan]:
    """Plan a scan.

    Args:
        catalog: Brings the storage options.
        table: The token of ``load_table``.
        predicates: Spark SQL texts; those that cannot be read are left to Spark.
        time_zone: That of the session.
        constants: The requested metadata columns that splits bring along.

    Returns:
        The token of the plan, and the plan.
    """
    asked = PlanToken(TableToken.from_json(table), tuple(predicates), time_zone, 0)
    if constants:
        asked = replace(asked, constants=constants)
    cached = _cached(catalog, asked)
    return replace(asked, leaves=cached.fingerprint).to_json(), cached


def keep_reply(catalog: Catalog, reply: PlanScanReply, cached: CachedPlan, asked: Hashable) -> None:
    """Keep what Spark is told of a plan as long as the plan itself.

    Args:
        catalog: Brings the storage options.
        reply: What it is told, with the token of the plan.
        cached: The plan.
        asked: What it asked beside the plan.
    """
    replies = cached.replies
    replies[asked] = reply
    while len(replies) > _MOST_REPLIES:
        replies.pop(next(iter(replies)), None)
    _plans.keep(_key(catalog, PlanToken.from_json(reply.plan)), cached)  # which is heavier now


def find_plan(catalog: Catalog, token: str) -> CachedPlan:
    """Find a plan by its token, or make it again.

    Raises:
        PlanNotRepeated: The same question has another answer now: derived keys and splits name
            partitions by their places in the plan.
    """
    return _repeated(catalog, PlanToken.from_json(token))


def _repeated(catalog: Catalog, token: PlanToken) -> CachedPlan:
    cached = _cached(catalog, token)
    if cached.fingerprint != token.leaves:
        snapshot = cached.plan.snapshot
        raise PlanNotRepeated(location=snapshot.location, version=snapshot.version)
    return cached


def filtered_plan(request: PackSplits | PruneSplits) -> ScanPlan:
    """Find a plan, and drop the partitions that cannot have a row under what a query found.

    What it found while it ran is asked once: nothing of it is kept.

    Args:
        request: Brings the storage options, the token of the plan, and the filters.
    """
    asked = PlanToken.from_json(request.plan)
    plan = _repeated(request.catalog, asked).plan
    if not request.row_keys and not request.predicates:
        return plan
    keys = list(map(row_keys, request.row_keys))
    return filtered(plan, (*asked.predicates, *request.predicates), keys, asked.time_zone)


def _key(catalog: Catalog, asked: PlanToken) -> TableKey:
    table = asked.table
    storage = storage_identity(storage_of(catalog, table.name))
    constants = asked.constants.to_string() if asked.constants else ""
    detail = (*asked.predicates, asked.time_zone, constants)
    return TableKey(table.location, table.version, table.identity, storage, detail)


def _cached(catalog: Catalog, asked: PlanToken) -> CachedPlan:
    predicates = asked.predicates

    def made() -> CachedPlan:
        readable = {text: tree for text in predicates for tree in readable_predicates([text])}
        snapshot = snapshot_of(catalog, asked.table)
        trees = list(readable.values())
        plan = plan_scan(snapshot, trees, time_zone=asked.time_zone, with_metadata=True)
        plan = with_constants(plan, asked.constants)
        return CachedPlan(plan, sum(map(len, predicates)), tuple(readable))

    return _plans.find(_key(catalog, asked), made)


def snapshot_of(catalog: Catalog, token: TableToken | str) -> Snapshot:
    """Open the snapshot that a table's token pins.

    Args:
        catalog: Brings the storage options.
        token: The token of ``load_table``, or its text.

    Raises:
        TableMadeAnew: Another table stands there by now.
    """
    table = TableToken.from_json(token) if isinstance(token, str) else token
    return reopen(
        table.name,
        table.location,
        table.version,
        table.identity,
        storage_of(catalog, table.name),
        layout=table.layout,
    )
