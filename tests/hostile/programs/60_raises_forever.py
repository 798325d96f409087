# ranks: 1
# outcome: output_limit|timeout|error
# timeout: 4
# not-says: BREACH
# stopped-by: output, wall
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


class E(Exception):
    def __str__(self):
        while True:
            os.write(1, b"x" * 65536)

    __repr__ = __str__


import atexit

atexit.register(lambda: time.sleep(600))
sys.excepthook = lambda *a: time.sleep(600)
raise E
