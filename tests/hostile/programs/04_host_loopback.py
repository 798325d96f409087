# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# host: listen on 127.0.0.1:18999 and on the abstract socket \0host-secret before the run
# stopped-by: network, landlock
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

tr("tcp 18999", lambda: socket.create_connection(("127.0.0.1", 18999), 1))


def u(p):
    s = socket.socket(socket.AF_UNIX)
    s.connect(p)
    return s.recv(10)


tr("abstract", lambda: u("\0host-secret"))
