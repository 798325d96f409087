"""What the warm parent puts in place for memory tracers. May import torch and what is beside it."""

from typing import Protocol

from torch import Tensor, UntypedStorage

from engine.facts import Category
from engine.tracers.memory.owners import watch_registrations
from engine.tracers.memory.storages import watch_resizes


class Told(Protocol):
    """Who is told of what no op tells of."""

    def resized(self, storage: UntypedStorage) -> None:
        """A storage was resized from Python."""

    def registered(self, tensor: Tensor, category: Category) -> None:
        """A module has got a parameter or a buffer."""


class MemoryHooks:
    """What the warm parent has put in place for all ranks; silent until a tracer takes it over."""

    def __init__(self) -> None:
        self.tracer: Told | None = None

    def install(self) -> None:
        """Watch what no op tells of: resized storages, registered parameters and buffers."""
        watch_resizes(self._resized)
        watch_registrations(self._parameter, self._buffer)

    def _resized(self, storage: UntypedStorage) -> None:
        if self.tracer is not None:
            self.tracer.resized(storage)

    def _parameter(self, parameter: Tensor) -> None:
        if self.tracer is not None:
            self.tracer.registered(parameter, "parameter")

    def _buffer(self, buffer: Tensor) -> None:
        if self.tracer is not None:
            self.tracer.registered(buffer, "buffer")


def prepare_memory() -> MemoryHooks:
    """Install the hooks in this process and all that fork from it."""
    hooks = MemoryHooks()
    hooks.install()
    return hooks
