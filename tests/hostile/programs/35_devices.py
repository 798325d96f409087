# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: root, seccomp, capabilities, landlock
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

import stat

for n, (t, a, b) in dict(
    mem=(stat.S_IFCHR, 1, 1),
    kmsg=(stat.S_IFCHR, 1, 11),
    null=(stat.S_IFCHR, 1, 3),
    disk=(stat.S_IFBLK, 254, 0),
    loop=(stat.S_IFBLK, 7, 0),
    fuse=(stat.S_IFCHR, 10, 229),
).items():
    for d in ("/work", "/tmp", "/dev/shm", "/dev"):
        tr(f"mknod {d}/{n}", lambda: os.mknod(f"{d}/{n}", t | 0o666, os.makedev(a, b)))
print(sorted(os.listdir("/dev")))
for d in (
    "mem",
    "kmem",
    "port",
    "kmsg",
    "vda",
    "sda",
    "fuse",
    "kvm",
    "ptmx",
    "tty",
    "console",
    "loop-control",
    "net/tun",
    "vhost-net",
    "userfaultfd",
    "cpu_dma_latency",
    "zero",
    "input",
    "snapshot",
    "mapper/control",
):
    tr("open " + d, lambda: os.open("/dev/" + d, os.O_RDWR))
tr("/sys", lambda: os.listdir("/sys"))
tr("openpty", lambda: os.openpty())
