"""Sees every op that this thread executes and the storages that it makes.

May import torch. A dispatch mode, below autograd: the same kernels run with the same arguments.
Ops on a subclass that wraps tensors are declined, so that they come again as ops on those.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from engine.tracers.compiling import never_compiled
from engine.tracers.memory.storages import Storages
from engine.tracers.unnoticed import unnoticed

Kind = Literal["none", "new", "resizes", "moves", "unshards", "copies in"]
"""What an op does to storages: nothing, makes some, gives others a size, is a collective, writes
parameters that FSDP2 has gathered, or fills what FSDP2 is about to send."""

_KINDS: Mapping[str, Kind] = {
    "fsdp::split_with_sizes_copy": "unshards",
    "fsdp::chunk_cat": "copies in",
    "fsdp::all_gather_copy_in": "copies in",
}
_RESIZING = ("aten::resize_", "aten::resize_as_", "aten::set_")
MAX_OPS = 300_000
"""Watching an op costs some microseconds: more of them than this would cost a run seconds."""
_OUT_OF_PLACE = ("gather", "scatter", "alltoall")
"""In the names of c10d ops whose outputs are storages of their own."""


class Allocations(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no type for it
    """The mode."""

    supports_higher_order_operators = True

    def __init__(
        self,
        storages: Storages,
        on_too_many: Callable[[], None],
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._storages = storages
        self._num_ops = 0
        self._on_too_many = on_too_many
        self._is_paused = False
        self.has_moved = False
        """Whether there was a collective since somebody last set this to False."""
        # By identity: ops are never freed, and hashing one is a call of a Python function.
        self._kinds: dict[int, Kind] = {}

    def pause(self) -> None:
        """See nothing for a while, if no mode of the program's own lies above this one."""
        if not self._is_paused and _get_current_dispatch_mode() is self:
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._is_paused = True

    def resume(self) -> None:
        """See everything again."""
        if self._is_paused and self._num_ops <= MAX_OPS:
            self._is_paused = False
            self.__enter__()  # type: ignore[no-untyped-call]

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Leave torch.compile as it is: what it has compiled runs as ops again."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the handler is marked itself, which costs less on each call

    @never_compiled
    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type[Tensor]],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Run func and book what it made."""
        if types and not self._storages.takes(types):
            return NotImplemented
        answer = func(*args, **kwargs) if kwargs else func(*args)
        self._num_ops += 1
        if self._num_ops > MAX_OPS:
            if self._num_ops == MAX_OPS + 1:
                self._on_too_many()
            return answer
        kind = self._kinds.get(id(func))
        if kind is None:
            kind = self._kinds[id(func)] = kind_of(func)
        if kind != "none":
            self._book(kind, func, args, kwargs or {}, answer)
        return answer

    @unnoticed
    def _book(
        self,
        kind: Kind,
        func: object,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        answer: object,
    ) -> None:
        match kind:
            case "new":
                self._see(answer, func, args)
            case "resizes":
                self._see(answer, func, args)
                for tensor in _tensors(answer):
                    self._storages.measure(Tensor.untyped_storage(tensor))
            case "moves":
                self.has_moved = True
                # Outputs of a reduction in place stay what they are unless nobody knows.
                out_of_place = any(word in str(func) for word in _OUT_OF_PLACE)
                for tensor in _tensors(args[0]):
                    self._moved(tensor, func, out_of_place)
            case "unshards":
                for tensor in _tensors(kwargs.get("out")):
                    self._storages.classify(tensor, "parameter")
            case "copies in":
                self._see(answer, func, args)
                for tensor in (*_tensors(answer), *_tensors(kwargs.get("out"))):
                    self._storages.classify(tensor, "communication")

    def _see(self, answer: object, func: object, args: Sequence[object]) -> None:
        for tensor in _tensors(answer):
            self._storages.see(tensor, None, func, args)

    def _moved(self, tensor: Tensor, func: object, out_of_place: bool) -> None:
        entry = self._storages.see(tensor, "communication", func)
        if entry is not None and (out_of_place or entry.category == "other"):
            self._storages.classify(tensor, "communication")


def kind_of(func: object) -> Kind:
    """What an op does to storages, from its schema."""
    if not isinstance(func, torch._ops.OpOverload):
        return "new"  # a higher-order operator
    name = func._schema.name
    if name in _KINDS:
        return _KINDS[name]
    if name.startswith("c10d::"):
        return "moves" if func._schema.arguments and "Tensor" in _first_type(func) else "none"
    if name in _RESIZING or any(a.is_out for a in func._schema.arguments):
        return "resizes"
    makes = any(r.alias_info is None and "Tensor" in str(r.type) for r in func._schema.returns)
    return "new" if makes else "none"


def _first_type(func: torch._ops.OpOverload) -> str:
    return str(func._schema.arguments[0].type)


def _tensors(answer: object) -> Sequence[Tensor]:
    if isinstance(answer, Tensor):
        return (answer,)
    if isinstance(answer, (tuple, list)):
        return [t for item in answer for t in _tensors(item)]
    return ()
