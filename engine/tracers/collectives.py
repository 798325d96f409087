"""Reports each collective of this rank when it is enqueued, and its end when it has ended.

May import engine.events and torch. A call's end comes from the future of its Work, on a thread of
the backend. gloo gives send, recv and reduce_scatter no future: they end with the wait for them.
"""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor
from torch._C._distributed_c10d import Work

from engine.reports import CollectiveReport, EndReport, Report
from engine.tracers.c10d import Op, output_tensors, read_call
from engine.tracers.cuda_ends import CudaEnds
from engine.tracers.position import Position
from engine.tracers.units import Units

_SETTLE_LIMIT_S = 1.0
MAX_GROUP_RANKS = 64
"""Members that a report of a call names; the wire takes no more."""


class CollectiveTracer:
    """Collectives and point-to-point calls of one rank."""

    def __init__(
        self, report: Callable[[Report], None], position: Position, *, on_gpus: bool = False
    ) -> None:
        self._report = report
        self._cuda_ends = CudaEnds(self._end) if on_gpus else None
        self._position = position
        self._units = Units()
        self._calls = itertools.count()
        self._lock = threading.Lock()
        self._seq: Counter[tuple[str, bool]] = Counter()
        self._without_end: dict[int, tuple[Work, frozenset[int]]] = {}
        """Calls without a future: their Work and the addresses of their outputs."""
        # Asking for a future that is not there costs more than the call: (op, group), once each.
        self._without_future: set[tuple[str, str]] = set()

    def call(self, op: Op, args: tuple[object, ...], redispatch: Callable[[], object]) -> object:
        """Report one call of op and pass it on.

        It is reported before it is enqueued, since some calls block and a mismatch may end the
        process. One that raises never joined its group: it ends at once, and the next call takes
        its group_seq, so that numbers agree between ranks.
        """
        number = next(self._calls)
        key = self._report_call(number, op, args)
        entered = False
        try:
            answer = redispatch()
            entered = True
        finally:
            if not entered:
                with self._lock:
                    self._seq[key] -= 1
                self._end(number)
        work = answer[-1] if isinstance(answer, tuple) else answer
        if not isinstance(work, torch.ScriptObject):
            self._end(number)
        elif (future := self._future(op, key[0], Work.unbox(work))) is not None:
            future.add_done_callback(lambda _: self._done(number, key[0]))
        else:
            addresses = frozenset(t.data_ptr() for t in output_tensors(op, args))
            self._without_end[number] = (Work.unbox(work), addresses)
        return answer

    def waited(self, what: Work | Tensor) -> None:
        """Report the end of a call without a future, now that a wait for it is over."""
        for number, (work, outputs) in list(self._without_end.items()):
            # Functional collectives are waited for by their output, inside C++.
            is_output = type(what) is Tensor and what.data_ptr() in outputs
            if (what is work or is_output) and self._without_end.pop(number, None) is not None:
                self._end(number)

    def _report_call(self, number: int, op: Op, args: tuple[object, ...]) -> tuple[str, bool]:
        call = read_call(op, args)
        # Point-to-point calls are numbered apart: the group's other members do not join them.
        key = (call.group, op.point_to_point)
        with self._lock:
            group_seq = self._seq[key]
            self._seq[key] += 1
        self._report(
            CollectiveReport(
                call=number,
                at_ns=time.monotonic_ns(),
                op=op.public,
                group=call.group,
                group_ranks=call.group_ranks[:MAX_GROUP_RANKS],
                group_seq=group_seq,
                input_bytes=call.input_bytes,
                output_bytes=call.output_bytes,
                dtype=call.dtype,
                phase=self._position.phase(),
                module=self._module(op),
                line=self._position.line(),
                peer=call.peer,
                group_size=len(call.group_ranks),
            )
        )
        return key

    def _module(self, op: Op) -> str | None:
        """The FSDP unit that the call serves, else the module that runs."""
        unit = self._units.module() if op.moves_shards else None
        return self._position.module() if unit is None else self._position.unit_name(unit)

    def _future(self, op: Op, group: str, work: Work) -> torch.futures.Future[object] | None:
        if (op.name, group) in self._without_future:
            return None
        try:
            return work.get_future()
        except RuntimeError:  # this backend gives this op none
            self._without_future.add((op.name, group))
            return None

    def _done(self, number: int, group: str) -> None:
        """The future of a call is complete: on GPUs that says only that it was enqueued."""
        if self._cuda_ends is None:
            self._end(number)
        else:
            self._cuda_ends.enqueued(group, number)

    def settle(self) -> None:
        """Let what GPUs still do come to its end, before the rank's own."""
        if self._cuda_ends is not None:
            self._cuda_ends.settle(_SETTLE_LIMIT_S)

    def _end(self, number: int) -> None:
        self._report(EndReport(call=number, at_ns=time.monotonic_ns()))
