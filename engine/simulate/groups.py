"""Process groups of a simulation: torch's fake backend, whatever backend the program names.

May import torch and engine.torch_cpu.groups. The program's own rank and the world's size are those
of its environment unless it says them itself, as with a real rendezvous.
"""

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from torch.distributed import ProcessGroup
from torch.testing._internal.distributed.fake_pg import FakeStore

from engine.torch_cpu.groups import replace_everywhere

P = ParamSpec("P")
R = TypeVar("R")
_BACKEND = "fake"
_CPU_BACKEND = "gloo"


def adapt_groups(num_ranks: int) -> None:
    """Let every process group be a fake one, the default one with num_ranks ranks."""

    def for_default(stock: Callable[P, R]) -> Callable[P, R]:
        return _with_fake_backend(stock, functools.partial(_default_group, num_ranks))

    def for_others(stock: Callable[P, R]) -> Callable[P, R]:
        return _with_fake_backend(stock, _other_group)

    replace_everywhere("init_process_group", for_default)
    replace_everywhere("new_group", for_others)
    # SyncBatchNorm takes another way over backends other than gloo; CPU ranks take gloo's.
    setattr(ProcessGroup, "_get_backend_name", _backend_name)  # noqa: B010 - it has another type


def _backend_name(_: ProcessGroup) -> str:
    return _CPU_BACKEND


def _with_fake_backend(
    stock: Callable[P, R], adapt: Callable[[dict[str, object]], None]
) -> Callable[P, R]:
    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def adapted(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # wrong arguments: stock says which
            return stock(*args, **kwargs)
        adapt(bound.arguments)
        return stock(*bound.args, **bound.kwargs)

    return adapted


def _default_group(num_ranks: int, arguments: dict[str, object]) -> None:
    for name in ("init_method", "pg_options", "device_id"):
        arguments.pop(name, None)
    arguments["backend"] = _BACKEND
    arguments["store"] = FakeStore()
    if arguments.get("world_size", -1) == -1:
        arguments["world_size"] = num_ranks
    if arguments.get("rank", -1) == -1:
        arguments["rank"] = 0


def _other_group(arguments: dict[str, object]) -> None:
    for name in ("pg_options", "device_id"):
        arguments.pop(name, None)
    arguments["backend"] = _BACKEND
