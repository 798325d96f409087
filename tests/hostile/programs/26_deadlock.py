# ranks: 4
# outcome: deadlock|timeout
# timeout: 4
# not-says: BREACH
# stopped-by: supervisor
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

import torch, torch.distributed as dist

dist.init_process_group("gloo")
if R != 2:
    t = torch.ones(1)
    dist.all_reduce(t)
    print("BREACH")
else:
    time.sleep(1000)
