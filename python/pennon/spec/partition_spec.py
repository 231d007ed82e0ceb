"""PartitionField and PartitionSpec: the objects of the format, their JSON and their rules.

Two checks: what a JSON object can tell alone is checked when it is read; what needs the types of
the source columns is checked by ``PartitionSpec.check`` against the full namespace schema. A
source id that the schema does not have (any more) stands for a column of NULLs, which is legal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import sqlglot
from sqlglot.errors import SqlglotError

from pennon.errors import InvalidPartitionSpec, PennonError
from pennon.predicate.dialect import DataFusion
from pennon.spec.arrow_json import object_from_text, text_of, type_from_json, type_to_json
from pennon.transforms.expression_checks import check_constant
from pennon.transforms.registry import expression as expression_transform
from pennon.transforms.registry import from_json as transform_from_json
from pennon.transforms.transform import Transform

if TYPE_CHECKING:
    from pennon.spec.schema import NamespaceSchema

__all__ = ["PARTITION_PREFIX", "PartitionField", "PartitionSpec", "leaf_prefix", "spec_key"]

PARTITION_PREFIX: Final = "partition_field_"
"""What the columns of ``__manifest`` with the values of partition fields begin with."""
_FIELD_KEYS: Final = frozenset({"field_id", "source_ids", "transform", "expression", "result_type"})
_SPEC_KEYS: Final = frozenset({"id", "fields"})


def spec_key(spec_version: int) -> str:
    """Name the metadata key of a spec version.

    Example:
        >>> spec_key(2)
        'partition_spec_v2'

    Spec: "Metadata Definition".
    """
    return f"partition_spec_v{spec_version}"


def leaf_prefix(spec_version: int) -> str:
    """Write what the object ids of the leaves of a spec version begin with, and no others.

    Example:
        >>> leaf_prefix(2)
        'v2$'

    Spec: "Physical Layout and Naming".
    """
    return f"v{spec_version}$"


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec: how one partition value is derived from a row.

    Args:
        field_id: Its name for ever, the suffix of its column in ``__manifest``.
        source_ids: Field ids of the source columns, ``col0`` first.
        transform: A well-known transform, or None where ``expression`` is given.
        expression: DataFusion SQL over ``col0``, ``col1``, …, or None.
        result_type: Arrow type of the partition value.
        extra: Unknown keys of the JSON object; those of its ``transform`` under "transform".

    Spec: "Partition Field Schema".
    """

    field_id: str
    source_ids: tuple[int, ...]
    transform: Transform | None
    expression: str | None
    result_type: pa.DataType
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def column(self) -> str:
        """The column of ``__manifest`` that holds this field's values."""
        return PARTITION_PREFIX + self.field_id

    @property
    def derivation(self) -> Transform:
        """The transform that computes the values: the well-known one, or the expression as one."""
        if self.transform is not None:
            return self.transform
        return expression_transform(self.expression or "", self.result_type)

    def derives_as(self, other: PartitionField) -> bool:
        """Whether both derive the same value from the same sources; ``result_type`` does not count.

        Expressions are compared as parsed trees, so that blanks and letter case do not matter.

        Spec: "Field ID Reuse".
        """
        if self.source_ids != other.source_ids:
            return False
        if self.transform is not None or other.transform is not None:
            return self.transform == other.transform
        return _parsed(self.expression or "") == _parsed(other.expression or "")

    def source_types(self, schema: NamespaceSchema) -> tuple[pa.DataType | None, ...]:
        """Give the source columns' types, None for a column that is there no more."""
        sources = (schema.field_by_id(source_id) for source_id in self.source_ids)
        return tuple(None if source is None else source.field.type for source in sources)

    def to_object(self) -> dict[str, object]:
        """Give the JSON object of this field."""
        extra = {name: value for name, value in self.extra.items() if name != "transform"}
        written: dict[str, object] = {
            "field_id": self.field_id,
            "source_ids": list(self.source_ids),
        }
        if self.transform is not None:
            kept = self.extra.get("transform")
            written["transform"] = {
                **self.transform.to_json(),
                **(kept if isinstance(kept, Mapping) else {}),
            }
        else:
            written["expression"] = self.expression
        written["result_type"] = type_to_json(self.result_type)
        return {**written, **extra}


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """One version of a namespace's partitioning.

    Args:
        spec_version: The N of ``partition_spec_v<N>`` and of the namespace ``v<N>``.
        fields: The partition fields, outermost level first; none means one leaf.
        extra: Unknown keys of the JSON object.

    Example:
        >>> text = (
        ...     '{"id":1,"fields":[{"field_id":"d","source_ids":[1],'
        ...     '"transform":{"type":"identity"},"result_type":{"type":"date32"}}]}'
        ... )
        >>> spec = PartitionSpec.from_json(text, "partition_spec_v1")
        >>> spec.fields[0].column
        'partition_field_d'
        >>> spec.to_json() == text
        True

    Spec: "Partition Spec Schema".
    """

    spec_version: int
    fields: tuple[PartitionField, ...]
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        seen: list[PartitionField] = []
        for partition_field in self.fields:
            for other in seen:
                if other.field_id == partition_field.field_id:
                    raise self._invalid(
                        partition_field, "field_id", partition_field.field_id, "an id of its own"
                    )
                if other.derives_as(partition_field):
                    actual = f"the derivation of field '{other.field_id}'"
                    raise self._invalid(partition_field, "transform", actual, "another derivation")
            seen.append(partition_field)

    @property
    def key(self) -> str:
        """The metadata key that holds this spec."""
        return spec_key(self.spec_version)

    @property
    def identity(self) -> str:
        """What distinguishes it from every other spec.

        The version alone does not: after a rollback the next spec takes the same version again.
        """
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def field_by_id(self, field_id: str) -> PartitionField | None:
        """Find a field by its field id."""
        return next(
            (
                partition_field
                for partition_field in self.fields
                if partition_field.field_id == field_id
            ),
            None,
        )

    def check(self, schema: NamespaceSchema) -> None:
        """Check every field's sources and result type against the full namespace schema.

        Raises:
            InvalidPartitionSpec: The transform does not take its sources, or the declared
                ``result_type`` is not what it gives, up to the width of a promoted type.

        Spec: "Partition Field Schema", "Consistent with result type".
        """
        for partition_field in self.fields:
            types = [
                source_type
                for source_type in partition_field.source_types(schema)
                if source_type is not None
            ]
            if len(types) < len(partition_field.source_ids):
                continue
            try:
                natural = _natural_type(partition_field, types)
            except PennonError as error:
                name, expected = "source_ids", "sources it takes"
                if partition_field.transform is None:
                    name, expected = "expression", "one that the specification allows"
                raise self._invalid(partition_field, name, error.message, expected) from error
            if not is_same_kind(natural, partition_field.result_type):
                expected = f"{natural}, which its {partition_field.derivation.type} gives"
                raise self._invalid(
                    partition_field, "result_type", str(partition_field.result_type), expected
                )

    def _invalid(
        self, partition_field: PartitionField, name: str, actual: str, expected: str
    ) -> InvalidPartitionSpec:
        where = f"{name} of field '{partition_field.field_id}'"
        return InvalidPartitionSpec(key=self.key, where=where, actual=actual, expected=expected)

    def to_json(self) -> str:
        """Write the text of ``partition_spec_v<N>``, unknown keys included.

        Spec: "Metadata Definition", Appendix E.
        """
        written = {
            "id": self.spec_version,
            "fields": [partition_field.to_object() for partition_field in self.fields],
        }
        return text_of({**written, **self.extra})

    @classmethod
    def from_json(cls, text: str, key: str | None = None) -> PartitionSpec:
        """Read the text of ``partition_spec_v<N>``.

        Args:
            text: The JSON text.
            key: The metadata key it stood under; its N has to equal the object's id.

        Raises:
            CorruptJson: The text is no JSON object; the error names line and column.
            InvalidPartitionSpec: The object breaks a rule; the error names key, field and value.

        Spec: "Partition Spec Schema", "Partition Field Schema".
        """
        name = key or "partition spec"
        written = object_from_text(text, name)
        spec_version = written.get("id")
        if not _is_whole(spec_version) or (
            key is not None and key != f"partition_spec_v{spec_version}"
        ):
            expected = "the version in the key's name" if key else "a whole number"
            raise InvalidPartitionSpec(
                key=name, where="id", actual=repr(spec_version), expected=expected
            )
        objects = written.get("fields")
        if not isinstance(objects, list):
            raise InvalidPartitionSpec(
                key=name, where="fields", actual=repr(objects), expected="an array of fields"
            )
        fields = tuple(_field_from_object(object_, name, at) for at, object_ in enumerate(objects))
        extra = {unknown: value for unknown, value in written.items() if unknown not in _SPEC_KEYS}
        assert isinstance(spec_version, int)  # noqa: S101 - checked above, for the type checker
        return cls(spec_version, fields, extra)


def is_same_kind(natural: pa.DataType, declared: pa.DataType) -> bool:
    """Whether a declared type is the natural one, up to what promotion widens.

    Example:
        >>> is_same_kind(pa.int64(), pa.int32()), is_same_kind(pa.int64(), pa.utf8())
        (True, False)

    Spec: "Consistent with result type".
    """
    if natural == declared:
        return True
    if pa.types.is_timestamp(natural) and pa.types.is_timestamp(declared):
        return (natural.tz is None) == (declared.tz is None)
    if pa.types.is_decimal(natural) and pa.types.is_decimal(declared):
        return bool(natural.scale == declared.scale)
    kinds = (pa.types.is_integer, pa.types.is_floating, _is_text, _is_bytes, pa.types.is_time)
    return any(kind(natural) and kind(declared) for kind in kinds)


def _natural_type(partition_field: PartitionField, types: Sequence[pa.DataType]) -> pa.DataType:
    if partition_field.transform is not None:
        return partition_field.transform.recorded_type(types)
    expression = expression_transform(partition_field.expression or "")
    natural = expression.recorded_type(types)
    check_constant(expression, tuple(types))
    return natural


def _is_text(data_type: pa.DataType) -> bool:
    return data_type in (pa.utf8(), pa.large_utf8(), pa.string_view())


def _is_bytes(data_type: pa.DataType) -> bool:
    return data_type in (pa.binary(), pa.large_binary(), pa.binary_view())


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _parsed(expression: str) -> object:
    try:
        return sqlglot.parse_one(expression, dialect=DataFusion)
    except SqlglotError:
        return expression


def _field_from_object(written: object, key: str, at: int) -> PartitionField:
    where = f"fields[{at}]"
    if not isinstance(written, dict):
        raise InvalidPartitionSpec(key=key, where=where, actual=repr(written), expected="an object")
    field_id = written.get("field_id")
    if not isinstance(field_id, str) or not field_id:
        raise InvalidPartitionSpec(
            key=key, where=f"{where}.field_id", actual=repr(field_id), expected="a non-empty string"
        )
    where = f"{where} '{field_id}'"
    sources = written.get("source_ids")
    if (
        not isinstance(sources, list)
        or not sources
        or not all(_is_whole(source) for source in sources)
    ):
        raise InvalidPartitionSpec(
            key=key,
            where=f"source_ids of {where}",
            actual=repr(sources),
            expected="an array of field ids",
        )
    transform, expression = written.get("transform"), written.get("expression")
    if (transform is None) == (expression is None):
        actual = (
            "neither transform nor expression"
            if transform is None
            else "both transform and expression"
        )
        raise InvalidPartitionSpec(
            key=key, where=where, actual=actual, expected="exactly one of the two"
        )
    if expression is not None and not isinstance(expression, str):
        raise InvalidPartitionSpec(
            key=key, where=f"expression of {where}", actual=repr(expression), expected="a string"
        )
    result_type = written.get("result_type")
    if result_type is None:
        raise InvalidPartitionSpec(
            key=key, where=f"result_type of {where}", actual="nothing", expected="an Arrow type"
        )
    extra = {unknown: value for unknown, value in written.items() if unknown not in _FIELD_KEYS}
    read = None if transform is None else _transform(transform, key, where)
    if read is not None and isinstance(transform, dict):
        kept = {unknown: transform[unknown] for unknown in transform.keys() - read.to_json().keys()}
        if kept:
            extra["transform"] = kept
    return PartitionField(
        field_id,
        tuple(sources),
        read,
        expression,
        type_from_json(result_type, f"{key}: result_type of {where}"),
        extra,
    )


def _transform(written: object, key: str, where: str) -> Transform:
    if not isinstance(written, dict) or not isinstance(written.get("type"), str):
        raise InvalidPartitionSpec(
            key=key,
            where=f"transform of {where}",
            actual=repr(written),
            expected='an object with a "type" name',
        )
    try:
        return transform_from_json(written)
    except PennonError as error:
        raise InvalidPartitionSpec(
            key=key,
            where=f"transform of {where}",
            actual=f"{written!r} ({error.message})",
            expected="a transform that Pennon knows",
        ) from error
