# ranks: 2
# outcome: ok
# not-says: BREACH
# stopped-by: landlock, pid, identity
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

if R == 1:
    time.sleep(3)
    print("alive")
    sys.exit(0)
import fcntl


class C(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_int)]


others = [p for p in range(1, 40) if p != os.getpid()]
dead = []
for p in others:
    for s in (signal.SIGSTOP, signal.SIGKILL, signal.SIGUSR2):
        try:
            os.kill(p, s)
            dead.append(p)
        except OSError as e:
            pass
    try:
        signal.pidfd_send_signal(os.pidfd_open(p), signal.SIGKILL)
    except OSError:
        pass
    for nr, a in (
        (234, (p, p, 9)),
        (200, (p, 9)),
        (129, (p, 9, b"\0" * 128)),
        (297, (p, p, 9, b"\0" * 128)),
    ):
        try:
            sc(nr, *a)
        except OSError:
            pass
print("STOPPED" if not [p for p in dead if p != 1] else "BREACH signalled", dead)
r, w = os.pipe()


def by_descriptor(p):
    fcntl.fcntl(r, fcntl.F_SETOWN, p)
    fcntl.fcntl(r, 10, 9)
    fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(w, b"x")


for p in (1, 2, os.getppid()):
    try:
        by_descriptor(p)
        print("STOPPED maybe", p)
    except OSError as e:
        print("STOPPED owner", p, e)
fcntl.fcntl(r, fcntl.F_SETFL, 0)
try:
    os.killpg(0, 0)
except OSError:
    pass
try:
    os.kill(-1, signal.SIGSTOP)
except OSError as e:
    print("STOPPED all", e)
os.kill(1, 0) if False else None
time.sleep(1)
print("STOPPED init lives", os.getppid())
