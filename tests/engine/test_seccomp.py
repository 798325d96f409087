"""Both filters, interpreted for both architectures: what passes, what is refused, and how."""

import errno

import pytest

from engine.sandbox.fence_filter import build_fence_filter
from engine.sandbox.seccomp import ALLOWED, build_filter
from engine.sandbox.syscalls import Machine, numbers
from tests.engine.bpf import ALLOW, ARCH, ERRNO, KILL, MACHINES, Ruled, interpret

EPERM, ENOSYS = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS
NO_SOCKETS = ERRNO | errno.EAFNOSUPPORT
OWN, OTHER = 4711, 4712
MAX_INSTRUCTIONS = 4096
"""The kernel's BPF_MAXINSNS."""


def walls(machine: Machine) -> Ruled:
    return Ruled(machine=machine, program=build_filter(machine))


def fence(machine: Machine, *, owns_only_scratch: bool = False) -> Ruled:
    program = build_fence_filter(machine, OWN, owns_only_scratch=owns_only_scratch)
    return Ruled(machine=machine, program=program)


@pytest.fixture(params=["walls", "fence"])
def make(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> Machine:
    return "x86_64" if request.param == "x86_64" else "aarch64"


@pytest.fixture
def ruled(make: str, machine: Machine) -> Ruled:
    return walls(machine) if make == "walls" else fence(machine)


# ------------------------------------------------------------------ both filters
DANGEROUS = """
ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp
mount umount2 pivot_root chroot unshare setns move_mount open_tree fsopen fsmount mount_setattr
bpf perf_event_open userfaultfd keyctl add_key request_key
init_module finit_module delete_module kexec_load reboot swapon swapoff acct
shmget shmat memfd_create memfd_secret personality quotactl syslog
open_by_handle_at name_to_handle_at fanotify_init vmsplice
seccomp landlock_create_ruleset capset mknod settimeofday clock_settime adjtimex
sethostname setdomainname mbind set_mempolicy migrate_pages move_pages lookup_dcookie nfsservctl
"""


def test_no_process_leaves_the_session_that_bounds_all_runs(ruled: Ruled) -> None:
    assert ruled.answer("setsid") == EPERM


def test_a_filter_fits_into_the_kernel(ruled: Ruled) -> None:
    assert len(ruled.program) % 8 == 0
    assert len(ruled.program) // 8 <= MAX_INSTRUCTIONS


def test_every_dangerous_call_that_has_a_number_is_refused(ruled: Ruled) -> None:
    table = numbers(ruled.machine)
    asked = [name for name in DANGEROUS.split() if name in table]
    assert {"ptrace", "mount", "bpf", "keyctl", "memfd_create", "pivot_root"} <= set(asked)
    assert {name: ruled.answer(name) for name in asked} == dict.fromkeys(asked, EPERM)


def test_every_number_without_a_name_is_refused(ruled: Ruled) -> None:
    known = set(numbers(ruled.machine).values())
    unknown = set(range(max(known))) - known
    answers = {interpret(ruled.program, ARCH[ruled.machine], number) for number in unknown}
    assert answers == {EPERM}
    assert len(unknown) > 50


@pytest.mark.parametrize(
    "name", ["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"]
)
def test_what_libraries_can_do_without_seems_unknown(ruled: Ruled, name: str) -> None:
    assert ruled.answer(name) == ENOSYS


def test_calls_newer_than_the_table_seem_unknown(ruled: Ruled) -> None:
    newest = max(numbers(ruled.machine).values())
    assert interpret(ruled.program, ARCH[ruled.machine], newest + 1) == ENOSYS
    assert interpret(ruled.program, ARCH[ruled.machine], 0x3FFFFFFF) == ENOSYS


@pytest.mark.parametrize(
    "arch",
    [0x40000003, 0x40000028, 0xC0000015, 0x8, 0],
    ids=["i386", "arm", "ppc64le", "mips", "none"],
)
def test_another_architectures_calls_kill(ruled: Ruled, arch: int) -> None:
    for number in (0, 1, 11, 59, 221, 999):  # int80 speaks i386 in a process of x86_64
        assert interpret(ruled.program, arch, number) == KILL


def test_the_other_of_both_architectures_kills(ruled: Ruled) -> None:
    (other,) = set(MACHINES) - {ruled.machine}
    assert interpret(ruled.program, ARCH[other], numbers(ruled.machine)["read"]) == KILL


@pytest.mark.parametrize("number", [0, 39, 59, 512, 547, 0x3FFFFFFF])
def test_x32_calls_kill(make: str, number: int) -> None:
    ruled = walls("x86_64") if make == "walls" else fence("x86_64")
    assert interpret(ruled.program, ARCH["x86_64"], 0x40000000 | number) == KILL


@pytest.mark.parametrize("name", ["read", "write", "futex", "openat", "exit_group", "getrandom"])
def test_ordinary_calls_pass(ruled: Ruled, name: str) -> None:
    assert ruled.answer(name) == ALLOW


@pytest.mark.parametrize(
    "flag",
    [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000],
)
def test_no_clone_makes_a_namespace(ruled: Ruled, flag: int) -> None:
    threads = 0x3D0F00
    assert ruled.answer("clone", threads) == ALLOW
    assert ruled.answer("clone", threads | flag) == EPERM


def test_limits_of_other_processes_are_out_of_reach(ruled: Ruled) -> None:
    assert ruled.answer("prlimit64", 0, 7) == ALLOW
    assert ruled.answer("prlimit64", OTHER, 7) == EPERM


def test_shared_anonymous_memory_is_refused(ruled: Ruled) -> None:
    assert ruled.answer("mmap", 0, 4096, 3, 0x22) == ALLOW
    assert ruled.answer("mmap", 0, 4096, 3, 0x01) == ALLOW
    assert ruled.answer("mmap", 0, 4096, 3, 0x21) == EPERM
    assert ruled.answer("mmap", 0, 4096, 3, 0x40021) == EPERM
    assert ruled.answer("mmap", 0, 4096, 3, 0x122) == EPERM  # MAP_GROWSDOWN


def test_terminals_pipes_and_names_are_left_alone(ruled: Ruled) -> None:
    assert ruled.answer("ioctl", 0, 0x5401) == ALLOW
    assert ruled.answer("ioctl", 0, 0x5412) == EPERM
    assert ruled.answer("ioctl", 0, 0x541C) == EPERM
    assert ruled.answer("fcntl", 0, 2) == ALLOW
    assert ruled.answer("fcntl", 0, 1031) == EPERM
    assert ruled.answer("prctl", 15) == EPERM


def test_upper_halves_of_arguments_change_no_answer(ruled: Ruled) -> None:
    high = 0xFFFF_FFFF << 32  # the kernel looks at the lower half of these
    assert ruled.answer("ioctl", 0, high | 0x5412) == EPERM
    assert ruled.answer("prlimit64", high | OTHER) == EPERM
    assert ruled.answer("mmap", 0, 4096, 3, high | 0x21) == EPERM


# ------------------------------------------------------------------ within walls
@pytest.mark.parametrize(
    ("family", "protocol", "answer"),
    [(1, 0, ALLOW), (2, 0, EPERM), (10, 0, EPERM), (16, 0, ALLOW), (16, 9, EPERM)]
    + [(family, 0, EPERM) for family in (3, 15, 17, 29, 31, 38, 40, 44)],
)
def test_raw_socket_families_within_walls(
    machine: Machine, family: int, protocol: int, answer: int
) -> None:
    assert walls(machine).answer("socket", family, 3, protocol) == answer


@pytest.mark.parametrize("family", [1, 2, 10])
@pytest.mark.parametrize("kind", [1, 2, 1 | 0o2000000 | 0o4000, 2 | 0o2000000])
def test_streams_and_datagrams_within_walls(machine: Machine, family: int, kind: int) -> None:
    assert walls(machine).answer("socket", family, kind, 0) == ALLOW
    assert walls(machine).answer("socket", family, kind | 3, 0) == (ALLOW if family == 1 else EPERM)


def test_processes_and_signals_are_free_within_walls(machine: Machine) -> None:
    ruled = walls(machine)
    assert ruled.answer("clone", 17) == ALLOW
    assert ruled.answer("execve") == ALLOW
    assert ruled.answer("kill", OTHER, 9) == ALLOW


# ------------------------------------------------------------------ fenced
@pytest.mark.parametrize("family", range(46))
def test_no_family_has_sockets_within_a_fence(machine: Machine, family: int) -> None:
    ruled = fence(machine)
    assert ruled.answer("socket", family, 1, 0) == NO_SOCKETS
    assert ruled.answer("socketpair", family, 1, 0) == NO_SOCKETS


def test_nothing_can_be_done_with_a_socket_within_a_fence(machine: Machine) -> None:
    names = [
        "accept",
        "accept4",
        "bind",
        "connect",
        "listen",
        "recvfrom",
        "recvmmsg",
        "recvmsg",
        "sendmmsg",
        "sendmsg",
        "sendto",
        "setsockopt",
        "getsockopt",
        "getsockname",
        "getpeername",
        "shutdown",
    ]
    assert {fence(machine).answer(name) for name in names} == {EPERM}


def test_a_fenced_rank_has_threads_and_no_processes(machine: Machine) -> None:
    ruled = fence(machine)
    assert ruled.answer("clone", 0x3D0F00) == ALLOW  # what pthread_create asks for
    assert ruled.answer("clone", 17) == ENOSYS  # fork
    assert ruled.answer("clone", 0x4111) == ENOSYS  # posix_spawn
    table = numbers(machine)
    for name in ("execve", "fork", "vfork"):
        assert name not in table or ruled.answer(name) == ENOSYS
    assert ruled.answer("execveat") == EPERM


@pytest.mark.parametrize("name", ["kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"])
def test_a_fenced_rank_signals_itself_only(machine: Machine, name: str) -> None:
    ruled = fence(machine)
    assert ruled.answer(name, OWN, 10) == ALLOW
    others = (OTHER, 1, 0, -1, -OWN, 2**32 + OTHER)
    assert {ruled.answer(name, pid, 9) for pid in others} == {EPERM}


def test_other_ways_to_another_process_are_closed_by_a_fence(machine: Machine) -> None:
    ruled = fence(machine)
    for name in ("pidfd_open", "pidfd_send_signal", "tkill", "setpgid"):
        assert ruled.answer(name, OWN) == EPERM
    for command in (8, 10, 15, 1026):  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY
        assert ruled.answer("fcntl", 0, command) == EPERM
    assert ruled.answer("ioctl", 0, 0x8901) == EPERM
    assert ruled.answer("prctl", 1, 0) == EPERM  # it cannot outlive its init
    for name in ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"):
        answers = [ruled.answer(name, pid) for pid in (0, OWN, OTHER, -1)]
        assert answers == [ALLOW, ALLOW, EPERM, EPERM]


def test_a_fenced_rank_sets_its_own_priority_only(machine: Machine) -> None:
    ruled = fence(machine)
    assert ruled.answer("setpriority", 0, 0, 5) == ALLOW
    assert ruled.answer("setpriority", 0, OTHER, 5) == EPERM
    assert ruled.answer("setpriority", 1, 0, 5) == EPERM
    assert ruled.answer("setpriority", 2, 0, 5) == EPERM


ATTRIBUTES = [
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "fchownat",
    "lchown",
    "utimensat",
    "utimes",
]


def test_files_of_the_engines_own_user_keep_their_modes(machine: Machine) -> None:
    table = numbers(machine)
    names = [name for name in ATTRIBUTES if name in table]
    assert {fence(machine).answer(name) for name in names} == {EPERM}
    assert {fence(machine, owns_only_scratch=True).answer(name) for name in names} == {ALLOW}


def test_a_fence_allows_nothing_that_walls_refuse(machine: Machine) -> None:
    inner, outer = fence(machine), walls(machine)
    table = numbers(machine)
    wider = [n for n in table if inner.answer(n) == ALLOW and outer.answer(n) != ALLOW]
    assert wider == []
    assert sum(inner.answer(n) == ALLOW for n in table) > 100


# ------------------------------------------------------------------ the tables
def test_every_allowed_call_is_in_a_table() -> None:
    known = set(numbers("x86_64")) | set(numbers("aarch64"))
    assert set(ALLOWED.split()) <= known


@pytest.mark.parametrize("name", MACHINES)
def test_no_two_calls_share_a_number(name: Machine) -> None:
    table = numbers(name)
    assert len(set(table.values())) == len(table)


def test_numbers_agree_with_those_of_the_kernels_interfaces() -> None:
    # Source: Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
    known = {
        "read": (0, 63),
        "openat": (257, 56),
        "execve": (59, 221),
        "clone": (56, 220),
        "ptrace": (101, 117),
        "mmap": (9, 222),
        "socket": (41, 198),
        "kill": (62, 129),
        "bpf": (321, 280),
        "seccomp": (317, 277),
        "clone3": (435, 435),
        "io_uring_setup": (425, 425),
        "landlock_create_ruleset": (444, 444),
    }
    for name, (x86, generic) in known.items():
        assert numbers("x86_64").get(name, x86) == x86
        assert numbers("aarch64").get(name, generic) == generic
