"""The metadata map of ``__manifest``: specs and schema, Pennon's own keys, the user's properties.

| key | value |
|---|---|
| ``schema``, ``partition_spec_v<N>`` | JSON text, as the specification has them |
| ``pennon.salt`` | 32 hexadecimal digits: the secret that partition names are derived with |
| ``pennon.transaction`` | ``strong`` or ``weak``: what new writes do; while that changes they are
  refused, and it is ``changing to`` and what is said below |
| ``pennon.comment`` | the table's comment |
| ``pennon.turn`` | which commit others let through, and until when: ``commits/root_change.py`` |
| ``pennon.property.<name>`` | a table property of the user |
| ``pennon.index.<name>`` | the definition of an index, JSON text |
| ``lance.namespace.manifest.writer_feature_flags`` | the writer guard: bit 62 is set |

The guard: upstream's directory namespace rewrites ``__manifest`` on every change and drops the
columns it does not know. It refuses to change (and still reads) a manifest whose writer flags,
a decimal number, have a bit that it does not know. Bit 62 is Pennon's and says: "this manifest has
partition columns and ``read_version``; who writes it has to keep them".

While writers are kept away, ``pennon.transaction`` says why, who does it, and how long: it is
``changing to``, the target, a name drawn for this one change, and a JSON object. A process that is
killed leaves it behind, and whoever writes next has to see that nobody will end it:

* where it ran on this machine, by its process, which is gone;
* else by the time, of which it uses the first half only where nothing would refuse it later. Who
  needs longer states a later one while it works.

A table that another one replaces may have lost its name already when the process is killed. So the
notice says where the name is looked up.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

import pyarrow as pa

from pennon.caching import TextCache
from pennon.errors import (
    DraftLayout,
    InvalidRetention,
    NamespaceSchemaMissing,
    NotPartitionedNamespace,
    ReservedProperty,
)
from pennon.predicate.values.time_units import MILLIS_PER_DAY
from pennon.settings import KEPT_AGE, KEPT_VERSIONS, WRITER_GRACE
from pennon.spec.arrow_json import object_or_empty, text_of
from pennon.spec.column_names import text_of_value
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema

__all__ = [
    "ALTERED",
    "COMMENT",
    "DEFAULT_AGE",
    "DRAFT_ENABLED",
    "MODES",
    "REPLACED",
    "SALT",
    "SCHEMA",
    "STRONG",
    "TRANSACTION",
    "TURN",
    "WEAK",
    "WRITER_FLAGS",
    "ChangeNotice",
    "IndexDefinition",
    "NamedAt",
    "RunningProcess",
    "check_retention",
    "guarded_flags",
    "has_guard",
    "has_specs",
    "index_definitions",
    "kept_age",
    "kept_versions",
    "read_specs",
    "retention_of",
    "root_metadata",
    "runtime_properties",
    "user_properties",
    "writer_grace",
]

SCHEMA: Final = "schema"
SALT: Final = "pennon.salt"
TRANSACTION: Final = "pennon.transaction"
STRONG: Final = "strong"
WEAK: Final = "weak"
MODES: Final = (STRONG, WEAK)
CHANGING: Final = "changing to "
COMMENT: Final = "pennon.comment"
TURN: Final = "pennon.turn"
WRITER_FLAGS: Final = "lance.namespace.manifest.writer_feature_flags"
_GUARD_BIT: Final = 1 << 62
DRAFT_ENABLED: Final = "lance.partitioning.enabled"
_PROPERTY: Final = "pennon.property."
_SPEC_KEY = re.compile(r"partition_spec_v(\d+)")


def root_metadata(
    schema: NamespaceSchema,
    specs: Mapping[int, PartitionSpec],
    properties: Mapping[str, str],
    *,
    strong: bool,
    comment: str | None,
) -> dict[str, str]:
    """Give the whole metadata map of a new namespace, a fresh salt included.

    Raises:
        ReservedProperty: A user's property is named as one of Pennon's own records.

    Spec: "Metadata Definition".
    """
    written = {spec.key: spec.to_json() for spec in specs.values()}
    written[SCHEMA] = schema.to_json()
    written[SALT] = secrets.token_hex(16)
    written[TRANSACTION] = STRONG if strong else WEAK
    written[WRITER_FLAGS] = guarded_flags({})
    if comment is not None:
        written[COMMENT] = comment
    return {**written, **property_keys(properties)}


def has_guard(metadata: Mapping[str, str]) -> bool:
    """Whether upstream's directory namespace refuses to change the manifest.

    Example:
        >>> has_guard({}), has_guard({WRITER_FLAGS: guarded_flags({})})
        (False, True)
    """
    return bool(_flags(metadata) & _GUARD_BIT)


def guarded_flags(metadata: Mapping[str, str]) -> str:
    """Write the writer flags of a manifest with the guard among them.

    Example:
        >>> int(guarded_flags({WRITER_FLAGS: "3"})) == (1 << 62) + 3
        True
    """
    return str(_flags(metadata) | _GUARD_BIT)


def _flags(metadata: Mapping[str, str]) -> int:
    text = metadata.get(WRITER_FLAGS, "0")
    return int(text) if text.isdecimal() else 0


def property_keys(properties: Mapping[str, str]) -> dict[str, str]:
    """Give the metadata keys under which a user's properties are kept."""
    for name in properties:
        if name.startswith("pennon."):
            raise ReservedProperty(name=name, prefix="pennon.")
    return {_PROPERTY + name: value for name, value in properties.items()}


def user_properties(metadata: Mapping[str, str]) -> Mapping[str, str]:
    """Give the user's properties of a metadata map.

    Example:
        >>> dict(user_properties({"pennon.property.owner": "ops", "schema": "{}"}))
        {'owner': 'ops'}
    """
    return MappingProxyType(
        {
            name.removeprefix(_PROPERTY): value
            for name, value in metadata.items()
            if name.startswith(_PROPERTY)
        }
    )


# A commit of rows leaves the text as it is: what is worked out of a schema serves all versions.
_SCHEMAS: Final = TextCache(
    "schemas", max_bytes=32 << 20, read=lambda text: NamespaceSchema.from_json(text, SCHEMA)
)


def read_schema(metadata: Mapping[str, str], location: str) -> NamespaceSchema:
    """Read the namespace schema of a metadata map.

    Raises:
        NamespaceSchemaMissing: There is no ``schema`` key.

    Spec: "Metadata Definition".
    """
    text = metadata.get(SCHEMA)
    if text is None:
        keys = ", ".join(sorted(name for name in metadata if _SPEC_KEY.fullmatch(name)))
        raise NamespaceSchemaMissing(location=location, keys=keys)
    return _SCHEMAS.find(text)


def has_specs(metadata: Mapping[str, str]) -> bool:
    """Whether a metadata map makes its directory namespace a partitioned one.

    Example:
        >>> has_specs({"partition_spec_v1": "{}"}), has_specs({"schema": "{}"})
        (True, False)

    Spec: "Metadata Definition".
    """
    return any(_SPEC_KEY.fullmatch(name) for name in metadata)


def read_specs(metadata: Mapping[str, str], location: str) -> Mapping[int, PartitionSpec]:
    """Read every partition spec of a metadata map, by version.

    Raises:
        NotPartitionedNamespace: There is none.
        DraftLayout: There are those of the older draft.
        CorruptJson: A text is no JSON object.
        InvalidPartitionSpec: A spec breaks a rule; no other version is read without it.

    Spec: "Metadata Definition".
    """
    keys = sorted(
        (int(matched.group(1)), name)
        for name in metadata
        if (matched := _SPEC_KEY.fullmatch(name)) is not None
    )
    if not keys:
        if metadata.get(DRAFT_ENABLED, "").lower() == "true":
            raise DraftLayout(verb="open", location=location)
        raise NotPartitionedNamespace(location=location)
    return MappingProxyType(
        {number: PartitionSpec.from_json(metadata[name], name) for number, name in keys}
    )


def runtime_properties(
    specs: Mapping[int, PartitionSpec],
    path: Sequence[str],
    values: Mapping[str, pa.Scalar],
) -> dict[str, str]:
    """Give the properties that describing a namespace below the root returns.

    Args:
        specs: The spec versions.
        path: The namespace: ``["v1"]`` or ``["v1", "k7m2n9p4q8r5s3t6"]``.
        values: The partition values of the namespace's row, by field id.

    Returns:
        ``partition_spec`` for a spec version; for a partition the value of its own level alone,
        left out where it is NULL.

    Example:
        >>> spec = PartitionSpec(1, ())
        >>> runtime_properties({1: spec}, ["v1"], {})
        {'partition_spec': '{"id":1,"fields":[]}'}

    Spec: "Runtime Namespace Properties", Appendix E.
    """
    spec = specs[int(path[0][1:])]
    depth = len(path) - 1
    if depth == 0:
        return {"partition_spec": spec.to_json()}
    own = spec.fields[depth - 1]
    value = values.get(own.field_id)
    if value is None or not value.is_valid:
        return {}
    return {f"partition.{own.field_id}": text_of_value(value)}


# The name of a process, by which another one on the same machine sees that it is gone.
#
# Whoever announces a change that others wait for may be killed before the end of it.

_OF_A_PROCESS: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process, and the machine that numbers it.

    Args:
        machine: Where it runs; empty where that is not known.
        process: Its number and its start, with ``@`` between them; empty where that is not known.
    """

    machine: str = ""
    process: str = ""

    @classmethod
    def of_this_one(cls) -> Self:
        """Name the process that asks.

        Example:
            >>> RunningProcess.of_this_one().is_gone()
            False
        """
        return cls(_machine(), _process(os.getpid()) or "")

    def is_gone(self) -> bool:
        """Tell whether it has ended for certain, which nobody can of one on another machine."""
        if not self.machine or not self.process or self.machine != _machine():
            return False
        return _process(int(self.process.partition("@")[0])) != self.process


def _machine() -> str:
    """Name what numbers processes: the machine as it was started, or a container on it."""
    try:
        boot = (_OF_A_PROCESS / "sys/kernel/random/boot_id").read_text().strip()
        numbering = str((_OF_A_PROCESS / "self/ns/pid").readlink())
    except OSError:  # another system: the time has to tell
        return ""
    text = f"{socket.gethostname()} {boot} {numbering}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _process(number: int) -> str | None:
    """Name a process by its number and its start; None where it is gone."""
    try:
        stated = (_OF_A_PROCESS / str(number) / "stat").read_text()
    except OSError:
        return None
    fields = stated.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else f"{number}@{fields[19]}"


ALTERED: Final = "altered"
"""No mode: a column is added that every row has to have a value in, and no row may come."""
REPLACED: Final = "replaced"
"""No mode: another table is about to get the name, and nothing may be written any more."""

_LASTS_SECONDS: Final = {ALTERED: 60, REPLACED: 600}
_OF_MODES_SECONDS: Final = 600  # and again as long while the process works


@dataclass(frozen=True, slots=True)
class NamedAt:
    """The name of a table in a directory namespace.

    Args:
        root: Path or URL of the directory namespace.
        name: The parts of the name below it.
        location: The ``location`` property that it has there.
    """

    root: str
    name: tuple[str, ...]
    location: str


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """A change during which nobody writes.

    Args:
        target: What the transactions become, or ``ALTERED`` or ``REPLACED``.
        name: Tells it from every other change.
        machine: Where it is made; empty where that is not known.
        process: By whom, on that machine.
        until: When it is over at the latest, in milliseconds UTC; None where nobody can tell.
        named_at: The name that another table is about to get.
    """

    target: str
    name: str
    machine: str = ""
    process: str = ""
    until: int | None = None
    named_at: NamedAt | None = None

    @classmethod
    def of_this_process(cls, target: str, named_at: NamedAt | None = None) -> Self:
        """Announce a change that this process makes."""
        name = secrets.token_hex(8)
        by = RunningProcess.of_this_one()
        return cls(target, name, by.machine, by.process, named_at=named_at).renewed()

    @property
    def lasts_seconds(self) -> float:
        """How long it lasts from the moment at which it was stated."""
        return _LASTS_SECONDS.get(self.target, _OF_MODES_SECONDS)

    def renewed(self) -> Self:
        """Give the same change with all of its time before it."""
        return replace(self, until=int((time.time() + self.lasts_seconds) * 1000))

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read what ``pennon.transaction`` says; None where no change is under way.

        Example:
            >>> notice = ChangeNotice.of_this_process("weak")
            >>> ChangeNotice.read(str(notice)) == notice, notice.is_abandoned()
            (True, False)
            >>> ChangeNotice.read("changing to weak 1f2e").target
            'weak'
            >>> ChangeNotice.read("weak") is None
            True
        """
        if not text.startswith(CHANGING):
            return None
        target, _, rest = text.removeprefix(CHANGING).partition(" ")
        name, _, stated = rest.partition(" ")
        try:
            notice = json.loads(stated or "{}")
            named = notice.get("named_at")
            return cls(
                target,
                name,
                str(notice.get("machine", "")),
                str(notice.get("process", "")),
                notice.get("until"),
                named and NamedAt(named["root"], tuple(named["name"]), named["location"]),
            )
        except (ValueError, KeyError, AttributeError, TypeError):  # of a later version of Pennon
            return cls(target, name)

    def __str__(self) -> str:
        """Write it."""
        stated: dict[str, object] = {
            "machine": self.machine,
            "process": self.process,
            "until": self.until,
        }
        if self.named_at is not None:
            at = self.named_at
            stated["named_at"] = {"root": at.root, "name": at.name, "location": at.location}
        return f"{CHANGING}{self.target} {self.name} {json.dumps(stated)}"

    def is_abandoned(self) -> bool:
        """Whether its process is gone, or its time is over."""
        if RunningProcess(self.machine, self.process).is_gone():
            return True
        return self.until is not None and time.time() * 1000 > self.until

    def is_nearly_over(self) -> bool:
        """Whether half of its time has passed: what others cannot refuse must not begin now."""
        half = self.lasts_seconds / 2
        return self.until is not None and time.time() + half > self.until / 1000


# How long the versions of a table are kept, by Iceberg's table properties.

DEFAULT_AGE: Final = timedelta(days=5)
_LONGEST_DAYS: Final = 36_500


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions may expire.

    Args:
        age: Those that are older.
        versions: Of these not the newest so many.
        is_automatic: Whether they do by themselves, behind commits; else they wait to be expired.
    """

    age: timedelta = DEFAULT_AGE
    versions: int = 1
    is_automatic: bool = False


def retention_of(properties: Mapping[str, str]) -> Retention:
    """Read how long a table keeps its versions.

    A table that says nothing keeps each until somebody calls ``expire_snapshots``, as Iceberg does.

    Args:
        properties: The table's properties.

    Raises:
        InvalidRetention: A property is no number that it can be.

    Example:
        >>> retention_of({"history.expire.max-snapshot-age-ms": "3600000"})
        Retention(age=datetime.timedelta(seconds=3600), versions=1, is_automatic=True)
    """
    return Retention(
        kept_age(properties), kept_versions(properties), is_automatic=KEPT_AGE.name in properties
    )


def kept_age(properties: Mapping[str, str]) -> timedelta:
    """Read the age up to which versions are kept; five days where the table does not say.

    Raises:
        InvalidRetention: The property is no number that it can be.
    """
    age = _number(properties, KEPT_AGE.name, 0)
    return DEFAULT_AGE if age is None else timedelta(milliseconds=age)


def kept_versions(properties: Mapping[str, str]) -> int:
    """Read how many of the newest versions are kept; one where the table does not say.

    Raises:
        InvalidRetention: The property is no number that it can be.
    """
    versions = _number(properties, KEPT_VERSIONS.name, 1)
    return 1 if versions is None else versions


def check_retention(properties: Mapping[str, str]) -> None:
    """Check what properties that are set say of it.

    Raises:
        InvalidRetention: A property is no number that it can be.
    """
    retention_of(properties)
    writer_grace(properties)


def writer_grace(properties: Mapping[str, str]) -> timedelta:
    """Read how long a commit may stand still beside expiries; an hour where the table does not say.

    Raises:
        InvalidRetention: The property is no number that it can be.

    Example:
        >>> writer_grace({})
        datetime.timedelta(seconds=3600)
    """
    millis = _number(properties, WRITER_GRACE.name, 0)
    return timedelta(milliseconds=int(WRITER_GRACE.default or 0) if millis is None else millis)


def _number(properties: Mapping[str, str], name: str, least: int) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    longest = _LONGEST_DAYS * MILLIS_PER_DAY
    if not text.strip().isdecimal() or not least <= int(text) <= longest:
        raise InvalidRetention(property=name, value=text, least=least, most=longest)
    return int(text)


# Definitions of indexes: what is built of which column. Which leaves have it stands in their rows.

_INDEX: Final = "pennon.index."


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index as a table defines it.

    Args:
        name: Its name, unique in the table.
        type: Lance's name of its kind: ``IVF_RQ``, ``BTREE``, ….
        field_id: The column; a renamed one keeps its id.
        metric: How distances are measured; None of an index that is not of vectors.
        where: A condition on partitions, Spark SQL; leaves that it rules out get none.
        min_bytes: Of how many bytes of vectors on a leaf gets one.
        parameters: What Lance builds it with.

    Example:
        >>> index = IndexDefinition("v_idx", "IVF_RQ", 3, "l2")
        >>> IndexDefinition.from_json("v_idx", index.to_json()) == index
        True
    """

    name: str
    type: str
    field_id: int
    metric: str | None = None
    where: str | None = None
    min_bytes: int = 0
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """Its key in the metadata map."""
        return _INDEX + self.name

    def to_json(self) -> str:
        """Write it; the name is the key's."""
        stored = {name: value for name, value in asdict(self).items() if value is not None}
        del stored["name"]
        return text_of(stored)

    @classmethod
    def from_json(cls, name: str, text: str) -> Self | None:
        """Read what ``to_json`` wrote; None for what it did not write."""
        stored = object_or_empty(text)
        known = {key: value for key, value in stored.items() if key in cls.__slots__}
        if not isinstance(stored.get("type"), str) or not isinstance(stored.get("field_id"), int):
            return None
        return cls(name, **known)  # type: ignore[arg-type]


def index_name(key: str) -> str | None:
    """Give the name of the index that a key of a metadata map defines; None of another key."""
    return key.removeprefix(_INDEX) if key.startswith(_INDEX) else None


def index_definitions(metadata: Mapping[str, str]) -> dict[str, IndexDefinition]:
    """Give the indexes of a metadata map, by name.

    Example:
        >>> index_definitions({"pennon.index.i": '{"type":"BTREE","field_id":0}'})["i"].type
        'BTREE'
    """
    read = [
        IndexDefinition.from_json(name, text)
        for key, text in metadata.items()
        if (name := index_name(key)) is not None
    ]
    return {one.name: one for one in read if one is not None}
