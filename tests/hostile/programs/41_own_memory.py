# ranks: 2
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: landlock, dumpable, root
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

import mmap


def into(path):
    code = ctypes.cast(libc.getppid, ctypes.c_void_p).value
    with open(path, "r+b", 0) as m:
        m.seek(code)
        m.write(b"\xc3" * 16)
    return "written"


tr("/proc/self/mem", lambda: into("/proc/self/mem"), lambda v: False)
for p in range(1, 12):
    if p != os.getpid():
        tr(f"/proc/{p}/mem", lambda: into(f"/proc/{p}/mem"))


def shared(path):
    fd = os.open(path, os.O_RDONLY)
    return mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


tr("shared and writable", lambda: shared(os.__file__))


def protect():
    fd = os.open(os.__file__, os.O_RDONLY)
    m = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
    a = libc.mmap
    a.restype = ctypes.c_void_p
    p = a(None, 4096, 1, 1, fd, 0)
    return sc(10 if os.uname().machine == "x86_64" else 226, ctypes.c_void_p(p), 4096, 3)


tr("made writable", protect)
for p in (
    "clear_refs",
    "oom_score_adj",
    "comm",
    "coredump_filter",
    "setgroups",
    "uid_map",
    "timerslack_ns",
    "attr/current",
    "loginuid",
    "sched",
):
    tr(
        "write " + p,
        lambda: open("/proc/self/" + p, "w").write("0"),
        lambda v: p not in ("clear_refs", "coredump_filter", "timerslack_ns"),
    )
