# ranks: 1
# outcome: out_of_memory|error
# not-says: BREACH
# stopped-by: rlimits, watchdog, cgroup
# tiers: walled
"""Hold more than the limit in processes whose first thread has ended and shows nothing."""

import ctypes
import os
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
EXIT_THREAD = 60 if os.uname().machine == "x86_64" else 93
MIB = 1024 * 1024


def hold():
    kept = bytearray(250 * MIB)
    for at in range(0, len(kept), 4096):
        kept[at] = 1
    time.sleep(8)
    print("BREACH: 2 GiB were held", len(kept), flush=True)


for _ in range(9):
    if os.fork() == 0:
        threading.Thread(target=hold).start()
        LIBC.syscall(EXIT_THREAD, 0)
time.sleep(12)
print("BREACH: the run goes on")
