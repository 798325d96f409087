# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# host: beside it runs 05_other_run.listener
# stopped-by: network, landlock, pid, root
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

for port in (18777, 29500):
    tr(
        f"tcp {port}",
        lambda: socket.create_connection(("127.0.0.1", port), 1).recv(9),
        lambda v: v == b"other run",
    )


def u(p):
    s = socket.socket(socket.AF_UNIX)
    s.connect(p)
    return s.recv(10)


tr("abstract", lambda: u("\0other-run"))
tr("path", lambda: u("/tmp/other-run"))
tr("unix table", lambda: open("/proc/net/unix").read(), lambda v: "other-run" in v)
for p in range(1, 400):
    if p != os.getpid():
        try:
            found = open(f"/proc/{p}/cmdline", "rb").read()
        except OSError:
            continue
        print("STOPPED", p, len(found))
