"""Whether the layers that convert_sync_batchnorm made are the ones that run. May import torch.

A batch norm that is a child is replaced in its parent; one that is converted itself is not: the
new layer is only returned. Keeps no module alive.
"""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.module import register_module_forward_pre_hook

from engine.tracers.compiling import never_compiled
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.watchpoints import Watchpoints


@dataclass(slots=True, kw_only=True)
class _Pair:
    """A batch norm and the SyncBatchNorm that was made for it."""

    old: weakref.ref[nn.Module]
    line: int | None
    layer: str
    has_old_run: bool = False
    has_new_run: bool = False


class Conversion:
    """All conversions of one rank."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._has_said_alone = False
        self._pairs: list[_Pair] = []
        self._by_old: dict[int, _Pair] = {}
        self._by_new: dict[int, tuple[weakref.ref[nn.Module], _Pair]] = {}

    def install(self, watchpoints: Watchpoints) -> None:
        """Register the hooks."""
        watchpoints.converted.after = self._converted
        register_module_forward_pre_hook(self._enter)

    def finish(self) -> None:
        """Report batch norms that ran in place of the layers made for them."""
        for pair in self._pairs:
            if pair.has_old_run and not pair.has_new_run:
                args = {"layer": pair.layer, "convert_line": pair.line}
                self._recorder.say("unconverted", args, pair.line)

    def _converted(
        self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Called for every layer of the tree, since the conversion calls itself."""
        old = args[1] if len(args) > 1 else kwargs.get("module")
        if not isinstance(old, _BatchNorm) or not isinstance(answer, nn.Module) or answer is old:
            return
        with unnoticed():
            line = self._recorder.position.line()
            pair = _Pair(old=weakref.ref(old), line=line, layer=type(old).__name__)
            self._pairs.append(pair)
            self._by_old[id(old)] = pair
            self._by_new[id(answer)] = (weakref.ref(answer), pair)

    @never_compiled
    def _enter(self, module: nn.Module, args: tuple[object, ...]) -> None:
        if not isinstance(module, _BatchNorm) or not module.training:
            return
        if torch.compiler.is_compiling():
            return
        if isinstance(module, nn.SyncBatchNorm) and not self._has_said_alone:
            self._find_alone(module)
        if not self._pairs:
            return
        made = self._by_new.get(id(module))
        if made is not None and made[0]() is module:
            made[1].has_new_run = True
            return
        pair = self._by_old.get(id(module))
        if pair is not None and pair.old() is module:
            pair.has_old_run = True

    def _find_alone(self, module: nn.SyncBatchNorm) -> None:
        """Report a layer whose group has nobody to synchronise with."""
        group = module.process_group
        if not isinstance(group, dist.ProcessGroup) or group.size() > 1:
            return
        with unnoticed():
            self._has_said_alone = True
            args = {"layer": self._recorder.position.name(module)}
            self._recorder.say("alone-in-group", args, self._recorder.position.line())
