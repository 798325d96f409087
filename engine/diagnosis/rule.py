"""What a rule sees and how it answers. May import trace and the leaves."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from engine.events import Diagnosis, Failure, Outcome, RankEnd
from engine.facts import Args
from engine.messages import DIAGNOSES, render
from engine.program import Program
from engine.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One ended run."""

    program: Program
    outcome: Outcome
    trace: Trace

    @property
    def first_failed(self) -> RankEnd | None:
        """The rank that failed first; the others may only have lost their peer."""
        rank = self.outcome.first_failed_rank
        return next((end for end in self.outcome.ranks if end.rank == rank), None)

    @property
    def first_failure(self) -> Failure | None:
        """The exception of the rank that failed first."""
        end = self.first_failed
        return end.failure if end else None

    def line_text(self, line: int | None) -> str:
        """The program's text on a line, stripped; empty when there is none."""
        lines = self.program.source.splitlines()
        return lines[line - 1].strip() if line and 0 < line <= len(lines) else ""


Rule = Callable[[Case], Diagnosis | None]
Mistakes = Callable[[Case], Iterable[Diagnosis]]
"""A rule that may find several mistakes at once."""


def say(code: str, args: Args, *, line: int | None = None, rank: int | None = None) -> Diagnosis:
    """A diagnosis with its English sentence."""
    return Diagnosis(
        code=code, message=render(DIAGNOSES[code], args), line=line, rank=rank, args=args
    )


def where_ranks_were(outcome: Outcome, calls: Mapping[int, str] = MappingProxyType({})) -> str:
    """Where each rank was when the run was stopped: "rank 0 in barrier on line 17, rank 1 ...".

    calls names what a rank was waiting in, where that is known.
    """
    places = []
    for end in outcome.ranks:
        if end.stack and end.rank in calls:
            places.append(f"rank {end.rank} in {calls[end.rank]} on line {end.stack[0].line}")
        elif end.stack:
            places.append(f"rank {end.rank} on line {end.stack[0].line}")
        elif end.exit is not None:
            places.append(f"rank {end.rank} had ended")
        else:
            places.append(f"rank {end.rank} outside the program")
    return ", ".join(places)
