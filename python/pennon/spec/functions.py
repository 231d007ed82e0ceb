"""The comparisons of a join that put equal rows into equal partitions, also through casts.

A partition's value is that of the column. A comparison of cast columns is one of the columns only
where the casts keep the value: integers and decimals that get wider, and what is the same moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.predicate.typed import UNWRITTEN, SparkExpression
from pennon.predicate.values.time_units import is_binary, is_number, is_text
from pennon.spec.partition_spec import leaf_prefix
from pennon.transforms.evaluation import plain_type
from pennon.transforms.registry import IDENTITY, composed_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pennon.spec.partition_spec import PartitionSpec
    from pennon.spec.schema import NamespaceSchema
    from pennon.transforms.transform import Transform


# A function of source columns that is constant over every partition, and what it reduces to.
#
# "Reduces to" means: the coarser value follows from the finer value alone, so partitions can be
# grouped by the coarser one without reading a row. The rules of reduction stand with the
# transforms; the levels of one time column are one composed transform here: ``spec_functions``.
#
# NULL rules: a reduction maps NULL to NULL; only NULL sources give NULL, except for expressions,
# which are never reduced to anything but themselves.


@dataclass(frozen=True, slots=True)
class GroupingFunction:
    """A function of source columns by which partitions can be grouped.

    Args:
        transform: A partition transform, or the composed transform of time levels.
        source_types: Arrow types of the source columns, in the transform's order.

    Spec: "Storage Partitioned Join".
    """

    transform: Transform
    source_types: tuple[pa.DataType, ...]

    def __str__(self) -> str:
        return self.transform.sql([f"col{at}" for at in range(len(self.source_types))])

    def common_reduction(self, other: GroupingFunction) -> GroupingFunction | None:
        """Find the finest function to which both reduce; None when there is none.

        Of a DATE and a timestamp, which are compared as midnights in UTC, days and coarser units
        are the same, and no hash is. An expression may tell types of equal values apart: the text
        of a timestamp has its zone, and the number of one counts its unit.

        Example:
            >>> from pennon.transforms.registry import sized
            >>> six, four = (
            ...     GroupingFunction(sized("bucket", count), (pa.int64(),)) for count in (6, 4)
            ... )
            >>> print(six.common_reduction(four))
            bucket(2, col0)
        """
        mine, theirs = self._plainest(), other._plainest()
        if _are_date_and_timestamp(self.source_types, other.source_types):
            my_days, their_days = mine.of_midnights(), theirs.of_midnights()
            if my_days is None or their_days is None:
                return None
            mine, theirs = my_days, their_days
        elif not _have_same_values(self.source_types, other.source_types) or (
            (mine.tells_types_apart or theirs.tells_types_apart)
            and not all(map(_are_computed_alike, self.source_types, other.source_types))
        ):
            return None
        common = mine.common_reduction(theirs, self.source_types[0])
        return None if common is None else GroupingFunction(common, self.source_types)

    def reduces_to(self, other: GroupingFunction) -> bool:
        """Whether the value of ``other`` follows from this function's value."""
        return self.common_reduction(other) == other

    def reduce(self, values: pa.Array, other: GroupingFunction) -> pa.Array:
        """Turn values of this function into values of a function to which it reduces."""
        return self._plainest().reduced(values, other._plainest(), self.source_types[0])

    def apply(self, sources: Sequence[pa.Array]) -> pa.Array:
        """Compute the function from source values."""
        return self.transform.apply(sources)

    @property
    def value_type(self) -> pa.DataType:
        """The Arrow type of the function's values."""
        return self.transform.result_type(self.source_types)

    @property
    def spark_name(self) -> str | None:
        """The name of Spark's function of one column; None when Spark cannot express it."""
        if len(self.source_types) != 1 or not self.is_constant_for_spark:
            return None
        if self._is_of_decimals and not self.is_identity:
            return None
        return self.transform.spark_function(self.source_types)

    @property
    def is_known_to_jvm(self) -> bool:
        """Whether Spark can compute the function for a side that has no partitioning."""
        return self.transform.expression_sql is None and not self._is_of_decimals

    @property
    def is_identity(self) -> bool:
        """Whether the value is the source's own."""
        return self.transform.is_identity

    @property
    def is_constant_for_spark(self) -> bool:
        """Whether source values that are equal for Spark always have equal values.

        Spark joins -0.0 with 0.0 but hashes their bits, so float sources cannot be keys.
        """
        return not any(pa.types.is_floating(source) for source in self.source_types)

    @property
    def _is_of_decimals(self) -> bool:
        """Whether Spark has a source in another type, of which it makes other values.

        UINT64 is DECIMAL there, of which the bytes are hashed and not the eight of the number.
        """
        return any(map(pa.types.is_uint64, self.source_types))

    def _plainest(self) -> Transform:
        """See a transform of many columns as what it is of its only one."""
        return self.transform.of_one_column() if len(self.source_types) == 1 else self.transform


def _have_same_values(mine: Sequence[pa.DataType], theirs: Sequence[pa.DataType]) -> bool:
    return len(mine) == len(theirs) and all(map(_hash_alike, mine, theirs))


def _are_computed_alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether an expression cannot tell values of both types apart."""
    are_numbers = is_number(left) and is_number(right)
    return bool(are_numbers or left == right)


def _are_date_and_timestamp(mine: Sequence[pa.DataType], theirs: Sequence[pa.DataType]) -> bool:
    if len(mine) != 1 or len(theirs) != 1:
        return False
    kinds = (mine[0], theirs[0])
    return any(map(pa.types.is_date, kinds)) and any(map(pa.types.is_timestamp, kinds))


def _hash_alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether equal values of both types are the same bytes to a hash.

    That is so of all Arrow types of one type of Spark's: days are hashed, microseconds (of what
    has finer ones no row can be read), and bytes. Zoned and unzoned timestamps are equated in UTC
    only.
    """
    left, right = plain_type(left), plain_type(right)
    kinds = (pa.types.is_timestamp, pa.types.is_date, is_text, is_binary)
    if any(kind(left) and kind(right) for kind in kinds):
        return True
    if pa.types.is_decimal(left) and pa.types.is_decimal(right):
        return bool(left.scale == right.scale)
    are_integers = pa.types.is_integer(left) and pa.types.is_integer(right)
    return bool(left == right or are_integers)


# The grouping functions of one partition spec: composed time levels first, then the rest.
#
# The levels year, month, day, hour of one column, in any order, are one composed function (reading
# 31 of ``tests/conformance/readings.tsv``). A level without its coarser levels is a calendar field
# only.


@dataclass(frozen=True, slots=True)
class SpecFunction:
    """A grouping function of a spec, and the manifest columns that hold its value.

    Args:
        grouping: The function and its source types.
        source_ids: Field ids of the source columns, in the function's order.
        columns: Manifest columns: one, or one per level of composed time, coarse to fine; none
            for a column that the query's predicate fixes.
        fixed: The value of such a column.
    """

    grouping: GroupingFunction
    source_ids: tuple[int, ...]
    columns: tuple[str, ...]
    fixed: pa.Scalar | None = None

    def values(self, leaves: pa.Table) -> pa.Array:
        """Read the function's value for each leaf row of ``__manifest``."""
        if self.fixed is not None:
            return pa.repeat(self.fixed, leaves.num_rows)
        arrays = [leaves.column(column).combine_chunks() for column in self.columns]
        return self.grouping.transform.from_fields(arrays, self.grouping.source_types)


def spec_functions(spec: PartitionSpec, schema: NamespaceSchema) -> tuple[SpecFunction, ...]:
    """List the grouping functions of a spec, in the order of its fields.

    A field whose source column was dropped groups nothing any more: no query can name it.

    Spec: "Storage Partitioned Join".
    """
    functions: list[SpecFunction] = []
    composed_sources: set[int] = set()
    for field in spec.fields:
        types = tuple(type_ for type_ in field.source_types(schema) if type_ is not None)
        if len(types) < len(field.source_ids):
            continue
        levels = _levels_of(spec, field.source_ids)
        composed = composed_of(levels)
        columns = [levels[level.type] for level in composed.levels] if composed else []
        if composed is None or field.column not in columns:
            grouping = GroupingFunction(field.derivation, types)
            functions.append(SpecFunction(grouping, field.source_ids, (field.column,)))
        elif field.source_ids[0] not in composed_sources:
            composed_sources.add(field.source_ids[0])
            grouping = GroupingFunction(composed, types)
            functions.append(SpecFunction(grouping, field.source_ids, tuple(columns)))
    return tuple(functions)


def fixed_functions(
    field_ids: Iterable[int], fixed: Mapping[int, pa.Scalar], schema: NamespaceSchema
) -> tuple[SpecFunction, ...]:
    """List columns that the predicate fixes, as the identity that each of them is in every leaf.

    Rows with another value may lie in the same leaf: the filter takes them out before they meet
    anything that relies on the grouping.

    Args:
        field_ids: Field ids of the columns that are of use.
        fixed: Field id of a column → its value.
        schema: The namespace's schema.
    """
    functions: list[SpecFunction] = []
    for source_id in field_ids:
        source = schema.field_by_id(source_id)
        if source is None or source_id not in fixed:
            continue
        type_ = plain_type(source.field.type)
        if fixed[source_id].type == type_:
            grouping = GroupingFunction(IDENTITY, (source.field.type,))
            functions.append(SpecFunction(grouping, (source_id,), (), fixed[source_id]))
    return tuple(functions)


def _levels_of(spec: PartitionSpec, source_ids: tuple[int, ...]) -> dict[str, str]:
    """Map the level types of one column to their manifest columns."""
    return {
        field.derivation.type: field.column
        for field in spec.fields
        if field.source_ids == source_ids and field.derivation.is_level
    }


# The finest grouping to which all spec versions of a scan's chosen partitions reduce.
#
# A scan over bucket(8) and bucket(16) partitions groups by bucket(8); over months and days by
# months; a field that only one of the versions has is left out.


@dataclass(frozen=True, slots=True)
class LayoutFunction:
    """A grouping function on columns of one namespace, by their field ids."""

    grouping: GroupingFunction
    source_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the chosen partitions of one scan can be grouped.

    Args:
        functions: The finest common grouping functions, none reducing to another of them.
        versions: For each spec version among the chosen partitions, its own functions.
    """

    functions: tuple[LayoutFunction, ...]
    versions: Mapping[int, tuple[SpecFunction, ...]]

    def spec_functions(self) -> Iterator[tuple[int, SpecFunction]]:
        """List the functions of each spec version, with the version."""
        for version, own in self.versions.items():
            yield from ((version, function) for function in own)

    def values(self, function: LayoutFunction, leaves: pa.Table) -> pa.Array:
        """Compute the value of a function for each chosen leaf, whatever its spec version.

        Args:
            function: One of ``functions``, or anything to which one of them reduces.
            leaves: Rows of ``__manifest`` with ``object_id`` and the partition columns.
        """
        return self._merged(
            leaves,
            {version: _computed(own, function, leaves) for version, own in self.versions.items()},
        )

    def _merged(self, leaves: pa.Table, by_version: Mapping[int, pa.Array]) -> pa.Array:
        if len(by_version) == 1:
            return next(iter(by_version.values()))
        merged: pa.Array | None = None
        for version, values in by_version.items():
            if merged is None:
                merged = values
                continue
            of_version = pc.starts_with(leaves.column("object_id"), leaf_prefix(version))
            merged = pc.if_else(of_version.combine_chunks(), values, merged)
        if merged is None:
            return pa.nulls(leaves.num_rows)
        return merged


def layout_of(
    specs: Mapping[int, PartitionSpec],
    schema: NamespaceSchema,
    leaves: pa.Table,
    fixed: Mapping[int, pa.Scalar] | None = None,
) -> Layout:
    """Find the layout of the chosen partitions.

    Args:
        specs: All partition specs of the namespace.
        schema: The namespace's schema.
        leaves: The chosen rows of ``__manifest``; without any, the newest spec counts.
        fixed: Field ids of columns that have one value in all rows that the query keeps. A spec
            version without a field of such a column is grouped by the value itself.

    Spec: "Storage Partitioned Join".
    """
    names = leaves.column("object_id")
    chosen = {
        version
        for version in specs
        if pc.any(pc.starts_with(names, leaf_prefix(version)), min_count=0).as_py()
    } or {max(specs)}
    versions = {version: spec_functions(specs[version], schema) for version in sorted(chosen)}
    if fixed and len(specs) > 1:
        # Of all versions: what is left after pruning may be the one without a field of the column.
        partitioned_by = {
            source
            for spec in specs.values()
            for field in spec.fields
            for source in field.source_ids
        }
        for version, own in versions.items():
            missing = sorted(partitioned_by.difference(function.source_ids[0] for function in own))
            versions[version] = (*own, *fixed_functions(missing, fixed, schema))
    candidates: list[LayoutFunction] | None = None
    for own in versions.values():
        mine = [LayoutFunction(function.grouping, function.source_ids) for function in own]
        candidates = finest(mine) if candidates is None else common_functions(candidates, mine)
    return Layout(tuple(candidates or ()), versions)


def common_functions(
    left: Sequence[LayoutFunction], right: Sequence[LayoutFunction]
) -> list[LayoutFunction]:
    """List the finest functions to which functions of both sides reduce."""
    common_ones: list[LayoutFunction] = []
    for mine in left:
        for theirs in right:
            if mine.source_ids != theirs.source_ids:
                continue
            common = mine.grouping.common_reduction(theirs.grouping)
            if common is not None:
                common_ones.append(LayoutFunction(common, mine.source_ids))
    common_ones += composed_of_identities(left, right)
    common_ones += composed_of_identities(right, left)
    return finest(common_ones)


def composed_of_identities(
    identities: Sequence[LayoutFunction], targets: Sequence[LayoutFunction]
) -> list[LayoutFunction]:
    """List the functions of several columns whose columns are all there as identities."""
    columns = {function.source_ids[0] for function in identities if function.grouping.is_identity}
    return [
        target
        for target in targets
        if len(target.source_ids) > 1 and columns.issuperset(target.source_ids)
    ]


def finest(functions: Sequence[LayoutFunction]) -> list[LayoutFunction]:
    """Leave out every function to which another one on the same columns reduces."""
    kept: list[LayoutFunction] = []
    for position, function in enumerate(functions):
        others = [*kept, *functions[position + 1 :]]
        if not any(
            other.source_ids == function.source_ids and other.grouping.reduces_to(function.grouping)
            for other in others
        ):
            kept.append(function)
    return kept


def _computed(own: Sequence[SpecFunction], target: LayoutFunction, leaves: pa.Table) -> pa.Array:
    for function in own:
        if function.source_ids == target.source_ids and function.grouping.reduces_to(
            target.grouping
        ):
            return function.grouping.reduce(function.values(leaves), target.grouping)
    by_column = {
        function.source_ids[0]: function for function in own if function.grouping.is_identity
    }
    sources = [by_column[source_id].values(leaves) for source_id in target.source_ids]
    return target.grouping.apply(sources)


_BYTES: Final = {"byte": 1, "short": 2, "integer": 4, "long": 8}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_DATE: Final = "date"
# Partitions take a timestamp without a zone, and a date's midnight, as moments in UTC.
_MOMENTS: Final = {(_DATE, "timestamp_ntz"): False} | dict.fromkeys(
    [(_DATE, "timestamp"), ("timestamp_ntz", "timestamp")], True
)


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of one side of a comparison, under any casts.

    Args:
        types: Spark's names of the column's type and of those that it is cast to, in order.
        utc: Whether the casts that depend on a time zone are made in UTC.
        column: The column.
    """

    types: tuple[str, ...]
    utc: bool = True
    column: SparkExpression = UNWRITTEN

    @property
    def keeps_value(self) -> bool:
        """Whether the casts keep the value.

        Example:
            >>> ComparedColumn(("integer", "long")).keeps_value
            True
            >>> ComparedColumn(("date", "timestamp"), utc=False).keeps_value
            False
        """
        return all(self._keeps(old, new) for old, new in pairwise(self.types))

    def _keeps(self, old: str, new: str) -> bool:
        if (old, new) in _MOMENTS:
            return self.utc or not _MOMENTS[old, new]
        if old in _BYTES and new in _BYTES:
            return _BYTES[old] < _BYTES[new]
        narrow, wide = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
        return (
            narrow is not None
            and wide is not None
            and narrow[2] == wide[2]
            and int(narrow[1]) < int(wide[1])
        )


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """A comparison by ``=`` or ``<=>`` of both sides of a join; None for one that is no column."""

    left: ComparedColumn | None
    right: ComparedColumn | None

    @property
    def columns(self) -> tuple[ComparedColumn, ...]:
        """Its sides that are columns, the left one first."""
        return tuple(side for side in (self.left, self.right) if side is not None)

    @property
    def equates(self) -> bool:
        """Whether it compares the own values of two columns."""
        return None not in (self.left, self.right) and all(
            column.keeps_value for column in self.columns
        )

    @property
    def has_casts(self) -> bool:
        """Whether one of them is cast, behind which Spark sees no partitioning."""
        return any(len(column.types) > 1 for column in self.columns)

    @property
    def is_of_midnights(self) -> bool:
        """Whether a DATE is compared with a timestamp."""
        return sum(column.types[0] == _DATE for column in self.columns) == 1
