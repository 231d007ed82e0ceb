"""The requests about scans, from their plans to their rows, and the replies.

``scan``, ``split`` and ``fragment`` hold storage options and are never printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pennon.worker.messages.messages import CatalogRequest, JsonObject, TableRequest

# The request of the derived-key rule, and the reply.
#
# An Arrow table with what is read under each key follows the reply.


@dataclass(frozen=True, slots=True)
class DeriveKeys:
    """The plan's skeleton from the derived-key rule, which it changes, or explains only.

    Scans bring their catalog and plan; ``settings`` are those that say who executes queries, and
    ``zone_offsets`` how far the clocks of the time zone are before UTC, as ``ZoneOffsets`` has it.
    """

    op: ClassVar[str] = "derive_keys"
    nodes: tuple[JsonObject, ...] = field(metadata={"type": "operator[]"})
    parallelism: int
    max_bytes: int
    ansi: bool
    time_zone: str
    zone_offsets: tuple[int, ...]
    slots: int
    is_write: bool
    rewrites: bool
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A column by its number, or with names a field in it."""

    attribute: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComputedKey:
    """What Spark computes a key from on a side without partitioning.

    Args:
        function: Name of the function in Spark.
        num_buckets: Its parameter; 0 for functions without one.
        columns: Its arguments.
    """

    function: str
    num_buckets: int
    columns: tuple[ColumnPath, ...]


@dataclass(frozen=True, slots=True)
class FragmentReply:
    """A part of the query that the workers compute.

    Args:
        root: Position of the node that it stands for.
        mode: How its rows relate to those of the node: ``rows``, ``partial`` or ``complete``.
        scan: What executors send with every task; holds storage options.
        description: For EXPLAIN: short lines.
        details: For EXPLAIN FORMATTED: the whole lines.
        columns: Numbers of its columns, in order.
        rows: Estimated number of rows; None where nothing is known.
        bytes: Estimated bytes of them.
        restricted: Whether it has but some of the node's groups: fragments of equal nodes may have
            others.
        keyed: Whether its last column is the key of its tasks.
        partitions_read: How many partitions its tables' scans keep, as far as planning knows.
        partitions_total: How many those tables have.
    """

    root: int
    mode: str
    scan: str
    description: str
    details: str
    columns: tuple[int, ...]
    rows: int | None
    bytes: int | None
    restricted: bool
    keyed: bool
    partitions_read: int
    partitions_total: int


@dataclass(frozen=True, slots=True)
class DeriveKeysReply:
    """What the rule makes of the plan.

    Args:
        served: Positions of the joins, groupings and windows that use the keys.
        scans: What the key of a scan stands for, by the scan's position.
        ordered: Positions of scans whose splits can be read in the order of the scan.
        verdicts: What was found at each join, aggregate and window, for people.
        computed: What Spark computes a key from, by the position of the side of a join that has no
            partitioning.
        fragments: The parts of the query that the workers compute.
        one_task: Whether all that is left is the work of one task.
        packed: Positions of scans that report nothing, and of which any leaves are read together:
            no operator can use how their rows are grouped, or a shuffle is faster.
        arrow: An Arrow stream follows.
    """

    served: tuple[int, ...]
    scans: Mapping[str, str]
    ordered: tuple[int, ...]
    verdicts: tuple[JsonObject, ...]
    computed: Mapping[str, tuple[ComputedKey, ...]]
    fragments: tuple[FragmentReply, ...]
    one_task: bool
    packed: tuple[int, ...]
    arrow: bool


@dataclass(frozen=True, slots=True)
class PlanRequest(CatalogRequest):
    """A request about a planned scan: ``plan`` is its token."""

    plan: str


@dataclass(frozen=True, slots=True)
class PlanScan(TableRequest):
    """A scan with its pruned columns; ``fully_pushed``: what Spark does not evaluate."""

    op: ClassVar[str] = "plan_scan"
    schema: object
    predicates: tuple[str, ...]
    fully_pushed: tuple[int, ...]
    options: Mapping[str, str]
    row_change: bool
    time_zone: str
    num_tasks: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class PackedSplit:
    """One of few splits of a scan that nothing groups; ``object_ids`` are apart by commas."""

    object_ids: str
    split: str


@dataclass(frozen=True, slots=True)
class PlanScanReply:
    """The whole scan; ``packed`` if it is short; ``stream_option``: one that only streams have."""

    scan: str
    plan: str
    splits: int
    keys: tuple[JsonObject, ...]
    partitions_total: int
    rows: int | None
    bytes: int | None
    description: str
    details: str
    ordering: tuple[JsonObject, ...]
    filter_columns: tuple[str, ...]
    partition_columns: tuple[str, ...]
    guaranteed_by_partitions: tuple[int, ...]
    evaluated_in_scan: tuple[int, ...]
    packed: tuple[PackedSplit, ...] | None
    stream_option: str | None


@dataclass(frozen=True, slots=True)
class ListSplits(PlanRequest):
    """The splits of a planned scan, asked for when Spark wants to see them; many never are."""

    op: ClassVar[str] = "list_splits"
    schema: object


@dataclass(frozen=True, slots=True)
class PackSplits(PlanRequest):
    """Other splits of a planned scan, under what the query found running, as ``prune_splits``."""

    op: ClassVar[str] = "pack_splits"
    num_tasks: int
    max_bytes: int
    row_keys: tuple[str, ...]
    predicates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PruneSplits(PlanRequest):
    """Runtime filtering of a planned scan by the keys and predicates that the query found."""

    op: ClassVar[str] = "prune_splits"
    row_keys: tuple[str, ...]
    predicates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PruneSplitsReply:
    """Partitions that are still possible."""

    object_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExplainScan(PlanRequest):
    """What a planned scan reads, and why."""

    op: ClassVar[str] = "explain_scan"


@dataclass(frozen=True, slots=True)
class ExplainScanReply:
    """Pairs of a line's title and its text."""

    rows: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class SummarizeColumns(PlanRequest):
    """What is known of columns over all partitions of a planned scan."""

    op: ClassVar[str] = "summarize_columns"
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnSummaryText:
    """That of a column; bounds as Spark writes them for its own catalog, null where unknown."""

    name: str
    lower: str | None
    upper: str | None
    null_count: int
    distinct_count: int | None


@dataclass(frozen=True, slots=True)
class SummarizeColumnsReply:
    """Those columns of which something is known, and about how many rows the scan gives."""

    rows: int | None
    columns: tuple[ColumnSummaryText, ...]


@dataclass(frozen=True, slots=True)
class PartitionTuples(PlanRequest):
    """The values that the partitions of a planned scan have of columns, each tuple once.

    Without rows for too many.
    """

    op: ClassVar[str] = "partition_tuples"
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """One task's rows, sorted where the scan said so; ``row_keys``: which are requested."""

    op: ClassVar[str] = "read"
    scan: str
    split: str
    ordered: bool
    row_keys: str | None


@dataclass(frozen=True, slots=True)
class RunFragment:
    """One task's rows of a fragment; the Arrow stream that follows has the promised columns."""

    op: ClassVar[str] = "run_fragment"
    fragment: str
    split: str


@dataclass(frozen=True, slots=True)
class StreamReply:
    """The Arrow stream of what was asked for follows: rows of a task, splits, or tuples."""

    arrow: bool
