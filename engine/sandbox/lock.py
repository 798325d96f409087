"""The last steps inside a rank before learner code: identity, capabilities, Landlock, seccomp.

May import the rest of engine.sandbox. Everything here is one way.
"""

import os
from dataclasses import dataclass

from engine.sandbox import landlock, linux
from engine.sandbox.choice import Layer
from engine.sandbox.root import DEVICES, LEARNER_ID, SCRATCH, RootPlan, readable_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """What a rank locks itself into; built once, before the fork."""

    plan: RootPlan
    seccomp_filter: bytes
    changes_user: bool
    """The sandbox was built by root: ranks must take the learner's id themselves."""
    without: frozenset[Layer] = frozenset()
    """Layers that a test leaves out."""
    is_fenced: bool = False
    """No namespaces: the rank is kept in by `engine.sandbox.fence` instead."""
    for_gpus: bool = False

    @property
    def is_walled(self) -> bool:
        """Whether the run has namespaces and a root of its own."""
        return not self.is_fenced


def become_learner() -> None:
    """Take the learner's user and group id for good."""
    os.setresgid(LEARNER_ID, LEARNER_ID, LEARNER_ID)
    os.setresuid(LEARNER_ID, LEARNER_ID, LEARNER_ID)


def engage(lock: Lock) -> None:
    """Lock this process. Raises: OSError when a layer cannot be put up (then nothing may run)."""
    give_up_powers(lock)
    if "no_new_privs" in lock.without:
        return  # the kernel grants Landlock and seccomp to those only who cannot gain privileges
    if "landlock" not in lock.without:
        landlock.restrict(
            read_only=readable_paths(lock.plan),
            read_write=SCRATCH,
            devices=(*DEVICES, *lock.plan.gpu_nodes),
            shares_abstract_sockets=bool(lock.plan.gpu_nodes),  # NCCL hands memory over by them
        )
    if "seccomp" not in lock.without:
        linux.load_seccomp(lock.seccomp_filter)


def give_up_powers(lock: Lock) -> None:
    """Take the learner's identity and give up what makes a process more than an ordinary one."""
    if "capabilities" not in lock.without:
        linux.drop_bounding_set()  # needs a capability that a change of user gives up
    if lock.changes_user and "identity" not in lock.without:
        become_learner()
    if "capabilities" not in lock.without:
        linux.drop_capabilities()
    if "no_new_privs" not in lock.without:
        linux.set_no_new_privs()
