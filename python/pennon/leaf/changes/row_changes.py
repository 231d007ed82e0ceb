"""Deletes and adds single rows of a leaf in one commit.

By merge on read a row goes by its fragment's deletion vector; the fragment's files stay as they
are, and a fragment without a row left goes as a whole. By copy on write a fragment goes as soon as
one of its rows does, and another comes with the rest. New rows are new fragments. Only touched
fragments change, so a reader of the version before sees what it saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance

from pennon.errors import InternalError
from pennon.leaf.changes.fragment_copy import copied_without, is_copyable
from pennon.leaf.write.leaf_commit import commit_operation, prepared_fragments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from lance.fragment import FragmentMetadata

    from pennon.leaf.changes.deleted_rows import DeletedRows
    from pennon.leaf.write.staged_partition import StagedPartition

__all__ = ["change_rows", "deletions", "has_same_fragments"]


def change_rows(
    dataset: lance.LanceDataset,
    deleted: DeletedRows | None,
    staged: Sequence[StagedPartition],
    schema: pa.Schema,
    *,
    detached: bool = True,
    copies: bool = False,
) -> lance.LanceDataset:
    """Take rows out of a leaf and add others.

    Args:
        dataset: The leaf at the version to build on: its fragments are those of the rows' ids.
        deleted: Rows that go; None for none.
        staged: What tasks wrote for this leaf.
        schema: The namespace schema, with its ids; columns that the leaf lacks are added to it.
        detached: Whether to commit beside the main branch.
        copies: Whether by copy on write; rows of a leaf with blobs are marked all the same.

    Raises:
        WriteConflict: The leaf stores a column in another type than the files, by now.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    extended, new = prepared_fragments(dataset, staged, schema, detached=detached)
    updated: list[FragmentMetadata] = []
    if copies and deleted is not None and is_copyable(extended):
        copied, removed = copied_without(extended, deleted)
        new = [*copied, *new]
    else:
        updated, removed = deletions(extended, deleted)
    if not updated and not removed and not new:
        return extended
    operation = lance.LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=updated, new_fragments=new
    )
    return commit_operation(extended, operation, detached=detached)


def deletions(
    dataset: lance.LanceDataset, deleted: DeletedRows | None
) -> tuple[list[FragmentMetadata], list[int]]:
    """Write the deletion vectors of rows that go; commits nothing.

    Returns:
        The fragments that have fewer rows, and the numbers of those that have none left.

    Raises:
        InternalError: A row is not there.
    """
    updated: list[FragmentMetadata] = []
    removed: list[int] = []
    if deleted is None:
        return updated, removed
    for number, offsets in deleted.by_fragment().items():
        fragment = dataset.get_fragment(number)
        if fragment is None:
            raise InternalError(what=f"rows of fragment {number} of {deleted.location} are to go")
        # By offsets: a condition on a million addresses takes Lance seconds and a gigabyte.
        left = fragment.delete_rows(offsets)
        gone = fragment.count_rows() - (left.num_rows if left is not None else 0)
        if gone != len(offsets):
            raise InternalError(
                what=f"{len(offsets)} rows of {deleted.location} were to go, and {gone} went"
            )
        if left is None:
            removed.append(number)
        else:
            updated.append(left)
    return updated, removed


def has_same_fragments(
    before: lance.LanceDataset, after: lance.LanceDataset, fragments: Iterable[int]
) -> bool:
    """Whether fragments are what they were, though another version is built on.

    Args:
        before: The version that they were read at.
        after: The other one.
        fragments: Their numbers.
    """
    for number in fragments:
        old, new = before.get_fragment(number), after.get_fragment(number)
        if old is None or new is None or old.metadata.to_json() != new.metadata.to_json():
            return False
    return True
