"""Refuses texts that are not UTF-8, which Lance takes and nobody can read afterwards.

Spark keeps whatever bytes a STRING is made of: the lines of a file in another encoding, a cast of a
BINARY. Parquet files may have such texts, too, and Arrow reads them without a look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import TextNotUtf8
from pennon.predicate.values.arrow_kinds import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["valid_texts"]


def valid_texts(batches: Iterable[pa.RecordBatch], table: str) -> Iterator[pa.RecordBatch]:
    """Give the rows, up to one with a text that is none.

    Args:
        batches: The rows.
        table: For errors.

    Raises:
        TextNotUtf8: A text, which may be part of a nested value, has other bytes than UTF-8.

    Example:
        >>> next(valid_texts(pa.table({"a": ["é"]}).to_batches(), "t"))["a"].to_pylist()
        ['é']
    """
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not _has_texts(column.type):
                continue
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise TextNotUtf8(column=name, table=table) from error
        yield batch


def _has_texts(data_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(data_type):
        return _has_texts(data_type.value_type)
    children = (data_type.field(at).type for at in range(data_type.num_fields))
    return is_text(data_type) or any(map(_has_texts, children))
