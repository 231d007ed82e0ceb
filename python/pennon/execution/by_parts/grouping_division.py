"""Takes a query apart around its one grouping: the rows, their groups, and what is made of those.

Rows with the same keys come into the same part, so the groups of all parts are the groups of all
rows, and what stands above the grouping sees no difference.

A query comes to a task as text, and only the task knows how many bytes it reads: it is read as a
tree again where they may be too many, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pennon.predicate.dialect import DataFusion

ROWS: Final = "divided_rows"
"""What the rows of a part are called in the query of its groups."""
GROUPS: Final = "divided_groups"
"""What all groups are called in the query of what is made of them."""
_GROUPING: Final = "GROUP BY"
_PLAIN: Final = {"expressions", "from_", "group"}


@dataclass(frozen=True, slots=True)
class GroupingDivision:
    """A query with one grouping, in up to three steps.

    Args:
        rows: Gives the rows that are grouped.
        keys: Their columns that make a group.
        groups: Gives the groups of some of the rows, which are called ``divided_rows``.
        rest: What is made of all groups, which are called ``divided_groups``; None for nothing.
    """

    rows: str
    keys: tuple[str, ...]
    groups: str
    rest: str | None


@lru_cache(maxsize=64)
def division_of(sql: str) -> GroupingDivision | None:
    """Take a query apart; None for one of another form.

    Args:
        sql: In DataFusion's dialect.

    Example:
        >>> division = division_of(
        ...     "SELECT max(`n`) AS `m` FROM (SELECT `k`, count(*) AS `n` FROM"
        ...     " (SELECT `k` FROM `r0`) AS `t` GROUP BY `k`) AS `g`"
        ... )
        >>> division.rows, division.keys
        ('SELECT `k` FROM `r0`', ('k',))
        >>> division.groups
        'SELECT `k`, count(*) AS `n` FROM `divided_rows` AS `t` GROUP BY `k`'
        >>> division.rest
        'SELECT max(`n`) AS `m` FROM `divided_groups` AS `g`'
        >>> division_of("SELECT `k` FROM `r0`") is None
        True
    """
    if sql.count(_GROUPING) != 1:
        return None
    try:
        return _divided(sqlglot.parse_one(sql, dialect=DataFusion))
    except (RecursionError, SqlglotError):  # it runs as it stands
        return None


def _divided(whole: exp.Expr) -> GroupingDivision | None:
    grouped = _grouped(whole)
    if grouped is None:
        return None
    rows = _source(grouped)
    if rows is None:
        return None
    keys = tuple(key.name for key in grouped.args["group"].expressions)
    rows_sql = rows.this.sql(dialect=DataFusion)
    rows.replace(_table(ROWS, rows))
    # A window looks at groups of all parts, and a subquery at tables that no part has.
    if grouped.find(exp.Window) is not None or not _reads_only(grouped, ROWS):
        return None
    groups_sql = grouped.sql(dialect=DataFusion)
    if grouped is whole:
        return GroupingDivision(rows_sql, keys, groups_sql, None)
    around = grouped.parent
    if not isinstance(around, exp.Subquery):
        return None
    around.replace(_table(GROUPS, around))
    if not _reads_only(whole, GROUPS):
        return None
    return GroupingDivision(rows_sql, keys, groups_sql, whole.sql(dialect=DataFusion))


def _grouped(whole: exp.Expr) -> exp.Select | None:
    """Find the grouping below SELECTs of one source each; none of them gives a row too early."""
    select = whole
    while isinstance(select, exp.Select) and select.args.get("group") is None:
        source = _source(select)
        if source is None:
            return None
        select = source.this
    if not isinstance(select, exp.Select) or _has_more(select):
        return None
    return select


def _has_more(grouped: exp.Select) -> bool:
    """Whether it is more than columns that are grouped: conditions, orders, grouping sets."""
    group = grouped.args["group"]
    others = {name for name, value in grouped.args.items() if value} - _PLAIN
    is_plain = all(isinstance(key, exp.Column) for key in group.expressions)
    more = [name for name, value in group.args.items() if value and name != "expressions"]
    return bool(others or more) or not is_plain or not group.expressions


def _source(select: exp.Select) -> exp.Subquery | None:
    """Give the SELECT that it reads, where it reads nothing else."""
    source = select.args.get("from_")
    if source is None or select.args.get("joins") or select.args.get("laterals"):
        return None
    this = source.this
    is_select = isinstance(this, exp.Subquery) and isinstance(this.this, exp.Query)
    return this if is_select and not this.args.get("joins") else None


def _reads_only(select: exp.Expr, name: str) -> bool:
    return all(table.name == name for table in select.find_all(exp.Table))


def _table(name: str, source: exp.Subquery) -> exp.Table:
    alias = source.args.get("alias")
    this = exp.to_identifier(name, quoted=True)
    return exp.Table(this=this, alias=None if alias is None else alias.copy())
