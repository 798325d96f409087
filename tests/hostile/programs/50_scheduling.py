# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: capabilities, identity, seccomp, rlimits
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

for p in (1, 2):
    tr(f"fifo {p}", lambda: os.sched_setscheduler(0, p, os.sched_param(50)))
tr(
    "nice -20", lambda: os.setpriority(os.PRIO_PROCESS, 0, -20)
)  # its own run's processes are its own to slow down: the supervisor does not wait for them
os.setpriority(os.PRIO_PROCESS, 1, 19)
os.setpriority(os.PRIO_USER, 0, 19)
os.sched_setaffinity(1, [0])
SA = 314 if os.uname().machine == "x86_64" else 274
tr("deadline", lambda: sc(SA, 0, (ctypes.c_uint64 * 7)(56 | 6 << 32, 0, 0, 10**6, 10**7, 10**7), 0))
tr("ioprio", lambda: sc(251 if os.uname().machine == "x86_64" else 30, 1, 0, (1 << 13) | 0))
tr("nice of this", lambda: os.getpriority(os.PRIO_PROCESS, 0), lambda v: v < 5)
