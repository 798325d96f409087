# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: rlimits, user_namespaces, seccomp
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

TC = 222 if os.uname().machine == "x86_64" else 107
n = 0
try:
    while n < 20000:
        sc(TC, 1, None, ctypes.byref(ctypes.c_int()))
        n += 1
except OSError as e:
    print("timers", n, e)
print("STOPPED" if n < 2000 else "BREACH", n)
n = 0
try:
    signal.pthread_sigmask(signal.SIG_BLOCK, range(35, 64))
    SQ = 129 if os.uname().machine == "x86_64" else 138
    info = (ctypes.c_int * 32)(40, 0, -1)
    while n < 20000:
        sc(SQ, os.getpid(), 40, info)
        n += 1
except OSError as e:
    print("signals", n, e)
print("STOPPED" if n < 2000 else "BREACH", n)
IN = 294 if os.uname().machine == "x86_64" else 26
n = 0
try:
    while n < 2000:
        sc(IN, 0)
        n += 1
except OSError as e:
    print("inotify", n, e)
print("STOPPED" if n <= 128 else "BREACH", n)
tr("fanotify", lambda: sc(300 if os.uname().machine == "x86_64" else 262, 0, 0))
tr("mq", lambda: sc(240 if os.uname().machine == "x86_64" else 180, b"x", 66, 0o600, None))
