"""Indexes: which kinds there are, what each is built of and with, and how one leaf gets a segment.

A segment is a part of an index over some fragments of one leaf. It is built beside the leaf's
versions, and is none of theirs before a commit says so (``search/index_upkeep.py``).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from lance.indices import IndexConfig
from sqlglot import exp

from pennon.errors import IndexOptionRefused, IndexRefused
from pennon.leaf import LeafSource, LeafViews
from pennon.leaf.dataset import leaf_failure
from pennon.leaf.read.metadata_columns import ROW_ID
from pennon.manifest.format.properties import IndexDefinition
from pennon.planning.binding.source_columns import resolve_column
from pennon.predicate.dialect import DataFusion
from pennon.search.text import store_words, stored_blocks
from pennon.search.vectors import Metric, is_vector
from pennon.spec.column_names import column_path
from pennon.spec.schema import field_id_of

if TYPE_CHECKING:
    import lance
    from lance.dataset import Index

    from pennon.manifest import Snapshot

__all__ = [
    "INDEX_TYPES",
    "build_segment",
    "define_index",
    "has_files",
    "index_on_main",
    "indexed_column",
    "is_of_kind",
    "stored_name",
]

_MIN_BYTES: Final = "min_bytes"
_LEAST_BYTES: Final = 8 << 20
"""Of fewer bytes an index takes as long as a look at every row does."""
# Lance trains the 256 codes of each sub-vector on as many rows.
_LEAST_ROWS_OF_PQ: Final = 256
_TRUE: Final = {"true": True, "false": False, "1": True, "0": False}
_Option = type[int] | type[float] | type[str] | type[bool]

_IVF: Final[Mapping[str, _Option]] = {
    "num_partitions": int,
    "target_partition_size": int,
    "sample_rate": int,
    "max_iters": int,
}
_HNSW: Final[Mapping[str, _Option]] = {"m": int, "ef_construction": int, "max_level": int}
_PQ: Final[Mapping[str, _Option]] = {"num_sub_vectors": int, "num_bits": int}
_TEXT: Final[Mapping[str, _Option]] = {
    "base_tokenizer": str,
    "language": str,
    "max_token_length": int,
    "lower_case": bool,
    "stem": bool,
    "remove_stop_words": bool,
    "ascii_folding": bool,
    "with_position": bool,
    "min_ngram_length": int,
    "max_ngram_length": int,
    "prefix_only": bool,
}


def _is_plain(data_type: pa.DataType) -> bool:
    return not pa.types.is_nested(data_type) and not pa.types.is_null(data_type)


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_list(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def _is_document(data_type: pa.DataType) -> bool:
    return _is_text(data_type.value_type if _is_list(data_type) else data_type)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of index: the columns it is of, and the options it takes beside ``min_bytes``."""

    takes: Callable[[pa.DataType], bool]
    column: str
    options: Mapping[str, _Option]
    least_bytes: int = _LEAST_BYTES

    @property
    def is_of_vectors(self) -> bool:
        return self.takes is is_vector


_VECTORS: Final = "vectors: lists of one size, of floating point numbers or bytes"
_VALUES: Final = "numbers, texts, bytes or times"
INDEX_TYPES: Final[Mapping[str, _Kind]] = {
    "IVF_FLAT": _Kind(is_vector, _VECTORS, _IVF),
    "IVF_SQ": _Kind(is_vector, _VECTORS, {**_IVF, "num_bits": int}),
    "IVF_PQ": _Kind(is_vector, _VECTORS, {**_IVF, **_PQ}),
    "IVF_RQ": _Kind(is_vector, _VECTORS, {**_IVF, "num_bits": int}),
    "IVF_HNSW_FLAT": _Kind(is_vector, _VECTORS, {**_IVF, **_HNSW}),
    "IVF_HNSW_SQ": _Kind(is_vector, _VECTORS, {**_IVF, **_HNSW}),
    "IVF_HNSW_PQ": _Kind(is_vector, _VECTORS, {**_IVF, **_HNSW, **_PQ}),
    "BTREE": _Kind(_is_plain, _VALUES, {}),
    "BITMAP": _Kind(_is_plain, _VALUES, {}),
    "ZONEMAP": _Kind(_is_plain, _VALUES, {"rows_per_zone": int}),
    "BLOOMFILTER": _Kind(_is_plain, _VALUES, {"number_of_items": int, "probability": float}),
    "LABEL_LIST": _Kind(_is_list, "lists", {}),
    # Pennon evaluates no condition on places: other clients of Lance ask it.
    "RTREE": _Kind(_is_bytes, "bytes: geometries as WKB", {}),
    "NGRAM": _Kind(_is_text, "texts", {}),
    # Without it there is no search in a leaf's texts, however few they are.
    "INVERTED": _Kind(_is_document, "texts, or lists of texts", _TEXT, least_bytes=0),
}
"""The kinds of index by Lance's names."""
_ALIASES: Final = {"FTS": "INVERTED", "BLOOM_FILTER": "BLOOMFILTER", "ZONE_MAP": "ZONEMAP"}


def define_index(
    snapshot: Snapshot,
    column: str,
    index_type: str,
    *,
    table: str,
    name: str | None = None,
    metric: str | None = None,
    where: str | None = None,
    options: Mapping[str, object] | None = None,
) -> IndexDefinition:
    """Describe an index of a table; nothing is built yet.

    Args:
        snapshot: The table.
        column: The column.
        index_type: Lance's name of the kind, in letters of either case.
        table: The table, for errors.
        name: Its name; None for ``<column>_idx``.
        metric: How distances between vectors are measured; None for the usual one.
        where: A condition on partitions in Spark SQL; leaves that it rules out get no index.
        options: What Lance builds it with, as values or as their texts; and ``min_bytes``: how
            large a leaf has to be.

    Raises:
        IndexRefused: There is no such kind, or it is not of such columns.
        IndexOptionRefused: The kind has no such option, or not with that value.
        UnknownColumn: There is no such column.
    """
    kind_name = index_type.upper()
    kind_name = _ALIASES.get(kind_name, kind_name)
    kind = INDEX_TYPES.get(kind_name)
    path = resolve_column(column_path(column), snapshot.schema.arrow).path
    field = snapshot.schema.arrow.field(path[0])
    index_name = name or f"{column.replace('.', '_')}_idx"

    def refused(why: str, advice: str) -> IndexRefused:
        return IndexRefused(name=index_name, table=table, why=why, advice=advice)

    if kind is None:
        why = f"{index_type} is no kind of index"
        raise refused(why, f"Use one of {', '.join(INDEX_TYPES)}")
    if len(path) > 1 or not kind.takes(field.type):
        own = "a field of a struct" if len(path) > 1 else f"of type {field.type}"
        why = f"{column} is {own}, and {kind_name} is an index of {kind.column}"
        raise refused(why, "Name a column of such values, or another kind of index")
    field_id = field_id_of(field)
    if field_id is None:
        why = f"{column} has no id"
        raise refused(why, "Name a column of the table")
    if metric is not None and not kind.is_of_vectors:
        why = f"{kind_name} measures no distances"
        raise refused(why, "Leave the metric out")
    measured = str(Metric.of(metric, field, table)) if kind.is_of_vectors else None
    if measured is not None and not Metric(measured).is_lances(field):
        why = f"Lance has no index by {measured} of vectors of {field.type.value_type}"
        raise refused(why, "Use another metric, or search without an index")
    given = dict(options or {})
    known = {**kind.options, _MIN_BYTES: int}
    values = {key: _option(index_name, kind_name, known, key, given[key]) for key in given}
    least = values.pop(_MIN_BYTES, kind.least_bytes)
    parts = 8 if kind_name == "IVF_RQ" else values.get("num_sub_vectors", 1)
    if kind.is_of_vectors and isinstance(parts, int) and field.type.list_size % max(1, parts):
        size = field.type.list_size
        why = f"{kind_name} divides vectors into {parts}, and {column} has {size} elements"
        raise refused(why, "Use IVF_SQ, or another number of num_sub_vectors")
    return IndexDefinition(
        index_name,
        kind_name,
        field_id,
        measured,
        where,
        int(least),
        values,
    )


def _option(
    index: str, kind: str, known: Mapping[str, _Option], name: str, value: object
) -> int | float | str | bool:
    """Read an option's value, which SQL gives as text."""
    option = known.get(name)
    if option is None:
        why, expected = f"{kind} has no such option", ", ".join(known)
    else:
        read: int | float | str | bool | None = None
        with contextlib.suppress(ValueError):
            read = _TRUE.get(str(value).lower()) if option is bool else option(str(value))
        if read is not None and (isinstance(read, str) or read >= 0):
            return read
        why, expected = "it is no such value", f"a value of type {option.__name__}, not below 0"
    raise IndexOptionRefused(index=index, option=name, value=value, why=why, expected=expected)


def indexed_column(columns: pa.Schema, definition: IndexDefinition) -> pa.Field | None:
    """Give the column of an index; None where it was dropped, or has a type of no such index.

    Args:
        columns: All columns of the table.
        definition: The index.
    """
    kind = INDEX_TYPES.get(definition.type)
    for field in columns:
        if field_id_of(field) == definition.field_id:
            return field if kind is not None and kind.takes(field.type) else None
    return None


def is_of_kind(definition: IndexDefinition, kind: str) -> bool:
    """Whether a leaf's index is of the kind that is defined: one of that name was another once.

    Args:
        definition: The index.
        kind: What Lance calls the kind.
    """
    return kind.replace("_", "").upper() == definition.type.replace("_", "")


def has_files(
    definition: IndexDefinition, column: pa.Field | None, names: Collection[str] | None
) -> bool:
    """Whether a segment has the files of such an index.

    Args:
        definition: The index.
        column: Its column in the table.
        names: The files that are there; None for none.
    """
    if column is not None and names and _has_words(definition, column):
        return bool(stored_blocks(names))
    return bool(names)


def _has_words(definition: IndexDefinition, column: pa.Field) -> bool:
    return definition.type == "INVERTED" and _is_text(column.type)


def stored_name(
    dataset: lance.LanceDataset, column: pa.Field, namespace_schema: pa.Schema
) -> str | None:
    """Give the name that a leaf has for a column; None where it has none.

    Args:
        dataset: The leaf at a version.
        column: The column of the table.
        namespace_schema: All columns of the table.
    """
    (match,) = LeafViews(pa.schema([column]), namespace_schema).of(dataset).matches
    return None if match.stored is None else match.stored.name


def build_segment(
    dataset: lance.LanceDataset,
    definition: IndexDefinition,
    column: pa.Field,
    namespace_schema: pa.Schema,
    fragments: Sequence[int],
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Index | None:
    """Build a segment over some fragments of a leaf, of which no version knows afterwards.

    Args:
        dataset: The leaf at a version, detached or not.
        definition: The index.
        column: Its column in the table.
        namespace_schema: All columns of the table.
        fragments: The numbers of the fragments.
        storage_options: Given to Lance.

    Returns:
        The segment; None where the leaf stores the column otherwise, or has too few values.

    Raises:
        IndexRefused: Lance refused to build it.
        LeafMissing: The leaf's files are gone.
        StorageFailure: They cannot be read.
    """
    request = _request(dataset, definition, column, namespace_schema, fragments)
    if request is None:
        return None
    with _refused_by_lance(dataset, definition):
        # Of a name that the leaf has for another column Lance builds nothing: one of a dropped
        # index, which goes with the commit that shows this one.
        request["name"] = f"{definition.name} {uuid4()}"
        segment = dataset.create_index_uncommitted(fragment_ids=list(fragments), **request)
        if definition.type == "INVERTED":
            # What was built lies in parts that no query reads before they are merged.
            segment = dataset.merge_existing_index_segments([segment])
            if _has_words(definition, column):
                views = LeafViews(pa.schema([column, ROW_ID]), namespace_schema)
                store_words(dataset, segment, views, storage_options)
    return replace(segment, name=definition.name) if segment.fragment_ids else None


def index_on_main(
    dataset: lance.LanceDataset,
    definition: IndexDefinition,
    column: pa.Field,
    namespace_schema: pa.Schema,
) -> bool:
    """Build an index of a dataset that is read at the newest version of its main branch.

    Returns:
        Whether there is one now; not where it has too few values.

    Raises:
        IndexRefused: Lance refused to build it.
        LeafMissing: The leaf's files are gone.
        StorageFailure: They cannot be read.
    """
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    request = _request(dataset, definition, column, namespace_schema, fragments)
    if request is None:
        return False
    with _refused_by_lance(dataset, definition):
        if INDEX_TYPES[definition.type].is_of_vectors:
            dataset.create_index(replace=True, **request)
        else:
            dataset.create_scalar_index(replace=True, **request)
    return True


@contextlib.contextmanager
def _refused_by_lance(dataset: lance.LanceDataset, definition: IndexDefinition) -> Iterator[None]:
    """Say which index Lance does not build; files that cannot be read are no fault of its kind."""
    try:
        yield
    except (ValueError, OSError, RuntimeError, TypeError) as error:
        failure = leaf_failure(dataset, error)
        if failure is not None:
            raise failure from error
        text = (str(error).splitlines() or [""])[0].removeprefix("Invalid user input: ")
        why = text.partition(", /")[0].rstrip(".")
        raise IndexRefused(
            name=definition.name,
            table=str(dataset.uri),
            why=f"Lance says {why}",
            advice="Choose another kind, or other options",
        ) from error


def _request(
    dataset: lance.LanceDataset,
    definition: IndexDefinition,
    column: pa.Field,
    namespace_schema: pa.Schema,
    fragments: Sequence[int],
) -> dict[str, Any] | None:
    """Give what Lance is asked for; None where there is nothing to build an index of."""
    (match,) = LeafViews(pa.schema([column]), namespace_schema).of(dataset).matches
    kind = INDEX_TYPES[definition.type]
    if match.stored is None or not kind.takes(match.stored.arrow.type):
        return None
    name = match.stored.name
    request: dict[str, Any] = {"column": name, "name": definition.name}
    parameters: dict[str, Any] = dict(definition.parameters)
    if not kind.is_of_vectors:
        is_config = bool(parameters) and definition.type in ("ZONEMAP", "BLOOMFILTER")
        config = IndexConfig(definition.type.lower(), parameters) if is_config else definition.type
        return {**request, "index_type": config, **({} if is_config else parameters)}
    is_there = exp.column(name, quoted=True).is_(exp.null()).not_().sql(dialect=DataFusion)
    num_rows = LeafSource(dataset).count(is_there, fragments)
    least = _LEAST_ROWS_OF_PQ if "PQ" in definition.type else 1
    if num_rows < least:
        return None
    if "num_partitions" not in parameters and "target_partition_size" not in parameters:
        parameters["num_partitions"] = max(1, math.isqrt(num_rows) // 2)
    if "HNSW" in definition.type and "num_partitions" not in definition.parameters:
        parameters["num_partitions"] = 1
    if "PQ" in definition.type and "num_sub_vectors" not in parameters:
        size = match.stored.arrow.type.list_size
        parameters["num_sub_vectors"] = next(size // at for at in (4, 2, 1) if size % at == 0)
    return {
        **request,
        "index_type": definition.type,
        "metric": definition.metric,
        **parameters,
    }
