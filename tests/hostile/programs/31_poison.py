# ranks: 1
# outcome: ok|error|sandbox_violation|out_of_memory
# not-says: BREACH
# host: what the next run prints and finds in its folders
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

import site

code = 'import sys; sys.stdout.write("POISONED"); sys.stdout.flush()\n'
spots = {
    os.path.dirname(os.path.dirname(__import__("torch").__file__)),
    "/work",
    "/tmp",
    "/dev/shm",
    "/usr/lib/python3/dist-packages",
    "/etc/python3.11",
    site.getusersitepackages(),
    sys.prefix,
    os.path.dirname(os.__file__),
}
for p in spots:
    try:
        os.makedirs(p, exist_ok=True)
    except OSError:
        pass
    for f in ("sitecustomize.py", "usercustomize.py", "evil.pth", "random.py", "torch.py"):
        if p in ("/work", "/tmp", "/dev/shm", site.getusersitepackages()):
            try:
                open(f"{p}/{f}", "w").write(code)
            except OSError:
                pass
        else:
            tr(f"{p}/{f}", lambda: open(f"{p}/{f}", "w").write(code))
import torch

for module in (os, torch, socket):
    for f in (module.__file__, getattr(module, "__cached__", None)):
        if f:
            tr(f, lambda: open(f, "r+b"))
for d in (
    "/usr/lib/x86_64-linux-gnu",
    "/etc/ld.so.preload",
    "/etc/profile.d/x.sh",
    "/usr/local/bin/python3",
):
    tr(d, lambda: open(d + "/x" if os.path.isdir(d) else d, "w"))
torch.add = None
torch.Tensor.__init__ = None
sys.modules["random"] = None
