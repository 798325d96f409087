# ranks: 1
# outcome: ok|timeout|error
# timeout: 6
# not-says: BREACH
# stopped-by: pid, supervisor, rlimits
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


def run():
    end = time.time() + 2
    while time.time() < end:
        try:
            if os.fork() == 0:
                try:
                    os.setsid()
                except OSError:
                    os.setpgid(0, 0)
                os.nice(0)
            else:
                os._exit(0)
        except OSError:
            time.sleep(0.01)
    os._exit(0)


if os.fork() == 0:
    run()
time.sleep(1)
print("the chain runs")
