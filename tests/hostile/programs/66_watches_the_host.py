# ranks: 1
# outcome: ok
# not-says: BREACH
# stopped-by: seccomp
"""Watch which of the system's files others open, or take all instances that a user may have."""

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
held = [LIBC.inotify_init1(0) for _ in range(200)]
print("STOPPED" if max(held) < 0 else "BREACH", "instances", sum(fd >= 0 for fd in held))
for name in ("/usr/bin", os.__file__):
    watch = LIBC.inotify_add_watch(max(held), name.encode(), 0x20)
    print("STOPPED" if watch < 0 else "BREACH", name)
