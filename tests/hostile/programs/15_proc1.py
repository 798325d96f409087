# ranks: 2
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: root, dumpable, landlock
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

for p in (
    "/proc/1/environ",
    "/proc/1/mem",
    "/proc/1/maps",
    "/proc/1/root/",
    "/proc/1/cwd/",
    "/proc/1/fd",
    "/proc/1/task",
    "/proc/1/exe",
    "/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/proc/2/mem",
    "/proc/3/mem",
):
    if p.endswith("%d/mem" % os.getpid()):
        continue
    tr(
        p,
        lambda: (
            os.listdir(p)
            if os.path.isdir(p)
            else open(
                p, "r+b" if p in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger") else "rb"
            ).read(1)
        ),
    )
