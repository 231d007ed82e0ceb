"""Hashes against published vectors and against another implementation."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.errors import TransformOnWrongType
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.murmur3 import murmur3, murmur3_multi

_MOMENT = dt.datetime(2017, 11, 16, 22, 31, 8)  # noqa: DTZ001


@pytest.mark.spec("Hash Functions 1", "reading 25")
@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([34], pa.int32()), 2017239379),
        (pa.array([34], pa.int64()), 2017239379),
        (pa.array([Decimal("14.20")], pa.decimal128(9, 2)), -500754589),
        (pa.array([dt.date(2017, 11, 16)]), -653330422),
        (pa.array([_MOMENT], pa.timestamp("us")), -2047944441),
        (pa.array([_MOMENT], pa.timestamp("ns", "UTC")), -2047944441),
        (pa.array([_MOMENT], pa.timestamp("s", "America/New_York")), -2047944441),
        (pa.array([dt.time(22, 31, 8)]), -662762989),
        (pa.array(["iceberg"]), 1210000089),
        (pa.array(["iceberg"], pa.string_view()), 1210000089),
        (pa.array(["x", "iceberg"]).dictionary_encode()[1:], 1210000089),
        (pa.array([b"\x00\x01\x02\x03"], pa.binary(4)), -188683207),
    ],
)
@pytest.mark.spec("Hash Functions")
def test_published_vectors(array: pa.Array, expected: int) -> None:
    assert murmur3(array).to_pylist() == [expected]


@pytest.mark.spec("Hash Functions 1", "Partition Expression 6", "reading 25")
@given(st.lists(st.none() | st.integers(-128, 127)))
def test_integers_hash_alike_in_every_width(values: list[int | None]) -> None:
    expected = [
        None if v is None else mmh3.hash(v.to_bytes(8, "little", signed=True)) for v in values
    ]
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        assert murmur3(pa.array(values, kind)).to_pylist() == expected


@pytest.mark.spec("Hash Functions 1", "Hash Functions 6")
@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(0, 3))
def test_bytes_hash_as_another_implementation_does(values: list[bytes | None], skip: int) -> None:
    expected = [None if v is None else mmh3.hash(v) for v in values][skip:]
    assert murmur3(pa.array(values, pa.binary())[skip:]).to_pylist() == expected
    assert murmur3(pa.array(values, pa.large_binary())[skip:]).to_pylist() == expected


def test_many_rows_hash_as_one_by_one() -> None:
    texts = [None if number % 7 == 0 else "x" * (number % 23) for number in range(40_000)]
    expected = [None if text is None else mmh3.hash(text) for text in texts]
    assert murmur3(pa.array(texts)).to_pylist() == expected


def _shortest_bytes(value: int) -> bytes:
    for size in range(1, 17):
        try:
            return value.to_bytes(size, "big", signed=True)
        except OverflowError:
            continue
    raise AssertionError


_POWERS = [
    sign * (1 << bits) + step
    for bits in range(7, 120, 8)
    for sign in (1, -1)
    for step in (-1, 0, 1)
]


@pytest.mark.spec("reading 25")
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1) | st.sampled_from([0, *_POWERS])))
def test_decimals_hash_their_shortest_bytes(values: list[int]) -> None:
    array = pa.array([Decimal(value) for value in values], pa.decimal128(38, 0))
    assert murmur3(array).to_pylist() == [mmh3.hash(_shortest_bytes(value)) for value in values]


@pytest.mark.spec("Hash Functions 3", "Hash Functions 4", "reading 26")
@settings(max_examples=50)
@given(st.lists(st.tuples(st.none() | st.integers(-9, 9), st.none() | st.text(max_size=5))))
def test_several_columns_chain_their_seeds(rows: list[tuple[int | None, str | None]]) -> None:
    expected = []
    for number, text in rows:
        found: int | None = None
        parts = [None if number is None else number.to_bytes(8, "little", signed=True)]
        parts.append(None if text is None else text.encode())
        for part in parts:
            if part is not None:
                found = mmh3.hash(part, (found or 0) & 0xFFFFFFFF)
        expected.append(found)
    numbers = pa.array([number for number, _ in rows], pa.int32())
    texts = pa.array([text for _, text in rows], pa.string())
    assert murmur3_multi([numbers, texts]).to_pylist() == expected


@pytest.mark.spec("Hash Functions 5", "reading 27")
def test_the_least_hash_has_a_bucket() -> None:
    # 8 bytes whose hash is the least 32-bit number; found by inverting the final mix
    value = 6018035362574630912
    assert murmur3(pa.array([value])).to_pylist() == [-(2**31)]
    assert Bucket(7).apply([pa.array([value])]).to_pylist() == [2**31 % 7]


@pytest.mark.spec("Hash Functions 2", "Hash Functions 4")
def test_null_columns_have_the_null_bucket() -> None:
    assert Bucket(4).apply([pa.nulls(2)]).to_pylist() == [None, None]
    both = [pa.nulls(2), pa.array([None, 5], pa.int64())]
    assert MultiBucket(4).apply(both).to_pylist() == [
        None,
        Bucket(4).apply([pa.array([5])])[0].as_py(),
    ]


@pytest.mark.spec("reading 25")
@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.int32()), pa.duration("s")])
def test_other_sources_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(TransformOnWrongType, match=r"integers, decimals, strings, binary"):
        Bucket(4).result_type([kind])
