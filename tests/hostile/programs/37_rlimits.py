# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: capabilities, seccomp
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

import resource

for k in ("NPROC", "CPU", "FSIZE", "NOFILE", "DATA", "CORE"):
    r = getattr(resource, "RLIMIT_" + k)
    s, h = resource.getrlimit(r)
    tr("raise " + k + f" {s}", lambda: resource.setrlimit(r, (-1, -1)), lambda v: h != -1)
tr("prlimit ppid", lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)))
tr("oom_score_adj", lambda: open("/proc/self/oom_score_adj", "w").write("-1000"))
tr("nice", lambda: os.nice(-10))
