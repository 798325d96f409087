"""Process groups on CPU ranks: nccl becomes gloo, and destroyed groups stay referenced.

May import torch and engine.torch_cpu.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch.distributed as dist
from torch.distributed import distributed_c10d

from engine.torch_cpu.notes import Notes

P = ParamSpec("P")
R = TypeVar("R")


class KeptGroups:
    """Every process group that the program destroyed.

    Freeing a ProcessGroupGloo joins a thread that may want the GIL while the GIL is held, and
    the rank hangs at its exit (pytorch#56297, #190489). A group kept here is never freed.
    """

    def __init__(self) -> None:
        self.groups: list[dist.ProcessGroup] = []
        self._is_keeping = False

    def begin(self) -> None:
        """Keep from now on; the warm parent's own rehearsals need nothing kept."""
        self._is_keeping = True

    def install(self) -> None:
        """Stand in for every destroy_process_group."""
        replace_everywhere("destroy_process_group", self._keeping)

    def _keeping(self, stock: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(stock)
        def destroy_process_group(*args: P.args, **kwargs: P.kwargs) -> R:
            if self._is_keeping:
                known = distributed_c10d._world.pg_map
                self.groups.extend(group for group in known if group not in self.groups)
            return stock(*args, **kwargs)

        return destroy_process_group


def adapt_backends(notes: Notes) -> None:
    """Let init_process_group and new_group take gloo where the program names nccl."""

    def adapt(stock: Callable[P, R]) -> Callable[P, R]:
        return _without_nccl(stock, notes)

    replace_everywhere("init_process_group", adapt)
    replace_everywhere("new_group", adapt)


def _without_nccl(stock: Callable[P, R], notes: Notes) -> Callable[P, R]:
    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def adapted(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # wrong arguments: stock says which
            return stock(*args, **kwargs)
        backend = bound.arguments.get("backend")
        if not isinstance(backend, str) or "nccl" not in backend.lower():
            return stock(*args, **kwargs)
        notes.add("nccl-to-gloo", {"backend": backend})
        bound.arguments["backend"] = "gloo"
        return stock(*bound.args, **bound.kwargs)

    return adapted


def replace_everywhere(name: str, wrap: Callable[[Callable[P, R]], Callable[P, R]]) -> None:
    """Replace the function `name` of torch.distributed in every torch module that holds it."""
    stock = vars(distributed_c10d)[name]
    wrapped = wrap(stock)
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "torch" and vars(module).get(name) is stock:
            setattr(module, name, wrapped)
