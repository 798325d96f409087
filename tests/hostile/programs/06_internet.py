# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: network, seccomp
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

tr("ifaces", lambda: [n for _, n in socket.if_nameindex()], lambda v: v != ["lo"])


def u():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("192.0.2.1", 9))
    return s.getsockname()  # route lookup only, sends nothing


tr("route", u)
tr("dns", lambda: socket.getaddrinfo("example.invalid", 80))
for fam, nm in (
    (17, "packet"),
    (38, "alg"),
    (40, "vsock"),
    (31, "bluetooth"),
    (16, "netlink-audit"),
):
    tr(
        "AF_" + nm,
        lambda: socket.socket(
            fam,
            socket.SOCK_RAW if fam in (17, 16) else socket.SOCK_STREAM if fam != 38 else 5,
            9 if fam == 16 else 0,
        ),
    )
