"""The scratch folder of a run that has no file system of its own. May import lock and launch.

Within walls a tmpfs bounds what a run writes. Here the supervisor looks how much there is, and
removes it at the end. Nothing opens a file that a rank made, or follows a link of its.
"""

import contextlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from engine.sandbox.launch import HOST_ID_OF_LEARNER
from engine.sandbox.linux import living_task
from engine.sandbox.lock import Lock

_PREFIX = "academy-run-"
_NAMED = re.compile(rf"{_PREFIX}(\d+)-\w+")


def make_scratch() -> str:
    """A fresh folder that tells whose it is: a process that was killed leaves it behind."""
    return tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")


def sweep_scratch() -> None:
    """Remove folders of runs whose supervisor is gone; only those that one of ours made."""
    ours = (os.geteuid(), HOST_ID_OF_LEARNER if os.geteuid() == 0 else os.geteuid())
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [(entry, _NAMED.fullmatch(entry.name)) for entry in entries]
    for entry, name in found:
        if name is None or Path(f"/proc/{name[1]}").exists():
            continue
        with contextlib.suppress(OSError):  # another supervisor sweeps as well
            if entry.is_dir(follow_symlinks=False) and entry.stat().st_uid in ours:
                remove_scratch(entry.path)


def give_scratch(folder: str, lock: Lock) -> None:
    """Give a fresh, empty folder to the user that the rank will be."""
    if lock.changes_user and "identity" not in lock.without:
        os.chown(folder, HOST_ID_OF_LEARNER, HOST_ID_OF_LEARNER)


def remove_scratch(folder: str) -> None:
    """Remove what a rank left, once all that could write there has ended.

    However deep it nested its folders: their contents are moved up before they are removed, so
    nothing here recurses and no path grows. Never follows a link.
    """
    root, prefix, moved = Path(folder), secrets.token_hex(8), 0
    while folders := _clear(root):
        for inner in folders:
            for entry in list(inner.iterdir()):
                if entry.is_dir() and not entry.is_symlink():
                    entry.chmod(0o700)  # a folder moves only where it can be written itself
                entry.rename(root / f"{prefix}{moved}")
                moved += 1
            inner.rmdir()
    root.rmdir()


def _clear(root: Path) -> list[Path]:
    """Remove what is no folder; returns the folders, which can be entered now."""
    folders = []
    for entry in list(root.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            entry.chmod(0o700)
            folders.append(entry)
        else:
            entry.unlink()
    return folders


def is_over(folder: str, pids: Iterable[int], *, limit_bytes: int, limit_inodes: int) -> bool:
    """Whether files of a run take more, those included that it removed and still holds open.

    Of a removed file that is only mapped nothing but its name is known: it counts as one of the
    largest that can be.
    """
    held: dict[tuple[int, int], int] = {}
    for pid in pids:
        held |= _held_open(pid)
    for pid in pids:
        for key in _mapped(pid):
            held.setdefault(key, limit_bytes)
    todo = [folder]
    while todo and len(held) <= limit_inodes and sum(held.values()) <= limit_bytes:
        held |= _listed(todo.pop(), todo)
    return len(held) > limit_inodes or sum(held.values()) > limit_bytes


def _listed(folder: str, todo: list[str]) -> dict[tuple[int, int], int]:
    """Inodes of one folder with what they take; further folders are added to `todo`."""
    found: dict[tuple[int, int], int] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                found[status.st_dev, status.st_ino] = status.st_blocks * 512
                if stat.S_ISDIR(status.st_mode):
                    todo.append(entry.path)
    except OSError:  # gone meanwhile, or closed by its owner: nothing grows there any more
        return found
    return found


def _held_open(pid: int) -> dict[tuple[int, int], int]:
    """Removed files that a process has open."""
    found: dict[tuple[int, int], int] = {}
    try:
        with os.scandir(f"{living_task(pid)}/fd") as entries:
            for entry in entries:
                status = entry.stat()
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    found[status.st_dev, status.st_ino] = status.st_blocks * 512
    except OSError:  # it has ended
        return found
    return found


def _mapped(pid: int) -> set[tuple[int, int]]:
    """Removed files that a process has mapped."""
    found: set[tuple[int, int]] = set()
    try:
        text = Path(f"{living_task(pid)}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return found
    for line in text.splitlines():
        if line.endswith("(deleted)"):
            _, _, _, device, inode, *_ = line.split()
            major, _, minor = device.partition(":")
            found.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
    return found
