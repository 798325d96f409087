"""Forks the ranks of a test: imports torch once, then runs programs as an engine's rank would.

Started with the answer's descriptor as its argument. One request a line on stdin: program, number
of ranks, folder, deadline in seconds. Each rank leaves NAME.out and NAME.reports (one pickled
report after the other) in the folder; the answer is one line of exit codes, "-" for a rank that
was still alive after the deadline and was stopped.
"""

import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path

import torch
import torch._dynamo
import torch.distributed.fsdp
import torch.distributed.optim

import engine.torch_cpu
import engine.tracers


def rank_main(rank, world, port, program, folder, adaptations, interception):
    torch.set_num_threads(1)
    out = os.open(folder / f"{rank}.out", os.O_WRONLY | os.O_CREAT)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
    }
    reports = (folder / f"{rank}.reports").open("wb", buffering=0)
    lock = threading.Lock()

    def report(value):
        with lock:
            reports.write(pickle.dumps(value))

    tracers = engine.tracers.install(report, "program.py", interception)
    kept = adaptations.begin(report, tracers.line)
    code = compile(program.read_text(), "program.py", "exec")
    namespace = {"__name__": "__main__", "report": report}
    try:
        exec(code, namespace)
        exit_code = 0
    except Exception:  # noqa: BLE001 - the program's own
        traceback.print_exc()
        exit_code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    assert kept is not None
    os._exit(exit_code)


def run(program, world, folder, deadline_s, adaptations, interception):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pids = {}
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            rank_main(rank, world, port, program, folder, adaptations, interception)
        pids[pid] = rank
    codes = ["-"] * world
    deadline = time.monotonic() + deadline_s
    while pids and time.monotonic() < deadline:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            codes[pids.pop(pid)] = str(os.waitstatus_to_exitcode(status))
        else:
            time.sleep(0.01)
    for pid in pids:  # all of them first: none may see another one go
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return " ".join(codes)


def main():
    answers = os.fdopen(int(sys.argv[1]), "w")
    adaptations = engine.torch_cpu.prepare()
    interception = engine.tracers.prepare()
    num_threads = len(os.listdir("/proc/self/task"))
    print(num_threads, file=answers, flush=True)
    for line in sys.stdin:
        program, world, folder, deadline_s = line.rstrip("\n").split("\t")
        codes = run(
            Path(program), int(world), Path(folder), float(deadline_s), adaptations, interception
        )
        print(codes, file=answers, flush=True)


if __name__ == "__main__":
    main()
