# ranks: 1
# outcome: ok
# not-says: BREACH
# stopped-by: seccomp, landlock, rlimits
"""Take more of the processor than a run is due: own sessions, other niceness, other classes."""

import os

SESSION = "/proc/self/autogroup"


def attempt(label, action):
    try:
        action()
    except OSError as error:
        print("STOPPED", label, type(error).__name__)
    else:
        print("BREACH", label)


def become_first():
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise PermissionError("no session of its own")


def set_session(niceness):
    with open(SESSION, "w", encoding="ascii") as file:
        file.write(niceness)


attempt("a session of its own", become_first)
for niceness in ("-20", "0", "19"):
    attempt(f"session niceness {niceness}", lambda niceness=niceness: set_session(niceness))
attempt("niceness", lambda: os.nice(-1))
for name in ("SCHED_FIFO", "SCHED_RR"):
    policy = getattr(os, name)
    attempt(name, lambda policy=policy: os.sched_setscheduler(0, policy, os.sched_param(1)))
print("done")
