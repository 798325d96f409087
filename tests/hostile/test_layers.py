"""Which layer stops what: each attack is stopped by each of its layers alone, and by nothing else.

An attack is tried with all of its layers left out, and then it succeeds: so the program is an
attack, and no layer outside the list hides what is proved. Then it is tried with each of the layers
in turn, as the only one of them, and fails. All other layers are in place every time.
"""

import subprocess

import pytest
from pydantic import TypeAdapter

from engine.sandbox.choice import Layer
from tests.hostile.layers_host import ABSTRACT, PORT, SHARED_KEY, Answer, Trial
from tests.hostile.machine import NotHere, command

SUCCESS, STOPPED = "SUCCEEDED", "stopped"
_LIBC = "import ctypes, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"
_SAY = f"\nprint('{SUCCESS}' if done else '{STOPPED}', flush=True)\n"
_LIMIT_S = 300


def attack(expression: str, before: str = "") -> str:
    """A program that says whether what the expression tries has been done."""
    tried = f"try:\n    done = {expression}"
    failed = "except OSError as error:\n    done = False\n    print(error)"
    return f"{_LIBC}{before}\n{tried}\n{failed}{_SAY}"


ATTACKS: dict[str, tuple[str, tuple[Layer, ...]]] = {
    "reads the host's password hashes": (
        attack("bool(open('/.old/etc/shadow').read())"),
        ("root", "identity", "landlock"),
    ),
    "reads a file of the host that everyone may": (
        attack("bool(open('/.old/etc/hostname').read())"),
        ("root", "landlock"),
    ),
    "executes a file that it wrote": (
        attack(
            "os.posix_spawn('/work/own', ['own'], {}) > 0",
            "import shutil\nshutil.copy('/usr/bin/env', '/work/own')\nos.chmod('/work/own', 0o755)",
        ),
        ("root", "landlock"),
    ),
    "signals a process of the host": (
        attack("os.kill(VICTIM, 0) is None"),
        ("pid", "identity", "landlock"),
    ),
    "reaches an abstract socket of the host": (
        attack(f"socket.socket(socket.AF_UNIX).connect({ABSTRACT!r}) is None"),
        ("network", "landlock"),
    ),
    "reaches a service on the host's loopback": (
        attack(f"socket.create_connection(('127.0.0.1', {PORT}), 3) is not None"),
        ("network",),  # what could forbid it by port would forbid gloo's, which the kernel picks
    ),
    "attaches shared memory of the host": (
        attack(f"libc.shmget({SHARED_KEY}, 0, 0) >= 0"),
        ("ipc", "seccomp"),
    ),
    "mounts": (
        attack("libc.mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0"),
        ("identity", "capabilities", "seccomp", "landlock"),
    ),
    "opens a raw socket": (
        attack("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) is not None"),
        ("identity", "capabilities", "seccomp"),
    ),
    "makes a user namespace of its own": (
        attack("libc.unshare(0x10000000) == 0"),
        ("user_namespaces", "seccomp"),
    ),
    "starts processes without end": (
        attack(
            "len(started) >= 400",
            "started = []\n"
            "try:\n"
            "    while len(started) < 400:\n"
            "        pid = os.fork()\n"
            "        if pid == 0:\n"
            "            import signal; signal.pause()\n"
            "        started.append(pid)\n"
            "except OSError as error:\n"
            "    print(error)\n",
        ),
        ("rlimits", "cgroup"),
    ),
    "takes more memory than its limit": (
        attack(
            "len([x for x in kept if x[0] == 1]) == 12",
            "kept = []\nfor _ in range(12):\n    kept.append(bytearray(b'\\1') * (64 << 20))",
        ),
        ("rlimits", "cgroup", "watchdog"),
    ),
}


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, tuple[Layer, ...]], Answer]:
    """What came of each attack with each set of layers left out."""
    trials = [
        Trial(attack=name, source=source, without=without)
        for name, (source, layers) in ATTACKS.items()
        for without in (layers, *(_all_but(layer, layers) for layer in layers))
    ]
    try:
        words = command("root", ["-m", "tests.hostile.layers_host"])
    except NotHere as why:
        pytest.skip(str(why))
    done = subprocess.run(
        words,
        input=TypeAdapter(list[Trial]).dump_json(trials),
        capture_output=True,
        check=False,
        timeout=_LIMIT_S,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    given = [TypeAdapter(Answer).validate_json(line) for line in done.stdout.splitlines()]
    return {(answer.attack, answer.without): answer for answer in given}


def _all_but(layer: Layer, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return tuple(other for other in layers if other != layer)


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_succeeds_without_its_layers(
    answers: dict[tuple[str, tuple[Layer, ...]], Answer], name: str
) -> None:
    assert SUCCESS in answers[name, ATTACKS[name][1]].says


@pytest.mark.parametrize(
    ("name", "layer"), [(name, layer) for name, (_, layers) in ATTACKS.items() for layer in layers]
)
def test_each_layer_alone_stops_the_attack(
    answers: dict[tuple[str, tuple[Layer, ...]], Answer], name: str, layer: Layer
) -> None:
    answer = answers[name, _all_but(layer, ATTACKS[name][1])]
    if layer == "cgroup" and not answer.has_groups:
        pytest.skip("no control groups can be made here")
    assert STOPPED in answer.says or answer.status in (
        "out_of_memory",
        "sandbox_violation",
        "error",
    )
    assert SUCCESS not in answer.says
