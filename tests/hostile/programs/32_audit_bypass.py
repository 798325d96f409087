# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH|root:[^\s:]*:\d|uid=0|hunter2
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

# no audit hook is relied on; show that python-level guards fall and the kernel layer still holds
sys.addaudithook(
    lambda e, a: (
        (_ for _ in ()).throw(RuntimeError("blocked"))
        if e in ("os.system", "subprocess.Popen", "open") and 0
        else None
    )
)
libc.system.restype = ctypes.c_int
rc = libc.system(
    b"echo libc.system ran a shell; id; cat /etc/shadow; ls /root 2>&1; cat /root/secret.db 2>&1 | head -c 100"
)
print("STOPPED (shell runs, but inside the walls)", rc)
