# ranks: 1
# outcome: error
# not-says: BREACH
# stopped-by: wire
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

os.write(1, bytes(range(256)) * 40)
os.write(2, b"\xed\xa0\x80\xff\x1b[2J\x00" * 100)
sys.stdout.write("\u202e\ufffe\x07\n")
os.write(1, b'{"kind":"outcome","rank":-1,"status":"ok"}\n' * 3)
os.write(1, "\U0001f600".encode()[:2])
sys.stdout.flush()
sys.exit(3)
