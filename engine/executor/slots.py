"""The zygote and its parked slots, as the executor on this machine sees them.

May import the seam, the leaves and wire. A slot is one connection to a supervisor that has a
sandbox ready; it serves one run.
"""

import asyncio
import json
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.devices import VISIBLE, RunsOn, encode_gpus
from engine.errors import EngineCrashed
from engine.executor.fortress import Fortress
from engine.executor.parking import PARKED, why_not_parked
from engine.order import ZygoteOrder, encode_order
from engine.sandbox.choice import SandboxChoice, Tier

_START_LIMIT_S = 120.0
_PARK_LIMIT_S = 20.0
_END_LIMIT_S = 5.0
_LINE_LIMIT_BYTES = 4 << 20
_KEPT_PREFIXES = ("OPENBLAS_", "MKL_")
_SET = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What the zygote found out about this machine."""

    tier: Tier
    reason: str | None
    remedy: str | None
    is_cuda_built: bool = False
    """Whether the installed PyTorch can use GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slot:
    """A connection to one supervisor, which serves one run."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    let_go: Callable[["Slot"], None]
    """Tells the slot's warm parent that nobody needs it for this slot any more."""

    @property
    def is_alive(self) -> bool:
        """False once the supervisor is known to have ended."""
        return not self.reader.at_eof()

    def close(self) -> None:
        """Hang up: a supervisor that still has a run ends it."""
        self.writer.close()
        self.let_go(self)


def clean_environment(own: Mapping[str, str], runs_on: RunsOn = "cpu") -> dict[str, str]:
    """What the zygote may know: a rank could read its launch environment in its initial stack.

    That of CPU ranks sees no GPU: it rehearses backward, and torch then starts a thread per GPU.
    """
    kept = {k: v for k, v in own.items() if k.startswith(_KEPT_PREFIXES)}
    return {**kept, **_SET, **({VISIBLE: ""} if runs_on == "cpu" else {})}


class Zygote:
    """One warm parent, of ranks on CPU or on GPUs: makes slots, and keeps some parked.

    Supervisors outlive it, except where it is walled in itself: so it ends only when its slots
    have ended, unless it dies.
    """

    def __init__(
        self,
        *,
        num_parked_ranks: int,
        sandbox: SandboxChoice,
        runs_on: RunsOn = "cpu",
        fortress: Fortress | None = None,
    ) -> None:
        self._num_parked_ranks = num_parked_ranks
        self._sandbox = sandbox
        self._runs_on = runs_on
        self._fortress = fortress or Fortress(sandbox, runs_on)
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._requests = asyncio.Lock()
        self._parked: deque[Slot] = deque()
        self._slots: set[Slot] = set()
        self._is_drained = asyncio.Event()
        self._is_drained.set()
        self.num_taken = 0
        """Slots that runs have taken so far."""

    @property
    def is_alive(self) -> bool:
        """Whether it can make slots."""
        is_running = self._process is not None and self._process.returncode is None
        return is_running and self._control is not None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> Hello:
        """Start the process and wait until it is warm. Raises: EngineCrashed."""
        environment = clean_environment(os.environ, self._runs_on)
        prefix = await self._fortress.prefix(environment)
        ours, theirs = socket.socketpair()
        with theirs:
            order = self._order(theirs.fileno(), is_enclosed=bool(prefix))
            self._process = await asyncio.create_subprocess_exec(
                *prefix,
                sys.executable,
                "-I",
                "-m",
                "engine.zygote",
                encode_order(order),
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        ours.setblocking(False)
        self._control = ours
        hello = json.loads(await _first_line(ours))
        return Hello(
            tier=hello["tier"],
            reason=hello["reason"],
            remedy=hello["remedy"],
            is_cuda_built=hello["is_cuda_built"],
        )

    def _order(self, control: int, *, is_enclosed: bool) -> ZygoteOrder:
        return ZygoteOrder(
            control=control,
            num_parked_ranks=self._num_parked_ranks,
            runs_on=self._runs_on,
            sandbox=self._sandbox,
            is_enclosed=is_enclosed,
        )

    async def ended(self) -> None:
        """Return once the process has ended."""
        if self._process is not None:
            await self._process.wait()

    # -------------------------------------------------------------- slots
    @property
    def num_parked(self) -> int:
        """Slots that wait for a run; those that died meanwhile are let go of."""
        for slot in [slot for slot in self._parked if not slot.is_alive]:
            self._parked.remove(slot)
            slot.close()
        return len(self._parked)

    async def park(self) -> None:
        """Add one parked slot. Raises: EngineCrashed."""
        self._parked.append(await self._make_slot())

    async def take(self, gpus: Sequence[int] = ()) -> Slot:
        """A slot whose ranks reach these GPUs and no other: a parked one, or else made now.

        Raises: EngineCrashed.
        """
        slot = self._parked.popleft() if self.num_parked and not gpus else None
        slot = slot or await self._make_slot(gpus)
        self.num_taken += 1
        return slot

    async def _make_slot(self, gpus: Sequence[int] = ()) -> Slot:
        slot = await self._request(gpus)
        try:
            async with asyncio.timeout(_PARK_LIMIT_S):
                said = await slot.reader.readline()
        except TimeoutError:
            said = b'{"failed": "the sandbox was not built in time"}'
        except (OSError, ValueError):  # it died, or its line has no end
            said = b""
        except asyncio.CancelledError:
            slot.close()
            raise
        if said != PARKED:
            slot.close()
            raise EngineCrashed(why_not_parked(said))
        return slot

    async def _request(self, gpus: Sequence[int]) -> Slot:
        """A slot that begins to park. Raises: EngineCrashed."""
        async with self._requests:
            if not self.is_alive or self._control is None:
                raise EngineCrashed("the warm parent is gone")
            try:
                async with asyncio.timeout(_PARK_LIMIT_S):
                    self._control.send(encode_gpus(gpus))
                    descriptor = await _receive_descriptor(self._control)
            except (OSError, TimeoutError, EngineCrashed, asyncio.CancelledError) as error:
                self._give_up()  # the answer to this request must not be taken for the next one's
                if isinstance(error, asyncio.CancelledError):
                    raise
                raise EngineCrashed(f"the warm parent is gone: {error}") from None
        connection = socket.socket(fileno=descriptor)
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=_LINE_LIMIT_BYTES)
        slot = Slot(reader=reader, writer=writer, let_go=self._let_go)
        self._slots.add(slot)
        self._is_drained.clear()
        return slot

    def _let_go(self, slot: Slot) -> None:
        self._slots.discard(slot)
        if not self._slots:
            self._is_drained.set()

    # -------------------------------------------------------------- the end
    def _give_up(self) -> None:
        """Kill the process; nothing more is asked of it."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def drain(self) -> None:
        """End the process as soon as no run needs it any more."""
        self._unpark()
        await self._is_drained.wait()
        await self.close()

    def _unpark(self) -> None:
        while self._parked:
            self._parked.popleft().close()

    async def close(self) -> None:
        """End the process; parked supervisors end with their connections."""
        self._unpark()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is None:
            return
        try:
            async with asyncio.timeout(_END_LIMIT_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def _first_line(control: socket.socket) -> bytes:
    """What a warm parent says when it is warm. Raises: EngineCrashed."""
    loop = asyncio.get_running_loop()
    said = bytearray()
    try:
        async with asyncio.timeout(_START_LIMIT_S):
            while not said.endswith(b"\n"):
                piece = await loop.sock_recv(control, 4096)
                if not piece:
                    raise EngineCrashed("the warm parent died while it started")
                said += piece
    except TimeoutError:
        raise EngineCrashed(f"the warm parent did not start in {_START_LIMIT_S:g} s") from None
    except OSError as error:
        raise EngineCrashed(f"the warm parent died while it started: {error}") from None
    return bytes(said)


async def _receive_descriptor(control: socket.socket) -> int:
    """Wait for one descriptor sent with SCM_RIGHTS. Raises: EngineCrashed."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(control, wake)
    try:
        await readable
    finally:
        loop.remove_reader(control)
    message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
    if not message or not descriptors:
        raise EngineCrashed("the warm parent is gone")
    return descriptors[0]
