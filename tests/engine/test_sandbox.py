"""The walls: the filter interpreted for both architectures, the root, refusals in a real run."""

import errno
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import SandboxUnavailable
from engine.events import Note, Output
from engine.executor import RunRef
from engine.executor.local import LocalExecutor
from engine.executor.slots import Hello, clean_environment
from engine.program import Limits, Program
from engine.sandbox.init import RANK_FAILED
from engine.sandbox.root import plan_root
from engine.sandbox.seccomp import build_filter
from engine.sandbox.syscalls import Machine, numbers
from engine.supervisor.gather import Gather
from engine.supervisor.verdict import is_deadlock, judge
from engine.wire import decode
from tests.engine.conftest import Runner

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES: list[Machine] = ["x86_64", "aarch64"]


def interpret(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """Run a classic BPF program over one seccomp_data."""
    padded = (list(arguments) + [0] * 6)[:6]
    data = struct.pack("IIQ6Q", number, arch, 0, *padded)
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, k = struct.unpack_from("HBBI", program, at * 8)
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("I", data, k)[0]
            case 0x54:
                accumulator &= k
            case 0x15:
                at += if_true if accumulator == k else if_false
            case 0x35:
                at += if_true if accumulator >= k else if_false
            case 0x45:
                at += if_true if accumulator & k else if_false
            case 0x06:
                return int(k)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


def filtered(machine: Machine, name: str, *arguments: int) -> int:
    return interpret(build_filter(machine), ARCH[machine], numbers(machine)[name], *arguments)


@pytest.mark.parametrize("machine", MACHINES)
class TestFilter:
    @pytest.mark.parametrize("name", ["read", "futex", "execve", "sched_yield", "openat", "exit"])
    def test_ordinary_calls_pass(self, machine: Machine, name: str) -> None:
        assert filtered(machine, name) == ALLOW

    @pytest.mark.parametrize(
        "name",
        ["bpf", "ptrace", "mount", "keyctl", "shmget", "memfd_create", "pivot_root", "personality"],
    )
    def test_dangerous_calls_are_refused(self, machine: Machine, name: str) -> None:
        assert filtered(machine, name) == EPERM

    @pytest.mark.parametrize("name", ["clone3", "io_uring_setup", "io_uring_enter"])
    def test_calls_with_a_fallback_seem_unknown(self, machine: Machine, name: str) -> None:
        assert filtered(machine, name) == ENOSYS

    def test_newer_calls_seem_unknown(self, machine: Machine) -> None:
        assert interpret(build_filter(machine), ARCH[machine], 999) == ENOSYS

    def test_clone_may_not_make_namespaces(self, machine: Machine) -> None:
        assert filtered(machine, "clone", 0x11) == ALLOW
        assert filtered(machine, "clone", 0x10000000 | 0x11) == EPERM

    @pytest.mark.parametrize(
        ("family", "protocol", "verdict"),
        [(1, 0, ALLOW), (2, 0, ALLOW), (10, 0, ALLOW), (16, 0, ALLOW), (16, 9, EPERM)]
        + [(family, 0, EPERM) for family in (17, 31, 38, 40)],
    )
    def test_socket_families(
        self, machine: Machine, family: int, protocol: int, verdict: int
    ) -> None:
        assert filtered(machine, "socket", family, 1, protocol) == verdict

    def test_other_processes_limits_are_out_of_reach(self, machine: Machine) -> None:
        assert filtered(machine, "prlimit64", 0) == ALLOW
        assert filtered(machine, "prlimit64", 1) == EPERM

    def test_shared_anonymous_memory_is_refused(self, machine: Machine) -> None:
        assert filtered(machine, "mmap", 0, 4096, 3, 0x22) == ALLOW
        assert filtered(machine, "mmap", 0, 4096, 3, 0x01) == ALLOW
        assert filtered(machine, "mmap", 0, 4096, 3, 0x21) == EPERM

    def test_typing_into_a_terminal_is_refused(self, machine: Machine) -> None:
        assert filtered(machine, "ioctl", 0, 0x5401) == ALLOW
        assert filtered(machine, "ioctl", 0, 0x5412) == EPERM

    def test_foreign_calling_conventions_kill(self, machine: Machine) -> None:
        other = {"x86_64": 0x40000003, "aarch64": 0x40000028}[machine]
        assert interpret(build_filter(machine), other, 1) == KILL


def test_x32_calls_kill() -> None:
    assert interpret(build_filter("x86_64"), ARCH["x86_64"], 0x40000000 | 1) == KILL


def test_numbers_of_this_machine_match_the_kernels_headers() -> None:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if os.uname().machine != "x86_64" or not header.exists():
        pytest.skip("no kernel headers of x86_64 here")
    words = [line.split() for line in header.read_text().splitlines()]
    official = {w[1].removeprefix("__NR_"): int(w[2]) for w in words if len(w) == 3}
    ours = numbers("x86_64")
    shared = ours.keys() & official.keys()
    assert len(shared) > 200
    assert {n: ours[n] for n in shared} == {n: official[n] for n in shared}


def test_plan_shows_the_interpreter_and_nothing_of_the_project() -> None:
    plan = plan_root(scratch_bytes=1, scratch_inodes=1)
    project = str(Path(__file__).parents[2])
    assert not any(project == bind or project.startswith(bind + "/") for bind in plan.binds)


def test_environment_of_the_zygote_holds_no_secret() -> None:
    assert "SITE_SECRET" not in clean_environment({"SITE_SECRET": "x", "MKL_VERBOSE": "0"})


PROBE = """
import os, socket
def tell(name, call):
    try: print(name, call())
    except OSError as error: print(name, type(error).__name__)
tell("shadow", lambda: open("/etc/shadow").read())
tell("root", lambda: os.listdir("/root"))
tell("interfaces", lambda: [n for _, n in socket.if_nameindex()])
tell("write", lambda: open("/usr/x", "w"))
tell("uid", os.getuid)
status = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
print("caps", int(status["CapEff"], 16), "nnp", status["NoNewPrivs"].strip())
print("seccomp", status["Seccomp"].strip(), "pid", os.getpid() < 20)
print("secret", [v for v in os.environ.values() if "topsecret" in v])
"""


async def test_a_rank_sees_only_its_own_walls(run: Runner) -> None:
    ran = await run(PROBE)
    assert ran.outcome.status == "ok"
    seen = dict(line.split(" ", 1) for line in ran.text(0).splitlines())
    assert seen["shadow"] == "FileNotFoundError"
    assert seen["root"] in ("FileNotFoundError", "PermissionError")
    assert seen["interfaces"] == "['lo']"
    assert seen["write"] in ("OSError", "PermissionError")
    assert seen["uid"] == "1000"
    assert seen["caps"] == "0 nnp 1"
    assert seen["seccomp"] == "2 pid True"
    assert seen["secret"] == "[]"


async def test_forbidden_calling_convention_ends_as_sandbox_violation(run: Runner) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("x32 exists on x86_64 only")
    source = "import ctypes\nctypes.CDLL(None).syscall(0x40000000 | 39)\n"
    ran = await run(source)
    assert ran.outcome.status == "sandbox_violation"
    assert ran.codes == ["sandbox-violation"]


async def test_learner_cannot_speak_for_another_rank_or_end_the_run_well(run: Runner) -> None:
    source = (
        "import os\n"
        'os.write(3, b\'{"kind":"outcome","rank":1,"status":"ok"}\\n\')\n'
        'os.write(3, b\'{"kind":"finished","at_ns":1,"rank":1}\\n\' + b"[" * 70000 + b"\\n")\n'
        "os._exit(5)\n"
    )
    ran = await run(source, ranks=2)
    assert ran.outcome.status == "error"
    assert [end.exit for end in ran.outcome.ranks] == [5, 5]
    assert ran.outcome.dropped_events == 4


async def test_no_isolation_no_run() -> None:
    executor = LocalExecutor(slots=1, num_parked=0)
    executor._warm.hello = Hello(tier="open", reason="No namespaces.", remedy="Allow them.")
    with pytest.raises(SandboxUnavailable, match="Allow them"):
        await executor.submit(Program(source="", world_size=1), RunRef(run_id="x"))
    health = await executor.health()
    assert not health.is_ready
    assert health.remedy == "Allow them."


def test_an_unprivileged_user_gets_the_same_walls(tmp_path: Path) -> None:
    program = tmp_path / "probe.py"
    program.write_text(PROBE, encoding="utf-8")
    # Inside a user namespace of its own even root is an ordinary user without capabilities.
    command = ["unshare", "--user", "--map-user=1234", "--map-group=1234", sys.executable]
    done = subprocess.run(
        [*command, "-m", "app.cli", "run", str(program), "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    events = [decode(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stdout + done.stderr
    text = "".join(event.text for event in events if isinstance(event, Output))
    seen = dict(line.split(" ", 1) for line in text.splitlines())
    assert seen["shadow"] == "FileNotFoundError"
    assert seen["uid"] == "1000"
    assert seen["caps"] == "0 nnp 1"
    assert seen["interfaces"] == "['lo']"


def test_a_rank_that_could_not_be_started_is_the_engines_failure() -> None:
    limits = Limits()
    gather = Gather(2, limits, 0, lambda event: None)
    for state in gather.ranks:
        state.exit, state.has_ended = RANK_FAILED, True
    assert judge(gather, None, limits.cpu_s) == ("engine_failure", None)
    gather.ranks[0].has_begun = gather.ranks[1].has_begun = True
    assert judge(gather, None, limits.cpu_s) == ("error", None)


def run_without_namespaces(program: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`academy run` where the kernel grants no further user namespace."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", sys.executable]
    return subprocess.run(
        [*command, "-m", "app.cli", "run", str(program), "--ranks", "2", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_where_nothing_isolates_no_program_runs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    done = run_without_namespaces(program)
    assert done.returncode == 3
    assert "max_user_namespaces" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_operator_can_opt_out_of_isolation_and_every_run_says_so(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    source = (
        "import os, time, torch, torch.distributed as dist\n"
        'dist.init_process_group("gloo")\n'
        "total = torch.ones(1)\n"
        "dist.all_reduce(total)\n"
        "print(total.item(), os.getcwd(), flush=True)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    time.sleep(600)\n"
        "dist.destroy_process_group()\n"
    )
    program.write_text(source, encoding="utf-8")
    done = run_without_namespaces(program, "--allow-unsandboxed", "--json")
    events = [decode(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "unsandboxed" in [event.code for event in events if isinstance(event, Note)]
    words = [event.text.split() for event in events if isinstance(event, Output)]
    assert [total for total, _ in words] == ["2.0", "2.0"]
    assert not Path(words[0][1]).exists()  # the working folder went with the run
    left = [p for p in Path("/proc").glob("[0-9]*/cwd") if words[0][1] in _target(p)]
    assert not left


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # the process has just ended, or is another user's
        return ""


def test_ranks_that_are_all_in_the_same_call_are_slow_and_not_hung() -> None:
    def dump(line: int) -> bytes:
        torch = b'  File "/x/torch/distributed/c10d.py", line 9 in init_process_group\n'
        return b"Thread 0x1:\n" + torch + b'  File "/work/p.py", line %d in f\n' % line

    gather = Gather(2, Limits(), 0, lambda event: None)
    for rank in range(2):
        gather.stack(rank, dump(3))
    assert not is_deadlock(gather, "/work/p.py", ["", "", "init_process_group()"])
    gather.ranks[1].stack_text.clear()
    gather.stack(1, dump(2))
    assert is_deadlock(gather, "/work/p.py", ["", "new_group()", "init_process_group()"])
