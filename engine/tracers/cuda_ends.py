"""When a collective on GPUs has really ended. May import torch.

NCCL's futures are complete as soon as a call is enqueued, and what is done with them then runs on a
stream that waits for it. An event on that stream comes to pass when the collective is over; a
thread per group waits for its events, since calls of different groups overtake each other.
"""

import queue
import threading
from collections.abc import Callable
from typing import Protocol

import torch


class CudaEvent(Protocol):
    """What is used of torch.cuda.Event."""

    def record(self) -> None: ...
    def synchronize(self) -> None: ...


def new_event() -> CudaEvent | None:
    """An event for which a thread sleeps; None where the program has no use for one.

    That is before it has used a GPU, and while it captures a graph, in which nobody may wait.
    """
    is_ready: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch's own
    if not is_ready or torch.cuda.is_current_stream_capturing():
        return None
    event: CudaEvent = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    return event


class CudaEnds:
    """Calls `on_end(number)` when the call of that number has ended on the GPU."""

    def __init__(
        self,
        on_end: Callable[[int], None],
        make_event: Callable[[], CudaEvent | None] = new_event,
    ) -> None:
        self._on_end = on_end
        self._make_event = make_event
        self._queues: dict[str, queue.SimpleQueue[tuple[CudaEvent, int]]] = {}
        self._changed = threading.Condition()
        self._num_waiting = 0

    def enqueued(self, group: str, number: int) -> None:
        """The call is on its way on the current stream's device; called on a stream that waits."""
        event = self._make_event()
        if event is None:
            self._on_end(number)
            return
        event.record()
        self._queue_of(group).put((event, number))

    def settle(self, limit_s: float) -> bool:
        """Wait until all calls have ended, at most so long; whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: self._num_waiting == 0, limit_s)

    def _queue_of(self, group: str) -> queue.SimpleQueue[tuple[CudaEvent, int]]:
        with self._changed:
            self._num_waiting += 1
            if group not in self._queues:
                waiting = self._queues[group] = queue.SimpleQueue()
                # A daemon: a collective that never ends must not keep the rank from ending.
                threading.Thread(target=self._wait, args=(waiting,), daemon=True).start()
            return self._queues[group]

    def _wait(self, waiting: "queue.SimpleQueue[tuple[CudaEvent, int]]") -> None:
        while True:
            event, number = waiting.get()
            try:
                event.synchronize()
            except RuntimeError:  # the GPU has failed: no later event will come to pass either
                return
            self._on_end(number)
            with self._changed:
                self._num_waiting -= 1
                self._changed.notify_all()
