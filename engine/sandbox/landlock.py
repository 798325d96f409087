"""Landlock: the kernel's second opinion on paths and signals. May import engine.sandbox.linux."""

import ctypes
import os
import stat
import struct
from collections.abc import Sequence

from engine.sandbox.linux import syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_REMOVE_DIR, _REMOVE_FILE = 16, 32
_MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_SYM = 128, 256, 512, 1024, 4096
_REFER, _TRUNCATE, _IOCTL = 8192, 16384, 32768
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
"""What may be allowed on a file: the kernel refuses the rest there."""
_FIRST_THIRTEEN = (1 << 13) - 1
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_BIND_TCP, _CONNECT_TCP = 1, 2
_RULE_PATH_BENEATH, _RULE_NET_PORT = 1, 2


def abi() -> int:
    """Landlock's version in this kernel, 0 where there is none."""
    try:
        return syscall(_CREATE, "landlock", None, ctypes.c_size_t(0), ctypes.c_uint(1))
    except OSError:
        return 0


def restrict(
    *,
    read_only: Sequence[str],
    read_write: Sequence[str],
    devices: Sequence[str],
    listable: Sequence[str] = (),
    shares_abstract_sockets: bool = False,
    denies_tcp: bool = False,
    binds_any_port: bool = False,
) -> int:
    """Confine this process to the given paths; returns the ABI used, 0 if there is none.

    Needs no_new_privs. Paths that do not exist are skipped. Abstract sockets are those of the
    network namespace in any case; sharing them lets the ranks of one run reach each other's.
    Where TCP is denied, one port that the kernel chooses can be bound all the same on demand.
    Of listable folders and what lies below them the names can be read, and nothing else.
    """
    version = abi()
    if not version:
        return 0
    handled = _FIRST_THIRTEEN
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    handled |= _IOCTL if version >= 5 else 0
    scope = _SCOPE_SIGNALS if shares_abstract_sockets else _SCOPE_SIGNALS | _SCOPE_ABSTRACT_SOCKETS
    scope = scope if version >= 6 else 0
    network = _BIND_TCP | _CONNECT_TCP if denies_tcp and version >= 4 else 0
    attributes = struct.pack("QQQ", handled, network, scope)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = syscall(
        _CREATE, "landlock_create_ruleset", attributes, ctypes.c_size_t(size), ctypes.c_uint(0)
    )
    read = _READ | _READ_DIR
    write = read | _WRITE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK
    write |= _MAKE_FIFO | _MAKE_SYM | _REFER | _TRUNCATE
    for paths, access in (
        (read_only, read | _EXECUTE),
        (read_write, write),
        (listable, _READ_DIR),
        (devices, _READ | _WRITE | _TRUNCATE | _IOCTL),
    ):
        for path in paths:
            _allow(ruleset, path, access & handled)
    if network and binds_any_port:
        rule = struct.pack("QQ", _BIND_TCP, 0)
        _add(ruleset, _RULE_NET_PORT, rule, "port")
    syscall(_RESTRICT, "landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _OF_FILES
        rule = struct.pack("=Qi", access, descriptor)
        _add(ruleset, _RULE_PATH_BENEATH, rule, path)
    finally:
        os.close(descriptor)


def _add(ruleset: int, kind: int, rule: bytes, what: str) -> None:
    syscall(
        _ADD,
        f"landlock_add_rule {what}",
        ctypes.c_int(ruleset),
        ctypes.c_int(kind),
        rule,
        ctypes.c_uint(0),
    )
