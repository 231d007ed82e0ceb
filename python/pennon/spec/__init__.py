"""The objects of the format: namespace schema, partition specs, their JSON and their evolution."""

from pennon.spec.evolution import add_field, drop_field, replace_field, spec_of
from pennon.spec.partition_spec import PartitionField, PartitionSpec
from pennon.spec.schema import FIELD_ID, NamespaceSchema, SchemaField

__all__ = [
    "FIELD_ID",
    "NamespaceSchema",
    "PartitionField",
    "PartitionSpec",
    "SchemaField",
    "add_field",
    "drop_field",
    "replace_field",
    "spec_of",
]
