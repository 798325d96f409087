"""What this machine allows, and what to change: `academy doctor`. Imports on every system.

May import the rest of engine.sandbox, on Linux only. `examine` forks, so a process with threads
asks `python -m engine.sandbox.doctor` instead, which prints the report as JSON.
"""

import os
import platform
import sys
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from engine.sandbox.choice import TIERS, SandboxChoice, Tier
from engine.sandbox.findings import PLATFORM_FIX, Probe

OPT_OUT = "--allow-unsandboxed"
"""The option of `academy serve` and `academy run` with which an operator runs programs anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The tier in which runs go here, why in no stronger one, and every single probe."""

    platform: str
    """System and processor, `linux x86_64` say."""
    tier: Tier
    reason: str | None
    """What keeps this machine from the next stronger tier that it could have; None on the best."""
    remedy: str | None
    """The line that changes that."""
    probes: tuple[Probe, ...] = field(default=())

    @property
    def can_run(self) -> bool:
        """Whether learners' programs start here without an opt-out."""
        return self.tier != "open"


def examine(choice: SandboxChoice | None = None) -> Report:
    """Probe everything, one after the other, in forked children; takes about half a second."""
    where = f"{sys.platform} {platform.machine()}"
    if sys.platform != "linux":
        reason = f"Runs need Linux on x86_64 or aarch64; this is {where}."
        probe = Probe(name="platform", is_ok=False, detail=where, fix=PLATFORM_FIX)
        return Report(
            platform=where, tier="open", reason=reason, remedy=PLATFORM_FIX, probes=(probe,)
        )
    from engine.sandbox.probes import probe_all
    from engine.sandbox.tiers import choose

    probes = probe_all()
    wanted = choice or SandboxChoice()
    found = choose(replace(wanted, at_least="open"))
    report = Report(
        platform=where,
        tier=found.tier,
        reason=found.reason,
        remedy=found.remedy,
        probes=(*probes, *found.tried),
    )
    is_worth_it = found.tier == "walled" and wanted.at_most == "fortified"
    return _insisted(_with_fortress(report) if is_worth_it else report, wanted.at_least)


def _insisted(report: Report, at_least: Tier) -> Report:
    """The report where the operator demands a tier: without it nothing runs."""
    if TIERS.index(report.tier) <= TIERS.index(at_least):
        return report
    reason = f"The operator demands the tier {at_least}; this machine makes {report.tier}."
    return replace(report, tier="open", reason=reason)


def _with_fortress(report: Report) -> Report:
    """The report of a walled machine, after a try at the outer sandbox."""
    from engine.sandbox.fortress import try_fortress

    tried = try_fortress({"PATH": os.environ.get("PATH", os.defpath)})
    probes = (*report.probes, tried)
    if tried.is_ok:
        return replace(report, tier="fortified", probes=probes)
    reason = f"The engine has no outer sandbox here ({tried.detail})."
    return replace(report, reason=reason, remedy=tried.fix, probes=probes)


def encode_report(report: Report) -> str:
    """One line of JSON."""
    return TypeAdapter(Report).dump_json(report, ensure_ascii=True).decode()


def decode_report(line: str) -> Report:
    """The report of one line. Raises: ValueError."""
    return TypeAdapter(Report).validate_json(line)


def main() -> None:
    """Print the report of this machine."""
    sys.stdout.write(encode_report(examine()) + "\n")


if __name__ == "__main__":
    main()
