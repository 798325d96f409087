"""What optimizers step on: parameters and gradients, compared between ranks by their digests.

May import torch. Full digests are taken at steps 1, 2, 4, 8, ... and at the end; every step only
looks at flags. Keeps no optimizer and no tensor alive.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from engine.facts import Args
from engine.tracers.compiling import never_compiled
from engine.tracers.observations.clearing import Clearing
from engine.tracers.observations.digest import Digest, digest, is_plain
from engine.tracers.observations.flags import Flags
from engine.tracers.observations.holdings import Holdings
from engine.tracers.observations.known import Known, has_values, parameters_of, version_of
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.replicas import Replicas
from engine.tracers.observations.shards import Shards, name_in
from engine.tracers.observations.watchpoints import Watchpoints


class Optimizers:
    """All optimizers of one rank."""

    def __init__(self, recorder: Recorder, replicas: Replicas, shards: Shards) -> None:
        self._recorder = recorder
        self._replicas = replicas
        self._shards = shards
        self._flags = Flags(recorder, replicas, shards)
        self._known: list[Known] = []
        self._clearing = Clearing(recorder)
        self._holdings = Holdings(recorder, replicas, shards)
        self.on_step: Callable[[], None] | None = None
        """Told before anything else when a step begins."""
        self.num_steps = 0
        """Steps of all optimizers so far."""

    def install(self, watchpoints: Watchpoints) -> None:
        """Register the hooks."""
        watchpoints.optimizer_made.after = self._made
        watchpoints.gradients_zeroed.before = self._zeroed
        register_optimizer_step_pre_hook(self._begin_step)

    def finish(self) -> None:
        """Report what the optimizers hold now that the program is over."""
        for known in self._known:
            self._end(known)
        stepped = [known.optimizer() for known in self._known]
        for optimizer in self._holdings.alive():
            if not any(optimizer is other for other in stepped):
                self._end_unstepped(optimizer)

    def alive(self) -> list[Optimizer]:
        """All optimizers that the program still has."""
        return self._holdings.alive()

    def step_counts(self) -> dict[int, int]:
        """Number of steps of each optimizer that has stepped."""
        return {known.number: known.num_steps for known in self._known}

    def steps_of(self, optimizer: Optimizer) -> int:
        """Number of steps of an optimizer so far."""
        return next((k.num_steps for k in self._known if k.optimizer() is optimizer), 0)

    def has_stepped_on(self, number: int) -> bool:
        """Whether a step of that optimizer has used its present gradients already."""
        return number < len(self._known) and self._known[number].has_stepped_on

    def gradients(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Number of the optimizer, parameter and gradient; optimizers to come count on."""
        known: list[Optimizer | None] = [k.optimizer() for k in self._known]
        known += [o for o in self._holdings.alive() if not any(o is k for k in known)]
        for number, optimizer in enumerate(known):
            for p in parameters_of(optimizer) if optimizer is not None else ():
                if is_plain(p.grad) and p.grad is not None:
                    yield number, p, p.grad

    # ------------------------------------------------------------------ hooks
    def _made(self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        with unnoticed():
            optimizer = args[0]
            if isinstance(optimizer, Optimizer) and not isinstance(answer, BaseException):
                self._holdings.add(optimizer)

    def _zeroed(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        """Note gradients that are dropped before any step used them."""
        with unnoticed():
            self._note_dropped(args[0])

    def _note_dropped(self, target: object) -> None:
        for known in self._known:
            optimizer = known.optimizer()
            if optimizer is None:
                continue
            parameters = list(parameters_of(optimizer))
            if isinstance(target, nn.Module):
                own = {id(p) for p in target.parameters()}
                if not any(id(p) in own for p in parameters):
                    continue
            elif target is not optimizer:
                continue
            if any(p.grad is not None for p in parameters) and not known.has_stepped_on:
                known.zero_line = self._recorder.position.line()
            known.has_stepped_on = False

    @never_compiled
    def _begin_step(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        if torch.compiler.is_compiling() or self._recorder.position.is_nested_step():
            return
        with unnoticed():
            if self.on_step is not None:
                self.on_step()
            self._replicas.step_begins()
            self.num_steps += 1
            known = self._find(optimizer)
            known.num_steps += 1
            known.step_line = self._recorder.position.line()
            parameters = list(parameters_of(optimizer))
            self._clearing.step_begins(known)
            if known.num_steps & (known.num_steps - 1) == 0:
                if self._shards.has_any(parameters):
                    self._shards.compare_initial()
                self._check(known, optimizer, parameters)
            # A closure computes the gradients of this step later, inside of it.
            has_closure = (isinstance(args, tuple) and len(args) > 1) or bool(kwargs)
            known.has_stepped_on = has_closure or any(has_values(p.grad) for p in parameters)
            known.used = None if has_closure else version_of(parameters)
            self._flags.check(known, parameters)
            for wrapper in self._replicas.wrappers:
                wrapper.forget_forwards()
            known.zero_line = None

    def backward_begins(self) -> None:
        """A backward has reached the outputs of its first module."""
        with unnoticed():
            for known in self._known:
                self._clearing.backward_begins(known)

    def has_used(self, parameter: Tensor) -> Known | None:
        """The optimizer that has stepped on the gradient that parameter has now."""
        now = version_of([parameter])
        return next((k for k in self._known if k.used is not None and k.used.is_of(now)), None)

    def _find(self, optimizer: Optimizer) -> Known:
        for known in self._known:
            if known.optimizer() is optimizer:
                return known
        number = len(self._known)

        def over(_: object) -> None:
            with unnoticed():
                self._end(self._known[number])

        known = Known(
            number=number,
            line=self._holdings.line(optimizer),
            optimizer=weakref.ref(optimizer, over),
        )
        self._known.append(known)
        return known

    # ------------------------------------------------------------------ full checks
    def _check(self, known: Known, optimizer: Optimizer, parameters: list[Tensor]) -> None:
        kinds, num_sharded = self._sort(parameters)
        known.num_sharded = num_sharded
        known.num_parameters = len(parameters)
        known.kinds = {k: [weakref.ref(p) for p in found] for k, found in kinds.items()}
        self._holdings.check(known, parameters)
        for kind, found in kinds.items():
            self._say_step(known, optimizer, kind, found, num_sharded)
        if num_sharded and "plain" in kinds and "unsharded" not in known.said:
            known.said.add("unsharded")
            root = self._replicas.root() if self._replicas.root else None
            trained = next((p for p in kinds["plain"] if p.grad is not None), None)
            name = None if trained is None else name_in(root, trained)
            by = self._shards.units[-1].by if self._shards.units else None
            args: Args = {"optimizer": known.number, "parameter": name, "by": by}
            self._recorder.say("unsharded", args, self._shards.units[-1].line)

    def _say_step(
        self, known: Known, optimizer: Optimizer, kind: str, found: list[Tensor], num_sharded: int
    ) -> None:
        values = digest(found)
        gradients = [p.grad for p in found if is_plain(p.grad) and p.grad is not None]
        slopes = digest(gradients)
        rate = optimizer.param_groups[0].get("lr")
        self._recorder.say(
            "step",
            {
                "optimizer": known.number,
                "step": known.num_steps,
                "kind": kind,
                "ranks": self._ranks(kind),
                "num_parameters": len(found),
                "numel": values.numel,
                "num_with_gradient": len(gradients),
                "total": values.total,
                "square": values.square,
                "gradient_total": slopes.total,
                "gradient_square": slopes.square,
                "rate": float(rate) if isinstance(rate, (int, float, Tensor)) else None,
                "num_sharded": num_sharded,
                "zero": int(isinstance(optimizer, ZeroRedundancyOptimizer)),
            },
            known.step_line,
        )

    def _sort(self, parameters: list[Tensor]) -> tuple[dict[str, list[Tensor]], int]:
        """The parameters that ranks hold in full, by kind, and the number of shards."""
        kinds: dict[str, list[Tensor]] = {}
        split, wrappers = self._shards.split_parameters(), self._wrappers()
        for p in parameters:
            if id(p) not in split and is_plain(p):
                kinds.setdefault(wrappers.get(id(p), "plain"), []).append(p)
        return kinds, sum(id(p) in split for p in parameters)

    def _wrappers(self) -> dict[int, str]:
        """The kind of each parameter of a wrapped model, by its id."""
        found: dict[int, str] = {}
        for wrapper in self._replicas.wrappers:
            alive = [p for ref in wrapper.managed.values() if (p := ref()) is not None]
            found.update((id(p), f"wrapper {wrapper.number}") for p in alive)
            for name, p in wrapper.parameters():
                is_ignored = name in wrapper.ignored and not wrapper.manages(p)
                found[id(p)] = f"{'ignored' if is_ignored else 'wrapper'} {wrapper.number}"
        return found

    def _ranks(self, kind: str) -> str:
        if kind == "plain":
            return ""
        ranks = self._replicas.wrappers[int(kind.partition(" ")[2])].ranks
        return ",".join(map(str, ranks))

    # ------------------------------------------------------------------ the end
    def _end(self, known: Known) -> None:
        """Report what an optimizer leaves behind, once."""
        if known.is_over:
            return
        known.is_over = True
        for kind in known.kinds:
            found = digest(known.tensors(kind))
            self._say_end(known.number, known.num_steps, kind, known.line, found, known.step_line)
        if known.num_sharded:
            nothing = Digest()
            self._say_end(
                known.number, known.num_steps, "sharded", known.line, nothing, known.step_line
            )
        if known.idle and known.num_unheld:
            self._recorder.say(
                "idle-parameters",
                {
                    "optimizer_line": known.line,
                    "num_idle": len(known.idle),
                    "num_parameters": known.num_parameters,
                    "num_unheld": known.num_unheld,
                },
                known.line,
            )

    def _end_unstepped(self, optimizer: Optimizer) -> None:
        """Report an optimizer that never stepped: on other ranks it may have."""
        kinds, num_sharded = self._sort(list(parameters_of(optimizer)))
        line = self._holdings.line(optimizer)
        for kind, found in kinds.items():
            self._say_end(None, 0, kind, line, digest(found), line)
        if num_sharded:
            self._say_end(None, 0, "sharded", line, Digest(), line)

    def _say_end(
        self,
        number: int | None,
        num_steps: int,
        kind: str,
        made_line: int | None,
        found: Digest,
        line: int | None,
    ) -> None:
        self._recorder.say(
            "end",
            {
                "optimizer": number,
                "steps": num_steps,
                "kind": kind,
                "made_line": made_line,
                "numel": found.numel,
                "total": found.total,
                "square": found.square,
            },
            line,
        )
