# ranks: 8
# outcome: out_of_memory|error
# timeout: 15
# not-says: BREACH
# stopped-by: watchdog, cgroup, rlimits
import os, sys, ctypes, errno, socket, time, signal

libc = ctypes.CDLL(None, use_errno=True)


def tr(label, f, bad=lambda v: True):
    try:
        v = f()
    except BaseException as e:
        print("STOPPED", label, type(e).__name__, str(e)[:70])
        return
    print("BREACH" if bad(v) else "STOPPED", label, repr(v)[:100])


def sc(nr, *a):
    r = libc.syscall(nr, *a)
    if r < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r


R = int(os.environ["RANK"])

l = []
try:
    while True:
        b = bytearray(32 << 20)
        l.append(b)
        if len(l) * 32 * 8 > 4000:
            print("BREACH", len(l) * 32, "MiB each")
            break
except MemoryError:
    print("STOPPED MemoryError after", len(l) * 32, "MiB")
time.sleep(2)
