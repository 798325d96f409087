"""Hands out the values of a program's variables at its end. Runs inside a rank; may import torch.

Nothing here is trusted: it shares its process with the program. The supervisor decodes what comes
out of it as it would decode a program's own bytes.
"""

import os
from collections.abc import Mapping, Sequence

import numpy
import torch
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import _disable_current_modes

from engine.grading.frames import (
    ITEM_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    ExportedShard,
    ExportedTensor,
    ExportTooLarge,
    NotExportable,
    Value,
    encode_too_large,
    encode_values,
)


def export(
    variables: Mapping[str, object], names: Sequence[str], limit_bytes: int, descriptor: int
) -> None:
    """Write the values of those names that are there to a pipe, as one frame."""
    converter = _Converter(limit_bytes)
    try:
        with _disable_current_modes(), torch.no_grad():
            values = {n: converter.value(variables[n], 1) for n in names if n in variables}
        frame = encode_values(values, limit_bytes)
    except ExportTooLarge:
        frame = encode_too_large()
    except BaseException:  # noqa: BLE001 - the program's own classes run here
        return
    left = memoryview(frame)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:  # the program closed it, or the supervisor is gone
        return


class _Converter:
    """Turns values of Python and torch into those of a frame, within a limit of bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._left_bytes = limit_bytes
        self._num_left = MAX_VALUES

    def value(self, value: object, depth: int) -> Value:
        self._num_left -= 1
        if self._num_left < 0:
            raise ExportTooLarge
        match value:
            case None | bool() | int() | float() | str():
                return value
            case torch.Tensor():
                return self.tensor(value)
            case numpy.ndarray():
                return self.array(value)
            case numpy.generic():
                return self.value(value.item(), depth + 1)
            case dict() | list() | tuple() if depth >= MAX_DEPTH:
                return NotExportable(type_name=f"{type(value).__name__} nested too deeply")
            case dict():
                return self.mapping(value, depth)
            case list():
                return [self.value(item, depth + 1) for item in value]
            case tuple():
                return tuple(self.value(item, depth + 1) for item in value)
        return NotExportable(type_name=type(value).__name__)

    def mapping(self, mapping: dict[object, object], depth: int) -> Value:
        found: dict[str | int, Value] = {}
        for key, item in mapping.items():
            if not isinstance(key, str | int) or isinstance(key, bool):
                return NotExportable(type_name=f"dict with keys of type {type(key).__name__}")
            found[key] = self.value(item, depth + 1)
        return found

    def array(self, array: "numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.generic]]") -> Value:
        if str(array.dtype) not in ITEM_BYTES:
            return NotExportable(type_name=f"array of {array.dtype}")
        return self.dense(torch.from_numpy(numpy.ascontiguousarray(array)))

    def tensor(self, tensor: torch.Tensor) -> Value:
        if isinstance(tensor, AsyncCollectiveTensor):
            tensor = tensor.wait()
        if not isinstance(tensor, DTensor):
            return self.dense(tensor)
        local = self.dense(tensor.to_local())
        if not isinstance(local, ExportedTensor):
            return local
        return ExportedShard(
            local=local,
            shape=tuple(tensor.shape),
            mesh_shape=tuple(tensor.device_mesh.shape),
            placements=tuple(map(_placement, tensor.placements)),
        )

    def dense(self, tensor: torch.Tensor) -> ExportedTensor | NotExportable:
        dtype = str(tensor.dtype).removeprefix("torch.")
        if tensor.layout != torch.strided or tensor.is_meta or dtype not in ITEM_BYTES:
            kind = "meta" if tensor.is_meta else str(tensor.layout).removeprefix("torch.")
            return NotExportable(type_name=f"{kind} tensor of {dtype}")
        self._left_bytes -= tensor.numel() * tensor.element_size()
        if self._left_bytes < 0:
            raise ExportTooLarge
        whole = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        items = whole.reshape(-1).view(torch.uint8).numpy()
        return ExportedTensor(dtype=dtype, shape=tuple(whole.shape), data=items.tobytes())


def _placement(placement: object) -> str:
    """`Shard(dim=0)`, `Replicate()`: as torch's own classes write themselves."""
    return repr(placement)[:100]
