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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.devices import VISIBLE, RunsOn, encode_gpus
from engine.errors import EngineCrashed
from engine.order import ZygoteOrder, encode_order
from engine.sandbox.choice import SandboxChoice, Tier

_START_LIMIT_S = 120.0
_PARK_LIMIT_S = 20.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A connection to one supervisor."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


def clean_environment(own: Mapping[str, str], runs_on: RunsOn = "cpu") -> dict[str, str]:
    """What the zygote may know: a rank could read its launch environment in its initial stack.

    That of CPU ranks sees no GPU: it rehearses backward, and torch then starts a thread per GPU.
    """
    kept = {k: v for k, v in own.items() if k.startswith(_KEPT_PREFIXES)}
    return {**kept, **_SET, **({VISIBLE: ""} if runs_on == "cpu" else {})}


class Zygote:
    """Starts a warm parent, of ranks on CPU or on GPUs, and hands out its slots."""

    def __init__(
        self, *, num_parked_ranks: int, sandbox: SandboxChoice, runs_on: RunsOn = "cpu"
    ) -> None:
        self._num_parked_ranks = num_parked_ranks
        self._sandbox = sandbox
        self._runs_on = runs_on
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._parked: deque[Slot] = deque()

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> Hello:
        """Start the process and wait until it is warm. Raises: EngineCrashed."""
        ours, theirs = socket.socketpair()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-m",
            "engine.zygote",
            encode_order(self._order(theirs.fileno())),
            env=clean_environment(os.environ, self._runs_on),
            pass_fds=[theirs.fileno()],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        ours.setblocking(False)
        self._control = ours
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_START_LIMIT_S):
                said = bytearray()
                while not said.endswith(b"\n"):
                    piece = await loop.sock_recv(ours, 4096)
                    if not piece:
                        raise EngineCrashed("the warm parent died while it started")
                    said += piece
        except TimeoutError:
            raise EngineCrashed(f"the warm parent did not start in {_START_LIMIT_S:g} s") from None
        hello = json.loads(said)
        return Hello(
            tier=hello["tier"],
            reason=hello["reason"],
            remedy=hello["remedy"],
            is_cuda_built=hello["is_cuda_built"],
        )

    def _order(self, control: int) -> ZygoteOrder:
        return ZygoteOrder(
            control=control,
            num_parked_ranks=self._num_parked_ranks,
            runs_on=self._runs_on,
            sandbox=self._sandbox,
        )

    async def park(self) -> None:
        """Add one parked slot. Raises: EngineCrashed."""
        self._parked.append(await self._make_slot())

    async def take(self) -> Slot:
        """A parked slot, made now if none waits. Raises: EngineCrashed."""
        while self._parked:
            slot = self._parked.popleft()
            if not slot.reader.at_eof():
                return slot
        return await self._make_slot()

    async def take_with(self, gpus: Sequence[int]) -> Slot:
        """A slot whose ranks reach these GPUs and no other, made now. Raises: EngineCrashed."""
        return await self._make_slot(gpus)

    @property
    def num_parked(self) -> int:
        return len(self._parked)

    async def _make_slot(self, gpus: Sequence[int] = ()) -> Slot:
        if self._control is None or not self.is_alive:
            raise EngineCrashed("the warm parent is gone")
        try:
            async with asyncio.timeout(_PARK_LIMIT_S):
                slot = await self._request(self._control, gpus)
                said = await slot.reader.readline()
        except TimeoutError:
            raise EngineCrashed(f"no slot was parked within {_PARK_LIMIT_S:g} s") from None
        except OSError as error:
            raise EngineCrashed(f"the warm parent is gone: {error}") from None
        answer = json.loads(said) if said else {"failed": "the supervisor died"}
        if "failed" in answer:
            raise EngineCrashed(answer["failed"])
        return slot

    async def _request(self, control: socket.socket, gpus: Sequence[int]) -> Slot:
        control.send(encode_gpus(gpus))
        descriptor = await _receive_descriptor(control)
        connection = socket.socket(fileno=descriptor)
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=_LINE_LIMIT_BYTES)
        return Slot(reader=reader, writer=writer)

    async def close(self) -> None:
        """End the process; parked supervisors end with their connections."""
        while self._parked:
            self._parked.popleft().writer.close()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is None:
            return
        try:
            async with asyncio.timeout(5):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


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
