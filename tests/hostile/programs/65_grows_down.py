# ranks: 1
# outcome: ok
# not-says: BREACH
# stopped-by: seccomp, watchdog, cgroup
"""Map memory that grows like a stack, which no limit on data counts."""

import ctypes

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
]
READ_WRITE, PRIVATE_ANONYMOUS, GROWSDOWN = 3, 0x22, 0x100
FAILED = ctypes.c_void_p(-1).value
found = LIBC.mmap(None, 1 << 21, READ_WRITE, PRIVATE_ANONYMOUS | GROWSDOWN, -1, 0)
print("STOPPED" if found == FAILED else "BREACH", "a mapping that grows")
