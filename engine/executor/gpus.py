"""Who holds which GPU of this machine, and slots of ranks on GPUs. May import slots and warm.

A run has its GPUs to itself: their memory is what the lessons measure, nobody bounds what one run
takes of it, and what a learner computes there is nobody else's to slow down or to read.
"""

from collections.abc import Iterable, Sequence

from engine.executor.slots import Slot
from engine.executor.warm import WarmParent
from engine.sandbox.choice import SandboxChoice


class GpuPool:
    """The GPUs that no run holds."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._free = set(numbers)

    def has(self, num_gpus: int) -> bool:
        """Whether so many are free."""
        return num_gpus <= len(self._free)

    def take(self, num_gpus: int) -> tuple[int, ...]:
        """Hold so many, those with the lowest numbers, until they are given back."""
        assert self.has(num_gpus), "a run was started before its GPUs were free"
        taken = tuple(sorted(self._free)[:num_gpus])
        self._free -= set(taken)
        return taken

    def give_back(self, numbers: Iterable[int]) -> None:
        """The run that held them has ended."""
        self._free |= set(numbers)


class GpuSlots:
    """Slots of ranks on GPUs: their warm parent starts with the first run that needs it."""

    def __init__(self, *, sandbox: SandboxChoice) -> None:
        self._warm = WarmParent(sandbox=sandbox, num_parked=0, runs_on="cuda")

    async def take(self, gpus: Sequence[int]) -> Slot:
        """A slot whose ranks reach these GPUs and no other.

        Raises: SandboxUnavailable, EngineCrashed.
        """
        await self._warm.start()
        return await self._warm.take(gpus)

    async def close(self) -> None:
        """End the warm parent, if there is one."""
        await self._warm.close()
