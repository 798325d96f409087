# ranks: 2
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: descriptors, dumpable, landlock, root
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

mine = set(int(f) for f in os.listdir("/proc/self/fd"))
print("STOPPED" if mine <= set(range(7)) else "BREACH", sorted(mine))
for f in sorted(mine):
    try:
        print(f, os.readlink(f"/proc/self/fd/{f}"))
    except OSError:
        pass
tr("stdin writable", lambda: os.write(0, b"x"))
tr("reads stdout", lambda: os.read(1, 1))
tr("reads trace", lambda: os.read(3, 1))
tr("init descriptors", lambda: [os.open(f"/proc/1/fd/{n}", 2) for n in range(3)])
tr(
    "peer descriptors",
    lambda: [os.open(f"/proc/{p}/fd/3", 1) for p in range(2, 9) if p != os.getpid()][0],
)


def directories():
    return [f for f in mine if os.path.isdir(f"/proc/self/fd/{f}")]


tr("open folders", directories, bool)
tr(
    "map_files",
    lambda: os.open("/proc/self/map_files/" + os.listdir("/proc/self/map_files")[0], os.O_RDONLY),
)
tr("exe", lambda: open("/proc/self/exe", "r+b"))
tr("root", lambda: os.listdir("/proc/self/root/root"), lambda v: bool(v))
tr("pidfd of init", lambda: sc(438, os.pidfd_open(1), 0, 0))
tr("pidfd of peer", lambda: sc(438, os.pidfd_open(3), 3, 0))
