# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: seccomp, user_namespaces, capabilities
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

import subprocess

NEW = dict(
    user=0x10000000,
    mount=0x20000,
    pid=0x20000000,
    net=0x40000000,
    ipc=0x8000000,
    uts=0x4000000,
    cgroup=0x2000000,
    time=0x80,
)
UN, CL, SE = (272, 56, 308) if os.uname().machine == "x86_64" else (97, 220, 268)
for n, f in NEW.items():
    tr("unshare " + n, lambda: sc(UN, f))
    tr("unshare user and " + n, lambda: sc(UN, f | NEW["user"]))

    def cl(flags):
        p = sc(CL, flags | 17, 0, 0, 0, 0)
        if p == 0:
            os._exit(0)
        return p

    tr("clone " + n, lambda: cl(f))
    tr("clone3 " + n, lambda: sc(435, (ctypes.c_uint64 * 11)(f, 0, 0, 0, 17), 88))
for p in ("self", 1, 2):
    for n in ("user", "mnt", "net", "pid"):
        tr(f"setns {p} {n}", lambda: sc(SE, os.open(f"/proc/{p}/ns/{n}", 0), 0))
tr(
    "unshare -Ur",
    lambda: (
        subprocess.run(["/usr/bin/unshare", "-Ur", "id"], capture_output=True, timeout=3).stdout
    ),
    lambda v: b"uid=0" in v,
)
