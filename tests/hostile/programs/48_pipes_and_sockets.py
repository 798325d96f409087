# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: seccomp, capabilities, rlimits, identity
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

import fcntl

r, w = os.pipe()
tr("larger pipe", lambda: fcntl.fcntl(w, 1031, 1 << 20))
tr("larger own pipes", lambda: [fcntl.fcntl(f, 1031, 1 << 20) for f in (1, 2, 3, 4)])
a, b = socket.socketpair()
for o in (32, 33):
    tr("forced buffer", lambda: a.setsockopt(socket.SOL_SOCKET, o, 1 << 28))
tr("priority", lambda: a.setsockopt(socket.SOL_SOCKET, 12, 7))
tr("mark", lambda: a.setsockopt(socket.SOL_SOCKET, 36, 1))
tr("bind to port 80", lambda: socket.socket().bind(("127.0.0.1", 80)), lambda v: False)
tr("transparent", lambda: socket.socket().setsockopt(0, 19, 1))
tr("iptables", lambda: socket.socket().getsockopt(0, 64, 84))
tr("tcp repair", lambda: socket.socket().setsockopt(6, 19, 1))
tr("bpf filter", lambda: a.setsockopt(socket.SOL_SOCKET, 50, 3))
tr("ulp", lambda: socket.socket().setsockopt(6, 31, b"tls"))
# descriptors in flight count too
n = 0
try:
    x, y = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    x.setblocking(False)
    keep = []
    for _ in range(100):
        p, q = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        p.setblocking(False)
        keep += [p, q]
        for _ in range(100):
            socket.send_fds(p, [b"x"], [0] * 200)
            n += 200
except OSError as e:
    print("in flight", n, e)
print("STOPPED" if n < 100000 else "BREACH", n)
