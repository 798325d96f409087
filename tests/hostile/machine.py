"""Starts a process in namespaces of the tests' own, as root or as an ordinary user.

There it is alone: all processes, mounts, sockets and System V segments that it sees are its own,
and whatever it leaves ends with it. The ordinary user gets Debian's interpreter, which such a user
can read, and sees this project and its packages through read-only mounts that end with the
namespace.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

User = Literal["root", "ordinary"]


PROJECT = Path(__file__).parents[2]
PACKAGES = Path(sysconfig.get_paths()["purelib"])
SYSTEM_PYTHON = "/usr/bin/python3"
ORDINARY_ID = 12345
_UNSHARE = (
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--net",
    "--ipc",
    "--mount-proc",
    "--kill-child",
)
_LOOPBACK_UP = (
    "import fcntl, socket, struct; "
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14x', b'lo', 0x41))"
)
_IN_TMP = any(str(path).startswith("/tmp/") for path in (PROJECT, PACKAGES, Path(sys.executable)))
_OWN_TMP = "" if _IN_TMP else "mount -t tmpfs -o mode=1777 tmpfs /tmp; "
_COMMON = f'set -e; mount -t tmpfs tmpfs /dev/shm; {_OWN_TMP}"$1" -I -c "{_LOOPBACK_UP}"; '
_AS_ROOT = _COMMON + 'cd "$2"; python=$1; shift 2; exec "$python" "$@"'
_AS_USER = (
    _COMMON + "place=$2 project=$3 packages=$4 id=$5 system=$6; shift 6; "
    'mount -t tmpfs -o mode=755 tmpfs "$place"; '
    'mkdir -p "$place/project" "$place/lib/site-packages"; '
    'mount --bind "$project" "$place/project"; '
    'mount --bind "$packages" "$place/lib/site-packages"; '
    '"$system" -m venv --without-pip "$place/venv"; '
    'folder=$(echo "$place"/venv/lib/python3*/site-packages); '
    'printf "%s\\n%s\\n" "$place/lib/site-packages" "$place/project" > "$folder/all.pth"; '
    'cd "$place/project"; '
)
_STAY_ROOT = 'exec "$place/venv/bin/python" "$@"'
_DROP_AS_ROOT = (
    'exec setpriv --reuid "$id" --regid "$id" --clear-groups "$place/venv/bin/python" "$@"'
)
_DROP_IN_NAMESPACE = (
    'exec unshare --user --map-user="$id" --map-group="$id" "$place/venv/bin/python" "$@"'
)


class NotHere(Exception):
    """This machine lacks what it takes; says what."""


def command(user: User, arguments: Sequence[str], *, is_readable: bool = False) -> list[str]:
    """The command that runs an interpreter with these arguments as that user.

    is_readable: even for root it is one that every user can read. Raises: NotHere.
    """
    is_root = os.geteuid() == 0
    if shutil.which("unshare") is None:
        raise NotHere("no `unshare` here to make a place of its own for hostile programs")
    if user == "root" and not is_root:
        raise NotHere("these tests do not run as root")
    if user == "root" and not is_readable:
        return [*_UNSHARE, "sh", "-c", _AS_ROOT, "sh", sys.executable, str(PROJECT), *arguments]
    _need_system_python()
    enter = _UNSHARE if is_root else (*_UNSHARE, "--user", "--map-root-user")
    drop = _STAY_ROOT if user == "root" else _DROP_AS_ROOT if is_root else _DROP_IN_NAMESPACE
    laid_out = [_place(), str(PROJECT), str(PACKAGES), str(ORDINARY_ID), SYSTEM_PYTHON]
    return [*enter, "sh", "-c", _AS_USER + drop, "sh", sys.executable, *laid_out, *arguments]


def _need_system_python() -> None:
    ask = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    done = subprocess.run([SYSTEM_PYTHON, "-c", ask], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotHere("no system python3 with venv that an ordinary user can read")
    if done.stdout.split() != [str(n) for n in sys.version_info[:2]]:
        raise NotHere("the system's python3 cannot load the packages of this interpreter's version")


def _place() -> str:
    """A folder of this machine that can be covered without hiding what is needed."""
    for place in ("/srv", "/opt", "/media"):
        if Path(place).is_dir() and not any(
            str(path).startswith(place + "/") for path in (PROJECT, PACKAGES, Path(sys.executable))
        ):
            return place
    raise NotHere("no folder to lay out an ordinary user's interpreter in")
