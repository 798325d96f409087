# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH|hunter2
# host: SITE_SECRET is in the environment of the server
# stopped-by: environment, dumpable
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

secret = b"hun" + b"ter2"
tr("environ", lambda: [v for v in os.environ.values() if secret.decode() in v], bool)
for p in ["self", os.getppid(), *range(1, 30)]:
    tr(f"environ {p}", lambda: open(f"/proc/{p}/environ", "rb").read(), lambda v: secret in v)
    tr(f"cmdline {p}", lambda: open(f"/proc/{p}/cmdline", "rb").read(), lambda v: secret in v)


def scan():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as mem:
        for line in maps:
            if "[stack]" in line or "[heap]" in line:
                a, b = (int(x, 16) for x in line.split()[0].split("-"))
                mem.seek(a)
                if b"SITE_" + b"SECRET=" in mem.read(b - a):
                    return "found"


tr("initial stack", scan, lambda v: v == "found")
a = ctypes.addressof(ctypes.c_char_p.in_dll(libc, "__progname_full"))
start = ctypes.c_void_p.in_dll(libc, "__environ")
p = ctypes.cast(ctypes.c_void_p.in_dll(libc, "program_invocation_name"), ctypes.c_void_p).value
tr("above argv[0]", lambda: ctypes.string_at(p, 2000), lambda v: b"SITE_" + b"SECRET" in v)
