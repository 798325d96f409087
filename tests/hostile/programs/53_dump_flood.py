# ranks: 1
# outcome: timeout|output_limit
# timeout: 4
# not-says: BREACH
# stopped-by: supervisor, output, wall
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

signal.signal(signal.SIGUSR1, signal.SIG_IGN)
b = b'  File "/work/program.py", line 1 in f\n' * 1600
t = time.time()
while True:
    os.write(4, b)
