# ranks: 1
# outcome: output_limit
# not-says: BREACH
# stopped-by: output
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

line = b'{"kind":"note","at_ns":1,"code":"nccl-to-gloo","args":{"backend":"x"}}\n' * 512
for _ in range(60000):
    os.write(3, line)
print("BREACH wrote it all")
