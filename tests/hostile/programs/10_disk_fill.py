# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# host: scratch (/work, /tmp and /dev/shm together) is 64 MiB and 4096 inodes by default
# stopped-by: root, rlimits, landlock
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


def fill(d):
    t = 0
    try:
        i = 0
        while True:
            with open(f"{d}/f{i}", "wb") as f:
                for _ in range(16):
                    f.write(b"x" * (1 << 20))
                    t += 1
            i += 1
    except OSError as e:
        return (t, "MiB", e.strerror)


v = fill("/work")
print("STOPPED" if v[0] <= 70 else "BREACH", v)
v = fill("/tmp")
print("STOPPED" if v[0] <= 70 else "BREACH", v)
v = fill("/dev/shm")
print("STOPPED" if v[0] <= 70 else "BREACH", v)
for f in os.listdir("/work"):
    if os.path.isfile("/work/" + f):
        os.unlink("/work/" + f)


def ino():
    i = 0
    try:
        while i < 100000:
            open(f"/work/i{i}", "w").close()
            i += 1
    except OSError as e:
        return i, e.strerror


v = ino()
print("STOPPED" if v[0] < 5000 else "BREACH", "inodes", v)
tr("write /", lambda: open("/x", "w"))
tr("write usr", lambda: open("/usr/x", "w"))
tr("write etc", lambda: open("/etc/passwd", "w"))
