"""What DistributedDataParallel wrappers manage, and whether training goes through them.

May import torch. Keeps no module and no tensor alive.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel

from engine.facts import Args
from engine.tracers.compiling import never_compiled
from engine.tracers.observations.digest import digest, is_plain
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.watchpoints import Watchpoints

_DEPEND_ON_MODE = (_BatchNorm, _DropoutNd)


@dataclass(slots=True, kw_only=True)
class Wrapper:
    """One DDP object: what it manages, and what happened since the last optimizer step."""

    number: int
    line: int | None
    ranks: tuple[int, ...]
    ddp: weakref.ref[DistributedDataParallel]
    module: weakref.ref[nn.Module]
    managed: dict[int, weakref.ref[Tensor]]
    """The parameters that its reducer averages, by id."""
    frozen: dict[int, weakref.ref[Tensor]]
    """Parameters that needed no gradient when it was made."""
    ignored: frozenset[str] = frozenset()
    """Names of parameters that it was told to leave alone."""
    num_forwards: int = 0
    is_synced: bool = True
    """Whether the backward of its newest forward averages gradients."""
    forward_line: int | None = None
    num_bypasses: int = 0
    """Training forwards of what it wraps that did not go through it."""
    bypass_line: int | None = None
    clip_line: int | None = None
    """Where gradients were clipped that are not averaged yet."""
    said: set[str] = field(default_factory=set)

    def parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Named parameters of the module now; those managed at first, once it is gone."""
        module = self.module()
        if module is not None:
            yield from module.named_parameters()
            return
        for place, ref in enumerate(self.managed.values()):
            parameter = ref()
            if parameter is not None:
                yield str(place), parameter

    def manages(self, parameter: Tensor) -> bool:
        """Whether the reducer averages this parameter's gradient."""
        ref = self.managed.get(id(parameter))
        return ref is not None and ref() is parameter

    def forget_forwards(self) -> None:
        """A step used the gradients: what led to them is over."""
        self.num_forwards = self.num_bypasses = 0
        self.clip_line = None


class Replicas:
    """All DDP wrappers of one rank."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.wrappers: list[Wrapper] = []
        self.is_evaluating = False
        """Whether the outermost module was in evaluation mode in its newest training forward."""
        self._has_trained = False
        self._has_said_evaluating = False
        self._by_ddp: dict[int, Wrapper] = {}
        self._by_module: dict[int, Wrapper] = {}
        self.on_input: Callable[[tuple[object, ...]], None] | None = None
        """Told of the arguments of each training forward of an outermost module."""
        self.on_unknown: Callable[[nn.Module], None] | None = None
        """Told of training forwards of modules that are no wrapped model's, once there is one."""
        self.root: weakref.ref[nn.Module] | None = None
        """The outermost module that was called last in training."""

    def install(self, watchpoints: Watchpoints) -> None:
        """Register the hooks."""
        watchpoints.ddp_made.after = self._made
        watchpoints.state_loaded.after = self._loaded
        register_module_forward_pre_hook(self._enter)

    def step_begins(self) -> None:
        """Report a step in evaluation mode after steps in training mode, once."""
        if not self.is_evaluating:
            self._has_trained = True
        elif self._has_trained and not self._has_said_evaluating and self.root is not None:
            root = self.root()
            modules = root.modules() if root is not None else ()
            layers = sorted({type(m).__name__ for m in modules if isinstance(m, _DEPEND_ON_MODE)})
            if layers:
                self._has_said_evaluating = True
                args = {"layers": ", ".join(layers)}
                self._recorder.say("evaluating", args, self._recorder.position.line())

    def _made(self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        if isinstance(answer, BaseException):
            return
        with unnoticed():
            ddp = args[0]
            if isinstance(ddp, DistributedDataParallel):
                self._add(ddp)

    def _add(self, ddp: DistributedDataParallel) -> None:
        ignored = ddp.parameters_to_ignore
        named = [(n, p) for n, p in ddp.module.named_parameters() if n not in ignored]
        wrapper = Wrapper(
            number=len(self.wrappers),
            line=self._recorder.position.line(),
            ranks=tuple(dist.get_process_group_ranks(ddp.process_group)),
            ddp=weakref.ref(ddp),
            module=weakref.ref(ddp.module),
            managed={id(p): weakref.ref(p) for _, p in named if p.requires_grad},
            frozen={id(p): weakref.ref(p) for _, p in named if not p.requires_grad},
            ignored=frozenset(ignored),
        )
        self.wrappers.append(wrapper)
        self._by_ddp[id(ddp)] = wrapper
        for module in ddp.module.modules():
            self._by_module[id(module)] = wrapper
        found = digest(p for _, p in named if p.requires_grad and is_plain(p))
        self._recorder.say(
            "wrapped",
            {
                "wrapper": wrapper.number,
                "ranks": ",".join(map(str, wrapper.ranks)),
                "numel": found.numel,
                "total": found.total,
                "square": found.square,
            },
            wrapper.line,
        )
        left = (n for n, p in ddp.module.named_parameters() if n in ignored and p.requires_grad)
        name = next(left, None)
        if name is not None:
            args: Args = {"wrapper": wrapper.number, "parameter": name}
            self._recorder.say("ignoring", args, wrapper.line)

    def _loaded(
        self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        if isinstance(answer, BaseException):
            return
        with unnoticed():
            self._find_nothing_loaded(answer, args)
            wrapper = self._of(args[0])
            if wrapper is not None:
                line = self._recorder.position.line()
                self._recorder.say("loaded", {"wrapper": wrapper.number}, line)

    def _find_nothing_loaded(self, answer: object, args: tuple[object, ...]) -> None:
        missing = getattr(answer, "missing_keys", [])
        unexpected = getattr(answer, "unexpected_keys", [])
        module, given = args[0], args[1] if len(args) > 1 else {}
        if not missing or not unexpected or not isinstance(given, Mapping):
            return
        if len(unexpected) != len(given) or not isinstance(module, nn.Module):
            return
        if {name for name, _ in module.named_parameters()} <= set(missing):
            about = {"key": str(unexpected[0]), "own_key": str(missing[0])}
            self._recorder.say("loaded-nothing", about, self._recorder.position.line())

    def _of(self, module: object) -> Wrapper | None:
        """The wrapper that module is, or is inside of."""
        wrapper = self._by_ddp.get(id(module))
        if wrapper is not None and wrapper.ddp() is module:
            return wrapper
        wrapper = self._by_module.get(id(module))
        return wrapper if wrapper is not None and _is_within(module, wrapper) else None

    @never_compiled
    def _enter(self, module: nn.Module, args: tuple[object, ...]) -> None:
        """Note a training forward of a wrapper, or of a part of one that is not called by it."""
        if torch.compiler.is_compiling() or not torch.is_grad_enabled():
            return
        position = self._recorder.position
        if position.is_outermost(module) and position.phase() != "backward":
            if self.root is None or self.root() is not module:
                self.root = weakref.ref(module)
                self._has_trained = False
            self.is_evaluating = not module.training
            if self.on_input is not None:
                self.on_input(args)
        wrapper = self._by_ddp.get(id(module))
        if wrapper is not None and wrapper.ddp() is module:
            wrapper.num_forwards += 1
            wrapper.is_synced = bool(getattr(module, "require_backward_grad_sync", True))
            wrapper.forward_line = position.line()
            return
        wrapper = self._by_module.get(id(module))
        if wrapper is None and self.wrappers and self.on_unknown is not None:
            self.on_unknown(module)
        if wrapper is None or position.phase() == "backward":  # a recomputed part
            return
        ddp = wrapper.ddp()
        if ddp is not None and position.is_inside(ddp):
            return
        if wrapper.num_bypasses:
            wrapper.num_bypasses += 1
            return
        with unnoticed():
            if _is_within(module, wrapper):
                wrapper.bypass_line = position.line()
                wrapper.num_bypasses = 1


def _is_within(module: object, wrapper: Wrapper) -> bool:
    """Whether an id still stands for the module that was there when the wrapper was made."""
    inner = wrapper.module()
    return inner is not None and any(m is module for m in inner.modules())
