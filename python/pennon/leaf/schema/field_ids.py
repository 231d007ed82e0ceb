"""States the namespace's field ids in the schema of an existing leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance

from pennon.spec.schema import FIELD_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["state_field_ids"]


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
