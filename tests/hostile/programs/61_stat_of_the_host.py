# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: root, pid, seccomp
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
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/mounts",
    "/proc/self/mountinfo",
    "/proc/kallsyms",
    "/proc/modules",
    "/proc/net/tcp",
    "/proc/sys",
    "/proc/cmdline",
    "/proc/keys",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/bus",
    "/proc/key-users",
    "/proc/vmallocinfo",
    "/proc/config.gz",
):
    tr(
        p,
        lambda: os.listdir(p) if os.path.isdir(p) else open(p).read(50),
        lambda v: p not in ("/proc/mounts", "/proc/self/mountinfo", "/proc/net/tcp"),
    )
tr("processes", lambda: [p for p in os.listdir("/proc") if p.isdigit()], lambda v: len(v) > 12)
tr("login", lambda: os.getlogin())
tr(
    "dmesg",
    lambda: sc(
        103 if os.uname().machine == "x86_64" else 116, 3, ctypes.create_string_buffer(100), 100
    ),
)
