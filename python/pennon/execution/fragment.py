"""The plan of one task: relations over leaves, a query over them, and the output schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.execution.batches import AT_ONCE
from pennon.leaf import KeptRows, LeafSource, LeafViews, open_leaf
from pennon.leaf.dataset import leaves_at_once
from pennon.leaf.read.metadata_columns import is_metadata_column
from pennon.leaf.read.row_keys import RowKeys
from pennon.predicate.condition import and_all, operands
from pennon.predicate.dialect import DataFusion, read_condition
from pennon.spec.write_properties import OrderColumn
from pennon.transforms.transform import Transform

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LeafReading", "read_all_of", "read_by_lance"]


# Conditions that DataFusion computes over rows that Lance has read.
#
# Lance reads no CASE, which is how conditions are written that are an error for some rows; and of
# few rows its filter takes longer than reading them all.


@dataclass(frozen=True, slots=True)
class LeafReading:
    """A way to read leaves that have one filter.

    Args:
        views: The columns, those that only the condition names last.
        residual: What Lance filters by; None for nothing.
        condition: What DataFusion computes afterwards; None for nothing.
    """

    views: LeafViews
    residual: str | None = None
    condition: exp.Expr | None = None


def read_all_of(residual: str, relation: Relation) -> LeafReading | None:
    """Leave a filter to DataFusion.

    Args:
        residual: The filter.
        relation: What is read.

    Returns:
        The way; None for a filter that names other than plain columns.
    """
    return _late([], [read_condition(residual)], relation)


def read_by_lance(residual: str | None, relation: Relation) -> LeafReading:
    """Leave to DataFusion what of a filter Lance does not read.

    Args:
        residual: The filter; None for none.
        relation: What is read.
    """
    way = None
    if residual is not None and "CASE" in residual:
        whole = read_condition(residual)
        parts = operands(whole, exp.And)
        late = [part for part in parts if part.find(exp.Case)]
        read = [part for part in parts if part not in late]
        way = _late(read, late, relation) if late else None
    views = LeafViews(relation.schema, relation.namespace_schema)
    return way or LeafReading(views, residual)


def _late(
    read: Sequence[exp.Expression], late: Sequence[exp.Expression], relation: Relation
) -> LeafReading | None:
    namespace_schema, schema_read = relation.namespace_schema, relation.schema
    columns = [column for part in late for column in part.find_all(exp.Column)]
    if any(part.find(exp.Dot) for part in late):
        return None
    if not all(_is_plain(column, namespace_schema) for column in columns):
        return None
    residual = str(and_all(read).sql(dialect=DataFusion)) if read else None
    for column in columns:
        column.set("this", exp.to_identifier(column.name, quoted=True))
    names = sorted({column.name for column in columns} - set(schema_read.names))
    schema = pa.schema([*schema_read, *map(namespace_schema.field, names)])
    return LeafReading(LeafViews(schema, namespace_schema), residual, and_all(late))


def _is_plain(column: exp.Column, namespace_schema: pa.Schema) -> bool:
    if len(column.parts) > 1 or column.name not in namespace_schema.names:
        return False
    data_type = namespace_schema.field(column.name).type
    return not pa.types.is_nested(data_type) and not pa.types.is_null(data_type)


@dataclass(frozen=True, slots=True)
class RareFirst:
    """A residual in two steps: the first leaves few rows, and only of these is the second asked.

    Args:
        rare: What few rows satisfy.
        rest: What these still have to satisfy.
    """

    rare: str
    rest: str


@dataclass(frozen=True, slots=True)
class LeafRead:
    """One leaf at one version, and what its rows still have to satisfy.

    Args:
        location: The leaf, relative to its namespace or a path or URL.
        version: Lance version; None for the newest of the main branch.
        residual: A condition in the DataFusion dialect; None for none.
        fragments: First fragment and the one after the last, by position; None for all.
        constants: What all its rows have in metadata columns that the manifest knows.
        num_rows: Rows of the whole leaf before any filter, as planned; None where unknown.
        steps: The same residual in two steps; None where one is as good.
    """

    location: str
    version: int | None
    residual: str | None = None
    fragments: tuple[int, int] | None = None
    constants: Mapping[str, object] | None = field(default=None, hash=False)
    num_rows: int | None = None
    steps: RareFirst | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows of some leaves of one namespace.

    Args:
        namespace: Path or URL of the namespace.
        leaves: What is read, one after the other.
        schema: The requested columns, with their ``lance:field_id``.
        namespace_schema: All columns; residuals may name any of them.
        storage_options: Given to Lance, never printed.
        order: The order in which the rows of each fragment of the leaves are, and in which all
            rows are requested; without one they come leaf by leaf.
        identity: Tells the leaves at these versions from others that were at their places before.
        keys: What rows are requested; others may come, too. None for all.
    """

    namespace: str
    leaves: tuple[LeafRead, ...]
    schema: pa.Schema
    namespace_schema: pa.Schema
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    order: tuple[OrderColumn, ...] = ()
    identity: str = ""
    keys: RowKeys | None = None

    @property
    def num_at_once(self) -> int:
        """How many leaves are read side by side."""
        return leaves_at_once(self.namespace, on_disk=AT_ONCE)

    def opened(self, leaf: LeafRead) -> LeafSource:
        """Open one of the leaves at its version."""
        at = (leaf.location, leaf.version, self.storage_options, self.identity)
        return LeafSource(open_leaf(self.namespace, *at), leaf.location, leaf.constants)

    def kept_rows(self, views: LeafViews) -> KeptRows | None:
        """Give what is kept of the leaves' rows; None where not all columns or rows are requested.

        Args:
            views: What is requested.
        """
        if (
            self.keys is not None
            or not len(views.schema)
            or any(map(is_metadata_column, views.schema))
        ):
            return None
        return KeptRows(
            self.namespace, views, self.namespace_schema, self.storage_options, self.identity
        )


@dataclass(frozen=True, slots=True)
class Query:
    """What DataFusion computes over the relations of a fragment.

    Args:
        sql: One SELECT in DataFusion's dialect; the i-th relation is called ``r<i>``.
        schema: The result's columns in order, in the types that are promised.
        zone_offsets: The offsets of the session's zone, where the query has times of it.
    """

    sql: str
    schema: pa.Schema
    zone_offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicatedPart:
    """Rows that every task of a query wants as a whole.

    Args:
        key: Tells it from all others; tasks of one query bring the same.
        relations: What it is computed from.
        query: How.
    """

    key: str
    relations: tuple[Relation, ...]
    query: Query


NO_PRUNING_KEY: Final = 1 << 31
"""The key of a leaf that a pruning says nothing of: it is no hash."""


@dataclass(frozen=True, slots=True)
class LeafPruning:
    """Leaves of a relation that the rows of a part can rule out.

    Args:
        relation: Number of the relation.
        part: Number of the part.
        columns: Names of the part's columns, in the order of the transform's.
        transform: What is computed of their values.
        keys: The hash of what each leaf has of that; None where that is NULL;
            ``NO_PRUNING_KEY`` for a leaf of another spec.
    """

    relation: int
    part: int
    columns: tuple[str, ...]
    transform: Transform
    keys: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows of a relation that the rows of a part can rule out.

    Args:
        relation: Number of the relation.
        name: Name of its column.
        part: Number of the part.
        column: Name of the part's column.
        chosen_from: Rows of the table that the part's rows were chosen from.
    """

    relation: int
    name: str
    part: int
    column: str
    chosen_from: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one task computes.

    Args:
        relations: One without a query is scanned as it stands.
        query: What DataFusion computes over them; None for a scan.
        parts: The i-th is called ``p<i>`` in the query.
        prunings: What of the relations need not be opened once the parts are known.
        filters: What of their rows need not be read then.
        num_threads: How many threads compute the query.
    """

    relations: tuple[Relation, ...]
    query: Query | None = None
    parts: tuple[ReplicatedPart, ...] = ()
    prunings: tuple[LeafPruning, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    num_threads: int = 1
