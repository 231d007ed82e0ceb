"""Arrow arrays without values and without the one offset that the format requires.

Arrow's Java library writes it from version 19 on; Spark 4.1 has version 18. Arrow's other libraries
read such a column as an empty one, Lance takes what stands behind it in memory for the offset.
"""

from __future__ import annotations

import pyarrow as pa


def with_offsets(column: pa.Array) -> pa.Array:
    """Give a column whose offsets are all there; the same one where nothing can be missing.

    Args:
        column: Of any type: a map, list or struct may have children without values.

    Spec: "Variable-size Binary Layout" of the Arrow columnar format.
    """
    is_suspect = any(buffer is not None and buffer.size == 0 for buffer in column.buffers())
    # Concatenating writes all offsets anew, where one array alone would be passed on.
    return pa.concat_arrays([column, column.slice(0, 0)]) if is_suspect else column
