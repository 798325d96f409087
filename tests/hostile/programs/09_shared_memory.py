# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: seccomp, root, rlimits, watchdog, cgroup, ipc
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


def touch(m):
    for i in range(0, len(m), 4096):
        m[i] = 1
    return len(m) >> 20


N = 300 << 20


def anon():
    m = mmap.mmap(-1, N, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    return touch(m)


tr("shared anonymous", anon)


def zero():
    m = mmap.mmap(os.open("/dev/zero", os.O_RDWR), N, mmap.MAP_SHARED)
    return touch(m)


tr("/dev/zero", zero)
tr("memfd", lambda: os.memfd_create("x"))
tr("memfd_secret", lambda: sc(447, 0))
SHM = {"x86_64": (29, 64, 68, 240), "aarch64": (194, 190, 186, 180)}[os.uname().machine]
tr("shmget", lambda: sc(SHM[0], 0, N, 0o1600))
tr("semget", lambda: sc(SHM[1], 0, 8, 0o1600))
tr("msgget", lambda: sc(SHM[2], 0, 0o1600))
tr("mq_open", lambda: sc(SHM[3], b"x", os.O_CREAT | os.O_RDWR, 0o600, None))


def posix():
    fd = os.open("/dev/shm/big", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, N)
    os.posix_fallocate(fd, 0, N)
    return touch(mmap.mmap(fd, N))


tr("/dev/shm", posix)
from multiprocessing import shared_memory


def python():
    m = shared_memory.SharedMemory(create=True, size=N)
    os.posix_fallocate(m._fd, 0, N)
    return touch(m.buf)


tr("shared_memory", python)
