"""Whether gradients that a step has used are cleared before more is added. May import torch."""

from engine.tracers.observations.known import Known, parameters_of, version_of
from engine.tracers.observations.recorder import Recorder

_MANY = 2
"""Steps in a row on sums with used gradients, before it is no accident."""


class Clearing:
    """Follows the first gradient of each optimizer from step to backward to step."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def backward_begins(self, known: Known) -> None:
        """Note whether it is going to add to gradients that a step has used already."""
        optimizer = known.optimizer()
        if optimizer is None or known.used is None:
            known.is_uncleared = False
        else:
            known.is_uncleared = known.used.is_of(version_of(parameters_of(optimizer)))

    def step_begins(self, known: Known) -> None:
        """Report the second step in a row on gradients that were added to used ones."""
        if not known.is_uncleared or not known.has_stepped_on:
            known.num_uncleared = 0
        else:
            known.num_uncleared += 1
            if known.num_uncleared == _MANY and "uncleared" not in known.said:
                known.said.add("uncleared")
                self._recorder.say("uncleared", {"optimizer": known.number}, known.step_line)
        known.is_uncleared = False
