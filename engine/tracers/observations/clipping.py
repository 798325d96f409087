"""Whether gradients are clipped by the right norm and at the right time. May import torch."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.amp.grad_scaler import OptState
from torch.optim.optimizer import Optimizer

from engine.facts import Args
from engine.tracers.observations.digest import is_plain
from engine.tracers.observations.known import Version, parameters_of, version_of
from engine.tracers.observations.optimizers import Optimizers
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.replicas import Replicas
from engine.tracers.observations.shards import Shards
from engine.tracers.observations.watchpoints import Watchpoints

_MAX_REPORTS = 4
_UNSCALED_SHARE = 1e-3
"""A max_norm below this share of the loss scale was not meant for scaled gradients."""


class Clipping:
    """Clipping in one rank. DTensor gradients need no look at their norm: it is of all ranks."""

    def __init__(
        self, recorder: Recorder, shards: Shards, replicas: Replicas, optimizers: Optimizers
    ) -> None:
        self._recorder = recorder
        self._shards = shards
        self._replicas = replicas
        self._optimizers = optimizers
        self._num_left = _MAX_REPORTS
        self._newest: Version | None = None
        """The first gradient that was clipped last."""
        self._newest_norm = 0.0
        self._line: int | None = None
        self._said: set[str] = set()

    def install(self, watchpoints: Watchpoints) -> None:
        """Stand where torch.nn.utils scales gradients by a norm."""
        watchpoints.gradients_clipped.before = self._clipped
        watchpoints.gradients_clipped.after = self._has_clipped
        watchpoints.scaler_steps.before = self._scaler_steps

    def _clipped(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        with unnoticed():
            parameters, max_norm, norm = _read(args, kwargs)
            if norm is None:
                return
            if self._num_left > 0 and self._shards.units:
                self._find_shards(parameters, max_norm, norm)
            # What is clipped by an infinite or never reached norm is only measured.
            if max_norm is None or not math.isfinite(max_norm):
                return
            if is_plain(norm) and norm.item() <= max_norm:
                return
            self._find_untimely(parameters)

    def _find_shards(self, parameters: list[Tensor], max_norm: float | None, norm: Tensor) -> None:
        ids = {id(p) for p in parameters}
        for unit in self._shards.units:
            is_flat = unit.by == "FullyShardedDataParallel" and unit.is_split
            if is_flat and any(id(p) in ids for p in unit.parameters()):
                self._num_left -= 1
                args: Args = {
                    "norm": norm.item(),
                    "max_norm": max_norm,
                    "size": len(unit.ranks),
                }
                self._recorder.say("clipped-shards", args, self._recorder.position.line())
                return

    def _find_untimely(self, parameters: list[Tensor]) -> None:
        """Look whether a step has used the gradients, or DDP has not averaged them yet."""
        first = next((p for p in parameters if p.grad is not None), None)
        if first is None:
            return
        used = self._optimizers.has_used(first)
        if used is not None and "late" not in self._said:
            self._said.add("late")
            args: Args = {"step_line": used.step_line}
            self._recorder.say("clipped-late", args, self._recorder.position.line())
        for wrapper in self._replicas.wrappers:
            if wrapper.manages(first) and wrapper.num_forwards and not wrapper.is_synced:
                wrapper.clip_line = self._recorder.position.line()

    def _has_clipped(
        self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        with unnoticed():
            parameters, max_norm, _ = _read(args, kwargs)
            self._newest = version_of(parameters)
            self._newest_norm = math.inf if max_norm is None else max_norm
            self._line = self._recorder.position.line()

    def _scaler_steps(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        """Look whether the scaler is still to unscale what was clipped."""
        with unnoticed():
            scaler, optimizer = args[0], args[1] if len(args) > 1 else kwargs.get("optimizer")
            if self._newest is None or "scaled" in self._said:
                return
            if not isinstance(scaler, torch.amp.GradScaler) or not scaler.is_enabled():
                return
            state = scaler._per_optimizer_states.get(id(optimizer))
            is_scaled = state is None or state["stage"] is OptState.READY
            if not is_scaled or not isinstance(optimizer, Optimizer):
                return
            if not any(self._newest.is_of(version_of([p])) for p in parameters_of(optimizer)):
                return
            scale = scaler.get_scale()
            if self._newest_norm < _UNSCALED_SHARE * scale:
                self._said.add("scaled")
                about: Args = {"max_norm": self._newest_norm, "scale": scale}
                self._recorder.say("clipped-scaled", about, self._line)


def _read(
    args: tuple[object, ...], kwargs: Mapping[str, object]
) -> tuple[list[Tensor], float | None, Tensor | None]:
    """Parameters, max_norm and the norm that is used, None where they are something else."""
    parameters = args[0] if args else kwargs.get("parameters")
    max_norm = args[1] if len(args) > 1 else kwargs.get("max_norm")
    norm = args[2] if len(args) > 2 else kwargs.get("total_norm")
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    if not isinstance(parameters, (list, tuple)) or not isinstance(norm, Tensor):
        return [], None, None
    limit = float(max_norm) if isinstance(max_norm, (int, float)) else None
    return [p for p in parameters if isinstance(p, Tensor)], limit, norm
