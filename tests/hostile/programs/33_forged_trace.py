# ranks: 2
# outcome: error
# not-says: BREACH
# stopped-by: wire, supervisor
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

import json


def line(**k):
    os.write(3, json.dumps(k).encode() + b"\n")


line(kind="outcome", rank=1, status="ok", ranks=[], diagnosis=[], elapsed_s=0, dropped_events=0)
line(
    kind="collective",
    rank=1,
    seq=1,
    at_ns=1,
    op="all_reduce",
    group="0",
    group_ranks=[0, 1],
    group_seq=0,
    group_size=2,
    input_bytes=-1,
    output_bytes=10**30,
    dtype="x",
    duration_ns=None,
    phase="forward",
    module="",
    line=1,
)
line(kind="memory", at_ns="now", parameter_bytes=float("inf"))
line(kind="finished", at_ns=1)
line(kind="verdict", is_passed=True, results=[])
for raw in (
    b"[" * 100000,
    b'{"a":' * 50000,
    b"\xff\xfe\x00",
    b"NaN",
    b"1e999999",
    b'"' + b"\\ud800" * 1000 + b'"',
    b'{"kind":"note","kind":"outcome"}',
    b"x" * 3000000,
    b"\n" * 1000,
    b'{"kind":[]}',
    b'{"kind":"\\u0000"}',
    b"9" * 200000,
):
    os.write(3, raw + b"\n")
for fd in (4, 5, 6, 7):
    try:
        os.write(
            fd,
            b'{"ended": 0, "exit": 0}\n{"pids": {"0": 1}}\n{"failed": "x"}\n'
            + b'Thread 0x1 (most recent call first):\n  File "/work/program.py", line 99999999999999999999 in f\n',
        )
    except OSError:
        pass
os._exit(7)
