"""`academy doctor`: what this machine allows and what to change.

May import engine.sandbox.doctor, and through it nothing that only Linux has.
"""

import sys

from engine.sandbox.choice import Demand, SandboxChoice
from engine.sandbox.doctor import OPT_OUT, Report, encode_report, examine
from engine.sandbox.findings import Probe

RUNS_POSSIBLE, RUNS_REFUSED = 0, 3
_MEANS = {
    "fortified": "for a public site: walls within an outer sandbox, and control groups",
    "walled": "1 to 8 ranks, each run in namespaces of its own",
    "fenced": "1 rank per program, no sockets",
    "open": "no isolation",
}


def carry_out(*, as_json: bool, demand: Demand = "auto") -> int:
    """Probe this machine and print what came of it; the exit code."""
    report = examine(SandboxChoice.demanded(demand))
    sys.stdout.write(encode_report(report) + "\n" if as_json else tell(report))
    return RUNS_POSSIBLE if report.can_run else RUNS_REFUSED


def tell(report: Report) -> str:
    """The report as lines for people."""
    lines = [f"{report.platform}", ""]
    for probe in report.probes:
        lines += _lines_of(probe)
    lines += ["", f"tier: {report.tier} ({_MEANS[report.tier]})"]
    if report.reason:
        lines.append(report.reason)
    if report.remedy:
        lines.append(f"To change that: {report.remedy}")
    if not report.can_run:
        lines += [
            "Lessons can be read here. Programs are refused, since nothing isolates them.",
            f"`academy serve {OPT_OUT}` runs them all the same, as your own user and without any "
            "isolation: only for code that you trust.",
        ]
    return "\n".join(lines) + "\n"


def _lines_of(probe: Probe) -> list[str]:
    said = " ".join(part for part in (probe.errno, probe.detail) if part)
    line = f"{'ok' if probe.is_ok else 'no':4}{probe.name:20}{said}".rstrip()
    return [line] if probe.is_ok or not probe.fix else [line, f"    fix: {probe.fix}"]
