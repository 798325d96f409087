"""The format of exported values, and cross-checks, without any process: bounds and nonsense."""

import contextlib
import struct
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import WireError
from engine.grading.frames import (
    HEAD,
    ITEM_BYTES,
    MAX_DEPTH,
    ExportedShard,
    ExportedTensor,
    NotExportable,
    Value,
    decode_values,
    encode_values,
)
from engine.grading.received import ExportGather, export_header, read_export_header
from engine.program import Limits, Program

ENOUGH = 1 << 20
NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
SIZES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@st.composite
def tensors(draw: st.DrawFn) -> ExportedTensor:
    dtype, shape = draw(st.sampled_from(sorted(ITEM_BYTES))), draw(SIZES)
    num_bytes = ITEM_BYTES[dtype]
    for size in shape:
        num_bytes *= size
    data = draw(st.binary(min_size=num_bytes, max_size=num_bytes))
    return ExportedTensor(dtype=dtype, shape=shape, data=data)


@st.composite
def shards(draw: st.DrawFn) -> ExportedShard:
    words = st.lists(st.text(st.characters(codec="ascii"), max_size=9), max_size=2).map(tuple)
    return ExportedShard(
        local=draw(tensors()),
        shape=draw(SIZES),
        mesh_shape=draw(SIZES),
        placements=draw(words),
    )


LEAVES: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    NAMES,
    tensors(),
    shards(),
    st.builds(NotExportable, type_name=NAMES),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(NAMES, st.integers(0, 9)), inner, max_size=3),
    ),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, VALUES, max_size=3))
def test_what_goes_in_comes_out(values: Mapping[str, Value]) -> None:
    frame = encode_values(values, ENOUGH)
    assert decode_values(frame[HEAD.size :]) == values


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=2), st.data())
def test_cut_or_changed_bytes_are_a_value_or_an_error_of_the_wire(
    values: Mapping[str, Value], data: st.DataObject
) -> None:
    body = bytearray(encode_values(values, ENOUGH)[HEAD.size :])
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = body[: data.draw(st.integers(0, len(body)))]
    with contextlib.suppress(WireError):
        assert isinstance(decode_values(bytes(cut)), Mapping)


@given(st.binary(max_size=200))
def test_bytes_of_a_stranger_are_no_export_or_a_whole_one(received: bytes) -> None:
    gather = ExportGather(Program(source="", world_size=1, exports=("w",)))
    gather.take(0, received)
    (export,) = gather.finished([True])
    assert export.state in ("missing", "malformed", "too_large", "given")
    assert (export.state == "missing") == (not received)
    assert not export.body or export.state == "given"


def test_numbers_that_promise_more_than_there_is_take_no_memory() -> None:
    many = struct.pack("<I", 0xFFFF_FFFF)
    for body in (b"l" + many, b"m" + many, b"s" + many, b"t" + many):
        with pytest.raises(WireError):
            decode_values(body)
    huge = struct.pack("<Q", 1 << 62)
    tensor = b"x\x04\0\0\0bool\x02" + huge + huge + struct.pack("<Q", 0)
    with pytest.raises(WireError):
        decode_values(b"m\x01\0\0\0s\x01\0\0\0w" + tensor)


def test_key_that_comes_twice_and_a_frame_nested_too_deeply_are_refused() -> None:
    pair = b"s\x01\0\0\0wN"
    with pytest.raises(WireError):
        decode_values(b"m\x02\0\0\0" + pair + pair)
    nested = b"l\x01\0\0\0" * (MAX_DEPTH + 1)
    with pytest.raises(WireError):
        decode_values(b"m\x01\0\0\0s\x01\0\0\0w" + nested + b"N")


def test_ranks_share_one_limit_and_over_it_nothing_of_any_is_kept() -> None:
    limits = Limits(export_bytes=100)
    gather = ExportGather(Program(source="", world_size=2, exports=("w",), limits=limits))
    frame = encode_values({"w": "x" * 60}, 100)
    gather.take(0, frame)
    gather.take(1, frame)
    assert [e.state for e in gather.finished([True, True])] == ["too_large"] * 2


def test_rank_that_did_not_end_well_has_exported_nothing() -> None:
    gather = ExportGather(Program(source="", world_size=2, exports=("w",)))
    for rank in range(2):
        gather.take(rank, encode_values({"w": 1}, ENOUGH))
    assert [e.state for e in gather.finished([True, False])] == ["given", "missing"]


def test_program_without_exports_hands_out_nothing_whatever_its_ranks_write() -> None:
    gather = ExportGather(Program(source="", world_size=1))
    gather.take(0, encode_values({"w": 1}, ENOUGH))
    assert gather.finished([True]) == ()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"export":-1,"state":"given","num_bytes":1}',
        b'{"export":0,"state":"stolen","num_bytes":1}',
        b'{"export":0,"state":"given","num_bytes":"9"}',
        b'{"export":0,"state":["given"],"num_bytes":9}',
        b'{"export":true,"state":"given","num_bytes":9}',
    ],
)
def test_header_of_an_export_is_read_strictly(line: bytes) -> None:
    with pytest.raises(WireError):
        read_export_header(line)


def test_header_of_an_export_is_read_as_it_was_written() -> None:
    gather = ExportGather(Program(source="", world_size=1, exports=("w",)))
    gather.take(0, encode_values({"w": 1}, ENOUGH))
    (export,) = gather.finished([True])
    assert read_export_header(export_header(export)) == (0, "given", len(export.body))
