"""The pipes between a run's supervisor, its init and its ranks. Standard library only.

Per rank: `program` (to the rank), `stdout`, `stderr`, `trace` (reports), `stack` (the dump that a
signal asks for) and `export` (values of a graded program), all from the rank. Per run: `order` (to
init: how many ranks, then nothing) and `control` (from init only: who ended and how).
"""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    read: int
    write: int


def make_pipe() -> Pipe:
    read, write = os.pipe()
    return Pipe(read=read, write=write)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPipes:
    program: Pipe
    stdout: Pipe
    stderr: Pipe
    trace: Pipe
    stack: Pipe
    export: Pipe

    def outward(self) -> tuple[Pipe, ...]:
        """The pipes that a rank writes."""
        return (self.stdout, self.stderr, self.trace, self.stack, self.export)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPipes:
    ranks: tuple[RankPipes, ...]
    order: Pipe
    control: Pipe

    def close_init_side(self) -> None:
        """In the supervisor: drop the ends that belong to init and the ranks."""
        for rank in self.ranks:
            os.close(rank.program.read)
            for pipe in rank.outward():
                os.close(pipe.write)
        os.close(self.order.read)
        os.close(self.control.write)

    def close_supervisor_side(self) -> None:
        """In init: drop the ends that belong to the supervisor."""
        for rank in self.ranks:
            os.close(rank.program.write)
            for pipe in rank.outward():
                os.close(pipe.read)
        os.close(self.order.write)
        os.close(self.control.read)


def make_run_pipes(num_ranks: int) -> RunPipes:
    """Open all pipes of a run with up to num_ranks ranks."""
    ranks = tuple(
        RankPipes(
            program=make_pipe(),
            stdout=make_pipe(),
            stderr=make_pipe(),
            trace=make_pipe(),
            stack=make_pipe(),
            export=make_pipe(),
        )
        for _ in range(num_ranks)
    )
    return RunPipes(ranks=ranks, order=make_pipe(), control=make_pipe())
