# ranks: 1
# outcome: out_of_memory|error
# timeout: 15
# not-says: BREACH
# stopped-by: watchdog, cgroup
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

import subprocess

code = 'b=bytearray(300<<20)\nfor i in range(0,len(b),4096): b[i]=1\nimport time; print("held",flush=True); time.sleep(30)'
ps = [
    subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE)
    for _ in range(8)
]
n = sum(p.stdout.readline() == b"held\n" for p in ps)
print("BREACH" if n > 4 else "STOPPED", n * 300, "MiB")
