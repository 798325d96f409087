# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: root, landlock, identity
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

for n, t in enumerate(
    (
        "/etc/shadow",
        "/root",
        "/proc/1/root/etc/shadow",
        "/proc/1/environ",
        "/proc/self/root/../../etc/shadow",
        "/proc/self/cwd/../../etc/shadow",
        "/proc/self/fd/3/../../etc/shadow",
    )
):
    os.symlink(t, f"/work/l{n}")
    tr(
        "link to " + t,
        lambda: (
            os.listdir(f"/work/l{n}")
            if os.path.isdir(f"/work/l{n}")
            else open(f"/work/l{n}").read()
        ),
    )
os.remove(__file__) if os.path.exists(__file__) else None
os.symlink("/etc/shadow", __file__)
import linecache

linecache.clearcache()
tr("own source", lambda: linecache.getlines(__file__), bool)
tr("hard link su", lambda: os.link("/usr/bin/su", "/work/su"))
tr("hard link shm", lambda: os.link("/dev/null", "/dev/shm/null"))


def up(fd):
    for _ in range(20):
        fd = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
    return os.open("etc/shadow", os.O_RDONLY, dir_fd=fd)


tr("up from /work", lambda: up(os.open("/work", os.O_RDONLY)))
tr("up from /proc", lambda: up(os.open("/proc/self", os.O_RDONLY)))
os.makedirs("/work/a/b/c")
d = os.open("/work/a/b/c", os.O_RDONLY)
os.rename("/work/a/b/c", "/work/c")
tr("moved", lambda: up(d))
