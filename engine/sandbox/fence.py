"""The tier fenced: one rank kept in by Landlock and a filter, without any namespace of its own.

May import the rest of engine.sandbox. It shares the host's pids, network and files, so it may reach
none of them: no socket, no other process, no path but Python's, the system's libraries and one
scratch folder.
"""

import contextlib
import errno
import os
import signal
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.sandbox import landlock, linux
from engine.sandbox.fence_filter import build_fence_filter
from engine.sandbox.launch import HOST_ID_OF_LEARNER
from engine.sandbox.lock import Lock
from engine.sandbox.root import DEVICES, SYSTEM_LINKS
from engine.sandbox.syscalls import machine_of

MIN_LANDLOCK_ABI = 4
_MORE_OTHERS = 1024
_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/etc/nsswitch.conf")


def engage_fence(lock: Lock, scratch: str, before_filter: Callable[[], None] | None = None) -> None:
    """Lock this process in. Raises: OSError when a layer cannot be put up (then nothing may run).

    before_filter does what a rank needs and the filter forbids; paths and powers are gone by then,
    for it and for the threads that it starts. The filter goes on those too.
    """
    machine = machine_of(os.uname().machine)
    assert machine, "a fence was planned for a machine without a table"
    num_threads = len(os.listdir("/proc/self/task"))
    if num_threads != 1:  # powers, Landlock and capabilities are each thread's own
        raise OSError(f"{num_threads} threads, and only one of them would be fenced in")
    give_up_host_powers(lock)
    # Dumpable where nothing else shows the engine, as the same user, which files a rank holds open.
    linux.set_dumpable(value=not lock.changes_user or "dumpable" in lock.without)
    linux.die_with_parent(signal.SIGKILL)
    if "no_new_privs" in lock.without:
        return  # the kernel grants Landlock and seccomp to those only who cannot gain privileges
    if "landlock" not in lock.without:
        whole, names = around(lock.plan.binds, lock.plan.covered)
        version = landlock.restrict(
            read_only=(*whole, *SYSTEM_LINKS, *_FILES, "/proc/self"),
            read_write=(scratch,),
            devices=(*DEVICES, *lock.plan.gpu_nodes),
            listable=names,
            denies_tcp="network" not in lock.without,
            binds_any_port=before_filter is not None,
        )
        if version < MIN_LANDLOCK_ABI:
            raise OSError(errno.EOPNOTSUPP, f"Landlock ABI {version}, {MIN_LANDLOCK_ABI} needed")
    if before_filter is not None:
        before_filter()
    if "seccomp" not in lock.without:
        linux.load_seccomp(
            on_every_thread=True,
            program=build_fence_filter(
                machine,
                os.getpid(),
                owns_only_scratch=lock.changes_user and "identity" not in lock.without,
                for_gpus=lock.for_gpus,
            ),
        )


def can_become_nobody() -> bool:
    """Whether ranks can take an id that owns nothing: needs root, and that the id exists here.

    The root of a user namespace with a single id has no other to take.
    """
    if os.geteuid() != 0:
        return False
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        first, _, num = (int(word) for word in line.split())
        if first <= HOST_ID_OF_LEARNER < first + num:
            return True
    return False


def room_for_others(lock: Lock) -> int:
    """Processes and threads that the rank's user may have on this host beside the run.

    Without a namespace the kernel counts them all together, and there may be more by the time the
    program comes. Only root's runs have a user that nobody else is.
    """
    uid = HOST_ID_OF_LEARNER if lock.changes_user else os.geteuid()
    num_threads = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if folder.stat().st_uid == uid:
                num_threads += len(os.listdir(folder / "task"))
    return num_threads + _MORE_OTHERS


def give_up_host_powers(lock: Lock) -> None:
    """Become nobody: root takes an unused id of the host; nobody keeps a capability."""
    if "capabilities" not in lock.without:
        linux.drop_bounding_set()
    if lock.changes_user and "identity" not in lock.without:
        os.setgroups([])
        os.setresgid(HOST_ID_OF_LEARNER, HOST_ID_OF_LEARNER, HOST_ID_OF_LEARNER)
        os.setresuid(HOST_ID_OF_LEARNER, HOST_ID_OF_LEARNER, HOST_ID_OF_LEARNER)
    if "capabilities" not in lock.without:
        linux.drop_capabilities()
    if "no_new_privs" not in lock.without:
        linux.set_no_new_privs()


def around(paths: Iterable[str], covered: Iterable[str]) -> tuple[list[str], list[str]]:
    """Paths that leave out the covered ones, and the folders that were opened up for that.

    Landlock only ever allows, whole folders: to leave one out, all others beside it are named.
    """
    whole, opened = [], []
    todo = list(paths)
    hidden = [os.path.realpath(path) for path in covered]
    while todo:
        path = todo.pop()
        real = os.path.realpath(path)
        if real in hidden:
            continue
        if any(h.startswith(real + "/") for h in hidden):
            opened.append(path)
            todo += [entry.path for entry in os.scandir(path)]
        else:
            whole.append(path)
    return whole, opened


def closed_folder(lock: Lock) -> str | None:
    """A folder on the way to Python that the rank's user may not pass; None where all are open.

    An id that owns nothing has no rights but everybody's.
    """
    if not lock.changes_user:
        return None
    for path in lock.plan.binds:
        for folder in (*reversed(Path(path).parents), Path(path)):
            if not folder.stat().st_mode & stat.S_IXOTH:
                return str(folder)
    return None
