"""What an administrator sees of the site and of the machine below it, in the page's language.

May import the context's neighbours, the executor's seam and engine.sandbox.{choice,doctor}.
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from app.i18n import Translations
from app.panels.refusals import told
from engine.executor import Capacity, Health
from engine.sandbox.choice import Tier
from engine.sandbox.doctor import Report
from engine.sandbox.findings import Probe, ProbeName

_DISTRIBUTIONS = ("deep-learning-academy", "torch", "fastapi", "uvicorn", "sqlalchemy")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """One probe of the doctor's."""

    name: str
    is_ok: bool
    errno: str | None
    detail: str | None
    fix: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why no run starts, and the line that changes it."""

    reason: str
    remedy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminView:
    """The part of the page that is redrawn."""

    tier: Tier
    tier_means: str
    is_warm: bool
    """Whether it is known in which tier runs go."""
    refusal: Refusal | None
    is_opted_out: bool
    capacity: Capacity
    num_restarts: int
    seen_at: str
    """Coordinated universal time, HH:MM:SS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminPage:
    """The whole page."""

    view: AdminView
    machine: str
    reason: str | None
    """What keeps the machine from a stronger tier."""
    remedy: str | None
    probes: tuple[ProbeRow, ...]
    report_problem: str | None
    """Why there is no report of the doctor's."""
    versions: tuple[tuple[str, str], ...]


def tier_means(tier: Tier, translations: Translations) -> str:
    """What a tier is good for."""
    _ = translations.gettext
    meanings: Mapping[Tier, str] = {
        "fortified": _("Walled, within an outer sandbox of the engine: fit for a public site."),
        "walled": _("Every run in namespaces of its own, with 1 to 8 ranks."),
        "fenced": _("One rank per program and no sockets."),
        "open": _("No isolation."),
    }
    return meanings[tier]


def probe_rows(report: Report, translations: Translations) -> tuple[ProbeRow, ...]:
    """The doctor's probes with their names in the page's language."""
    names = _probe_names(translations)
    return tuple(_row(probe, names[probe.name], translations) for probe in report.probes)


def _row(probe: Probe, name: str, translations: Translations) -> ProbeRow:
    return ProbeRow(
        name=name,
        is_ok=probe.is_ok,
        errno=probe.errno,
        detail=probe.detail,
        fix=probe.fix and told(probe.fix, translations),
    )


def _probe_names(translations: Translations) -> Mapping[ProbeName, str]:
    _ = translations.gettext
    return {
        "platform": _("System and processor"),
        "user-namespace": _("User namespace"),
        "id-map": _("Map of user ids"),
        "pid-namespace": _("Process namespace"),
        "mount-namespace": _("Mount namespace"),
        "network-namespace": _("Network namespace"),
        "ipc-namespace": _("IPC namespace"),
        "pivot-root": _("Root of its own"),
        "proc": _("/proc of its own"),
        "loopback": _("Loopback of its own"),
        "seccomp": _("System call filter (seccomp)"),
        "landlock": _("Landlock"),
        "pidfd": _("Process descriptors (pidfd)"),
        "memory-cgroup": _("Memory control group"),
        "pids-cgroup": _("Process control group"),
        "bubblewrap": _("Bubblewrap"),
        "walls": _("All walls together (tier walled)"),
        "fence": _("The fence (tier fenced)"),
        "fortress": _("Outer sandbox (tier fortified)"),
    }


def _told(refusal: Refusal, translations: Translations) -> Refusal:
    remedy = refusal.remedy and told(refusal.remedy, translations)
    return Refusal(reason=told(refusal.reason, translations), remedy=remedy)


def versions() -> tuple[tuple[str, str], ...]:
    """What runs here, without importing it."""
    found = [("Python", platform.python_version())]
    for name in _DISTRIBUTIONS:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:  # run from a folder that was never installed
            continue
    return (*found, (platform.system(), f"{platform.release()} {platform.machine()}"))


def admin_view(
    *,
    health: Health,
    capacity: Capacity,
    is_warm: bool,
    refusal: Refusal | None,
    is_opted_out: bool,
    seen_at: str,
    translations: Translations,
) -> AdminView:
    """The state of this moment."""
    return AdminView(
        tier=health.tier,
        tier_means=tier_means(health.tier, translations),
        is_warm=is_warm,
        refusal=refusal and _told(refusal, translations),
        is_opted_out=is_opted_out,
        capacity=capacity,
        num_restarts=health.num_restarts,
        seen_at=seen_at,
    )
