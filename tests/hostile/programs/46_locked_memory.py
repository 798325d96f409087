# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: rlimits, seccomp, watchdog
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

m = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
a = ctypes.addressof(ctypes.c_char.from_buffer(m))
ML = (149, 151, 325) if os.uname().machine == "x86_64" else (228, 230, 284)
tr("mlock", lambda: sc(ML[0], ctypes.c_void_p(a), ctypes.c_size_t(64 << 20)))
tr("mlockall", lambda: sc(ML[1], 3))
tr("mlock2", lambda: sc(ML[2], ctypes.c_void_p(a), ctypes.c_size_t(64 << 20), 1))
tr(
    "huge pages",
    lambda: mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000),
)
tr("locked", lambda: mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x2000))
tr(
    "3 GiB at once",
    lambda: mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000),
)


def own():
    fd = os.open("/work/sparse", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 10 << 30)
    return "grown"


signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
tr("10 GiB file", own)
tr("move pages", lambda: sc(279, 0, 0, 0, 0, 0, 0))
tr("mbind", lambda: sc(237, 0, 0, 0, 0, 0, 0))
