"""What isolation an executor asks its warm parents for. May import the standard library only."""

from dataclasses import dataclass
from typing import Literal

Tier = Literal["fortified", "walled", "fenced", "open"]
TIERS: tuple[Tier, ...] = ("fortified", "walled", "fenced", "open")
"""Strongest first."""

Layer = Literal[
    "pid",
    "network",
    "ipc",
    "root",
    "identity",
    "capabilities",
    "no_new_privs",
    "landlock",
    "seccomp",
    "rlimits",
    "dumpable",
    "user_namespaces",
    "cgroup",
    "watchdog",
]
"""One wall that a test can leave out, to see what else stops an attack:

- pid, network, ipc: the namespace of that name; user_namespaces: that no further one can be made.
- root: the curated mount namespace; identity: the learner's own user id; dumpable: PR_SET_DUMPABLE.
- rlimits, cgroup, watchdog: the three that bound what a run takes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxChoice:
    """Which tiers are good enough; the strongest that this machine can make is taken."""

    allow_open: bool = False
    """The operator opted out: run without isolation where there is none."""
    at_most: Tier = "fortified"
    """No stronger tier than this one: `open` is what `allow_open` alone may bring about."""
    without: frozenset[Layer] = frozenset()
    """Layers to leave out: for tests only, no setting and no command reaches it."""
