"""What the first process of a container owes to all others: to take note of their ends.

May import the standard library only. What outlives its parent becomes a child of process 1, and
stays in the table of processes after its end until that one has waited for it. Few images start an
init; so where the server is the first process itself, it becomes one, and serves in a child.
"""

import os
import signal
from collections.abc import Callable
from types import FrameType


def as_first_process(work: Callable[[], int]) -> int:
    """Do the work, in a child if this is process 1; the exit code, 128 + N after signal N."""
    if os.getpid() != 1:
        return work()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)  # a terminal's Ctrl-C reaches it once, through its parent
        return work()

    def forward(number: int, _: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, forward)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
