"""`academy doctor`: each probe with its errno and fix, the tier, the exit code."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.cli.doctor import tell
from engine.sandbox.doctor import Report, decode_report, encode_report, examine
from engine.sandbox.fence import MIN_LANDLOCK_ABI
from engine.sandbox.findings import Probe
from engine.sandbox.landlock import abi

PROJECT = Path(__file__).parents[2]
DOCTOR = (sys.executable, "-m", "app.cli", "doctor")
NO_NAMESPACES = (
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    *('echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh"),
)
NEEDED = {
    *("user-namespace", "id-map", "pid-namespace", "mount-namespace", "network-namespace"),
    *("ipc-namespace", "pivot-root", "proc", "loopback", "seccomp", "landlock", "pidfd"),
    *("memory-cgroup", "pids-cgroup", "bubblewrap"),
}


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command], capture_output=True, text=True, check=False, timeout=120, cwd=PROJECT
    )


def test_every_probe_is_reported_and_the_exit_code_follows_the_tier() -> None:
    done = run([*DOCTOR, "--json"])
    report = decode_report(done.stdout)
    names = [probe.name for probe in report.probes]
    assert set(names) >= NEEDED
    assert len(names) == len(set(names))
    assert done.returncode == (3 if report.tier == "open" else 0)
    assert (report.reason is None) == (report.remedy is None)
    assert all(probe.fix for probe in report.probes if not probe.is_ok)


@pytest.mark.skipif(abi() < MIN_LANDLOCK_ABI, reason="this kernel makes no fence")
def test_demanded_tier_that_is_not_made_is_refused_with_what_to_change() -> None:
    done = run([*NO_NAMESPACES, *DOCTOR, "--json", "--tier", "walled"])
    report = decode_report(done.stdout)
    assert (done.returncode, report.tier) == (3, "open")
    assert report.reason == "The operator demands the tier walled; this machine makes fenced."
    assert report.remedy == "sysctl -w user.max_user_namespaces=10000"
    assert run([*NO_NAMESPACES, *DOCTOR, "--tier", "fenced"]).returncode == 0


def test_what_is_forbidden_is_named_with_errno_and_the_line_that_allows_it() -> None:
    done = run([*NO_NAMESPACES, *DOCTOR, "--json"])
    report = decode_report(done.stdout)
    found = {probe.name: probe for probe in report.probes}
    for name in ("user-namespace", "id-map", "pid-namespace", "pivot-root", "loopback", "walls"):
        assert not found[name].is_ok
        assert found[name].errno == "ENOSPC"
        assert found[name].fix == "sysctl -w user.max_user_namespaces=10000"
    assert report.tier == ("fenced" if abi() >= MIN_LANDLOCK_ABI else "open")
    assert report.remedy == "sysctl -w user.max_user_namespaces=10000"
    assert done.returncode == (3 if report.tier == "open" else 0)


def test_people_read_each_probe_its_fix_and_the_tier() -> None:
    done = run([*NO_NAMESPACES, *DOCTOR])
    lines = done.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("no  user-namespace"))
    assert "ENOSPC" in lines[at]
    assert lines[at + 1] == "    fix: sysctl -w user.max_user_namespaces=10000"
    assert any(line.startswith("tier: ") for line in lines)
    assert "To change that: sysctl -w user.max_user_namespaces=10000" in lines


def test_probes_leave_nothing_behind() -> None:
    before = _groups()
    report = examine()
    assert report.probes
    assert _groups() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def _groups() -> set[str]:
    return {str(path) for path in Path("/sys/fs/cgroup").glob("**/academy-probe-*")}


def test_refusal_tells_of_lessons_and_of_the_opt_out() -> None:
    probe = Probe(name="platform", is_ok=False, detail="win32 AMD64", fix="Use Linux.")
    report = Report(
        platform="win32 AMD64",
        tier="open",
        reason="Runs need Linux.",
        remedy="Use Linux.",
        probes=(probe,),
    )
    said = tell(report)
    assert "Runs need Linux." in said
    assert "Lessons can be read here." in said
    assert "--allow-unsandboxed" in said
    assert decode_report(encode_report(report)) == report
    assert json.loads(encode_report(report))["probes"][0]["fix"] == "Use Linux."


ELSEWHERE = """
import builtins, os, platform, sys
import pydantic, typer  # they have code of their own for each system
pydantic.TypeAdapter(int)
sys.platform = {system!r}
platform.machine = lambda: "other"
for name in ("fork", "geteuid", "setresuid", "unshare", "pidfd_open"):
    if hasattr(os, name):
        delattr(os, name)
stock = builtins.__import__
def refuse(name, *arguments, **named):
    if name in ("fcntl", "resource", "termios", "pwd", "grp"):
        raise ImportError(name)
    return stock(name, *arguments, **named)
builtins.__import__ = refuse
from app.cli.doctor import carry_out
sys.exit(carry_out(as_json={as_json}))
"""


@pytest.mark.parametrize("system", ["darwin", "win32"])
@pytest.mark.parametrize("as_json", [False, True])
def test_other_systems_say_why_and_how_to_go_on(system: str, as_json: bool) -> None:
    done = run([sys.executable, "-c", ELSEWHERE.format(system=system, as_json=as_json)])
    assert done.returncode == 3, done.stderr
    if as_json:
        report = decode_report(done.stdout)
        assert (report.tier, report.platform) == ("open", f"{system} other")
        assert report.reason
        assert report.remedy
    else:
        assert "Linux" in done.stdout
        assert "Lessons can be read here." in done.stdout
