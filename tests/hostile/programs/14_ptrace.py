# ranks: 2
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: seccomp, dumpable, landlock
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

tr("attach ppid", lambda: sc(101, 16, os.getppid(), 0, 0))
tr("attach other rank", lambda: sc(101, 16, 2, 0, 0))
tr("seize", lambda: sc(101, 0x4206, 1, 0, 0))
b = ctypes.create_string_buffer(8)
iov = (ctypes.c_uint64 * 2)(ctypes.addressof(b), 8)
rem = (ctypes.c_uint64 * 2)(0x400000, 8)
tr("process_vm_readv", lambda: sc(310, 1, iov, 1, rem, 1, 0))
tr("pidfd_getfd", lambda: sc(438, os.pidfd_open(1), 0, 0))
