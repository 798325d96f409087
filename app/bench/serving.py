"""A real `academy serve` on a data folder of its own, and a plain client of its HTTP interface.

May import processes. Standard library only: whoever installs the academy can run the benchmarks.
"""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Self

from app.bench.processes import Process, below, process_table
from engine.errors import EngineCrashed

START_LIMIT_S = 180.0
READ_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One server-sent event: how many events so far, and the event as it was encoded."""

    position: int
    data: str

    @property
    def kind(self) -> str:
        return str(json.loads(self.data)["kind"])

    @property
    def text(self) -> str:
        """What a rank wrote; empty for events that are no output."""
        return str(json.loads(self.data).get("text", ""))

    @property
    def status(self) -> str:
        """How the run ended; empty for all events but the last."""
        return str(json.loads(self.data).get("status", ""))


class ServedSite:
    """A server process that can be killed and started again on the same data and port."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str]) -> None:
        self._data_dir = data_dir
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self._lines: Queue[str | None] = Queue()
        self.address = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self) -> None:
        """Serve, and wait until runs can start. Raises: EngineCrashed."""
        port = self.address.rsplit(":", 1)[1] if self.address else "0"
        options = ["--host", "127.0.0.1", "--port", port, "--data-dir", str(self._data_dir)]
        self._lines = Queue()
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "app.cli", "serve", *options],
            env={**os.environ, **self._settings},
            stderr=subprocess.PIPE,
            text=True,
        )
        Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()
        self.address = self._wait_for("http://").split()[-1]
        self._wait_for("runs can start")

    def _read(self, process: "subprocess.Popen[str]", lines: "Queue[str | None]") -> None:
        assert process.stderr is not None
        with process.stderr:  # open until the last warm parent is gone too
            for line in process.stderr:
                lines.put(line)
        lines.put(None)

    def _wait_for(self, words: str) -> str:
        said: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=START_LIMIT_S)
            except Empty:
                raise EngineCrashed("the server did not start in time") from None
            if line is None or "cannot start" in line:
                text = "".join([*said, line or ""])
                raise EngineCrashed(f"the server cannot run programs: {text[-500:]}")
            if words in line:
                return line
            said.append(line)

    def processes(self) -> list[Process]:
        """The server's own process and all that descend from it."""
        table = process_table()
        return [table[self.pid], *below(self.pid, table)]

    def kill(self) -> None:
        """SIGKILL the server's process, and no other."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(READ_LIMIT_S)

    def stop(self) -> None:
        """End the server as an operator would."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(READ_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    # -------------------------------------------------------------- its interface
    def begin(self, source: str, ranks: int = 1) -> str:
        """Start a program; the run's id. Raises: OSError."""
        body = json.dumps({"source": source, "ranks": ranks}).encode()
        return str(json.loads(self._ask("/api/runs", body))["id"])

    def state(self, run_id: str) -> str:
        """What `GET /api/runs/{id}` answers. Raises: OSError."""
        return self._ask(f"/api/runs/{run_id}").decode()

    def cancel(self, run_id: str) -> None:
        """Stop a run. Raises: OSError."""
        self._ask(f"/api/runs/{run_id}", method="DELETE")

    def follow(self, run_id: str) -> Iterator[Message]:
        """The run's events as they come, to its outcome. Raises: OSError, HTTPException."""
        url = f"{self.address}/api/runs/{run_id}/events"
        with urllib.request.urlopen(url, timeout=READ_LIMIT_S) as answer:  # noqa: S310 - our own
            position = 0
            for line in answer:
                name, _, value = line.decode().rstrip("\r\n").partition(": ")
                if name == "id":
                    position = int(value)
                elif name == "data":
                    yield Message(position=position, data=value)

    def _ask(self, path: str, body: bytes | None = None, method: str | None = None) -> bytes:
        request = urllib.request.Request(  # noqa: S310 - our own server
            self.address + path,
            data=body,
            method=method,
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=READ_LIMIT_S) as answer:  # noqa: S310
            content: bytes = answer.read()
        return content
