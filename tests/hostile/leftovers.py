"""What a run could leave behind on its machine, as one value that two moments are compared by.

May import engine.sandbox.cgroups. It is taken inside a pid, ipc and mount namespace of the tests'
own, so all that it sees was made by the tests.
"""

import os
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

from engine.sandbox.cgroups import PREFIX

_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_SCRATCH = "academy-run-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """Everything that the machine holds for the executor and its runs."""

    processes: Counter[str]
    """By name, state where it is a zombie, and depth below the executor."""
    namespaces: dict[str, int]
    """Different ones of each kind that processes are in."""
    mounts: Counter[str]
    own_descriptors: Counter[str]
    zygote_descriptors: int
    shared_memory: tuple[str, ...]
    """Files of /dev/shm and rows of the System V tables."""
    num_scratch_folders: int
    """Of runs without a mount namespace; sandboxes that wait have theirs."""
    cgroups: tuple[str, ...]


def differences(before: Holdings, after: Holdings) -> dict[str, str]:
    """What is not as it was, by kind."""
    found: dict[str, str] = {}
    for field in fields(Holdings):
        was, now = getattr(before, field.name), getattr(after, field.name)
        if was != now:
            found[field.name] = f"{was} became {now}"
    return found


def take(zygote: int) -> Holdings:
    """What is held now; zygote: pid of the executor's warm parent."""
    parents = {int(p.name): _parent_name_state(p) for p in Path("/proc").glob("[0-9]*")}
    alive = {pid: row for pid, row in parents.items() if row is not None}
    names: Counter[str] = Counter()
    for pid, (_, name, state) in alive.items():
        names[f"{name}{' zombie' if state == 'Z' else ''} at {_depth(pid, alive)}"] += 1
    return Holdings(
        processes=names,
        namespaces={kind: len(_namespaces(kind, alive)) for kind in _NAMESPACES},
        mounts=Counter(line.split(" ", 2)[2] for line in _lines("/proc/self/mountinfo")),
        own_descriptors=_descriptors(),
        zygote_descriptors=_num_descriptors(zygote),
        shared_memory=_shared_memory(),
        num_scratch_folders=sum(n.startswith(_SCRATCH) for n in os.listdir("/tmp")),
        cgroups=_cgroups(),
    )


def _parent_name_state(folder: Path) -> tuple[int, str, str] | None:
    try:
        head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
    except OSError:
        return None
    state, parent = rest.split()[:2]
    return int(parent), head.partition("(")[2], state


def _depth(pid: int, alive: dict[int, tuple[int, str, str]]) -> int:
    depth = 0
    while pid in alive and pid > 1 and depth < 100:
        pid, depth = alive[pid][0], depth + 1
    return depth


def _namespaces(kind: str, alive: dict[int, tuple[int, str, str]]) -> set[str]:
    found = set()
    for pid in alive:
        try:
            found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
        except OSError:  # ended meanwhile, or a rank that an ordinary user may not look into
            continue
    return found


def _descriptors() -> Counter[str]:
    kinds: Counter[str] = Counter()
    for number in os.listdir("/proc/self/fd"):
        try:
            kinds[str(Path(f"/proc/self/fd/{number}").readlink()).partition(":[")[0]] += 1
        except FileNotFoundError:  # the one that lists this folder
            continue
    return kinds


def _num_descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return -1


def _shared_memory() -> tuple[str, ...]:
    rows = [
        f"{kind} {n}" for kind in ("shm", "sem", "msg") for n in _lines(f"/proc/sysvipc/{kind}")
    ]
    return (*sorted(os.listdir("/dev/shm")), *rows)


def _cgroups() -> tuple[str, ...]:
    """Groups that were made in this pid namespace, by controller; parked sandboxes have theirs."""
    namespace = str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    found: Counter[str] = Counter()
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        found[folder] += sum(name.startswith(f"{PREFIX}{namespace}-") for name in names)
    return tuple(f"{folder}: {number}" for folder, number in sorted(found.items()) if number)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []
