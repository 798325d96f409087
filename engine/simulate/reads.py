"""Every way to look at a tensor's content, and what ends a simulation there.

May import torch and engine.simulate. Simulated tensors answer for their shape, dtype and device;
of their content they have what `known` keeps, and nothing else can be read.
"""

import functools
import linecache
import sys
from collections.abc import Callable
from types import FrameType, TracebackType

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from engine.simulate.mode import SimulationMode

_MAX_CALL = 80


class CannotSimulate(RuntimeError):
    """A value of a simulated tensor was read: a simulation has shapes, but no values."""

    def __init__(self, call: str | None) -> None:
        what = f"`{call}` reads" if call else "This reads"
        super().__init__(f"{what} the values of a tensor, and simulated ranks have none")


def shortened(error: BaseException, program_filename: str) -> BaseException:
    """A refusal without the frames below the program's own, which tell only how it was found."""
    frame = error.__traceback__ if isinstance(error, CannotSimulate) else None
    frames: list[TracebackType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.tb_next
    own = [i for i, f in enumerate(frames) if f.tb_frame.f_code.co_filename == program_filename]
    if own:
        frames[own[-1]].tb_next = None
    return error


def adapt_reads(mode: SimulationMode) -> None:
    """Let the methods that show a tensor's content show what is known, and refuse the rest."""

    def of_value(name: str) -> Callable[..., object]:
        stock = getattr(Tensor, name)

        @functools.wraps(stock)
        def read(self: FakeTensor, *args: object, **kwargs: object) -> object:
            value = mode.value(self)
            with torch._C._DisableTorchDispatch():
                return stock(value, *args, **kwargs)

        return read

    for name in ("tolist", "numpy", "__array__", "__repr__", "__format__", "__reduce_ex__"):
        setattr(FakeTensor, name, of_value(name))
    for name, method in (("data_ptr", _data_ptr), ("__deepcopy__", _deepcopy)):
        setattr(FakeTensor, name, method)


def _data_ptr(tensor: Tensor) -> int:
    """A number that is the tensor's own, as its address would be; nothing is there."""
    address: int = tensor.untyped_storage()._cdata
    return address + int(tensor.storage_offset()) * tensor.element_size()


def _deepcopy(tensor: Tensor, memo: dict[int, object]) -> object:
    """Copy a parameter as parameters are copied, although its class is that of other tensors."""
    if not isinstance(tensor, torch.nn.Parameter):
        return Tensor.__deepcopy__(tensor, memo)  # type: ignore[no-untyped-call]
    if id(tensor) not in memo:
        data = tensor.data.clone(memory_format=torch.preserve_format)
        memo[id(tensor)] = torch.nn.Parameter(data, tensor.requires_grad)
    return memo[id(tensor)]


def call_in(filename: str) -> str | None:
    """The text of the expression that the program is evaluating, None if it has no line."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    if frame is None:
        return None
    positions = list(frame.f_code.co_positions())
    index = frame.f_lasti // 2
    first, last, begin, end = positions[index] if index < len(positions) else (None,) * 4
    line = linecache.getline(filename, first or frame.f_lineno)
    text = line.strip()
    if first is not None and begin is not None and end is not None:
        piece = line.encode("utf-8", "replace")[begin : end if first == last else None]
        text = piece.decode("utf-8", "replace").strip() or text
    return text if len(text) <= _MAX_CALL else text[: _MAX_CALL - 3] + "..."
