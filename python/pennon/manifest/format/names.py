"""Object ids, namespace names and directories of ``__manifest``.

A partition's name is not drawn at random: it is a hash of spec version and partition tuple, keyed
with the namespace's secret salt. It looks random and reveals nothing about the values, yet two
tasks or two writers that meet the same new partition agree on its object id and its directory, so
their conflict shows up as one primary key in ``__manifest`` instead of as a doubled partition.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from sqlglot import exp

from pennon.errors import InternalError
from pennon.predicate.values.time_units import NANOS_PER_UNIT
from pennon.spec.partition_spec import leaf_prefix

__all__ = [
    "SEPARATOR",
    "TABLE_NAME",
    "LeafName",
    "ObjectId",
    "canonical_bytes",
    "is_leaf_directory",
    "leaf_name",
    "of_spec_version",
    "spec_version_asked",
    "spec_version_of",
]

_LEAF_DIRECTORY: Final = re.compile(r"[0-9a-f]{8}_v\d+(\$[^/]+)+")

SEPARATOR: Final = "$"
TABLE_NAME: Final = "dataset"
_NAME_LENGTH: Final = 16
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
# A component of a path may have 255 bytes on every file system in use.
_MAX_DIRECTORY_BYTES: Final = 255


@dataclass(frozen=True, slots=True)
class ObjectId:
    """``v2$e9f0g1h2i3j4k5l6$dataset`` taken apart.

    Args:
        spec_version: The N of ``v<N>``.
        namespaces: The partition namespaces' own names, outermost first.
        is_table: Whether the id names the leaf table ``dataset`` below them.

    Example:
        >>> str(ObjectId.parse("v1$k7m2n9p4q8r5s3t6$dataset"))
        'v1$k7m2n9p4q8r5s3t6$dataset'
        >>> ObjectId.parse("sales$orders") is None
        True

    Spec: "Physical Layout and Naming".
    """

    spec_version: int
    namespaces: tuple[str, ...] = ()
    is_table: bool = False

    @classmethod
    def parse(cls, object_id: str) -> ObjectId | None:
        """Take an object id apart; None for the ids of objects that are not ours."""
        top, *below = object_id.split(SEPARATOR)
        if not (top[:1] == "v" and top[1:].isascii() and top[1:].isdecimal()) or "" in below:
            return None
        is_table = bool(below) and below[-1] == TABLE_NAME
        return cls(int(top[1:]), tuple(below[:-1] if is_table else below), is_table)

    def __str__(self) -> str:
        table = (TABLE_NAME,) if self.is_table else ()
        return SEPARATOR.join((f"v{self.spec_version}", *self.namespaces, *table))


def spec_version_of(object_id: str) -> int:
    """Give the spec version of a leaf, or of a partition namespace.

    Example:
        >>> spec_version_of("v12$k7m2n9p4q8r5s3t6$dataset")
        12

    Spec: "Physical Layout and Naming".
    """
    top = ObjectId.parse(object_id.partition(SEPARATOR)[0])
    if top is None:
        raise InternalError(what=f"the object id {object_id} names no spec version")
    return top.spec_version


def of_spec_version(spec_version: int) -> exp.Expression:
    """Write the condition on ``object_id`` that the leaves of a spec version satisfy.

    Example:
        >>> print(of_spec_version(2).sql())
        "object_id" LIKE 'v2$%'
    """
    return exp.Like(
        this=exp.column("object_id", quoted=True),
        expression=exp.Literal.string(f"{leaf_prefix(spec_version)}%"),
    )


def spec_version_asked(condition: exp.Expr) -> int | None:
    """Read a condition of ``of_spec_version``; None for another.

    Example:
        >>> spec_version_asked(of_spec_version(2)), spec_version_asked(exp.true())
        (2, None)
    """
    if not isinstance(condition, exp.Like):
        return None
    prefix = condition.expression.name.partition(SEPARATOR)[0]
    top = ObjectId.parse(prefix)
    is_asked = top is not None and condition == of_spec_version(top.spec_version)
    return top.spec_version if top is not None and is_asked else None


@dataclass(frozen=True, slots=True)
class LeafName:
    """The names of one partition.

    Args:
        object_id: The leaf table's.
        namespaces: The object ids of its partition namespaces, outermost first.
        directory: The leaf's directory, relative to the namespace's location.
    """

    object_id: str
    namespaces: tuple[str, ...]
    directory: str


def leaf_name(salt: bytes, spec_version: int, values: Sequence[pa.Scalar]) -> LeafName:
    """Derive the names of a partition from its tuple.

    Args:
        salt: The namespace's secret, 16 to 64 bytes.
        spec_version: The spec that the tuple belongs to.
        values: One scalar per partition field, outermost level first.

    Returns:
        The same names for every writer that holds the same salt.

    Example:
        >>> name = leaf_name(b"0" * 16, 1, [pa.scalar("US")])
        >>> name.object_id.startswith("v1$"), name.object_id.endswith("$dataset")
        (True, True)
        >>> name.directory.endswith("_" + name.object_id)
        True

    Spec: "Partition Namespace Naming", Appendix B.
    """
    above = ObjectId(spec_version)
    namespaces: list[str] = []
    prefix = b""
    for value in values:
        prefix += canonical_bytes(value)
        digest = _keyed(salt, b"namespace", spec_version, prefix, 32)
        above = ObjectId(spec_version, (*above.namespaces, _base36(digest)))
        namespaces.append(str(above))
    object_id = str(ObjectId(spec_version, above.namespaces, is_table=True))
    hexadecimal = _keyed(salt, b"directory", spec_version, prefix, 4).hex()
    directory = f"{hexadecimal}_{object_id}"
    if len(directory) > _MAX_DIRECTORY_BYTES:
        whole = _keyed(salt, b"directory", spec_version, prefix, 16).hex()
        short_id = ObjectId(spec_version, (whole,), is_table=True)
        directory = f"{hexadecimal}_{short_id}"
    return LeafName(object_id, tuple(namespaces), directory)


def _keyed(salt: bytes, purpose: bytes, spec_version: int, prefix: bytes, size: int) -> bytes:
    message = spec_version.to_bytes(8, "little") + prefix
    return hashlib.blake2b(message, digest_size=size, key=salt, person=purpose).digest()


def _base36(digest: bytes) -> str:
    number = int.from_bytes(digest, "big")
    characters = []
    for _ in range(_NAME_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        characters.append(_DIGITS[digit])
    return "".join(characters)


def canonical_bytes(value: pa.Scalar) -> bytes:
    """Write a partition value as bytes: equal values equal bytes, different values different ones.

    Widths do not matter (``int32`` 5 is ``int64`` 5), NaN equals NaN and -0.0 equals 0.0; every
    value is led by its kind and length, so that tuples cannot run into each other.

    Raises:
        InternalError: The type cannot be one of a partition value.

    Example:
        >>> canonical_bytes(pa.scalar(5, pa.int8())) == canonical_bytes(pa.scalar(5, pa.int64()))
        True
        >>> canonical_bytes(pa.scalar("")) == canonical_bytes(pa.scalar(None, pa.utf8()))
        False

    Spec: "Partition Namespace Naming".
    """
    kind, body = _kind_and_body(value)
    return kind + len(body).to_bytes(4, "little") + body


def _kind_and_body(value: pa.Scalar) -> tuple[bytes, bytes]:
    data_type = value.type
    if not value.is_valid:
        return b"0", b""
    if pa.types.is_boolean(data_type):
        return b"b", b"\x01" if value.as_py() else b"\x00"
    if pa.types.is_integer(data_type):
        return b"i", _signed(value.as_py())
    if pa.types.is_floating(data_type):
        number = float(value.as_py())
        if math.isnan(number):
            return b"f", b"nan"
        return b"f", struct.pack(">d", number + 0.0)
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return b"s", value.as_py().encode()
    if data_type == pa.string_view():
        return b"s", value.as_py().encode()
    if pa.types.is_decimal(data_type):
        unscaled = int(value.as_py().scaleb(data_type.scale))
        return b"d", data_type.scale.to_bytes(2, "little", signed=True) + _signed(unscaled)
    if pa.types.is_temporal(data_type):
        return _temporal(value)
    raw = value.as_py()
    if isinstance(raw, bytes):
        return b"x", raw
    raise InternalError(what=f"a partition value has the type {data_type}")


def _temporal(value: pa.Scalar) -> tuple[bytes, bytes]:
    data_type = value.type
    if pa.types.is_date(data_type):
        return b"D", _signed(value.cast(pa.date32()).value)
    per_unit = NANOS_PER_UNIT[data_type.unit]
    kind = b"T" if pa.types.is_timestamp(data_type) else b"t"
    return kind, _signed(value.value * per_unit)


def _signed(number: int) -> bytes:
    return number.to_bytes((number.bit_length() // 8) + 1, "big", signed=True)


def is_leaf_directory(name: str) -> bool:
    """Whether a folder of a namespace is named as the directories of leaves are.

    Example:
        >>> is_leaf_directory("f26427e4_v1$dataset"), is_leaf_directory("__manifest")
        (True, False)

    Spec: "Physical Layout and Naming".
    """
    return _LEAF_DIRECTORY.fullmatch(name) is not None
