"""What isolation an executor asks its warm parents for. May import the standard library only."""

from dataclasses import dataclass
from typing import Literal, Self

Tier = Literal["fortified", "walled", "fenced", "open"]
TIERS: tuple[Tier, ...] = ("fortified", "walled", "fenced", "open")
"""Strongest first."""

Demand = Literal["auto", "fortified", "walled", "fenced"]
"""What an operator may ask for: the strongest tier that there is, or one and no other."""

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
    at_least: Tier = "open"
    """No weaker tier than this one: where it cannot be made, nothing runs."""
    without: frozenset[Layer] = frozenset()
    """Layers to leave out: for tests only, no setting and no command reaches it."""

    @classmethod
    def demanded(cls, demand: Demand, *, allow_open: bool = False) -> Self:
        """What an operator asked for, who opted out of isolation where there is none, or did not.

        Raises: ValueError when both were asked for, one tier only and none at all.
        """
        if demand == "auto":
            return cls(allow_open=allow_open)
        if allow_open:
            raise ValueError(f"choose the tier {demand}, or runs without isolation: not both")
        return cls(at_most=demand, at_least=demand)
