"""`academy grade`: one program and the check that judges it. May import the engine's leaves."""

import sys
from typing import TextIO

from rich.console import Console

from app.cli.report import HumanReport, printable
from app.cli.run import Request, carry_out
from engine.events import Event, Verdict


class GradeReport(HumanReport):
    """Prints what a run prints, and before its outcome what the check found."""

    def __init__(self, out: TextIO, exports: tuple[str, ...] = ()) -> None:
        super().__init__(out)
        self._exports = exports
        self._verdicts = Console(file=out, markup=False, highlight=False, soft_wrap=True)

    def show(self, event: Event) -> None:
        if isinstance(event, Verdict):
            self._show_verdict(event)
        super().show(event)

    def _show_verdict(self, verdict: Verdict) -> None:
        for result in verdict.results:
            said = "holds" if result.is_passed else f"fails: {printable(result.message)}"
            style = "green" if result.is_passed else "red"
            self._verdicts.print(f"check {printable(result.id)} {said}", style=style)
            name = str(result.args.get("name"))
            if result.code == "export-missing" and name not in self._exports:
                self._verdicts.print(f"It was not asked for: add `--export {printable(name)}`.")
        if verdict.problem is not None:
            self._verdicts.print(f"problem: {printable(verdict.problem.message)}", style="red")
        self._verdicts.print("passed" if verdict.is_passed else "not passed", style="bold")


def carry_out_grading(request: Request) -> int:
    """Run and judge the program, and print both; the exit code."""
    return carry_out(request, GradeReport(sys.stdout, request.exports))
