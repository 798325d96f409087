# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: seccomp, capabilities
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

tr("mount tmpfs", lambda: sc(165, b"tmpfs", b"/tmp", b"tmpfs", 0, None))
tr("umount", lambda: sc(166, b"/proc", 2))
tr("remount rw", lambda: sc(165, None, b"/", None, 32 | 4096, None))
tr("pivot", lambda: sc(155, b".", b"."))
tr("chroot", lambda: os.chroot("/tmp"))
tr("fsopen", lambda: sc(430, b"tmpfs", 0))
tr("open_tree", lambda: sc(428, -100, b"/", 1))
tr("mount_setattr", lambda: sc(442, -100, b"/", 0, b"\0" * 32, 32))
