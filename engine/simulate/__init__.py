"""One process stands for a rank of many: the learner's program with tensors that hold no data.

May import torch, engine.tracers.c10d, engine.torch_cpu, events and reports. `begin` belongs in a
simulated rank, inside its sandbox, before the learner's program runs; what it changes in torch it
changes for the rest of the process. Real ranks never call it.
"""

import logging
import time
from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from engine.events import Failure
from engine.reports import FailureReport, ObservationReport, Report
from engine.simulate.batch_norm import register_batch_norm
from engine.simulate.collectives import register_collectives
from engine.simulate.ddp import adapt_ddp
from engine.simulate.dtensor import adapt_dtensor
from engine.simulate.fully_shard import adapt_fully_shard
from engine.simulate.groups import adapt_groups
from engine.simulate.mode import SimulationMode
from engine.simulate.reads import CannotSimulate, adapt_reads, call_in, shortened

__all__ = ["Simulation", "begin", "shortened"]


class Simulation:
    """The simulation of this process; lives as long as the process."""

    def __init__(
        self,
        report: Callable[[Report], None],
        program_filename: str,
        line: Callable[[], int | None],
    ) -> None:
        self._refused: Failure | None = None
        """The first read of a value that is not there."""
        self._report = report
        self._filename = program_filename
        self._line = line
        self._libraries: list[torch.library.Library] = []
        self._mode = SimulationMode(self._refuse)

    def begin(self, num_ranks: int) -> None:
        """Make this process rank 0 of num_ranks from now on."""
        self._libraries += (register_collectives(), register_batch_norm())
        adapt_groups(num_ranks)
        adapt_reads(self._mode)
        adapt_ddp(self._mode)
        adapt_fully_shard()
        adapt_dtensor()
        # It would tell of each exception in an op once more, with torch's own frames.
        logging.getLogger(FakeTensorMode.__module__).setLevel(logging.CRITICAL)
        self._mode.__enter__()

    def has_failed(self) -> bool:
        """Whether the program read what is not there, and went on; then that is reported."""
        if self._refused is None:
            return False
        self._report(FailureReport(at_ns=time.monotonic_ns(), failure=self._refused))
        return True

    def _refuse(self) -> CannotSimulate:
        line, call = self._line(), call_in(self._filename)
        refusal = CannotSimulate(call)
        if self._refused is None:
            # Not the exception itself: once raised it holds the program's frames.
            self._refused = _failure(refusal, line)
            self._report(
                ObservationReport(
                    at_ns=time.monotonic_ns(),
                    name="cannot-simulate",
                    args={"call": call},
                    line=line,
                )
            )
        return refusal


def begin(
    num_ranks: int,
    report: Callable[[Report], None],
    program_filename: str,
    line: Callable[[], int | None],
) -> Simulation:
    """Simulate num_ranks ranks in this process; line() tells the program's line that is running."""
    simulation = Simulation(report, program_filename, line)
    simulation.begin(num_ranks)
    return simulation


def _failure(refusal: CannotSimulate, line: int | None) -> Failure:
    return Failure(
        type=type(refusal).__name__,
        message=str(refusal),
        line=line,
        column=None,
        end_line=None,
        end_column=None,
        frames=(),
    )
