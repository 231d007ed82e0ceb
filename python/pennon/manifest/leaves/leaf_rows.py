"""The rows of leaves in ``__manifest``: chosen over the partition index, or by SQL over all rows.

Few leaves are chosen in memory and the rest of their rows is fetched by address. Where many are
chosen one pass over ``__manifest`` is cheaper, and so it is for conditions on other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import CarriedOver, TableKey
from pennon.errors import FragmentCalendar, InternalError, ManifestRowDoubled
from pennon.manifest.dataset.select import ADDRESS, LeafQuery, rows_by_id, select, statement
from pennon.manifest.dataset.storage import reading_failure
from pennon.manifest.format.names import SEPARATOR, spec_version_asked
from pennon.manifest.format.rows import NAMESPACE, TABLE
from pennon.manifest.leaves.partition_index import SPEC_VERSION, PartitionIndex
from pennon.predicate.dialect import DataFusion
from pennon.predicate.values.literals import LiteralList
from pennon.transforms.evaluation import DataFusionErrors

if TYPE_CHECKING:
    import lance
    from numpy.typing import NDArray

__all__ = [
    "MOST_NAMES",
    "MayMatch",
    "carry_rows",
    "check_single",
    "fetched_lists",
    "few_of",
    "is_for_index",
    "leaf_rows",
    "named_rows",
    "namespaces_above",
]

# Looks up rows of ``__manifest`` by object id, for commits.
#
# A write looks for the leaf of its rows, a commit for the leaf as it is, and once more for the
# whole rows that it replaces, those of the namespaces above among them. All of it is read at once,
# and what a commit itself has written needs not be read for the next one.

MOST_NAMES: Final = 64
"""How many rows may be asked for by their names; a pass over all rows costs less beyond."""

_KEY_COLUMN: Final = "object_id"
_ROWS: Final[CarriedOver[pa.Table]] = CarriedOver(
    "rows by name", max_bytes=32 << 20, weigh=lambda rows: int(rows.nbytes)
)


def namespaces_above(object_id: str) -> Iterator[str]:
    """Give the namespaces above a leaf.

    Example:
        >>> list(namespaces_above("v1$k7m2n9p4q8r5s3t6$dataset"))
        ['v1', 'v1$k7m2n9p4q8r5s3t6']
    """
    *above, _ = object_id.split(SEPARATOR)
    for depth in range(1, len(above) + 1):
        yield SEPARATOR.join(above[:depth])


def named_rows(manifest: lance.LanceDataset, key: TableKey, object_ids: Sequence[str]) -> pa.Table:
    """Give the whole rows of leaves and namespaces; those that are not there are left out.

    Args:
        manifest: The ``__manifest`` at a version.
        key: The namespace at that version.
        object_ids: Their ids, at most ``MOST_NAMES``.

    Returns:
        All columns of ``__manifest``, those that Pennon does not know included.

    Raises:
        ManifestRowDoubled: Two rows are one of the leaves, or one of their namespaces.
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema".
    """
    rows_by_name = _ROWS.find(key, object_ids, lambda names: _read(manifest, names))
    rows = [row for row in rows_by_name.values() if row.num_rows]
    if not rows:
        return manifest.schema.empty_table()
    whole = pa.concat_tables(rows)
    check_single(whole[_KEY_COLUMN], key.location, key.version)
    return whole


def check_single(object_ids: pa.ChunkedArray, location: str, version: int) -> None:
    """Refuse two rows of one object: a read would count its rows twice, a commit keep both.

    Args:
        object_ids: Of the rows that were found.
        location: The namespace.
        version: The version of its manifest.

    Raises:
        ManifestRowDoubled: One is there twice.
    """
    if pc.count_distinct(object_ids).as_py() == len(object_ids):
        return
    counts = object_ids.value_counts()
    at = pc.index(pc.greater(counts.field("counts"), 1), value=True).as_py()
    doubled = counts[at].as_py()
    raise ManifestRowDoubled(
        location=location, version=version, count=doubled["counts"], object_id=doubled["values"]
    )


def carry_rows(
    before: TableKey, after: TableKey, written: pa.Table, removed: Sequence[str]
) -> None:
    """Take what is known of a version along to the one that a commit has made of it.

    Args:
        before: The version.
        after: The next one; nobody else has committed between.
        written: The rows that the commit wrote, whole.
        removed: The ids of leaves that it removed.
    """
    _ROWS.carry(before, after, _by_name(written), removed)


def _read(manifest: lance.LanceDataset, names: Sequence[str]) -> dict[str, pa.Table]:
    asked = dict.fromkeys(
        [*names, *(namespace for name in names for namespace in namespaces_above(name))]
    )
    keys = [exp.Literal.string(object_id) for object_id in asked]
    text = exp.column(_KEY_COLUMN).isin(*keys).sql(dialect=DataFusion)
    try:
        rows = manifest.to_table(columns=list(manifest.schema.names), filter=text)
    except OSError as error:
        raise reading_failure(manifest, error) from error
    return {**dict.fromkeys(asked, rows.schema.empty_table()), **_by_name(rows)}


def _by_name(rows: pa.Table) -> dict[str, pa.Table]:
    """Divide rows by their ids; two of one id, which nobody may write, stay together."""
    places: dict[str, list[int]] = {}
    kinds = rows["object_type"].to_pylist()
    for at, (name, kind) in enumerate(zip(rows[_KEY_COLUMN].to_pylist(), kinds, strict=True)):
        if kind in (NAMESPACE, TABLE):
            places.setdefault(name, []).append(at)
    return {name: rows.take(at) for name, at in places.items()}


_LIST: Final = "list"
_LEAVES: Final = "leaves"
_OBJECT_ID: Final = exp.column("object_id")
_FEW: Final = 100
_LONG: Final = 2_000
# Of so many leaves one may be fetched by its address: a scattered row costs as much as a hundred
# of a scan (1,000 of 1,000,000 in 29 ms, all of them in 290 ms).
_ONE_OF: Final = 100
# Statistics of columns are read and kept for whole fragments where a condition asks for those of
# so many leaves; of fewer their own texts are read, 500 of them in 5 ms.
_FEW_TEXTS: Final = 500
_FEW_TEXTS_OF: Final = 10

MayMatch: TypeAlias = Callable[["NDArray[np.uint64]"], pa.Array]


def few_of(num_leaves: int) -> int:
    """Give of how many leaves of a table the statistics are read from their own rows.

    Example:
        >>> few_of(100), few_of(1_000_000)
        (500, 100000)
    """
    return max(_FEW_TEXTS, num_leaves // _FEW_TEXTS_OF)


def leaf_rows(
    manifest: lance.LanceDataset,
    index: PartitionIndex | None,
    columns: Sequence[str],
    condition: exp.Expr | None,
    flags: Sequence[exp.Expr],
    *,
    key: TableKey,
    may_match: MayMatch | None = None,
    is_brief: bool = False,
) -> LeafQuery:
    """Choose table rows of ``__manifest``.

    Args:
        manifest: The ``__manifest`` at the snapshot's version.
        index: Its index; None to go over all rows.
        columns: Columns of it.
        condition: On its columns; None for all table rows.
        flags: Conditions to evaluate per row, as ``flag_0``, ``flag_1``, ….
        key: The namespace at that version.
        may_match: Tells of rows, by ascending addresses, which need not be fetched. It is asked
            where the condition leaves many leaves of the index.
        is_brief: As ``select``; rows of few leaves come as they are.

    Returns:
        The rows in the order of the manifest. Over the index only those of leaves.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Partition Pruning", Appendix D.
    """
    # What a chosen row satisfies already is not computed a second time.
    flags = [exp.true() if flag == condition else flag for flag in flags]
    rows = None
    if condition is not None and _is_of_names(condition) and not flags:
        rows = _named_rows(manifest, key, columns, condition)
    elif index is not None and (condition is not None or may_match is not None):
        rows = _indexed(manifest, index, columns, condition, flags, may_match=may_match)
    if rows is not None:
        return rows
    return select(manifest, [*columns, *_named(flags)], TABLE, condition, is_brief=is_brief)


def is_for_index(condition: exp.Expr | None, may_match: MayMatch | None) -> bool:
    """Whether rows for a condition may be chosen over the index, so that it is worth having."""
    if condition is None:
        return may_match is not None
    return condition.find(exp.Column) is not None and not _is_of_names(condition)


def _is_of_names(condition: exp.Expr) -> TypeGuard[exp.In]:
    return isinstance(condition, exp.In) and condition.this == _OBJECT_ID


def _named_rows(
    manifest: lance.LanceDataset, key: TableKey, columns: Sequence[str], condition: exp.In
) -> LeafQuery:
    """Read rows by their ids; the scanner takes half of the CPU of Lance's SQL.

    Every commit asks so for what it changes.
    """
    is_table = exp.column("object_type").eq(exp.Literal.string(TABLE))
    text = exp.and_(is_table, condition, copy=False).sql(dialect=DataFusion)
    names = [str(expression.this) for expression in condition.expressions]
    if len(names) <= MOST_NAMES and set(columns) <= set(manifest.schema.names):
        found_rows = named_rows(manifest, key, names)
        leaves = found_rows.filter(pc.equal(found_rows["object_type"], TABLE))
        return LeafQuery(text, leaves.select(list(columns)).replace_schema_metadata(None))
    try:
        rows = manifest.to_table(columns=list(columns), filter=text)
    except OSError as error:
        raise reading_failure(manifest, error) from error
    return LeafQuery(text, rows.replace_schema_metadata(None))


def _indexed(
    manifest: lance.LanceDataset,
    index: PartitionIndex,
    columns: Sequence[str],
    condition: exp.Expr | None,
    flags: Sequence[exp.Expr],
    *,
    may_match: MayMatch | None,
) -> LeafQuery | None:
    """Choose few leaves; None where the conditions need other columns, or choose too many."""
    if condition is None and index.num_others:
        return None  # only a pass over all rows finds the others
    index_columns = set(index.rows.column_names)
    asked = _over_index(exp.true() if condition is None else condition, index_columns)
    named = [_over_index(flag, index_columns) for flag in _named(flags)]
    if asked is None or None in named or index.num_leaves == 0:
        return None
    indexed = [name for name in columns if name in index_columns]
    columns_read = [
        *map(exp.column, [ADDRESS, *indexed]),
        *(tested for tested in named if tested is not None),
    ]
    query = exp.select(*columns_read, copy=False).from_(_LEAVES).where(asked, copy=False)
    _leave_out_absent(query, index.rows)
    chosen = _evaluated(index.rows, query)
    num_ruled_out = 0
    if may_match is not None and chosen.num_rows > few_of(index.num_leaves):
        mask = may_match(chosen[ADDRESS].to_numpy())
        num_ruled_out = chosen.num_rows - mask.true_count
        chosen = chosen.filter(mask)
    if chosen.num_rows > max(_FEW, index.num_leaves // _ONE_OF):
        return None
    rows = _fetched(
        manifest, chosen[ADDRESS], [name for name in columns if name not in index_columns]
    )
    for name in chosen.column_names:
        rows = rows.append_column(name, chosen[name])
    shown = statement([*columns, *_named(flags)], TABLE, condition)
    sql = shown.sql(dialect=DataFusion, copy=False)
    return LeafQuery(sql, rows, num_ruled_out)


def _named(flags: Sequence[exp.Expr]) -> list[exp.Expr]:
    return [exp.alias_(flag, f"flag_{at}") for at, flag in enumerate(flags)]


def _over_index(condition: exp.Expr, columns: set[str]) -> exp.Expr | None:
    """Rewrite a condition for the index; None where it needs what the index has not."""

    def rewritten(node: exp.Expr) -> exp.Expr:
        version = spec_version_asked(node)
        if version is None:
            return node
        return exp.column(SPEC_VERSION).eq(exp.Literal.number(version))

    tree = condition.transform(rewritten)
    is_known = all(column.name in columns for column in tree.find_all(exp.Column))
    return tree if is_known else None


def _leave_out_absent(query: exp.Select, rows: pa.Table) -> None:
    """Take out of long lists what no row has: DataFusion parses and plans each value of a list.

    A value of no row is equal to none, under NOT too; one stays, so that NULL IN stays NULL.
    """
    present: dict[tuple[str, int], LiteralList] = {}
    for node in query.find_all(exp.In):
        listed, column = node.args.get("field"), node.this
        if not isinstance(listed, LiteralList) or not isinstance(column, exp.Column):
            continue
        scalars = listed.literals.scalars
        data_type = rows.schema.field(column.name).type
        if len(scalars) < _LONG or scalars[0].type != data_type or pa.types.is_floating(data_type):
            continue
        asked = column.name, id(listed.literals)
        if asked not in present:
            values = pa.array(scalars, data_type)
            distinct = pc.unique(rows[column.name]).drop_null()
            existing = values.filter(pc.is_in(values, value_set=distinct))
            present[asked] = LiteralList.of([*(existing or values[:1])])
        node.set("field", present[asked].copy())


def _evaluated(rows: pa.Table, query: exp.Select) -> pa.Table:
    from datafusion import SessionConfig, SessionContext  # noqa: PLC0415 - a quarter of a second

    # One partition keeps the order of the rows, and 1,000,000 take 5 ms.
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_record_batches(_LEAVES, [rows.to_batches()])
    sql = query.sql(dialect=DataFusion, copy=False)
    with DataFusionErrors(partial(_refused, sql)):
        return context.sql(sql).to_arrow_table()


def _refused(sql: str, error: BaseException) -> FragmentCalendar | InternalError:
    """Name a partition of a year beyond DataFusion's calendar; nothing else is known to fail."""
    if "Failed to convert" in str(error):
        return FragmentCalendar(why=str(error))
    return InternalError(what=f"DataFusion refused the query {sql}: {error}")


def _fetched(
    manifest: lance.LanceDataset, addresses: pa.ChunkedArray, columns: list[str]
) -> pa.Table:
    """Read rows of ``__manifest`` by their addresses, in that order.

    Raises:
        StorageFailure: The storage refused.
    """
    if len(addresses) == 0:
        return pa.schema([manifest.schema.field(name) for name in columns]).empty_table()
    try:
        # Row ids are addresses where they are not stable, and a manifest's are not.
        rows = rows_by_id(manifest, addresses.to_pylist(), columns)
    except OSError as error:
        raise reading_failure(manifest, error) from error
    return rows.replace_schema_metadata(None)


def fetched_lists(
    manifest: lance.LanceDataset,
    addresses: Sequence[pa.ChunkedArray],
    columns: list[str],
    show: Callable[[pa.Table, Sequence[str]], pa.Table],
) -> list[pa.Table]:
    """Read several lists of rows at once, which costs little more than one of them.

    Args:
        manifest: ``__manifest`` at a version.
        addresses: Of the rows of each list.
        columns: What is read of them.
        show: Makes what is returned of all rows; it may leave some out, and keeps the order and
            the columns that it is given.

    Raises:
        StorageFailure: The storage refused.
    """
    chunks = [chunk for address in addresses for chunk in address.chunks]
    rows = _fetched(manifest, pa.chunked_array(chunks, pa.uint64()), columns)
    numbers = np.repeat(np.arange(len(addresses)), [len(address) for address in addresses])
    shown = show(rows.append_column(_LIST, pa.array(numbers, pa.int64())), [_LIST])
    edges = np.searchsorted(shown[_LIST].to_numpy(), np.arange(len(addresses) + 1))
    shown = shown.drop_columns(_LIST)
    return [shown.slice(first, end - first) for first, end in pairwise(edges.tolist())]
