# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: capabilities, no_new_privs
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

tr("setuid0", lambda: os.setuid(0))
tr("setgid0", lambda: os.setgid(0))
tr("setgroups", lambda: os.setgroups([0]))
import subprocess

tr(
    "su",
    lambda: subprocess.run(["/usr/bin/su", "-c", "id"], capture_output=True, timeout=3).stdout,
    lambda v: b"uid=0" in v,
)
tr(
    "caps",
    lambda: open("/proc/self/status").read().split("CapEff:")[1].split()[0],
    lambda v: int(v, 16) != 0,
)
tr(
    "capset",
    lambda: sc(
        126,
        (ctypes.c_uint32 * 2)(0x20080522, 0),
        (ctypes.c_uint32 * 6)(0xFFFFFFFF, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0, 0),
    ),
)
tr(
    "nnp",
    lambda: open("/proc/self/status").read().split("NoNewPrivs:")[1].split()[0],
    lambda v: v != "1",
)
