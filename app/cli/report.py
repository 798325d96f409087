"""What `academy run` prints for people. May import the engine's leaves and rich."""

from typing import TextIO

from rich.console import Console

from engine.events import Event, Note, Outcome, Output, Started, Stream


class HumanReport:
    """Prints each rank's lines as they come, and notes and diagnosis at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._console = Console(file=out, markup=False, highlight=False, soft_wrap=True)
        self._unfinished: dict[tuple[int, Stream], str] = {}
        self._notes: dict[str, list[int]] = {}
        self._tier = ""

    def show(self, event: Event) -> None:
        match event:
            case Started():
                self._tier = event.tier
            case Output():
                self._show_output(event)
            case Note():
                self._notes.setdefault(event.message, []).append(event.rank)
            case Outcome():
                self._show_outcome(event)

    def _show_output(self, event: Output) -> None:
        key = (event.rank, event.stream)
        *lines, rest = (self._unfinished.get(key, "") + event.text).split("\n")
        self._unfinished[key] = rest
        for line in lines:
            self._show_line(event.rank, line)

    def _show_line(self, rank: int, line: str) -> None:
        self._out.write(f"[rank {rank}] {printable(line)}\n")
        self._out.flush()

    def _show_outcome(self, outcome: Outcome) -> None:
        for (rank, _), rest in sorted(self._unfinished.items()):
            if rest:
                self._show_line(rank, rest)
        for message, ranks in self._notes.items():
            where = "" if min(ranks) < 0 else f" (ranks {_numbers(ranks)})"
            self._console.print(f"note{where}: {printable(message)}", style="cyan")
        for found in outcome.diagnosis:
            self._console.print(f"diagnosis: {printable(found.message)}", style="bold")
        style = "green" if outcome.status == "ok" else "red"
        isolation = f" (isolation: {self._tier})" if self._tier else ""
        said = f"{outcome.status} after {outcome.elapsed_s:.2f} s{isolation}"
        self._console.print(said, style=style)


def _numbers(ranks: list[int]) -> str:
    return ", ".join(str(rank) for rank in sorted(set(ranks)))


def printable(line: str) -> str:
    """Without control characters: a program must not be able to drive the terminal."""
    return "".join(c if c == "\t" or c.isprintable() else repr(c)[1:-1] for c in line)
