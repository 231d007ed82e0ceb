"""Object ids, namespace names and directories of ``__manifest``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["LeafName", "ObjectId", "leaf_name"]


@dataclass(frozen=True, slots=True)
class ObjectId:
    """``v2$e9f0g1h2i3j4k5l6$dataset`` taken apart: spec version, namespaces, object."""

    spec_version: int
    namespaces: tuple[str, ...]
    is_table: bool


@dataclass(frozen=True, slots=True)
class LeafName:
    """The name of a partition: its table's object id, its namespaces' object ids, its directory."""

    object_id: str
    namespaces: tuple[str, ...]
    directory: str


def leaf_name(salt: bytes, spec_version: int, values: Sequence[pa.Scalar]) -> LeafName:
    """Derive the name of a partition from its tuple, so that two writers agree on it."""
    raise NotImplementedError
