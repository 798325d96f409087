"""What FSDP1 and fully_shard have sharded: units, replaced parameters, initial values.

May import torch. Keeps no module and no tensor alive.
"""

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp._flat_param import FlatParamHandle
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup

from engine.tracers.observations.digest import Digest, digest, is_plain
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.watchpoints import Watchpoints

By = Literal["fully_shard", "FullyShardedDataParallel"]
_MAX_UNITS_SHOWN = 32


@dataclass(slots=True, kw_only=True)
class Unit:
    """Parameters that are gathered together, and what they were before sharding."""

    number: int
    by: By
    line: int | None
    module: str
    """The class of the unit's module."""
    maker: weakref.ref[FlatParamHandle | FSDPParamGroup]
    before: Digest
    has_values: bool
    """False for parameters on the meta device, which have no values to compare."""
    ranks: tuple[int, ...] = ()
    num_parts: int = 1
    """Over how many ranks it is spread; 1 for NO_SHARD."""
    local: Digest = field(default_factory=Digest)
    """This rank's part when it had just been sharded."""

    @property
    def is_split(self) -> bool:
        """Whether ranks hold different parts."""
        return self.num_parts > 1

    def parts(self) -> list[Tensor]:
        """This rank's parts now."""
        maker = self.maker()
        if isinstance(maker, FlatParamHandle):
            shard = getattr(maker.flat_param, "_local_shard", maker.flat_param)
            return [shard] if isinstance(shard, Tensor) else []
        if maker is None:
            return []
        return [p._sharded_param_data for p in maker.fsdp_params]

    def parameters(self) -> list[Tensor]:
        """What an optimizer has to hold."""
        maker = self.maker()
        if isinstance(maker, FlatParamHandle):
            return list(maker.flat_param._params or [maker.flat_param])
        return [] if maker is None else [p.sharded_param for p in maker.fsdp_params]

    def awaits_reduction(self) -> bool:
        """Whether a backward left gradients here that are not reduced yet (fully_shard)."""
        maker = self.maker()
        if not isinstance(maker, FSDPParamGroup) or maker.reduce_grads:
            return False
        for parameter in maker.fsdp_params:
            whole = getattr(parameter, "_unsharded_param", None)
            if parameter.unsharded_accumulated_grad is not None or (
                isinstance(whole, Tensor) and whole.grad is not None
            ):
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A parameter that a unit took in."""

    parameter: weakref.ref[Tensor]
    by: By
    line: int | None
    is_stale: bool
    """Whether the model has another one in its place now."""


class Shards:
    """All sharded units of one rank."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.units: list[Unit] = []
        self._taken: dict[int, Replaced] = {}
        self._has_compared = False

    def install(self, watchpoints: Watchpoints) -> None:
        """Stand where units are made."""
        watchpoints.flat_parameter_made.before = self._before_flat
        watchpoints.flat_parameter_made.after = self._after
        watchpoints.flat_parameter_sharded.after = self._note_local
        watchpoints.sharded_group_made.before = self._before_group
        watchpoints.sharded_group_made.after = self._after

    def replaced(self, parameter: Tensor) -> Replaced | None:
        """How parameter was replaced; None if it still is the model's."""
        taken = self._taken.get(id(parameter))
        if taken is None or not taken.is_stale or taken.parameter() is not parameter:
            return None
        return taken

    def split_parameters(self) -> set[int]:
        """Ids of what optimizers hold of units whose ranks have different parts."""
        return {id(p) for unit in self.units if unit.is_split for p in unit.parameters()}

    def has_any(self, parameters: Iterable[Tensor]) -> bool:
        """Whether any of the parameters is what optimizers hold of a unit."""
        ids = {id(p) for unit in self.units for p in unit.parameters()}
        return any(id(p) in ids for p in parameters)

    # ------------------------------------------------------------------ making
    def _before_flat(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        with unnoticed():
            handle, params, module = args[:3]
            keeps = bool(args[9] if len(args) > 9 else kwargs.get("use_orig_params"))
            self._begin(handle, params, module, "FullyShardedDataParallel", is_stale=not keeps)

    def _before_group(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        with unnoticed():
            group, params, modules = args[:3]
            module = modules[0] if isinstance(modules, tuple) else None
            self._begin(group, params, module, "fully_shard", is_stale=True)

    def _begin(
        self, maker: object, params: object, module: object, by: By, *, is_stale: bool
    ) -> None:
        if not isinstance(params, (list, tuple)) or not isinstance(
            maker, (FlatParamHandle, FSDPParamGroup)
        ):
            return
        line = self._recorder.position.line()
        self._find_untied(params, module, by, line)
        for p in params:
            self._taken[id(p)] = Replaced(
                parameter=weakref.ref(p), by=by, line=line, is_stale=is_stale
            )
        self.units.append(
            Unit(
                number=len(self.units),
                by=by,
                line=line,
                module=type(module).__name__,
                maker=weakref.ref(maker),
                before=digest(params) if all(map(is_plain, params)) else Digest(),
                has_values=all(map(is_plain, params)),
            )
        )

    def _find_untied(
        self, params: Iterable[Tensor], module: object, by: By, line: int | None
    ) -> None:
        for p in params:
            taken = self._taken.get(id(p))
            if taken is None or taken.parameter() is not p or not p.requires_grad:
                continue
            args = {"by": by, "parameter": name_in(module, p), "first_line": taken.line}
            self._recorder.say("untied", args, line)

    def _after(
        self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        with unnoticed():
            unit = next((u for u in reversed(self.units) if u.maker() is args[0]), None)
            if unit is None:
                return
            if isinstance(answer, BaseException):
                self.units.remove(unit)
                return
            maker = args[0]
            if isinstance(maker, FlatParamHandle):
                unit.ranks = tuple(dist.get_process_group_ranks(maker.process_group))
                unit.num_parts = maker.world_size if maker.uses_sharded_strategy else 1
            elif isinstance(maker, FSDPParamGroup):
                unit.ranks = tuple(maker.mesh_info.mesh.mesh.flatten().tolist())
                unit.num_parts = getattr(maker.mesh_info, "shard_mesh_size", 1)
                unit.local = digest(unit.parts())

    # ------------------------------------------------------------------ initial values
    def _note_local(
        self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Remember this rank's part of a flat parameter, which has just been cut out."""
        with unnoticed():
            unit = next((u for u in reversed(self.units) if u.maker() is args[0]), None)
            if unit is not None and not unit.local.numel:
                unit.local = digest(unit.parts())

    def compare_initial(self) -> None:
        """Report the units that still hold their initial values; once, at their first step."""
        if self._has_compared or not self.units:
            return
        self._has_compared = True
        for unit in self.units[:_MAX_UNITS_SHOWN]:
            if not unit.has_values or len(unit.ranks) < 2:
                continue
            if unit.local.numel and digest(unit.parts()) != unit.local:
                continue
            self._recorder.say(
                "initial-shards",
                {
                    "unit": unit.number,
                    "by": unit.by,
                    "ranks": ",".join(map(str, unit.ranks)),
                    "numel": unit.before.numel,
                    "total": unit.before.total,
                    "square": unit.before.square,
                    "module": unit.module,
                },
                unit.line,
            )


def name_in(module: object, parameter: Tensor) -> str | None:
    """The qualified name of parameter in module."""
    if not isinstance(module, nn.Module):
        return None
    named = module.named_parameters(remove_duplicate=False)
    return next((name for name, p in named if p is parameter), None)
