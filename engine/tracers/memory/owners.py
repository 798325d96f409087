"""Finds out what storages are for: parameters, buffers, gradients, optimizer state.

May import torch. Owners are learnt when modules are built, run or sharded and when an optimizer
steps; nothing of the learner's is kept alive, and reading never computes.
"""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp._flat_param import FlatParameter
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import Optimizer

from engine.facts import Category
from engine.tracers.compiling import never_compiled
from engine.tracers.memory.storages import Storages
from engine.tracers.unnoticed import unnoticed

_FLAT_BUFFERS = ("_full_param_padded", "_full_prec_full_param_padded", "_mp_shard", "_local_shard")
"""Where a flat parameter of FSDP1 keeps its whole and its sharded values, while it has them."""
_FLAT_GRADIENTS = ("_saved_grad_shard", "_cpu_grad")


@dataclass(slots=True, kw_only=True)
class _Known:
    """A parameter that has been met, and the gradient last seen in it."""

    ref: weakref.ref[Tensor]
    grad: weakref.ref[Tensor] | None = None
    is_flat: bool = False
    """Whether it is a flat parameter of FSDP1."""


@dataclass(slots=True, kw_only=True)
class _Steps:
    """How many steps of an optimizer have begun, and the size of its state after the last."""

    ref: weakref.ref[Optimizer]
    count: int = 0
    num_states: int = 0


class Owners:
    """The parameters of this rank that have been met, and how to tell what a storage is for."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._parameters: dict[int, _Known] = {}
        self._steps: dict[int, _Steps] = {}
        self._around: weakref.ref[FullyShardedDataParallel] | None = None
        """The unit of FSDP1 that was met last, until something inside it runs."""

    # ------------------------------------------------------------------ modules
    def learn_tree(self, root: nn.Module) -> None:
        """Take in what a module and all below it own; again, since wrappers replace it."""
        for module in below(root):
            self._take_in(module)

    def learn(self, module: nn.Module) -> None:
        """Take in what a module owns that has not been met.

        Sharding swaps parameters around each forward: FSDP2 the parameters themselves, FSDP1 the
        storage of its flat one, which is whole only once a module inside it runs.
        """
        for parameter in module._parameters.values():
            if parameter is not None and not self._is_known(parameter):
                self.adopt_parameter(parameter)
        around, self._around = self._around, None
        if around is not None and (unit := around()) is not None:
            self._take_in_flat(unit)
        if isinstance(module, FullyShardedDataParallel):
            self._around = weakref.ref(module)

    def learn_again(self, root: nn.Module) -> None:
        """Take in what a module and all below it own that has not been met."""
        for module in below(root):
            self.learn(module)

    def _take_in(self, module: nn.Module) -> None:
        for parameter in module._parameters.values():
            if parameter is not None:
                self.adopt_parameter(parameter)
        for buffer in module._buffers.values():
            if buffer is not None:
                self._adopt(buffer, "buffer")
        if isinstance(module, FullyShardedDataParallel):
            self._take_in_flat(module)

    def _take_in_flat(self, unit: FullyShardedDataParallel) -> None:
        flat = getattr(getattr(unit, "_handle", None), "flat_param", None)
        if isinstance(flat, Tensor):
            self.adopt_parameter(flat)
            self._adopt_all(flat, _FLAT_BUFFERS, "parameter")

    def _adopt_all(self, owner: Tensor, names: tuple[str, ...], category: Category) -> None:
        for name in names:
            value = getattr(owner, name, None)
            if isinstance(value, Tensor):
                self._adopt(value, category)

    # ------------------------------------------------------------------ parameters and gradients
    def registered(self, tensor: Tensor, category: Category) -> None:
        """A module has got this parameter or buffer."""
        self._adopt(tensor, category)

    def adopt_parameter(self, parameter: Tensor) -> None:
        """Take in a parameter, and from now on each gradient that backward leaves in it."""
        self._adopt(parameter, "parameter")
        if not self._is_known(parameter) and parameter.requires_grad and parameter.is_leaf:
            address = id(parameter)
            self._parameters[address] = _Known(
                ref=weakref.ref(parameter, lambda _: self._parameters.pop(address, None)),
                is_flat=isinstance(parameter, FlatParameter),
            )
            # torch has no type for it
            parameter.register_post_accumulate_grad_hook(self._accumulated)  # type: ignore[no-untyped-call]

    def _is_known(self, parameter: Tensor) -> bool:
        known = self._parameters.get(id(parameter))
        return known is not None and known.ref() is parameter

    @unnoticed
    def _accumulated(self, parameter: Tensor) -> None:
        if parameter.grad is not None:
            self._adopt(parameter.grad, "gradient")

    def learn_gradients(self) -> None:
        """Take in gradients that no hook tells of: views of buckets, what FSDP has reduced."""
        for known in list(self._parameters.values()):
            parameter = known.ref()
            if parameter is None or not parameter.is_leaf:  # .grad of others warns
                continue
            grad = parameter.grad
            if grad is not None and (known.grad is None or known.grad() is not grad):
                self._adopt(grad, "gradient")
                known.grad = weakref.ref(grad)
            if known.is_flat:
                self._adopt_all(parameter, _FLAT_GRADIENTS, "gradient")

    # ------------------------------------------------------------------ optimizers
    def learn_optimized(self, optimizer: Optimizer) -> None:
        """Take in the parameters that an optimizer holds, modules or not."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if isinstance(parameter, Tensor) and not self._is_known(parameter):
                    self.adopt_parameter(parameter)

    def is_due(self, optimizer: Optimizer) -> bool:
        """Whether this step of an optimizer is its 1st, 2nd, 4th, 8th ..."""
        known = self._steps.get(id(optimizer))
        if known is None or known.ref() is not optimizer:
            known = self._steps[id(optimizer)] = _Steps(ref=weakref.ref(optimizer))
        known.count += 1
        return not known.count & (known.count - 1)

    def learn_states(self, optimizer: Optimizer) -> None:
        """Take in the state of an optimizer after its step, unless it has not grown since."""
        known = self._steps.get(id(optimizer))
        states = optimizer.state.values()  # ZeRO has None for what other ranks update
        num_states = sum(len(state) for state in states if isinstance(state, dict))
        if known is not None and known.num_states == num_states and known.count & (known.count - 1):
            return
        for tensor in _states(optimizer):
            self._adopt(tensor, "optimizer")
        if known is not None:
            known.num_states = num_states

    def _adopt(self, tensor: Tensor, category: Category) -> None:
        plain = local(tensor)
        if torch._C._functorch.is_functorch_wrapped_tensor(plain):
            return  # made inside a torch.func transform: it has no storage to ask for
        self._storages.see(plain, category)
        self._storages.classify(plain, category)


def below(root: nn.Module) -> Iterator[nn.Module]:
    """A module and all below it, each once, without calling what its class may have redefined."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        module = waiting.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield module
            waiting.extend(child for child in module._modules.values() if child is not None)


def local(tensor: Tensor) -> Tensor:
    """The tensor with storage of its own: what a DTensor holds on this rank."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


def _states(optimizer: Optimizer) -> Iterator[Tensor]:
    for state in optimizer.state.values():
        if isinstance(state, dict):
            yield from (value for value in state.values() if isinstance(value, Tensor))


def makes_buckets(module: nn.Module | None) -> bool:
    """Whether what is allocated while this module itself runs are buckets for gradients."""
    return isinstance(module, DistributedDataParallel)


def is_bucket_setup(code: object) -> bool:
    """Whether a frame with this code is DDP's constructor making its buckets."""
    return code is DistributedDataParallel._ddp_init_helper.__code__


def watch_registrations(
    on_parameter: Callable[[Tensor], None], on_buffer: Callable[[Tensor], None]
) -> None:
    """Call back for each parameter and buffer that a module registers."""

    @never_compiled
    def parameter_registered(module: nn.Module, name: str, parameter: object) -> None:
        if isinstance(parameter, Tensor) and not torch.compiler.is_compiling():
            on_parameter(parameter)

    @never_compiled
    def buffer_registered(module: nn.Module, name: str, buffer: object) -> None:
        if isinstance(buffer, Tensor) and not torch.compiler.is_compiling():
            on_buffer(buffer)

    nn.modules.module.register_module_parameter_registration_hook(parameter_registered)
    nn.modules.module.register_module_buffer_registration_hook(buffer_registered)
