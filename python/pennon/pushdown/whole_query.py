"""A query that one executor computes as a whole: one task, with a thread for each of its cores.

Where a session has no more than one executor, nothing is won by dividing a query among its tasks:
DataFusion divides it among threads, and exchanges rows between them without writing them anywhere.
Of several executors one is done sooner with what is not much for it (``sooner_in_one``).
What Spark gets must be little, for one task hands it over, so only groups, first rows and rows
of small tables qualify; and what joins hold in memory must fit the pool, for they do not
spill. Small filtered sides are evaluated first where they may rule out leaves of the others
(``runtime_pruning.py``). All other queries are divided (``division.py``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.execution import Query
from pennon.execution.batches import row_bytes
from pennon.plan import Group, Join, JoinType, Limit, Scan, Window, children_of
from pennon.predicate.dialect import DataFusion
from pennon.predicate.typed import cast
from pennon.predicate.values.literals import to_expression
from pennon.pushdown.candidates import Candidate, candidate_in_one_task
from pennon.pushdown.division import Division, with_small_values
from pennon.pushdown.partners import HASH_TABLE_EXPANSION, MOST_PAIRS, holds_rows, sizes_of
from pennon.pushdown.query import FragmentQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.grouping.resolve.group_tree import DerivedKeys
    from pennon.plan import Plan
    from pennon.predicate.condition import Semantics
    from pennon.pushdown.partners import Size

__all__ = ["constant_query"]

# Rows that are known when a query is planned, as a query over literals.

_TABLE: Final = "r0"
_IS_ROW: Final = "is_row"


def constant_query(query: FragmentQuery, rows: pa.Table) -> FragmentQuery | None:
    """Write the rows of a query as one that reads no relation.

    Args:
        query: The query.
        rows: What it gives.

    Returns:
        The same columns; None where a value has no literal.
    """
    schema = query.select.schema
    if any(pa.types.is_binary(kind) for kind in schema.types):
        return None
    names = schema.names
    columns = [
        exp.alias_(cast(exp.column(name, quoted=True), kind), name, quoted=True)
        for name, kind in zip(names, schema.types, strict=True)
    ]
    # Where there is no other row, one of NULLs gives the types and is left out afterwards.
    values = [[exp.false(), *(cast(exp.Null(), kind) for kind in schema.types)]]
    for row in range(rows.num_rows):
        cells = [_literal(rows[at][row], kind) for at, kind in enumerate(schema.types)]
        values.append([exp.true(), *cells])
    table = exp.Values(
        expressions=[exp.Tuple(expressions=value) for value in values],
        alias=exp.TableAlias(
            this=exp.to_identifier(_TABLE),
            columns=[exp.to_identifier(name, quoted=True) for name in (_IS_ROW, *names)],
        ),
    )
    sql = exp.select(*columns).from_(table).where(exp.column(_IS_ROW, quoted=True))
    return FragmentQuery(Query(sql.sql(dialect=DataFusion), schema), ())


def _literal(value: pa.Scalar, data_type: pa.DataType) -> exp.Expr:
    return cast(to_expression(value) if value.is_valid else exp.Null(), data_type)


# How many small queries a thread computes while the stages of a divided one start and end, and how
# often its CPU that takes: docs/benchmarks.md, "Several executors".
_SMALL_QUERIES: Final = 8
_CPU_OF_DIVIDED: Final = 4


def sooner_in_one(small_bytes: int, slots: int, parallelism: int) -> float:
    """Tell how many bytes one of several executors computes sooner than all of them together.

    A divided query that exchanges rows takes several times the CPU: up to as many executors win
    nothing. More of them win little where it is done before their stages are started and ended.

    Args:
        small_bytes: What is worth one thread only.
        slots: Tasks that an executor runs at once.
        parallelism: Tasks that all executors run at once.

    Example:
        >>> sooner_in_one(16, slots=4, parallelism=16), sooner_in_one(16, slots=4, parallelism=32)
        (inf, 1024.0)
    """
    won = 1 - _CPU_OF_DIVIDED * slots / parallelism
    return math.inf if won <= 0 else _SMALL_QUERIES * small_bytes * slots / won


def whole_query(
    plan: Plan,
    keys: DerivedKeys,
    semantics: Semantics,
    *,
    least_bytes: int,
    most_bytes: int,
    pool_bytes: int,
    replicated_bytes: int,
) -> tuple[Division, Candidate] | None:
    """Find the one fragment that reads all that a query reads.

    Args:
        plan: The query.
        keys: The keys that it allows.
        semantics: The session's.
        least_bytes: What reads no more is worth one thread only.
        most_bytes: The most bytes of all inputs that one executor reads.
        pool_bytes: The memory of a worker's queries.
        replicated_bytes: The most bytes of inputs of a side that is evaluated before the rest.

    Returns:
        The query undivided, and the fragment; None where it has to be divided.
    """
    plan = with_small_values(plan, semantics, most_bytes)
    root = len(plan) - 1
    sizes = sizes_of(plan)
    scans = plan.scans(root)
    if not scans or not plan.is_of_tables(root):
        return None
    read = [sizes[scan].read_bytes for scan in scans]
    held = sum(read) - (0 if holds_rows(plan, plan.subtree(root)) else max(read))
    if not least_bytes < sum(read) <= most_bytes or held * HASH_TABLE_EXPANSION > pool_bytes:
        return None
    if sizes[root].pairs > MOST_PAIRS:
        return None
    division = Division(
        plan, plan, keys, {}, sizes, is_one_task=True, replicated_bytes=replicated_bytes
    )
    for position in _upper(plan, scans):
        if not _is_little(plan, sizes, position, least_bytes):
            continue
        candidate = candidate_in_one_task(division, semantics, position)
        if candidate is not None and candidate.query.all_scans == set(scans):
            return division, candidate
    return None


def _upper(plan: Plan, scans: tuple[int, ...]) -> Iterator[int]:
    """Walk down from the root as long as all scans are below."""
    position: int | None = len(plan) - 1
    while position is not None:
        yield position
        below = (child for child in plan.children(position) if plan.scans(child) == scans)
        position = next(below, None)


def _is_little(plan: Plan, sizes: tuple[Size, ...], position: int, most_bytes: int) -> bool:
    """Whether an operator gives groups, or few rows, and not all those of a large table."""
    node = plan[position]
    match node:
        case Group() | Limit() | Window(is_limit=True):
            return True
        case Scan(columns=columns):
            width = row_bytes(column.type for column in columns)
            return sizes[position].rows * width <= most_bytes
        case Join(join_type=JoinType.SEMI | JoinType.ANTI | JoinType.EXISTENCE, left=left):
            return _is_little(plan, sizes, left, most_bytes)
        case _:
            below = children_of(node)
            return all(_is_little(plan, sizes, child, most_bytes) for child in below)
