"""The request of the derived-key rule, and the reply.

An Arrow table with what is read under each key follows the reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pennon.worker.messages.messages import JsonObject


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
