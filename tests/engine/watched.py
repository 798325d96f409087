"""Real watches over processes that write what they are told: `python -m tests.engine.watched`.

Reads one scenario per line and answers with one line each: what the supervisor said and how it
ended. Each has a fork for the supervisor, and that one a fork for its init.
"""

import json
import os
import socket
import sys
from typing import NoReturn

from engine.program import MAX_RANKS, Limits, Program
from engine.sandbox.pipes import RunPipes, make_run_pipes
from engine.supervisor.handover import Parked, cpu_s
from engine.supervisor.watch import Watch

Write = tuple[str, int, str]
"""Kind of the pipe, rank, and the bytes in hexadecimal digits."""


def _be_init(pipes: RunPipes, writes: list[Write]) -> NoReturn:
    pipes.close_supervisor_side()
    os.read(pipes.order.read, 16)
    for kind, rank, digits in writes:
        pipe = pipes.control if kind == "control" else getattr(pipes.ranks[rank], kind)
        data = bytes.fromhex(digits)
        while data:
            data = data[os.write(pipe.write, data) :]
    os._exit(0)


def _be_supervisor(connection: socket.socket, world_size: int, writes: list[Write]) -> NoReturn:
    pipes = make_run_pipes(MAX_RANKS)
    init = os.fork()
    if init == 0:
        connection.close()
        _be_init(pipes, writes)
    pipes.close_init_side()
    parked = Parked(
        pipes=pipes,
        init=init,
        tier="walled",
        is_walled=True,
        owns_pids=True,
        cpu_before_s=cpu_s(),
        folder="/work",
        runs_on="cpu",
    )
    program = Program(source="print(1)\n", world_size=world_size, limits=Limits(wall_s=20.0))
    Watch(parked, program, connection).run()
    os._exit(0)


def watch(world_size: int, writes: list[Write]) -> tuple[list[str], int]:
    """What the supervisor of such a run says, line by line, and its exit code."""
    ours, theirs = socket.socketpair()
    supervisor = os.fork()
    if supervisor == 0:
        ours.close()
        try:
            _be_supervisor(theirs, world_size, writes)
        finally:
            os._exit(1)
    theirs.close()
    with ours, ours.makefile("r", encoding="ascii") as said:
        lines = said.read().splitlines()
    _, status = os.waitpid(supervisor, 0)
    return lines, os.waitstatus_to_exitcode(status)


def main() -> None:
    """Answer scenarios until there are no more."""
    for line in sys.stdin:
        scenario = json.loads(line)
        lines, code = watch(scenario["world_size"], scenario["writes"])
        print(json.dumps({"lines": lines, "code": code}), flush=True)


if __name__ == "__main__":
    main()
