# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: seccomp, capabilities, landlock
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


def pr(*a):
    r = libc.prctl(
        *[ctypes.c_ulong(x) if isinstance(x, int) else x for x in (list(a) + [0] * 5)[:5]]
    )
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


tr("dumpable", lambda: pr(4, 1))
tr("no_new_privs off", lambda: pr(38, 0))
tr("securebits", lambda: pr(28, 0))
tr("mm", lambda: pr(35, 1, 0))
tr("ambient", lambda: pr(47, 2, 21))
tr("ptracer", lambda: pr(0x59616D61, (1 << 64) - 1), lambda v: False)
tr("seccomp off", lambda: pr(22, 0))
tr("io flusher", lambda: pr(57, 1))
tr("personality", lambda: sc(135 if os.uname().machine == "x86_64" else 92, 0x0400000))
tr("seccomp listener", lambda: sc(317 if os.uname().machine == "x86_64" else 277, 1, 8, 0))
tr("landlock of its own", lambda: sc(444, (ctypes.c_uint64 * 1)(1), 8, 0), lambda v: False)
tr("comm", lambda: open("/proc/self/comm", "w").write("x"))
tr("task comm", lambda: open(f"/proc/self/task/{os.getpid()}/comm", "w").write("x"))
print(
    "STOPPED"
    if open("/proc/self/status").read().split("Seccomp:")[1].split()[0] == "2"
    else "BREACH no filter"
)
