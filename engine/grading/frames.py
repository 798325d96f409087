"""Exported values <-> bytes: a strict format of a few plain types, with caps. No pickle, ever.

May import engine.errors and the standard library. A frame is MAGIC, one byte for what it is, the
number of bytes of its body, and the body: one value. A value is one byte for its type, then:

    N T F      None, True, False
    i d        a signed 64-bit integer; a 64-bit float
    s          u32 length, UTF-8
    l t m      u32 number; so many values (list, tuple) or pairs of a key (s or i) and a value
    x          a tensor: dtype as s, u8 number of dimensions, u64 each, u64 length, raw bytes
    D          a DTensor: x of its local tensor, its shape and its mesh's shape as t, placements
    U          s: what could not be exported, by the name of its type

All numbers are little-endian. Shape legend: a tensor's own shape.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from engine.errors import WireError

MAGIC = b"DLX1"
HEAD = struct.Struct("<4scQ")
VALUES, TOO_LARGE = b"V", b"L"
MAX_DEPTH = 16
MAX_VALUES = 100_000
MAX_DIMENSIONS = 16
ITEM_BYTES: Mapping[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "complex64": 8,
    "complex128": 16,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
}
"""Bytes of one item of each dtype that can be exported."""

_U32, _I64, _U64, _F64 = (struct.Struct(f"<{code}") for code in "IqQd")
_MAX_INT = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTensor:
    """A dense tensor: its items in order, as bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedShard:
    """What one rank holds of a DTensor, and how the whole is laid out."""

    local: ExportedTensor
    shape: tuple[int, ...]
    """Of the whole."""
    mesh_shape: tuple[int, ...]
    placements: tuple[str, ...]
    """As torch writes them, one per dimension of the mesh: `Shard(dim=0)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotExportable:
    """Stands for a value of another type than those that can be exported."""

    type_name: str


Value = (
    None
    | bool
    | int
    | float
    | str
    | ExportedTensor
    | ExportedShard
    | NotExportable
    | Sequence["Value"]
    | Mapping[str | int, "Value"]
)


class ExportTooLarge(ValueError):
    """The values have more bytes, or are more in number, than a run may export."""


class _Writer:
    def __init__(self, limit_bytes: int) -> None:
        self.body = bytearray()
        self._limit_bytes = limit_bytes
        self._num_values = 0

    def put(self, *pieces: bytes) -> None:
        if len(self.body) + sum(map(len, pieces)) > self._limit_bytes:
            raise ExportTooLarge
        for piece in pieces:
            self.body += piece

    def text(self, tag: bytes, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        self.put(tag, _U32.pack(len(data)), data)

    def value(self, value: Value) -> None:
        self._num_values += 1
        if self._num_values > MAX_VALUES:
            raise ExportTooLarge
        match value:
            case None:
                self.put(b"N")
            case bool():
                self.put(b"T" if value else b"F")
            case int() if -_MAX_INT <= value < _MAX_INT:
                self.put(b"i", _I64.pack(value))
            case int():
                self.text(b"U", "int of more than 64 bits")
            case float():
                self.put(b"d", _F64.pack(value))
            case str():
                self.text(b"s", value)
            case ExportedTensor():
                self.tensor(value)
            case ExportedShard():
                self.put(b"D")
                self.tensor(value.local)
                for part in (value.shape, value.mesh_shape, value.placements):
                    self.value(part)
            case NotExportable():
                self.text(b"U", value.type_name[:200])
            case Mapping():
                self.put(b"m", _U32.pack(len(value)))
                for key, item in value.items():
                    self.value(key)
                    self.value(item)
            case _:
                self.put(b"t" if isinstance(value, tuple) else b"l", _U32.pack(len(value)))
                for item in value:
                    self.value(item)

    def tensor(self, tensor: ExportedTensor) -> None:
        self.text(b"x", tensor.dtype)
        self.put(bytes([len(tensor.shape)]), *map(_U64.pack, tensor.shape))
        self.put(_U64.pack(len(tensor.data)), tensor.data)


def encode_values(values: Mapping[str, Value], limit_bytes: int) -> bytes:
    """The whole frame of one rank's values; one that only says so where they are too large."""
    writer = _Writer(limit_bytes)
    named: dict[str | int, Value] = dict(values.items())
    try:
        writer.value(named)
    except ExportTooLarge:
        return encode_too_large()
    return HEAD.pack(MAGIC, VALUES, len(writer.body)) + bytes(writer.body)


def encode_too_large() -> bytes:
    """The frame of a rank whose values are too large."""
    return HEAD.pack(MAGIC, TOO_LARGE, 0)


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self._at = 0
        self._num_values = 0

    @property
    def num_left(self) -> int:
        return len(self._body) - self._at

    def take(self, num_bytes: int) -> memoryview:
        if num_bytes > self.num_left:
            raise WireError("an export ends in the middle of a value")
        self._at += num_bytes
        return self._body[self._at - num_bytes : self._at]

    def number(self, kind: struct.Struct) -> int:
        return int(kind.unpack(self.take(kind.size))[0])

    def text(self) -> str:
        try:
            return str(self.take(self.number(_U32)), "utf-8")
        except UnicodeDecodeError:
            raise WireError("a text of an export is not UTF-8") from None

    def value(self, depth: int = 0) -> Value:
        self._num_values += 1
        if depth > MAX_DEPTH or self._num_values > MAX_VALUES:
            raise WireError("an export is nested too deeply, or has too many values")
        match bytes(self.take(1)):
            case b"N":
                return None
            case b"T" | b"F" as tag:
                return tag == b"T"
            case b"i":
                return self.number(_I64)
            case b"d":
                return float(_F64.unpack(self.take(8))[0])
            case b"s":
                return self.text()
            case b"U":
                return NotExportable(type_name=self.text()[:200])
            case b"l":
                return self.values(depth)
            case b"t":
                return tuple(self.values(depth))
            case b"m":
                return self.mapping(depth)
            case b"x":
                return self.tensor()
            case b"D":
                return self.shard(depth)
        raise WireError("an export has a value of no known type")

    def values(self, depth: int) -> list[Value]:
        return [self.value(depth + 1) for _ in range(self.length())]

    def length(self) -> int:
        """How many values follow; each takes at least one byte."""
        number = self.number(_U32)
        if number > self.num_left:
            raise WireError("an export names more values than it has")
        return number

    def mapping(self, depth: int) -> Mapping[str | int, Value]:
        found: dict[str | int, Value] = {}
        for _ in range(self.length()):
            key = self.value(depth + 1)
            if not isinstance(key, str | int) or isinstance(key, bool) or key in found:
                raise WireError("a key of an export is of another type, or comes twice")
            found[key] = self.value(depth + 1)
        return found

    def tensor(self) -> ExportedTensor:
        dtype = self.text()
        num_dimensions = self.take(1)[0]
        if dtype not in ITEM_BYTES or num_dimensions > MAX_DIMENSIONS:
            raise WireError("a tensor of an export has no such dtype, or too many dimensions")
        shape = tuple(self.number(_U64) for _ in range(num_dimensions))
        num_bytes = self.number(_U64)
        if any(size >= _MAX_INT for size in shape) or num_bytes != ITEM_BYTES[dtype] * prod(shape):
            raise WireError("a tensor of an export has another size than its shape says")
        return ExportedTensor(dtype=dtype, shape=shape, data=bytes(self.take(num_bytes)))

    def shard(self, depth: int) -> ExportedShard:
        if bytes(self.take(1)) != b"x":
            raise WireError("a shard of an export has no tensor")
        local = self.tensor()
        shape, mesh_shape, placements = (self.value(depth + 1) for _ in range(3))
        return ExportedShard(
            local=local,
            shape=_sizes(shape),
            mesh_shape=_sizes(mesh_shape),
            placements=_words(placements),
        )


def _sizes(value: Value) -> tuple[int, ...]:
    if not isinstance(value, tuple) or len(value) > MAX_DIMENSIONS:
        raise WireError("a shape of an export is none")
    if not all(type(size) is int and 0 <= size < _MAX_INT for size in value):
        raise WireError("a shape of an export is none")
    return value


def _words(value: Value) -> tuple[str, ...]:
    if not isinstance(value, tuple) or len(value) > MAX_DIMENSIONS:
        raise WireError("placements of an export are none")
    if not all(isinstance(word, str) and len(word) <= 100 for word in value):
        raise WireError("placements of an export are none")
    return value


def decode_values(body: bytes) -> Mapping[str, Value]:
    """The values of one rank, by name. Raises: WireError."""
    reader = _Reader(body)
    value = reader.value()
    if reader.num_left or not isinstance(value, Mapping):
        raise WireError("an export is not one mapping")
    named: dict[str, Value] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise WireError("an export has a name that is no text")
        named[key] = item
    return named
