"""Generates the field ids of new partition fields that the user does not name.

identity gives the column's name, the others the columns' names and a word for the transform:
``id_bucket``, ``a_b_bucket``, ``name_trunc``, ``ts_year``, ``email_expr``. A number makes the name
unique over every spec version, because a field id is never used for another derivation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pennon.errors import InvalidPartitionFieldName
from pennon.transforms.transform import Transform

__all__ = ["checked_name", "default_name", "level_name", "unique_name"]

_LEGAL = re.compile(r"[a-z0-9_]+")
_ILLEGAL_RUN = re.compile(r"[^a-z0-9_]+")


def default_name(transform: Transform, columns: Sequence[Sequence[str]]) -> str:
    """Derive a field's name from its transform and columns, nested names joined by ``_``.

    Example:
        >>> from pennon.transforms.registry import from_json
        >>> bucket = from_json({"type": "bucket", "num_buckets": 16})
        >>> default_name(bucket, [("Customer", "id")])
        'customer_id_bucket'

    Spec: "Partition Field ID".
    """
    stem = "_".join(_legal(name) for path in columns for name in path) or "field"
    return stem + transform.name_suffix


def level_name(prefix: str, transform: Transform) -> str:
    """Name one level of a composed transform that the user gave a name.

    Example:
        >>> from pennon.transforms.registry import from_json
        >>> level_name("event", from_json({"type": "year"}))
        'event_year'
    """
    return f"{prefix}_{transform.type}"


def unique_name(name: str, taken: Collection[str]) -> str:
    """Add the smallest number that makes a name differ, also in more than case, from all others.

    Example:
        >>> unique_name("id_bucket", {"ID_bucket", "id_bucket_2"})
        'id_bucket_3'
    """
    lowered = {other.lower() for other in taken}
    if name not in lowered:
        return name
    number = 2
    while f"{name}_{number}" in lowered:
        number += 1
    return f"{name}_{number}"


def checked_name(name: str, taken: Collection[str]) -> str:
    """Check a name that the user chose.

    Raises:
        InvalidPartitionFieldName: The name has other characters than the format's column names
            carry safely, or another partition field has or had it.

    Spec: "Partition Field ID".
    """
    if not _LEGAL.fullmatch(name):
        raise InvalidPartitionFieldName(name=name, reason="it has other characters")
    if name in {other.lower() for other in taken}:
        raise InvalidPartitionFieldName(name=name, reason="another partition field has or had it")
    return name


def _legal(name: str) -> str:
    return _ILLEGAL_RUN.sub("_", name.lower()).strip("_") or "field"
