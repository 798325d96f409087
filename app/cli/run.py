"""`academy run`: one program through the same seam as the site. May import the engine only."""

import asyncio
import math
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from app.cli.report import HumanReport
from engine.errors import EngineCrashed, EngineError, ProgramRefused, SandboxUnavailable
from engine.events import Diagnosis, Event, Outcome, Verdict
from engine.executor import Queued, RunRef
from engine.executor.local import LocalExecutor
from engine.facts import Args
from engine.program import MAX_SOURCE_BYTES, MIB, Check, Detail, Limits, Program
from engine.sandbox.choice import Demand, SandboxChoice
from engine.wire import encode

OK, PROGRAM_FAILED, BAD_ARGUMENTS, ENGINE_FAILED = 0, 1, 2, 3
MAX_TIMEOUT_S = 24 * 3600.0
MAX_MEMORY_MIB = 1024 * 1024
CPU_PER_WALL = 2
"""CPU seconds per rank that a run may take for each second of its wall limit."""
TEARDOWN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of `academy run`."""

    file: Path
    ranks: int
    device: Literal["auto", "cpu", "cuda"]
    timeout_s: float | None
    memory_mib: int | None
    as_json: bool
    trace: Path | None
    allow_unsandboxed: bool
    tier: Demand = "auto"
    simulated_ranks: int | None = None
    detail: Detail = "summary"
    """Set by `academy simulate`: one process stands for so many ranks."""
    exports: tuple[str, ...] = ()
    """Set by `academy grade`, as is the file of the check: variables that it is to look at."""
    check: Path | None = None

    @property
    def command(self) -> str:
        """The command whose arguments these are."""
        if self.check is not None:
            return "academy grade"
        return "academy run" if self.simulated_ranks is None else "academy simulate"


class BadArguments(ValueError):
    """The arguments name no program that could be run."""


def carry_out(request: Request, human: HumanReport | None = None) -> int:
    """Run the program and print what it does, through `human` without --json; the exit code."""
    try:
        program = read_program(request)
        check = None if request.check is None else read_check(request.check)
        sandbox = choose_sandbox(request)
        with ExitStack() as stack:
            copy = _open_trace(request.trace)
            if copy is not None:
                stack.enter_context(copy)
            shown = None if request.as_json else human or HumanReport(sys.stdout)
            return asyncio.run(_run(request, sandbox, program, check, copy, shown))
    except BadArguments as error:
        print(f"{request.command}: {error}", file=sys.stderr)  # noqa: T201
        return BAD_ARGUMENTS
    except BrokenPipeError:  # the reader has seen enough; the run was stopped
        _discard_stdout()
        return PROGRAM_FAILED
    except OSError as error:  # a full disk, say
        _discard_stdout()
        print(f"{request.command}: cannot write: {error.strerror}", file=sys.stderr)  # noqa: T201
        return ENGINE_FAILED


def _discard_stdout() -> None:
    """Leave nothing that the interpreter would try to write at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_program(request: Request) -> Program:
    """The program that the arguments name. Raises: BadArguments."""
    source = _read_source(request.file)
    try:
        return Program(
            source=source,
            world_size=request.ranks,
            device=request.device,
            name=request.file.name,
            limits=_limits(request),
            simulated_ranks=request.simulated_ranks,
            detail=request.detail,
            exports=request.exports,
        )
    except BadArguments:
        raise
    except ValueError as error:
        raise BadArguments(str(error)) from None


def read_check(file: Path) -> Check:
    """The check in a file. Raises: BadArguments."""
    try:
        return Check(source=_read_source(file), name=file.name)
    except BadArguments:
        raise
    except ValueError as error:
        raise BadArguments(str(error)) from None


def choose_sandbox(request: Request) -> SandboxChoice:
    """The isolation that the arguments ask for. Raises: BadArguments."""
    try:
        return SandboxChoice.demanded(request.tier, allow_open=request.allow_unsandboxed)
    except ValueError as error:
        raise BadArguments(str(error)) from None


def _read_source(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_SOURCE_BYTES + 1)  # a device has no size and no end
        if len(raw) > MAX_SOURCE_BYTES:
            raise BadArguments(f"{file} is larger than {MAX_SOURCE_BYTES // 1024} KiB")
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise BadArguments(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadArguments(f"{file} is not UTF-8 (byte {error.start})") from None


def _limits(request: Request) -> Limits:
    default = Limits()
    wall_s = default.wall_s if request.timeout_s is None else request.timeout_s
    if not 0 < wall_s <= MAX_TIMEOUT_S:  # also false for NaN
        raise BadArguments(f"--timeout must be above 0 and at most {MAX_TIMEOUT_S:g} s")
    memory_bytes = default.memory_bytes
    if request.memory_mib is not None:
        if not 1 <= request.memory_mib <= MAX_MEMORY_MIB:
            raise BadArguments(f"--memory must be from 1 to {MAX_MEMORY_MIB} MiB")
        memory_bytes = request.memory_mib * MIB
    cpu_s = max(1, math.ceil(CPU_PER_WALL * wall_s))
    return Limits(wall_s=wall_s, cpu_s=cpu_s, memory_bytes=memory_bytes)


def _open_trace(path: Path | None) -> TextIO | None:
    if path is None:
        return None
    try:
        return path.open("w", encoding="ascii")
    except OSError as error:
        raise BadArguments(f"cannot write {path}: {error.strerror}") from None


async def _run(
    request: Request,
    sandbox: SandboxChoice,
    program: Program,
    check: Check | None,
    copy: TextIO | None,
    human: HumanReport | None,
) -> int:
    executor = LocalExecutor(slots=1, num_parked=1, sandbox=sandbox)
    is_simulated = request.simulated_ranks is not None
    outcome: Outcome | None = None
    verdict: Verdict | None = None
    try:
        async for event in _events(executor, program, check):
            line = encode(event, is_simulated=is_simulated)
            if copy is not None:
                copy.write(line + "\n")
            if human is None:
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
            else:
                human.show(event)
            if isinstance(event, Outcome):
                outcome = event
            elif isinstance(event, Verdict):
                verdict = event
    finally:
        await executor.close()
    assert outcome is not None, "a run's last event is its outcome"
    code = _exit_code(outcome, request.command)
    if check is None or code == ENGINE_FAILED:
        return code
    return OK if verdict is not None and verdict.is_passed else PROGRAM_FAILED


def _exit_code(outcome: Outcome, command: str) -> int:
    if outcome.status == "ok":
        return OK
    if outcome.status != "engine_failure":
        return PROGRAM_FAILED
    said = [d.message for d in outcome.diagnosis] or ["the engine failed"]
    print(f"{command}: {' '.join(said)}", file=sys.stderr)  # noqa: T201
    return ENGINE_FAILED


async def _events(
    executor: LocalExecutor, program: Program, check: Check | None
) -> AsyncIterator[Event]:
    """The run's events; an engine that cannot run it ends in an outcome too."""
    ref = RunRef(run_id="run")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    canceller = asyncio.create_task(_cancel_on(stop, executor, ref))
    try:
        if not await _started(executor, stop):
            yield _outcome("cancelled", "")
            return
        await executor.submit(program, ref, check=check)
        stream = executor.stream(ref)
        deadline = loop.time() + program.limits.wall_s + TEARDOWN_S
        deadline += 0 if check is None else check.limits.wall_s + TEARDOWN_S
        while True:
            async with asyncio.timeout_at(deadline):
                item = await anext(stream)
            if not isinstance(item, Queued):
                yield item
            if isinstance(item, Outcome):
                return
    except ProgramRefused as error:
        yield _outcome("engine_failure", str(error), error.code, error.said)
    except (SandboxUnavailable, EngineCrashed) as error:
        yield _outcome("engine_failure", str(error))
    except (EngineError, StopAsyncIteration, TimeoutError) as error:
        yield _outcome("engine_failure", f"The engine failed: {type(error).__name__}.")
    finally:
        canceller.cancel()


async def _started(executor: LocalExecutor, stop: asyncio.Event) -> bool:
    """Warm the engine up; False if it was stopped meanwhile. Raises: EngineError."""
    start, stopped = asyncio.create_task(executor.start()), asyncio.create_task(stop.wait())
    await asyncio.wait((start, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not start.done():
        start.cancel()
        await asyncio.gather(start, return_exceptions=True)
        return False
    await start
    return not stop.is_set()


async def _cancel_on(stop: asyncio.Event, executor: LocalExecutor, ref: RunRef) -> None:
    await stop.wait()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)  # a second Ctrl-C ends us at once
    await executor.cancel(ref)


def _outcome(
    status: Literal["cancelled", "engine_failure"],
    message: str,
    code: str = "engine-failure",
    args: Args | None = None,
) -> Outcome:
    shown = {"detail": message} if args is None else args
    diagnosis = Diagnosis(code=code, message=message, line=None, rank=None, args=shown)
    return Outcome(
        rank=-1,
        seq=0,
        at_ns=0,
        status=status,
        ranks=(),
        diagnosis=(diagnosis,) if message else (),
        elapsed_s=0.0,
        dropped_events=0,
    )
