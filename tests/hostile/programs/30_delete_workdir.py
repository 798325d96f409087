# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: root, landlock
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

import shutil

tr("rmtree /work", lambda: shutil.rmtree("/work"))
tr("rmdir", lambda: os.rmdir("/work"))
tr("rename", lambda: os.rename("/work", "/tmp/w"))
tr("rm usr", lambda: os.unlink("/usr/bin/env"))
tr("rm site-packages", lambda: os.unlink(__import__("torch").__file__))
tr("chmod 0 /work", lambda: os.chmod("/work", 0), lambda v: False)
print("cwd", os.getcwd())
