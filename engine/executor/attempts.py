"""One attempt at a run: a slot for it, then what its supervisor says, to the outcome.

May import runs, slots, wire and the supervisor's link. An attempt that ends before the program has
begun, and not by the learner's wish, may be made again: nobody has seen anything of it.
"""

import asyncio

from engine.errors import EngineCrashed, WireError
from engine.events import Event, Outcome, Verdict
from engine.executor.runs import SubmittedRun
from engine.executor.slots import Slot
from engine.grading.received import HEADER_START, RankExport, read_export_header
from engine.program import Program
from engine.supervisor.link import BEGUN
from engine.wire import decode, encode_program

SLACK_S = 15.0
"""How much longer than its wall limit a supervisor may take before it counts as lost."""


async def unless_cancelled(run: SubmittedRun, taking: asyncio.Task[Slot]) -> Slot | None:
    """The slot, or None as soon as the run is cancelled: then nobody waits for the slot.

    Raises: SandboxUnavailable, EngineCrashed.
    """
    cancelled = asyncio.create_task(run.cancelled.wait())
    try:
        await asyncio.wait({taking, cancelled}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        taking.cancel()
        raise
    finally:
        cancelled.cancel()
    if run.cancelled.is_set():
        taking.add_done_callback(_hang_up)
        return None
    return taking.result()


def _hang_up(taking: asyncio.Task[Slot]) -> None:
    """Let go of a slot that nobody waits for any more; one that failed needs no word either."""
    if not taking.cancelled() and taking.exception() is None:
        taking.result().close()


async def follow(run: SubmittedRun, slot: Slot) -> Outcome:
    """Run the program in the slot, passing on its events but the outcome.

    Raises: EngineCrashed, WireError, TimeoutError, OSError.
    """
    async with asyncio.timeout(run.program.limits.wall_s + SLACK_S):
        slot.writer.write(encode_program(run.program) + run.evidence)
        while line := await _line(slot):
            if line.startswith(b'{"failed"'):
                raise EngineCrashed(line.decode("utf-8", "replace").strip())
            if line == BEGUN:
                run.begin()
                continue
            if line.startswith(HEADER_START):
                run.exports.append(await _export(slot, line, run.program))
                continue
            event: Event = decode(line)
            if event.rank >= run.program.world_size:
                raise WireError("an event of a rank that the run has not")
            if isinstance(event, Verdict) and run.program.evidence_bytes is None:
                raise EngineCrashed("a verdict came from a run that is no check's")
            if isinstance(event, Outcome):
                return event
            run.put(event)
    raise EngineCrashed("the supervisor died")


async def _export(slot: Slot, line: bytes, program: Program) -> RankExport:
    """What a rank handed out, whose header has come. Raises: WireError, EngineCrashed."""
    rank, state, num_bytes = read_export_header(line)
    if num_bytes > program.limits.export_bytes:
        raise WireError("a rank hands out more than it may")
    try:
        return RankExport(rank=rank, state=state, body=await slot.reader.readexactly(num_bytes))
    except asyncio.IncompleteReadError:
        raise EngineCrashed("the supervisor died") from None


async def _line(slot: Slot) -> bytes:
    try:
        return await slot.reader.readline()
    except ValueError:
        raise EngineCrashed("the supervisor sent a line without an end") from None


def may_go_again(run: SubmittedRun, outcome: Outcome) -> bool:
    """Whether the attempt failed by our fault before the program had begun."""
    return outcome.status == "engine_failure" and not (run.has_begun or run.is_cancelled)
