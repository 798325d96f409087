# ranks: 2
# outcome: ok|error|deadlock|timeout
# timeout: 8
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

if R == 0:
    port = int(os.environ["MASTER_PORT"])

    def squat(**o):
        s = socket.socket()
        for k in o.values():
            s.setsockopt(socket.SOL_SOCKET, k, 1)
        s.bind(("127.0.0.1", port))
        s.listen(4)
        return s

    tr("squat", lambda: squat())
    tr("reuse address", lambda: squat(a=2))
    tr("reuse port", lambda: squat(a=15))
    tr("any address", lambda: socket.create_server(("", port), reuse_port=False))
    for _ in range(50):
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(os.urandom(4000))
        s.close()
import torch, torch.distributed as dist

dist.init_process_group("gloo")
t = torch.ones(3)
dist.all_reduce(t)
print("sum", t[0].item())
dist.destroy_process_group()
