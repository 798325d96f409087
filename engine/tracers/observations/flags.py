"""What every step looks at: whether the gradients that it uses were averaged, and are there.

May import torch.
"""

from torch import Tensor

from engine.facts import Args
from engine.tracers.observations.known import Known
from engine.tracers.observations.recorder import Recorder
from engine.tracers.observations.replicas import Replicas, Wrapper
from engine.tracers.observations.shards import Shards


class Flags:
    """The checks of a step that cost next to nothing."""

    def __init__(self, recorder: Recorder, replicas: Replicas, shards: Shards) -> None:
        self._recorder = recorder
        self._replicas = replicas
        self._shards = shards

    def check(self, known: Known, parameters: list[Tensor]) -> None:
        """Report what is wrong with the gradients of the step that begins, each once."""
        has_gradient = any(p.grad is not None for p in parameters)
        if known.zero_line is not None and not known.has_stepped_on and "dropped" not in known.said:
            known.said.add("dropped")
            args: Args = {"optimizer": known.number, "zero_line": known.zero_line}
            self._recorder.say("dropped-gradients", args, known.step_line)
        for unit in self._shards.units:
            if "unsynced" not in known.said and unit.awaits_reduction():
                self._say_unsynced(known, "set_requires_gradient_sync(False)", None)
        for wrapper in self._replicas.wrappers:
            if has_gradient and any(wrapper.manages(p) for p in parameters[:1] + parameters[-1:]):
                self._check_wrapper(known, wrapper)

    def _check_wrapper(self, known: Known, wrapper: Wrapper) -> None:
        if wrapper.num_forwards and not wrapper.is_synced:
            self._say_unsynced(known, "no_sync", wrapper.forward_line)
        elif wrapper.clip_line is not None and "clipped" not in wrapper.said:
            wrapper.said.add("clipped")
            self._recorder.say("clipped-unsynced", {"wrapper": wrapper.number}, wrapper.clip_line)
        key = f"inner {wrapper.number}"
        if (wrapper.num_bypasses or not wrapper.num_forwards) and key not in known.said:
            known.said.add(key)
            self._recorder.say(
                "inner-forward",
                {
                    "optimizer": known.number,
                    "wrapper": wrapper.number,
                    "wrap_line": wrapper.line,
                    "forward_line": wrapper.bypass_line if wrapper.num_bypasses else None,
                    "is_alive": int(wrapper.ddp() is not None),
                    "num_forwards": wrapper.num_forwards,
                },
                known.step_line,
            )
        self._find_unmanaged(wrapper)

    def _find_unmanaged(self, wrapper: Wrapper) -> None:
        if "unmanaged" in wrapper.said:
            return
        ddp = wrapper.ddp()
        ignored = ddp.parameters_to_ignore if ddp is not None else ()
        for name, p in wrapper.parameters():
            if p.requires_grad and not wrapper.manages(p) and name not in ignored:
                wrapper.said.add("unmanaged")
                ref = wrapper.frozen.get(id(p))
                was_frozen = ref is not None and ref() is p
                args: Args = {
                    "wrapper": wrapper.number,
                    "wrap_line": wrapper.line,
                    "parameter": name,
                    "reason": "unfrozen" if was_frozen else "added",
                }
                self._recorder.say("unmanaged", args, wrapper.line)
                return

    def _say_unsynced(self, known: Known, how: str, forward_line: int | None) -> None:
        if "unsynced" in known.said:
            return
        known.said.add("unsynced")
        args: Args = {
            "optimizer": known.number,
            "step": known.num_steps,
            "how": how,
            "forward_line": forward_line,
        }
        self._recorder.say("stepped-unsynced", args, known.step_line)
