"""Runs test programs on real ranks with both packages installed. May import engine.events."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.reports import Report

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """What one rank left behind; exit is None if it was stopped at the deadline."""

    exit: int | None
    output: str
    reports: tuple[Report, ...]


class Ranks:
    """A parent process that has imported torch and forks ranks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs = 0
        read, write = os.pipe()
        self._parent = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "parent.py"), str(write)],
            stdin=subprocess.PIPE,
            pass_fds=[write],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            text=True,
        )
        os.close(write)
        self._answers = os.fdopen(read)
        self.num_parent_threads = int(self._answers.readline())

    def run(self, program: str, world: int, deadline_s: float = 60) -> list[Rank]:
        """Run a program's source, or the file of that name here, on `world` ranks."""
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir()
        path = HERE / program
        if not program.endswith(".py"):
            path = folder / "program.py"
            path.write_text(program)
        assert self._parent.stdin is not None
        print(path, world, folder, deadline_s, sep="\t", file=self._parent.stdin, flush=True)
        codes = self._answers.readline().split()
        return [
            Rank(
                exit=None if code == "-" else int(code),
                output=(folder / f"{rank}.out").read_text(),
                reports=tuple(_load(folder / f"{rank}.reports")),
            )
            for rank, code in enumerate(codes)
        ]

    def close(self) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        self._parent.wait()
        self._answers.close()


def _load(path: Path) -> Iterator[Report]:
    with path.open("rb") as file:
        while file.peek(1):
            yield pickle.load(file)
