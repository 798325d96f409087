"""Which tier is taken, and that the tier fenced keeps its programs in: really run, as two users."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from engine.sandbox.choice import Demand, SandboxChoice, Tier
from engine.sandbox.fence import MIN_LANDLOCK_ABI, around
from engine.sandbox.landlock import abi
from engine.sandbox.scratch import is_over, remove_scratch, sweep_scratch
from tests.engine.fenced import Seen, Wanted

PROJECT = Path(__file__).parents[2]
UNPRIVILEGED = ("unshare", "--user", "--map-user=1234", "--map-group=1234")
"""An ordinary user without a right, whoever runs the tests."""
NO_NAMESPACES = ("unshare", "--user", "--map-root-user", "sh", "-c")
"""Somebody for whom this machine makes no user namespace."""
AS_ROOT = ("unshare", "--mount", "sh", "-c")
OPENED_HOME = """
set -e
for folder in "$@"; do case "$folder" in /root/*)
  mount -t tmpfs tmpfs /mnt
  mkdir /mnt/kept
  mount --rbind "$folder" /mnt/kept
  mount -t tmpfs -o mode=755 tmpfs /root
  mkdir -p "$folder"
  mount --rbind /mnt/kept "$folder"
  umount -l /mnt
esac; done
exec "$PYTHON" -m tests.engine.fenced
"""
"""Root's home is closed to the user that root's programs run as: here it is open."""


def needs_fence() -> None:
    if abi() < MIN_LANDLOCK_ABI:
        pytest.skip(f"fenced needs Landlock ABI {MIN_LANDLOCK_ABI}, this kernel has {abi()}")


def run_fenced(wanted: Sequence[Wanted], command: Sequence[str]) -> list[Seen]:
    done = subprocess.run(
        [*command],
        input=json.dumps([asdict(program) for program in wanted]),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=PROJECT,
        env={**os.environ, "PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [Seen(**json.loads(line)) for line in done.stdout.splitlines()]


def folders_of_runs() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("academy-run-*")}


# ------------------------------------------------------------------ which tier
CHOOSE = """
import json, sys
from dataclasses import asdict
from engine.sandbox.choice import SandboxChoice
from engine.sandbox.tiers import choose
for fields in json.load(sys.stdin):
    print(json.dumps(asdict(choose(SandboxChoice(**fields), is_enclosed=True))))
"""
CHOICES: tuple[tuple[Tier, bool], ...] = (
    ("fortified", False),
    ("walled", False),
    ("fenced", False),
    ("open", False),
    ("fortified", True),
    ("fenced", True),
    ("open", True),
)


def chosen(command: Sequence[str]) -> list[dict[str, str | None]]:
    return chosen_of(
        command, [{"at_most": tier, "allow_open": is_open} for tier, is_open in CHOICES]
    )


def chosen_of(
    command: Sequence[str], wanted: Sequence[Mapping[str, object]]
) -> list[dict[str, str | None]]:
    done = subprocess.run(
        command, input=json.dumps(wanted), capture_output=True, text=True, check=True, cwd=PROJECT
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_strongest_tier_that_is_admitted_is_taken() -> None:
    needs_fence()
    found = chosen([*UNPRIVILEGED, sys.executable, "-c", CHOOSE])
    tiers = [row["tier"] for row in found]
    assert tiers == ["fortified", "walled", "fenced", "open", "fortified", "fenced", "open"]
    assert found[0]["reason"] is None
    assert found[0]["remedy"] is None
    assert "no stronger isolation than fenced" in str(found[2]["reason"])


def test_without_namespaces_the_fence_is_taken_and_the_switch_named() -> None:
    needs_fence()
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    found = chosen([*NO_NAMESPACES, script, "sh", sys.executable, "-c", CHOOSE])
    tiers = [row["tier"] for row in found]
    # Who opted out wants all programs to run, also those of many ranks.
    assert tiers == ["fenced", "fenced", "fenced", "open", "open", "fenced", "open"]
    for row in found[:2]:
        assert row["remedy"] == "sysctl -w user.max_user_namespaces=10000"
        assert "unshare" in str(row["reason"])


DEMANDS: tuple[Demand, ...] = ("auto", "fortified", "walled", "fenced")


def test_a_demanded_tier_is_taken_or_none_at_all() -> None:
    needs_fence()
    wanted = [asdict(SandboxChoice.demanded(demand)) for demand in DEMANDS]
    wanted = [{name: row[name] for name in ("at_most", "at_least")} for row in wanted]
    found = chosen_of([*UNPRIVILEGED, sys.executable, "-c", CHOOSE], wanted)
    assert [row["tier"] for row in found] == ["fortified", "fortified", "walled", "fenced"]
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    found = chosen_of([*NO_NAMESPACES, script, "sh", sys.executable, "-c", CHOOSE], wanted)
    assert [row["tier"] for row in found] == ["fenced", "open", "open", "fenced"]
    for demand, row in zip(DEMANDS[1:3], found[1:3], strict=True):
        assert row["reason"] == (
            f"The operator demands the tier {demand}; this machine makes fenced."
        )
        assert "`academy doctor`" in str(row["remedy"])


def test_demanding_a_tier_and_opting_out_of_all_contradict() -> None:
    assert SandboxChoice.demanded("auto", allow_open=True).allow_open
    with pytest.raises(ValueError, match="choose the tier walled, or runs"):
        SandboxChoice.demanded("walled", allow_open=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide bubblewrap")
def test_who_demands_the_outer_sandbox_runs_nothing_without_it(tmp_path: Path) -> None:
    bwrap = shutil.which("bwrap") or pytest.skip("there is no bubblewrap to hide")
    program = tmp_path / "program.py"
    program.write_text("print(1)\n", encoding="utf-8")
    hidden = f"mount --bind /dev/null {bwrap}; exec "
    command = f"{sys.executable} -m app.cli run {program}"
    ran, refused = (
        subprocess.run(
            [*AS_ROOT, hidden + command + demand],
            capture_output=True,
            text=True,
            check=False,
            cwd=PROJECT,
        )
        for demand in (" --tier walled", " --tier fortified")
    )
    assert (ran.returncode, refused.returncode) == (0, 3)
    assert "demands the tier fortified; this machine makes walled" in refused.stderr


def test_no_choice_is_the_strongest_one() -> None:
    assert SandboxChoice().at_most == "fortified"
    assert not SandboxChoice().allow_open


# ------------------------------------------------------------------ what a fenced program can do
GROUP = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
total = torch.arange(3.0)
dist.all_reduce(total)
gathered = [None]
dist.all_gather_object(gathered, {"rank": dist.get_rank()})
dist.barrier()
print(total.tolist(), gathered, dist.get_world_size(), dist.get_backend())
for wrap in (DistributedDataParallel, fully_shard):
    model = nn.Linear(3, 2)
    model = wrap(model) or model
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
print(dist.get_world_size(dist.new_group([0])))
dist.destroy_process_group()
dist.init_process_group("gloo")
print("again", dist.get_rank())
"""
LOCKED_IN = """
import os
for task in sorted(os.listdir("/proc/self/task")):
    status = dict(l.split(":", 1) for l in open(f"/proc/self/task/{task}/status"))
    print(*(status[k].strip() for k in ("CapEff", "CapPrm", "NoNewPrivs", "Seccomp")))
kinds = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.access(
    f"/proc/self/fd/{n}", os.F_OK)] if os.access("/proc/self/fd", os.R_OK) else []
print("sockets", sum(k.startswith("socket:") for k in kinds))
print("user", os.getuid(), os.getgid(), os.getgroups() in ([], [os.getgid()], [65534]))
"""
REFUSED = """
import ctypes, errno, os, resource, signal, socket, sys, tempfile
def tell(name, call):
    try:
        print(name, "BREACH", call())
    except (OSError, ValueError) as error:
        print(name, errno.errorcode.get(error.errno, error.errno))
for path in %(secrets)r:
    tell(path, lambda: open(path).read(10))
for path in ("/", "/tmp", "/home", "/proc", "/sys", %(project)r):
    tell("list " + path, lambda: os.listdir(path))
for path in (%(project)r + "/x", "/tmp/x", "/dev/shm/x", sys.prefix + "/x"):
    tell("write " + path, lambda: open(path, "w"))
tell("environ of init", lambda: open(f"/proc/{os.getppid()}/environ", "rb").read())
tell("memory of init", lambda: open(f"/proc/{os.getppid()}/mem", "rb").read())
tell("tcp", lambda: socket.create_connection(("127.0.0.1", %(port)d)))
tell("unix", lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + %(abstract)r))
tell("pair", lambda: socket.socketpair())
for family in (16, 17, 38, 40):
    tell(f"family {family}", lambda: socket.socket(family, 3, 0))
tell("fork", os.fork)
open("tool", "w").write("#!/bin/sh\\necho BREACH\\n")
tell("execute own", lambda: os.execv("./tool", ["tool"]))
tell("execute", lambda: os.execv("/bin/sh", ["sh", "-c", "echo BREACH"]))
tell("spawn", lambda: os.posix_spawn("/bin/true", ["true"], {}))
for pid in (os.getppid(), 1, -1, 0, %(pid)d):
    tell("kill", lambda: os.kill(pid, signal.SIGTERM))
tell("pidfd", lambda: os.pidfd_open(os.getppid()))
tell("pin", lambda: os.sched_setaffinity(os.getppid(), {0}))
tell("slow down", lambda: os.setpriority(os.PRIO_USER, 0, 19))
tell("limits", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (5, 5)))
tell("own group", lambda: os.setpgid(0, os.getppid()))
libc = ctypes.CDLL(None, use_errno=True)
def ask(*arguments):
    if libc.prctl(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
tell("outlive", lambda: ask(1, 0, 0, 0, 0))
signal.signal(signal.SIGUSR2, lambda *a: print("own signal"))
os.kill(os.getpid(), signal.SIGUSR2)
open("file", "w").write("kept")
print("own file", open("file").read(), os.getcwd() == tempfile.gettempdir())
"""
MODES = """
import os, sys
try:
    os.chmod(sys.prefix + "/pyvenv.cfg", 0o644)
    print("BREACH")
except PermissionError:
    print("refused")
"""
DEEP = """
import os
for number in range(1500):
    os.mkdir("d")
    os.chdir("d")
open("leaf", "w").write("x")
os.symlink("/", "link")
print("deep")
"""
CLOSED = (
    'import os\nos.mkdir("c")\nos.mkdir("c/d")\nopen("c/d/e", "w")\n'
    'os.umask(0o777)\nos.mkdir("z", 0)\n'
)
UNLINKED = """
import os
held = []
while True:
    name = f"f{len(held)}"
    held.append(open(name, "wb"))
    os.unlink(name)
    held[-1].write(b"x" * (4 << 20))
    held[-1].flush()
"""
MANY = "number = 0\nwhile number := number + 1: open(f'f{number}', 'w').close()\n"
LARGE = 'for n in range(1000): open(f"f{n}", "wb").write(b"x" * (8 << 20))\n'
NEEDS_SOCKETS = "import asyncio\nasyncio.run(asyncio.sleep(0))\n"
NEEDS_PROCESSES = "import subprocess\n\nsubprocess.run(['true'])\n"
TCP_STORE = 'import torch.distributed as dist\ndist.TCPStore("127.0.0.1", 0, 1, True)\n'
THREADS = """
import threading
done = []
threads = [threading.Thread(target=done.append, args=(n,)) for n in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(done))
"""
SIMULATED = "import torch.distributed as d\nd.init_process_group()\nprint(d.get_world_size())\n"
AFTERWARDS = "import torch\nprint(torch.ones(2).sum().item())\n"


@pytest.fixture(scope="module")
def decoy() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the host that must live."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def refused_source(
    tmp_path_factory: pytest.TempPathFactory, decoy: subprocess.Popen[bytes]
) -> Iterator[str]:
    """The attacks, aimed at a file, a port, a socket and a process of this host."""
    secret = tmp_path_factory.mktemp("host") / "secret"
    secret.write_text("hunter2", encoding="ascii")
    secret.parent.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        abstract = f"host-{os.getpid()}"
        unix.bind("\0" + abstract)
        unix.listen(1)
        yield REFUSED % {
            "secrets": (str(secret), "/etc/shadow", "/etc/passwd", str(PROJECT / "README.md")),
            "project": str(PROJECT),
            "port": server.getsockname()[1],
            "abstract": abstract,
            "pid": decoy.pid,
        }


def programs(refused: str) -> dict[str, Wanted]:
    return {
        "group": Wanted(source=GROUP),
        "locked in": Wanted(source=LOCKED_IN),
        "refused": Wanted(source=refused),
        "modes": Wanted(source=MODES),
        "deep": Wanted(source=DEEP),
        "closed": Wanted(source=CLOSED),
        "unlinked": Wanted(source=UNLINKED, wall_s=60.0),
        "many": Wanted(source=MANY, wall_s=60.0),
        "large": Wanted(source=LARGE, wall_s=60.0),
        "sockets": Wanted(source=NEEDS_SOCKETS),
        "processes": Wanted(source=NEEDS_PROCESSES),
        "store": Wanted(source=TCP_STORE),
        "threads": Wanted(source=THREADS),
        "simulated": Wanted(source=SIMULATED, simulated_ranks=8),
        "endless": Wanted(source="while True: pass\n", wall_s=1.0),
        "two ranks": Wanted(source=GROUP, ranks=2),
        "afterwards": Wanted(source=AFTERWARDS),
    }


@pytest.fixture(scope="module", params=["unprivileged", "root"])
def seen(request: pytest.FixtureRequest, refused_source: str) -> dict[str, Seen]:
    """What came of each program, fenced in as an ordinary user and as root."""
    needs_fence()
    wanted = programs(refused_source)
    if request.param == "root":
        if os.geteuid() != 0:
            pytest.skip("not root")
        prefix = str(Path(sys.base_prefix).resolve())
        outermost = "/".join(prefix.split("/")[:3])
        command = [*AS_ROOT, OPENED_HOME, "sh", outermost]
    else:
        command = [*UNPRIVILEGED, sys.executable, "-m", "tests.engine.fenced"]
    before = folders_of_runs()
    found = run_fenced(list(wanted.values()), command)
    assert folders_of_runs() <= before, "every run took its folder with it"
    return dict(zip(wanted, found, strict=True)) | {"user": Seen(tier=request.param, status="")}


def test_a_group_of_one_rank_needs_no_socket(seen: dict[str, Seen]) -> None:
    ran = seen["group"]
    assert (ran.tier, ran.status) == ("fenced", "ok"), ran
    assert ran.stdout == "[0.0, 1.0, 2.0] [{'rank': 0}] 1 gloo\n1\nagain 0\n"


def test_every_thread_is_locked_in_and_none_has_a_socket(seen: dict[str, Seen]) -> None:
    *threads, sockets, user = seen["locked in"].stdout.splitlines()
    assert len(threads) == 2  # the program's, and that of gloo's device
    assert set(threads) == {"0000000000000000 0000000000000000 1 2"}
    assert sockets == "sockets 0"
    id_, whole = {"root": (61000, "True"), "unprivileged": (1234, "True")}[seen["user"].tier]
    assert user == f"user {id_} {id_} {whole}"


def test_nothing_of_the_host_is_within_reach(
    seen: dict[str, Seen], decoy: subprocess.Popen[bytes]
) -> None:
    ran = seen["refused"]
    assert ran.status == "ok", ran
    assert "BREACH" not in ran.stdout
    lines = ran.stdout.splitlines()
    assert lines[-2:] == ["own signal", "own file kept True"]
    answers = {line.rsplit(" ", 1)[0]: line.rsplit(" ", 1)[1] for line in lines[:-2]}
    assert answers["tcp"] == answers["unix"] == answers["pair"] == "EAFNOSUPPORT"
    assert answers["fork"] == answers["execute"] == answers["execute own"] == "ENOSYS"
    assert answers["/etc/shadow"] == answers["list /tmp"] == "EACCES"
    assert answers["kill"] == answers["pidfd"] == answers["outlive"] == "EPERM"
    assert decoy.poll() is None


def test_files_of_the_engine_keep_their_modes(seen: dict[str, Seen]) -> None:
    assert seen["modes"].stdout == "refused\n"


@pytest.mark.parametrize("name", ["unlinked", "many", "large"])
def test_scratch_is_bounded_also_where_no_name_is_left(seen: dict[str, Seen], name: str) -> None:
    ran = seen[name]
    assert (ran.status, ran.limit, ran.codes) == ("error", "scratch", ["scratch-limit"])


@pytest.mark.parametrize("name", ["deep", "closed"])
def test_folders_that_are_hard_to_remove_are_removed(seen: dict[str, Seen], name: str) -> None:
    assert seen[name].status == "ok", seen[name]  # the fixture has looked for what is left


def test_what_a_fence_cannot_give_is_diagnosed(seen: dict[str, Seen]) -> None:
    assert seen["sockets"].codes == ["fenced-no-sockets"]
    assert seen["store"].codes == ["fenced-no-sockets"]
    assert seen["processes"].codes == ["fenced-no-processes"]
    assert "Line 3" not in seen["processes"].stdout


def test_threads_and_simulations_work_within_a_fence(seen: dict[str, Seen]) -> None:
    assert seen["threads"].stdout == "20\n"
    assert seen["simulated"].stdout == "8\n"


def test_a_program_without_end_is_stopped(seen: dict[str, Seen]) -> None:
    assert (seen["endless"].status, seen["endless"].limit) == ("timeout", "wall")


def test_more_ranks_than_one_are_refused_before_they_start(seen: dict[str, Seen]) -> None:
    ran = seen["two ranks"]
    assert (ran.status, ran.codes) == ("refused", ["fenced-one-rank"])
    assert "one rank only" in ran.stderr
    assert ran.stdout == ""


def test_after_all_that_a_program_runs_at_once(seen: dict[str, Seen]) -> None:
    assert (seen["afterwards"].status, seen["afterwards"].stdout) == ("ok", "2.0\n")


# ------------------------------------------------------------------ the command line
def test_command_says_why_it_refuses_and_exits_with_3(tmp_path: Path) -> None:
    needs_fence()
    program = tmp_path / "program.py"
    program.write_text("print('ran')\n", encoding="utf-8")
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    done = subprocess.run(
        [
            *(*NO_NAMESPACES, script, "sh", sys.executable, "-m", "app.cli"),
            *("run", str(program), "--ranks", "2", "--json"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=PROJECT,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["status"] == "engine_failure"
    (found,) = outcome["diagnosis"]
    assert found["code"] == "fenced-one-rank"
    assert found["args"]["ranks"] == 2
    assert "user.max_user_namespaces=10000" in done.stderr


# ------------------------------------------------------------------ parts
def test_covered_folders_are_left_out_of_what_is_allowed(tmp_path: Path) -> None:
    for name in ("packages/torch", "packages/app", "packages/other", "usr"):
        (tmp_path / name).mkdir(parents=True)
    whole, opened = around(
        [str(tmp_path / "packages"), str(tmp_path / "usr")], [str(tmp_path / "packages/app")]
    )
    assert opened == [str(tmp_path / "packages")]
    names = {str(Path(path).relative_to(tmp_path)) for path in whole}
    assert names == {"packages/torch", "packages/other", "usr"}


def test_a_link_out_of_the_scratch_removes_nothing_outside(tmp_path: Path) -> None:
    kept, scratch = tmp_path / "kept", tmp_path / "scratch"
    kept.mkdir()
    (kept / "file").write_text("kept", encoding="ascii")
    (scratch / "a" / "b").mkdir(parents=True)
    (scratch / "link").symlink_to(kept)
    (scratch / "a" / "b" / "link").symlink_to(kept / "file")
    (scratch / "a").chmod(0)
    remove_scratch(str(scratch))
    assert not scratch.exists()
    assert (kept / "file").read_text(encoding="ascii") == "kept"


def test_scratch_counts_bytes_and_entries(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"x" * 100_000)
    pid = [os.getpid()]
    assert not is_over(str(tmp_path), (), limit_bytes=1 << 20, limit_inodes=2)
    assert is_over(str(tmp_path), (), limit_bytes=50_000, limit_inodes=2)
    assert is_over(str(tmp_path), (), limit_bytes=1 << 20, limit_inodes=1)
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(b"x" * 200_000)
        file.flush()
        assert is_over(str(tmp_path), pid, limit_bytes=250_000, limit_inodes=100)
        assert not is_over(str(tmp_path), (), limit_bytes=250_000, limit_inodes=100)


def test_folders_of_killed_supervisors_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Path(tempfile.mkdtemp())
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    gone = subprocess.Popen(["true"])
    gone.wait()
    for name in (f"academy-run-{gone.pid}-abc", f"academy-run-{os.getpid()}-abc", "other"):
        (room / name).mkdir()
        (room / name / "file").touch()
    sweep_scratch()
    left = sorted(path.name for path in room.iterdir())
    shutil.rmtree(room)
    assert left == sorted([f"academy-run-{os.getpid()}-abc", "other"])
