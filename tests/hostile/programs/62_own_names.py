# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: root, pid, capabilities
# tiers: walled
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

tr("hostname", lambda: os.uname().nodename, lambda v: v != "sandbox")
tr(
    "cgroups",
    lambda: open("/proc/self/cgroup").read(),
    lambda v: any(l.split(":")[2] not in ("/", "") for l in v.splitlines()),
)
tr("bounding set", lambda: [n for n in range(41) if libc.prctl(23, n, 0, 0, 0) == 1], bool)
tr("other users", lambda: [l for l in open("/proc/self/uid_map")], lambda v: len(v) > 2)
tr("groups", lambda: os.getgroups(), lambda v: 0 in v)
