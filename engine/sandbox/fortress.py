"""The outer sandbox of the tier fortified: the warm parent itself runs inside bubblewrap.

May import the rest of engine.sandbox. Whoever broke out of a run's own walls would find a machine
without the site: no home, no database, no secret, no network, no process of the server's.

    launcher --exec--> bwrap --fork--> bwrap (pid 1) --fork--> the zygote
        +--fork--> keeper, outside: maps ids, and takes the control group away at the end

Where the server is root the launcher maps two ids, itself for building and an otherwise unused one
that the zygote takes; a user namespace with bwrap's own single map would leave the zygote the
machine's root. Source: bubblewrap's manual, bwrap(1).
"""

import contextlib
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from engine.sandbox import linux
from engine.sandbox.cgroups import PREFIX, GroupPlace, RunGroup, find_place, make_group, sweep
from engine.sandbox.choice import SandboxChoice
from engine.sandbox.findings import Probe, fix_of
from engine.sandbox.root import SYSTEM_LINKS, plan_root

ZYGOTE_ID = 61001
"""User and group of the zygote where root serves; the runs' sandboxes map it to the learner's."""
_SERVER = "academy-server"
"""Group of the zygote itself in version 2, where a group with members bounds none below it."""
_TRIAL = "trial"
_GROUPS = "control groups"
_TRIAL_LIMIT_S = 30.0
_CLEAR_TRIES, _CLEAR_PAUSE_S = 600, 0.05
_READ_AS_WELL = ("/etc/ld.so.cache", "/sys/devices/system/cpu", "/sys/devices/system/node")
"""Where libraries lie, and what torch asks of the processor."""


# ------------------------------------------------------------------ trusted side
def prefix() -> tuple[str, ...]:
    """The words that start a command inside the outer sandbox."""
    return (sys.executable, "-I", "-m", __name__)


def try_fortress(environment: Mapping[str, str]) -> Probe:
    """Build the outer sandbox and, inside it, a run's walls and control groups."""
    if shutil.which("bwrap", path=environment.get("PATH")) is None:
        return _failed("bwrap is not installed", "apt-get install bubblewrap")
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            [*prefix(), *prefix(), _TRIAL],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TRIAL_LIMIT_S,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _failed(str(error), fix_of("walls", 0))
    if done.returncode == 0 and done.stdout == "ok":
        return Probe(name="fortress", is_ok=True)
    said = (done.stdout or done.stderr).strip()[-300:] or f"exit code {done.returncode}"
    return _failed(said, fix_of("memory-cgroup" if _GROUPS in said else "walls", 0))


def _failed(detail: str, fix: str) -> Probe:
    return Probe(name="fortress", is_ok=False, detail=detail, fix=fix)


# ------------------------------------------------------------------ the launcher
def main() -> NoReturn:
    """Become bubblewrap around the command that follows."""
    if sys.argv[1:] == [_TRIAL]:
        _try_inside()
    try:
        place = find_place()
        folders = _group_folders(place)
    except OSError as error:
        sys.exit(f"{_GROUPS}: {error}")
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        sys.exit("bwrap is not installed")
    is_root = os.geteuid() == 0
    words = [bwrap, *_arguments(folders, is_root=is_root), "--", *sys.argv[1:]]
    os.execv(bwrap, words)  # noqa: S606


def _group_folders(place: GroupPlace) -> dict[str, Path]:
    """A group for all that will be inside, which this process joins; mount point -> folder."""
    if place.version == 1 and len(place.folders) < 2:
        raise FileNotFoundError(2, "no pids controller is mounted for this process")
    _clear_dead(place)
    group = make_group(place)
    try:
        _enter(group)
    except OSError:
        group.remove()
        raise
    points = ("memory", "pids") if place.version == 1 else ("",)
    return {
        f"/sys/fs/cgroup/{point}".rstrip("/"): folder
        for point, folder in zip(points, group.folders, strict=True)
    }


def _enter(group: RunGroup) -> None:
    """Join the group, and see it as the topmost one; ids are mapped by the keeper."""
    is_root = os.geteuid() == 0
    uid, gid = os.geteuid(), os.getegid()
    if is_root:
        os.setgroups([])
    group.join()
    hears, says = os.pipe(), os.pipe()
    launcher = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        _keep(group, launcher, hears[0], says[1], is_root=is_root)
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWCGROUP)
    if not is_root:
        linux.write_text("/proc/self/setgroups", "deny")
        linux.write_text("/proc/self/uid_map", f"{uid} {uid} 1")
        linux.write_text("/proc/self/gid_map", f"{gid} {gid} 1")
    os.write(hears[1], b"u")
    if os.read(says[0], 1) != b"m":
        raise PermissionError(1, "the outer sandbox got no ids")
    for descriptor in (*hears, *says, launcher):
        os.close(descriptor)


def _keep(group: RunGroup, launcher: int, hears: int, says: int, *, is_root: bool) -> NoReturn:
    """In the keeper, outside: map ids, hand the group over, and remove it at the end."""
    parent = os.getppid()
    try:
        _leave(group)
        if os.read(hears, 1) == b"u":
            if is_root:
                mapping = f"0 0 1\n{ZYGOTE_ID} {ZYGOTE_ID} 1\n"
                linux.write_text(f"/proc/{parent}/setgroups", "deny")
                linux.write_text(f"/proc/{parent}/uid_map", mapping)
                linux.write_text(f"/proc/{parent}/gid_map", mapping)
            _hand_over(group, parent, is_root=is_root)
            os.write(says, b"m")
        _let_go_of_all_but(launcher)
        select.select([launcher], [], [])
        for _ in range(_CLEAR_TRIES):
            if all(_clear(folder) for folder in group.folders):
                break
            time.sleep(_CLEAR_PAUSE_S)  # the last processes inside end a moment later
    finally:
        os._exit(0)


def _leave(group: RunGroup) -> None:
    """The keeper goes back to the group above: one that has a member cannot be removed."""
    for folder in group.folders:
        above = folder.parent
        leaf = above / _SERVER if group.version == 2 else above
        linux.write_text(f"{leaf if leaf.is_dir() else above}/cgroup.procs", "0")


def _hand_over(group: RunGroup, launcher: int, *, is_root: bool) -> None:
    """The group belongs to the zygote's user; in version 2 its members move to a leaf."""
    for folder in group.folders:
        owned = [folder]
        if group.version == 2:
            leaf = folder / _SERVER
            leaf.mkdir()
            linux.write_text(f"{leaf}/cgroup.procs", str(launcher))
            linux.write_text(f"{folder}/cgroup.subtree_control", "+memory +pids")
            owned.append(leaf)
        if is_root:
            names = ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "tasks")
            for path in owned:
                for one in (path, *(path / name for name in names)):
                    if one.exists():
                        os.chown(one, ZYGOTE_ID, ZYGOTE_ID)


def _let_go_of_all_but(kept: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def _clear_dead(place: GroupPlace) -> None:
    """What a keeper that was killed has left, with the groups of runs in it."""
    for folder in place.folders:
        for path in folder.glob(f"{PREFIX}*"):
            _, pid, _ = (*path.name.removeprefix(PREFIX).split("-"), "", "", "")[:3]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                for inner in path.glob("academy-*"):
                    _clear(inner)
    sweep(place)


def _clear(folder: Path) -> bool:
    """Remove a group and those below it; False while one still has members."""
    try:
        for inner in folder.glob("academy-*"):
            inner.rmdir()
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _arguments(groups: dict[str, Path], *, is_root: bool) -> list[str]:
    """What bubblewrap is told: everything new, and read-only what Python and the engine need."""
    words = [
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--die-with-parent",
    ]
    words += ["--cap-add", "ALL"] if is_root else ["--unshare-user"]
    words += ["--perms", "0755", "--dir", "/mnt", "--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108 - inside
    plan = plan_root(scratch_bytes=1, scratch_inodes=1)
    for link in SYSTEM_LINKS:
        if Path(link).is_symlink():
            words += ["--symlink", str(Path(link).readlink()), link]
        elif Path(link).is_dir():
            words += ["--ro-bind", link, link]
    own = str(Path(__file__).parents[1])
    binds = [*plan.binds, *(path for path in _READ_AS_WELL if Path(path).exists())]
    if not any(own.startswith(f"{path}/") for path in plan.binds):
        binds.append(own)
    for path in binds:
        words += [*_parents(path), "--ro-bind", path, path]
    for path in plan.covered:
        words += ["--perms", "0555", "--tmpfs", path, "--remount-ro", path]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for target, folder in groups.items():
        words += [*_parents(target), "--bind", str(folder), target]
    return [*words, "--remount-ro", "/", "--chdir", "/"]


def _parents(path: str) -> list[str]:
    """Folders above, that can be passed: those that bubblewrap makes itself are its own only."""
    above = [str(parent) for parent in reversed(Path(path).parents) if str(parent) != "/"]
    return [word for parent in above for word in ("--perms", "0711", "--dir", parent)]


# ------------------------------------------------------------------ inside
def settle() -> None:
    """Take the zygote's place inside: whole proc for runs to mount theirs, and no powers.

    Raises: OSError.
    """
    if os.geteuid() != 0:
        return
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        target = line.split()[4]
        if target.startswith("/proc/"):  # a covered proc forbids the kernel to mount another
            linux.unmount(target)
    linux.drop_bounding_set()
    os.setresgid(ZYGOTE_ID, ZYGOTE_ID, ZYGOTE_ID)
    os.setresuid(ZYGOTE_ID, ZYGOTE_ID, ZYGOTE_ID)
    linux.drop_capabilities()
    linux.set_no_new_privs()
    linux.set_dumpable(value=True)  # a change of user took it, and with it the own id maps


def _try_inside() -> NoReturn:
    """Say whether a run's walls and groups can be made in here."""
    from engine.sandbox.tiers import choose

    said = "ok"
    try:
        settle()
        found = choose(SandboxChoice(at_most="walled"))
        if found.tier != "walled":
            said = found.reason or "no walls inside the outer sandbox"
        place = find_place()
        if place.version == 1 and len(place.folders) < 2:
            said = f"{_GROUPS}: no pids controller inside the outer sandbox"
    except OSError as error:
        said = str(error)
    with contextlib.suppress(OSError):
        sys.stdout.write(said)
    sys.exit(0 if said == "ok" else 1)


if __name__ == "__main__":
    main()
