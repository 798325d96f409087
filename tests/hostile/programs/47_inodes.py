# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: root
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

n = 0
try:
    p = "/work"
    while n < 20000:
        p += "/d" if len(p) < 3000 else ""
        os.mkdir(p if n % 2 else f"/tmp/d{n}") if not os.path.isdir(p) or not n % 2 else None
        n += 1
except OSError as e:
    print("folders", n, e)
n = 0
try:
    while n < 20000:
        os.symlink("x" * 900, f"/dev/shm/l{n}")
        n += 1
except OSError as e:
    print("links", n, e)
print("STOPPED" if n < 4200 else "BREACH", n)
n = 0
try:
    while n < 100000:
        os.mkfifo(f"/tmp/f{n}")
        n += 1
except OSError as e:
    print("fifos", n, e)
print("STOPPED" if n < 4200 else "BREACH", n)
