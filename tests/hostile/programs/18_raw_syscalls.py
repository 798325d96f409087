# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# stopped-by: seccomp, capabilities
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

for nm, nr, args in (
    ("bpf", 321, (0, b"\0" * 64, 64)),
    ("perf_event_open", 298, (b"\0" * 128, 0, -1, -1, 0)),
    ("userfaultfd", 323, (0,)),
    ("kexec_load", 246, (0, 0, 0, 0)),
    ("init_module", 175, (b"", 0, b"")),
    ("finit_module", 313, (0, b"", 0)),
    ("open_by_handle_at", 304, (-100, b"\0" * 32, 0)),
    ("name_to_handle_at", 303, (-100, b"/", b"\0" * 64, b"\0" * 8, 0)),
    ("kcmp", 312, (1, 2, 0, 0, 0)),
    ("syslog", 103, (3, b"\0" * 100, 100)),
    ("swapon", 167, (b"/", 0)),
    ("reboot", 169, (0, 0, 0, 0)),
    ("acct", 163, (b"/",)),
    ("personality", 135, (0x0040000,)),
    ("iopl", 172, (3,)),
    ("modify_ldt", 154, (0, b"\0" * 16, 16)),
    ("setns", 308, (0, 0)),
    ("quotactl", 179, (0, 0, 0, 0)),
    ("lookup_dcookie", 212, (0, 0, 0)),
    ("fanotify_init", 300, (0, 0)),
    ("memfd_secret", 447, (0,)),
    ("settimeofday", 164, (0, 0)),
    ("clock_settime", 227, (0, b"\0" * 16)),
    ("unknown 999", 999, (0,)),
):
    tr(nm, lambda: sc(nr, *args))
tr("TIOCSTI", lambda: __import__("fcntl").ioctl(0, 0x5412, b"x"))
tr("sethostname", lambda: socket.sethostname("x"))
