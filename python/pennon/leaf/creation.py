"""Making the dataset of a new leaf: an empty version on main that states the namespace's ids.

A plain Lance reader of the main branch sees an empty table, never half a transaction. Several
writers may make the same leaf at once: the first makes it, the others find it.

Columns always state their id. Nested fields state theirs only where Lance's own number is
another: pylance 14 fails to filter by a nested column whose fields have metadata ("column types
must match schema types"), and a leaf is a table for plain Lance readers too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa

from pennon.errors import InternalError
from pennon.leaf.dataset import leaf_uri, open_leaf
from pennon.leaf.incoming import plain_field
from pennon.leaf.reconciliation import FieldMatch, LeafField, leaf_fields, match_fields
from pennon.spec.schema import FIELD_ID, children_of, field_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["create_leaf", "state_field_ids"]

_ATTEMPTS = 5


def create_leaf(
    root: str, location: str, schema: pa.Schema, storage_options: Mapping[str, str] | None = None
) -> lance.LanceDataset:
    """Make a leaf's empty dataset, or open the newest version of the one that is there.

    Args:
        root: Path or URL of the namespace.
        location: The leaf's directory.
        schema: The namespace schema, with its ids.
        storage_options: Passed to Lance, never printed.

    Returns:
        The dataset at its newest version of main, whose fields state the namespace's ids.

    Spec: "Schema", "Physical Layout and Naming".
    """
    uri = leaf_uri(root, location)
    options = dict(storage_options) if storage_options else None
    plain = pa.schema([plain_field(column) for column in schema])
    try:
        # write_dataset's create mode retries as an overwrite when two writers race; on version 0,
        # without retries, Lance lets one pass.
        lance.LanceDataset.commit(
            uri,
            lance.LanceOperation.Overwrite(plain, []),
            read_version=0,
            max_retries=0,
            storage_options=options,
        )
    except OSError as error:
        if not _says_made(error):
            raise
    for _ in range(_ATTEMPTS):
        dataset = open_leaf(root, location, None, storage_options)
        missing = _unstated(dataset, schema, location)
        if not missing:
            return dataset
        try:
            state_field_ids(dataset, missing, detached=False)
        except OSError as error:
            if not _says_made(error):
                raise
    raise InternalError(what=f"the field ids of leaf {location} could not be stated")


def state_field_ids(
    dataset: lance.LanceDataset, ids: Mapping[int, int], *, detached: bool
) -> lance.LanceDataset:
    """Write the namespace's field ids to a leaf's fields.

    Args:
        dataset: The leaf.
        ids: Lance's number of a field → the namespace's id.
        detached: Whether to commit beside the main branch.
    """
    updates = {
        number: lance.LanceOperation.UpdateMap({FIELD_ID.decode(): str(field_id)})
        for number, field_id in ids.items()
    }
    return lance.LanceDataset.commit(
        dataset,
        lance.LanceOperation.UpdateConfig(field_metadata_updates=updates),
        read_version=dataset.version,
        detached=detached,
    )


def _unstated(dataset: lance.LanceDataset, schema: pa.Schema, leaf: str) -> dict[int, int]:
    """Fields whose id the leaf does not state, of those that are the namespace's."""
    found = leaf_fields(dataset)
    if _is_new(list(schema), found):
        numbers = dict(_numbers(list(schema), found))
        if any(number != field_id for number, field_id in numbers.items()):
            return numbers
        return {each.number: numbers[each.number] for each in found if each.number in numbers}
    matches = match_fields(list(schema), found, leaf)
    silent = {}
    for match in _walk(matches):
        field_id, found = field_id_of(match.wanted), match.found
        if found is None or field_id is None or found.number < 0 or found.stated_id is not None:
            continue
        is_top = any(match is top for top in matches)
        if is_top or found.number != field_id:
            silent[found.number] = field_id
    return silent


def _is_new(
    wanted: Sequence[pa.Field], found: Sequence[LeafField], *, are_named: bool = True
) -> bool:
    """Whether a leaf has just been made of these fields: it states nothing, and has their names.

    Lance numbers them anew. Where a column was dropped before, its number for one field is the
    namespace's id of another, so that numbers tell nothing.
    """
    return len(wanted) == len(found) and all(
        its.stated_id is None
        and (mine.name == its.arrow.name or not are_named)
        and (
            not its.children
            or _is_new(
                children_of(mine.type), its.children, are_named=pa.types.is_struct(mine.type)
            )
        )
        for mine, its in zip(wanted, found, strict=True)
    )


def _numbers(wanted: Sequence[pa.Field], found: Sequence[LeafField]) -> Iterator[tuple[int, int]]:
    for mine, its in zip(wanted, found, strict=True):
        field_id = field_id_of(mine)
        if field_id is not None and its.number >= 0:
            yield its.number, field_id
        if its.children:
            yield from _numbers(children_of(mine.type), its.children)


def _walk(matches: Sequence[FieldMatch]) -> Iterator[FieldMatch]:
    for match in matches:
        yield match
        yield from _walk(match.children)


def _says_made(error: OSError) -> bool:
    text = str(error).lower()
    words = ("already exists", "0.manifest was not found", "conflict", "concurrent", "retryable")
    return any(word in text for word in words)
