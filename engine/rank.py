"""One learner process: locks itself in, waits for its program, runs it as `__main__`, ends.

May import sandbox, program, events, wire, tracers, torch_cpu, simulate, torch. Forked from the warm
zygote, so everything up to the program's first line is already done when the program arrives.
"""

import atexit
import contextlib
import dataclasses
import fcntl
import gc
import linecache
import os
import signal
import sys
import threading
import time
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from torch._C._distributed_c10d import TCPStore

from engine import simulate, torch_cpu, tracers
from engine.devices import RunsOn
from engine.exhaustion import report_limit
from engine.failure import describe, exit_code, show
from engine.gpu_memory import bound_gpu_memory
from engine.grading import checking, exporting
from engine.program import Program
from engine.rank_process import prepare_process
from engine.report_pipe import ReportPipe
from engine.reports import BegunReport, FailureReport, FinishedReport
from engine.sandbox import linux
from engine.sandbox.fence import engage_fence, room_for_others
from engine.sandbox.init import RANK_FAILED, RankStart
from engine.sandbox.limits import apply_limits
from engine.sandbox.lock import Lock, engage
from engine.torch_cpu.alone import allow_groups_of_one, look_at_interfaces
from engine.wire import decode_program

TRACE_FD, STACK_FD, PROGRAM_FD, EXPORT_FD = 3, 4, 5, 6
_NICENESS = 5
"""Supervisors and the site go first, whatever ranks do with the processor."""
_ABOVE_ALL = 600
"""Descriptors are moved up here first: dup2 onto 3 could overwrite one still needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmed:
    """What the zygote registered with torch, once, for all ranks that fork from it."""

    adaptations: torch_cpu.Adaptations
    traced: tracers.Prepared


def warm_up(runs_on: RunsOn) -> Warmed:
    """Adapt torch for ranks on CPU and intercept collectives; starts no thread."""
    return Warmed(adaptations=torch_cpu.prepare(runs_on), traced=tracers.prepare())


def rank_main(warmed: Warmed, start: RankStart) -> NoReturn:
    """Become a rank. Trusted until `engage`, the learner's from `exec` on."""
    try:
        linux.die_with_parent(signal.SIGKILL)
        os.setpgid(0, 0)
        _take_descriptors(start)
        num_others = 0
        if start.lock and start.lock.is_fenced:
            look_at_interfaces()
            num_others = room_for_others(start.lock)
            engage_fence(start.lock, str(Path.cwd()), allow_groups_of_one)
        elif start.lock:
            engage(start.lock)
            linux.die_with_parent(signal.SIGKILL)  # a change of user id has cleared it
        program, evidence = _await_program()
        os.nice(_NICENESS)
        if not (start.lock and "rlimits" in start.lock.without):
            apply_limits(program.limits, program.world_size, num_others)
    except (OSError, ValueError) as error:
        os.write(2, f"the engine could not start rank {start.rank}: {error}\n".encode())
        os._exit(RANK_FAILED)
    leave = os._exit  # the program may put something else there
    code = 1
    try:
        prepare_process(start, program, STACK_FD)
        if start.gpus:
            bound_gpu_memory(program.limits.gpu_memory_fraction, start.rank)
        code = _run(program, evidence, warmed, "cuda" if start.gpus else "cpu")
    except BaseException:  # noqa: BLE001 - the program may have replaced anything that we call
        code = 1
    finally:
        leave(code & 0xFF)
    raise AssertionError("a rank outlived its end")


def store_main(listening_fd: int, lock: Lock | None) -> NoReturn:
    """Host the rendezvous store for the run's ranks, as torchrun's agent does, until init ends."""
    try:
        linux.die_with_parent(signal.SIGKILL)
        high = fcntl.fcntl(listening_fd, fcntl.F_DUPFD, _ABOVE_ALL)
        os.closerange(3, _ABOVE_ALL)
        if lock:
            engage(lock)
            linux.die_with_parent(signal.SIGKILL)
        store = TCPStore(
            "127.0.0.1", 0, is_master=True, wait_for_workers=False, master_listen_fd=high
        )
    except (OSError, RuntimeError) as error:
        os.write(2, f"the engine could not host the store: {error}\n".encode())
        os._exit(RANK_FAILED)
    while store:
        signal.pause()
    os._exit(0)


def _take_descriptors(start: RankStart) -> None:
    """Leave exactly 0 null, 1 stdout, 2 stderr, 3 trace, 4 stack, 5 program, 6 export."""
    pipes = start.pipes
    wanted = [
        os.open("/dev/null", os.O_RDONLY),
        *(pipe.write for pipe in (pipes.stdout, pipes.stderr, pipes.trace, pipes.stack)),
        pipes.program.read,
        pipes.export.write,
    ]
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ABOVE_ALL) for descriptor in wanted]
    for target, descriptor in enumerate(high):
        os.dup2(descriptor, target, inheritable=target < TRACE_FD)
    os.closerange(len(high), max(high) + 1)


def _await_program() -> tuple[Program, bytes | None]:
    """Block until the supervisor sends the program; without one, the rank was not needed.

    Behind a check comes what it is told of the run that it judges.
    """
    received = bytearray()
    while piece := os.read(PROGRAM_FD, 1 << 16):
        received += piece
    os.close(PROGRAM_FD)
    if not received:
        os._exit(0)
    line, _, evidence = bytes(received).partition(b"\n")
    program = decode_program(line)
    return program, None if program.evidence_bytes is None else evidence


def _run(program: Program, evidence: bytes | None, warmed: Warmed, runs_on: RunsOn) -> int:
    """Execute the program, or the check that comes with evidence, as `__main__`; its exit code."""
    filename = str(Path.cwd() / program.name)
    pipe = ReportPipe(TRACE_FD)
    traced = tracers.install(
        pipe.report,
        filename,
        warmed.traced,
        device="simulated" if program.simulated_ranks else runs_on,
        detail=program.detail,
    )
    adapted = warmed.adaptations.begin(pipe.report, traced.line)
    program = dataclasses.replace(program, source=program.source.removeprefix("\ufeff"))
    main = _make_main(program, filename)
    num = program.simulated_ranks
    simulation = num and simulate.begin(num, pipe.report, filename, traced.line)
    pipe.report(BegunReport(at_ns=time.monotonic_ns()))
    gc.enable()
    if evidence is not None:
        checking.carry_out(program, evidence, main, pipe.report)
        return _tear_down()
    code = _execute(program, main, traced, pipe)
    if program.exports and code == 0:
        exporting.export(main.__dict__, program.exports, program.limits.export_bytes, EXPORT_FD)
    code = code or int(bool(simulation and simulation.has_failed()))
    code = _tear_down() or code
    warmed.adaptations.joining.await_peers()
    # Destroying groups or __main__ may join threads that want the GIL: a false hang at exit.
    _keep(adapted, main, simulation)
    return code


def _execute(
    program: Program, main: types.ModuleType, traced: tracers.Tracers, pipe: ReportPipe
) -> int:
    """Run the program's own code and report how it ended; returns its exit code."""
    filename = str(main.__file__)
    try:
        try:
            code_object = compile(program.source, filename, "exec", dont_inherit=True)
            exec(code_object, main.__dict__)  # noqa: S102 - that is what a rank is for
        finally:
            _end_trace(traced)
    except SystemExit as error:
        pipe.report(FinishedReport(at_ns=time.monotonic_ns()))
        return exit_code(error)
    except BaseException as error:  # noqa: BLE001 - whatever a program raises is an outcome
        report_limit(error, filename, program.limits.scratch_bytes, pipe.report)
        pipe.report(FailureReport(at_ns=time.monotonic_ns(), failure=describe(error, filename)))
        show(simulate.shortened(error, filename), filename)
        return 1
    pipe.report(FinishedReport(at_ns=time.monotonic_ns()))
    return 0


def _end_trace(traced: tracers.Tracers) -> None:
    with contextlib.suppress(BaseException):  # what it reads may be of the program's own classes
        traced.end()


def _keep(*_: object) -> None:
    """Holds its arguments until here."""


def _make_main(program: Program, filename: str) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__file__ = filename
    sys.modules["__main__"] = main
    sys.argv = [program.name]
    folder = os.path.dirname(filename)  # noqa: PTH120 - a Path costs every rank memory of its own
    sys.path[:] = [folder, *(p for p in sys.path if p and not _is_engine_path(p))]
    lines = program.source.splitlines(keepends=True)
    linecache.cache[filename] = (len(program.source), None, lines, filename)
    # The file only serves tools that read source; the program itself is in memory.
    with contextlib.suppress(OSError), open(filename, "wb", buffering=0) as file:
        file.write(program.source.encode(errors="surrogatepass"))
    return main


def _is_engine_path(path: str) -> bool:
    return "-packages" not in path and os.access(f"{path}/engine/rank.py", os.F_OK)


def _tear_down() -> int:
    """What the interpreter does at exit, up to the point where extensions are torn down."""
    code = 0
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # the interpreter's own first step
        atexit._run_exitfuncs()
    except BaseException:  # noqa: BLE001 - learner code runs here too
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BaseException:  # noqa: BLE001 - the program may have put anything there
            code = code or 1
    return code
