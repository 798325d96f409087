"""One learner process: locks itself in, waits for its program, runs it as `__main__`, ends.

May import sandbox, program, events, wire, tracers, torch_cpu, simulate, torch. Forked from the warm
zygote, so everything up to the program's first line is already done when the program arrives.
"""

import atexit
import contextlib
import dataclasses
import faulthandler
import fcntl
import gc
import io
import linecache
import os
import random
import signal
import sys
import threading
import time
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy
import torch
from torch._C._distributed_c10d import TCPStore

from engine import simulate, torch_cpu, tracers
from engine.devices import RunsOn, visible_devices
from engine.failure import describe, exit_code, show
from engine.program import Program
from engine.report_pipe import ReportPipe
from engine.reports import BegunReport, FailureReport, FinishedReport
from engine.sandbox import linux
from engine.sandbox.init import RANK_FAILED, RankStart
from engine.sandbox.limits import apply_limits
from engine.sandbox.lock import Lock, engage
from engine.sandbox.root import WORK
from engine.wire import decode_program

TRACE_FD, STACK_FD, PROGRAM_FD = 3, 4, 5
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
        if start.lock:
            engage(start.lock)
            linux.die_with_parent(signal.SIGKILL)  # a change of user id has cleared it
        program = _await_program()
        os.nice(_NICENESS)
        if not (start.lock and "rlimits" in start.lock.without):
            apply_limits(program.limits, program.world_size)
    except (OSError, ValueError) as error:
        os.write(2, f"the engine could not start rank {start.rank}: {error}\n".encode())
        os._exit(RANK_FAILED)
    leave = os._exit  # the program may put something else there
    code = 1
    try:
        _prepare_process(start, program)
        code = _run(program, warmed, "cuda" if start.gpus else "cpu")
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
    """Leave exactly 0 null, 1 stdout, 2 stderr, 3 trace, 4 stack, 5 program."""
    pipes = start.pipes
    wanted = [
        os.open("/dev/null", os.O_RDONLY),
        pipes.stdout.write,
        pipes.stderr.write,
        pipes.trace.write,
        pipes.stack.write,
        pipes.program.read,
    ]
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ABOVE_ALL) for descriptor in wanted]
    for target, descriptor in enumerate(high):
        os.dup2(descriptor, target, inheritable=target < TRACE_FD)
    os.closerange(len(high), max(high) + 1)


def _await_program() -> Program:
    """Block until the supervisor sends the program; without one, the rank was not needed."""
    received = bytearray()
    while piece := os.read(PROGRAM_FD, 1 << 16):
        received += piece
    os.close(PROGRAM_FD)
    if not received:
        os._exit(0)
    return decode_program(bytes(received))


def _prepare_process(start: RankStart, program: Program) -> None:
    """Make this process look like one that torchrun started."""
    faulthandler.enable(2, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=STACK_FD, all_threads=True)
    rank, world_size = str(start.rank), str(program.simulated_ranks or program.world_size)
    os.environ.clear()
    os.environ.update(
        PATH="/usr/local/bin:/usr/bin:/bin",
        HOME=WORK if start.lock else str(Path.cwd()),
        LANG="C.UTF-8",
        RANK=rank,
        LOCAL_RANK=rank,
        GROUP_RANK="0",
        WORLD_SIZE=world_size,
        LOCAL_WORLD_SIZE=world_size,
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(start.port),
        GLOO_SOCKET_IFNAME="lo",
        NCCL_SOCKET_IFNAME="lo",
        CUDA_VISIBLE_DEVICES=visible_devices(start.gpus, is_walled=start.lock is not None),
        OMP_NUM_THREADS="1",
        MKL_NUM_THREADS="1",
        TORCH_CPP_LOG_LEVEL="ERROR",
        TORCHELASTIC_USE_AGENT_STORE="True",
    )
    if start.lock:
        os.chdir(WORK)
    _seed_from_system()
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout = _text_stream(1, "strict")
    sys.stderr = _text_stream(2, "backslashreplace")


def _seed_from_system() -> None:
    """All ranks fork from one parent; as fresh processes they must not share random numbers."""
    seed = int.from_bytes(os.urandom(8), "little")
    random.seed(seed)
    numpy.random.seed(seed & 0xFFFFFFFF)
    torch.manual_seed(seed & 0x7FFF_FFFF_FFFF_FFFF)


def _text_stream(descriptor: int, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    buffered = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffered, encoding="utf-8", errors=errors, line_buffering=True)


def _run(program: Program, warmed: Warmed, runs_on: RunsOn) -> int:
    """Execute the program as `__main__`; returns its exit code."""
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
    num_ranks = program.simulated_ranks
    simulation = num_ranks and simulate.begin(num_ranks, pipe.report, filename, traced.line)
    pipe.report(BegunReport(at_ns=time.monotonic_ns()))
    gc.enable()
    code = _execute(program, main, traced, pipe)
    code = code or int(bool(simulation and simulation.has_failed()))
    code = _tear_down() or code
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
    sys.path[:] = [str(Path.cwd()), *(p for p in sys.path if p and not _is_engine_path(p))]
    lines = program.source.splitlines(keepends=True)
    linecache.cache[filename] = (len(program.source), None, lines, filename)
    # The file only serves tools that read source; the program itself is in memory.
    with contextlib.suppress(OSError):
        Path(filename).write_text(program.source, encoding="utf-8", errors="surrogatepass")
    return main


def _is_engine_path(path: str) -> bool:
    return (Path(path) / "engine" / "rank.py").exists() and "-packages" not in path


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
