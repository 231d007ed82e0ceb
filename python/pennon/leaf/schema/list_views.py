"""Lists in the place of list views, which neither Arrow's casts nor Lance take at any depth.

Arrow's cast of a view leaves the last offset of the list out, and Lance ends in a panic.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["without_views"]


def without_views(array: pa.Array) -> pa.Array:
    """Give the same values with large lists where views were; without one they are not copied.

    Example:
        >>> view = pa.array([[1, 2], None, []], pa.list_view(pa.int8()))
        >>> without_views(view).type, without_views(view).to_pylist()
        (LargeListType(large_list<item: int8>), [[1, 2], None, []])
    """
    data_type = array.type
    if not _has_view(data_type):
        return array
    if _is_view(data_type):
        lengths = pc.list_value_length(array).fill_null(0).cast(pa.int64())
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
        items = without_views(array.flatten())  # in the order of the rows, and those of NULLs not
        list_type = pa.large_list(data_type.value_field.with_type(items.type))
        mask = array.is_null() if array.null_count else None
        return pa.LargeListArray.from_arrays(offsets, items, list_type, mask=mask)
    if pa.types.is_struct(data_type):
        children = [without_views(array.field(at)) for at in range(data_type.num_fields)]
        fields = [
            field.with_type(child.type) for field, child in zip(data_type, children, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_map(data_type):
        return _with_entries(array, without_views(array.keys), without_views(array.items))
    items = without_views(array.values)
    field = data_type.value_field.with_type(items.type)
    num_buffers = 2
    if pa.types.is_fixed_size_list(data_type):
        list_type, num_buffers = pa.list_(field, data_type.list_size), 1
    elif pa.types.is_large_list(data_type):
        list_type = pa.large_list(field)
    else:
        list_type = pa.list_(field)
    return _with_below(array, list_type, num_buffers, items)


def _with_entries(array: pa.Array, keys: pa.Array, items: pa.Array) -> pa.Array:
    given = array.type
    map_type = pa.map_(
        given.key_field.with_type(keys.type),
        given.item_field.with_type(items.type),
        keys_sorted=given.keys_sorted,
    )
    entries = pa.StructArray.from_arrays(
        [keys, items], fields=[map_type.key_field, map_type.item_field]
    )
    return _with_below(array, map_type, 2, entries)


def _with_below(
    array: pa.Array, data_type: pa.DataType, num_buffers: int, below: pa.Array
) -> pa.Array:
    buffers = array.buffers()[:num_buffers]
    return pa.Array.from_buffers(
        data_type, len(array), buffers, array.null_count, array.offset, [below]
    )


def _has_view(data_type: pa.DataType) -> bool:
    if _is_view(data_type):
        return True
    fields = (data_type.field(at) for at in range(data_type.num_fields))
    return any(_has_view(field.type) for field in fields)


def _is_view(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(data_type) or pa.types.is_large_list_view(data_type))
