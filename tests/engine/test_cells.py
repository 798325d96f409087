"""Programs made from public bug reports, each with the outcome and words that it must get.

The header of a cell is blanked before it runs, so that nothing can read the answer from it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine.conftest import Runner

CELLS = Path(__file__).parents[1] / "cells"
HEADER = re.compile(r"#\s*(kind|ranks|outcome|says|diagnosis|no-diagnosis|why)\b\s*:?\s*(.*?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    source: str
    headers: tuple[tuple[str, str], ...]

    def values(self, key: str) -> list[str]:
        return [value for name, value in self.headers if name == key]


def read_cell(path: Path) -> Cell:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    headers = []
    for number, line in enumerate(lines):
        match = HEADER.match(line)
        if match is None:
            break
        headers.append((match[1], match[2]))
        lines[number] = "#\n"
    return Cell(source="".join(lines), headers=tuple(headers))


@pytest.mark.parametrize("path", sorted(CELLS.glob("*.py")), ids=lambda path: path.stem)
async def test_cell_ends_as_its_header_says(run: Runner, path: Path) -> None:
    cell = read_cell(path)
    ranks = int(cell.values("ranks")[0])
    ran = await run(cell.source, ranks=ranks)
    written = "\n".join(ran.text(r) + ran.text(r, "stderr") for r in range(ranks))
    assert ran.outcome.status in cell.values("outcome")[0].split("|"), written[-2000:]
    for pattern in cell.values("says"):
        assert re.search(pattern, written), written[-2000:]
    told = [f"{d.code}: {d.message}" for d in ran.outcome.diagnosis]
    for pattern in cell.values("diagnosis"):
        assert any(re.search(pattern, text, re.I | re.S) for text in told), told
    if cell.values("no-diagnosis"):
        assert not told
