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

import shutil, subprocess


def run(*a):
    return subprocess.run(a, capture_output=True, timeout=5).stdout


for d in ("/work", "/tmp", "/dev/shm"):
    e = d + "/e"
    shutil.copy("/usr/bin/id", e)
    os.chmod(e, 0o4755)
    tr("exec " + e, lambda: run(e))
    open(d + "/s", "w").write("#!/bin/sh\necho ran\n")
    os.chmod(d + "/s", 0o755)
    tr("script " + d, lambda: run(d + "/s"))
    ld = next(
        p
        for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
        if os.path.exists(p)
    )
    tr("loader " + d, lambda: run(ld, e), bool)
    lib = d + "/libz.so"
    shutil.copy(
        next(
            os.path.join(p, f)
            for p, _, fs in os.walk("/usr/lib")
            for f in fs
            if f.startswith("libz.so.1")
        ),
        lib,
    )
    tr("dlopen " + d, lambda: ctypes.CDLL(lib))
    fd = os.open(e, os.O_RDONLY)
    tr("fexecve " + d, lambda: run(f"/proc/self/fd/{fd}"))
    tr(
        "execveat",
        lambda: sc(322 if os.uname().machine == "x86_64" else 281, fd, b"", None, None, 0x1000),
    )
