"""Whether what torch.save writes is only this rank's part of it. May import torch."""

import os
import sys
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.distributed.tensor import DTensor, Shard
from torch.optim.optimizer import Optimizer

from engine.tracers.observations.optimizers import Optimizers
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.shards import Shards
from engine.tracers.observations.watchpoints import Watchpoints

_MAX_REPORTS = 16
_MAX_ITEMS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A tensor that was saved and is a part of something larger."""

    key: str
    size: int
    """Number of ranks that hold parts of it."""
    how: str
    """"DTensor", "ShardedTensor", or "local" for a plain tensor with a rank's part."""


class Saving:
    """Calls of torch.save in one rank."""

    def __init__(self, recorder: Recorder, shards: Shards, optimizers: Optimizers) -> None:
        self._recorder = recorder
        self._shards = shards
        self._optimizers = optimizers
        self._num_left = _MAX_REPORTS
        self._consolidated: dict[int, tuple[weakref.ref[Optimizer], int, int | None]] = {}
        """Each ZeRO optimizer, its steps and the line when its state was last gathered."""
        self._has_said_old = False

    def install(self, watchpoints: Watchpoints) -> None:
        """Stand before torch.save, and where ZeRO's state is gathered and read."""
        watchpoints.saved.before = self._saves
        watchpoints.state_consolidated.after = self._has_gathered
        watchpoints.zero_state_read.after = self._has_read

    def _has_gathered(
        self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        with unnoticed():
            optimizer = args[0]
            if isinstance(optimizer, Optimizer) and not isinstance(answer, BaseException):
                steps, line = self._optimizers.steps_of(optimizer), self._recorder.position.line()
                self._consolidated[id(optimizer)] = (weakref.ref(optimizer), steps, line)

    def _has_read(
        self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Report a state that was gathered before the newest steps."""
        with unnoticed():
            optimizer = args[0]
            ref, steps, line = self._consolidated.get(id(optimizer), (None, 0, None))
            if self._has_said_old or isinstance(answer, BaseException) or ref is None:
                return
            if isinstance(optimizer, Optimizer) and ref() is optimizer:
                now = self._optimizers.steps_of(optimizer)
                if now > steps:
                    self._has_said_old = True
                    about = {"gather_line": line, "steps": steps, "now": now}
                    self._recorder.say("old-state", about, self._recorder.position.line())

    def _saves(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        if self._num_left <= 0 or not _is_called_by_program():
            return
        with unnoticed():
            saved = args[0] if args else kwargs.get("obj")
            path = _path_of(args[1] if len(args) > 1 else kwargs.get("f"))
            parts = list(self._parts(saved))
            if not parts or path is None:
                return
            self._num_left -= 1
            self._recorder.say(
                "saved-shards",
                {
                    "path": path,
                    "key": parts[0].key,
                    "num_shards": len(parts),
                    "size": max(part.size for part in parts),
                    "how": parts[0].how,
                },
                self._recorder.position.line(),
            )

    def _parts(self, saved: object) -> Iterator[_Part]:
        local = self._local_storages()
        cuts = self._cuts()
        for key, tensor in _tensors(saved):
            if isinstance(tensor, DTensor):
                size = _num_parts(tensor)
                if size > 1:
                    yield _Part(key=key, size=size, how="DTensor")
            elif isinstance(tensor, ShardedTensor):
                size = len(tensor.metadata().shards_metadata)
                yield _Part(key=key, size=size, how="ShardedTensor")
            elif isinstance(tensor, Tensor) and tensor.numel():
                named = (n for name, cut, n in cuts if cut == tensor.shape and key.endswith(name))
                size = local.get(tensor.untyped_storage().data_ptr(), next(named, 1))
                if size > 1:
                    yield _Part(key=key, size=size, how="local")

    def _local_storages(self) -> dict[int, int]:
        """Storages with this rank's part of parameters or optimizer state: number of parts."""
        found: dict[int, int] = {}
        owners: dict[int, int] = {}
        for unit in self._shards.units:
            if unit.is_split:
                size = unit.num_parts
                found.update({t.untyped_storage().data_ptr(): size for t in unit.parts()})
                owners.update({id(p): size for p in unit.parameters()})
        for optimizer in self._optimizers.alive() if owners else ():
            for parameter, state in optimizer.state.items():
                num_parts = owners.get(id(parameter))
                if num_parts is None or not isinstance(state, dict):
                    continue
                for value in state.values():
                    if isinstance(value, Tensor) and value.dim() and not isinstance(value, DTensor):
                        found[value.untyped_storage().data_ptr()] = num_parts
        return found

    def _cuts(self) -> list[tuple[str, torch.Size, int]]:
        """Name, this rank's shape and number of parts of each fully_shard parameter that is cut."""
        found = []
        for unit in self._shards.units:
            maker = unit.maker()
            if not isinstance(maker, FSDPParamGroup) or not unit.is_split:
                continue
            for p in maker.fsdp_params:
                name, whole = p._param_fqn, p.sharded_param
                if name and isinstance(whole, DTensor) and whole._local_tensor.shape != whole.shape:
                    found.append((name, whole._local_tensor.shape, unit.num_parts))
        return found


def _is_called_by_program() -> bool:
    """Whether torch.save was called from outside torch: distributed checkpoints call it too."""
    caller = sys._getframe(3).f_globals.get("__name__", "")
    return not str(caller).startswith("torch.")


def _path_of(file: object) -> str | None:
    """Where a file goes; None for one in memory."""
    if isinstance(file, (str, os.PathLike)):
        return os.path.realpath(os.fsdecode(file))
    name = getattr(file, "name", None)
    return os.path.realpath(name) if isinstance(name, str) else None


def _num_parts(tensor: DTensor) -> int:
    """Over how many ranks the values of a DTensor are spread."""
    size = 1
    for dim, placement in enumerate(tensor.placements):
        if isinstance(placement, Shard):
            size *= tensor.device_mesh.size(dim)
    return size


def _tensors(saved: object) -> Iterator[tuple[str, object]]:
    """Tensors in nested dicts and sequences, each with its key."""
    pending: deque[tuple[str, object]] = deque([("", saved)])
    for _ in range(_MAX_ITEMS):
        if not pending:
            return
        key, item = pending.popleft()
        if isinstance(item, Mapping):
            pending.extend((str(k), v) for k, v in item.items())
        elif isinstance(item, (list, tuple)):
            pending.extend((key, v) for v in item)
        elif isinstance(item, (Tensor, ShardedTensor)):
            yield key, item
