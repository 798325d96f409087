"""Whether gradients are clipped by the norm of one rank's shards. May import torch."""

from collections.abc import Mapping

from torch import Tensor

from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.shards import Shards
from engine.tracers.observations.watchpoints import Watchpoints

_MAX_REPORTS = 4


class Clipping:
    """Clipping in one rank. DTensor gradients need no look: their norm is of all ranks."""

    def __init__(self, recorder: Recorder, shards: Shards) -> None:
        self._recorder = recorder
        self._shards = shards
        self._num_left = _MAX_REPORTS

    def install(self, watchpoints: Watchpoints) -> None:
        """Stand where torch.nn.utils scales gradients by a norm."""
        watchpoints.gradients_clipped.before = self._clipped

    def _clipped(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        if self._num_left <= 0 or not self._shards.units:
            return
        with unnoticed():
            parameters = args[0] if args else kwargs.get("parameters")
            max_norm = args[1] if len(args) > 1 else kwargs.get("max_norm")
            norm = args[2] if len(args) > 2 else kwargs.get("total_norm")
            if isinstance(parameters, Tensor):
                parameters = [parameters]
            if not isinstance(parameters, (list, tuple)) or not isinstance(norm, Tensor):
                return
            ids = {id(p) for p in parameters}
            for unit in self._shards.units:
                held = unit.parameters()
                is_flat = unit.by == "FullyShardedDataParallel" and unit.is_split
                if is_flat and any(id(p) in ids for p in held):
                    self._num_left -= 1
                    self._recorder.say(
                        "clipped-shards",
                        {
                            "norm": norm.item(),
                            "max_norm": float(max_norm)
                            if isinstance(max_norm, (int, float))
                            else None,
                            "size": len(unit.ranks),
                        },
                        self._recorder.position.line(),
                    )
                    return
