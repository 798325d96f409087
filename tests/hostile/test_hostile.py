"""Every hostile program ends as its header says, says nothing forbidden, and leaves nothing behind.

On each tier that this machine makes, as root and as an ordinary user; after each, a normal run
works at once. Which layer stops what is proved in test_layers.
"""

import re

import pytest

from tests.hostile.conftest import DESCRIBED, Host, Place
from tests.hostile.host import Level

ALL = tuple(DESCRIBED)
ON_ONE_RANK = tuple(
    name for name, d in DESCRIBED.items() if d.hostile.num_ranks == 1 and not d.tiers
)
HARMLESS = ("11_infinite_loop", "26_deadlock", "27_segv_rank", "28_os_exit", "29_stdin",
            "42_leaves_early", "43_rng_shared", "57_binary_output")  # fmt: skip
"""What an unprotected machine can bear."""
ON_EACH_SIDE = ("02_server_files", "05_other_run", "07_fork_bomb", "08_mem_bomb", "13_kill",
                "14_ptrace", "25_daemon", "36_execute_written", "61_stat_of_the_host")  # fmt: skip
"""One attack of each kind: the outer sandbox stands around the same walls."""
PLACES: dict[Place, tuple[str, ...]] = {
    ("root", "fortified"): ON_EACH_SIDE,
    ("root", "walled"): ALL,
    ("ordinary", "walled"): ALL,
    ("root", "fenced"): ON_ONE_RANK,
    ("ordinary", "fenced"): ON_ONE_RANK,
    ("ordinary", "open"): HARMLESS,
}
LAYERS = {"pid", "network", "ipc", "root", "identity", "capabilities", "no_new_privs", "landlock",
          "seccomp", "rlimits", "dumpable", "user_namespaces", "cgroup", "watchdog"}  # fmt: skip
OTHER_STOPS = {"environment", "descriptors", "rank", "wire", "output", "supervisor", "wall"}
"""What stops an attack without being a layer that tests can leave out."""


@pytest.mark.parametrize(
    ("place", "name"),
    [(place, name) for place, names in PLACES.items() for name in names],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_attack_fails_and_leaves_nothing_behind(host: Host, place: Place, name: str) -> None:
    _, tier = place
    report, described = host.report(place, name), DESCRIBED[name]
    assert report.status in described.outcomes
    said = re.search(described.not_says, report.text)
    assert said is None, [line for line in report.text.splitlines() if "BREACH" in line] or said
    assert report.left == {}
    assert report.is_decoy_alive
    assert report.normal == ("ok sum 1.0" if tier == "fenced" else f"ok sum 2.0{_files(tier)}")


def _files(tier: Level) -> str:
    return " program.py" if tier in ("fortified", "walled") else ""


@pytest.mark.parametrize("name", ALL)
def test_header_names_what_stops_the_attack(name: str) -> None:
    stops = DESCRIBED[name].stopped_by
    assert stops
    assert set(stops) <= LAYERS | OTHER_STOPS
