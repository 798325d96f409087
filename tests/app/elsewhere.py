"""The `academy` command as another operating system would see this code: `elsewhere.py SYSTEM ...`.

A simulation, and no more than that: the machine below is still this one. The standard library and
other people's packages are imported first, since they would look for that system's own modules;
then what only Linux has, or on Windows only Unix, is taken away, and only then our code is
imported. Windows' event loop and its way to lock a file are stood in for. So it shows that nothing
of ours needs those at import and in order to serve; that the packages work there is for their
makers to say.
"""

import asyncio
import os
import select
import signal
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tests.app import elsewhere_imports  # imports what belongs to others

assert elsewhere_imports
LINUX_OF_OS = (
    "unshare", "setns", "pidfd_open", "eventfd", "memfd_create", "sched_getaffinity", "getrandom",
    "splice", "posix_fadvise", "getxattr", "setxattr",
)  # fmt: skip
UNIX_OF_OS = (
    "fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "getegid", "setuid",
    "setgid", "setresuid", "setresgid", "setgroups", "setsid", "getpgid", "killpg", "chown",
    "mkfifo", "mknod", "wait", "wait3", "wait4", "waitid", "getloadavg", "uname", "nice", "chroot",
)  # fmt: skip
UNIX_OF_SIGNAL = (
    "SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGALRM", "alarm", "setitimer",
    "pthread_sigmask",
)  # fmt: skip
UNIX_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog")


class Hidden(MetaPathFinder):
    """Modules that the other system does not have."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def take_away(owner: ModuleType, names: Sequence[str]) -> None:
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)


def move_to(system: str) -> None:
    """From here on this process sees no Linux any more."""
    take_away(os, LINUX_OF_OS)
    take_away(signal, ("pidfd_send_signal",))
    take_away(select, ("epoll",))
    if system == "win32":
        take_away(os, UNIX_OF_OS)
        take_away(signal, UNIX_OF_SIGNAL)
        for name in UNIX_MODULES:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, Hidden(UNIX_MODULES))
        sys.modules["msvcrt"] = _msvcrt()
        asyncio.ProactorEventLoop = asyncio.SelectorEventLoop  # type: ignore[attr-defined]
    sys.platform = system


def _msvcrt() -> ModuleType:
    """What Windows has to lock a file with; it locks nothing here."""
    module = ModuleType("msvcrt")
    module.LK_NBLCK = 2  # type: ignore[attr-defined]
    module.locking = lambda descriptor, mode, size: None  # type: ignore[attr-defined]
    return module


if __name__ == "__main__":
    ours = [name for name in sys.modules if name.partition(".")[0] in ("app", "engine")]
    assert not ours, f"imported before the move: {ours}"
    move_to(sys.argv[1])
    from app.cli import main

    sys.argv = ["academy", *sys.argv[2:]]
    main()
