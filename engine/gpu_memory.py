"""How much of its GPU a rank's tensors may take. May import torch."""

import functools

import torch


def bound_gpu_memory(fraction: float, local_rank: int) -> None:
    """Let the caching allocator of this rank's GPU hold so much of its memory, once CUDA is used.

    What is left belongs to contexts, libraries and whatever else the machine shows on that GPU. It
    keeps mistakes in bounds, not attacks: the program itself can call what this calls. Other GPUs
    are left alone, since naming them would make a context on each.
    """
    bound = functools.partial(_bound, fraction, local_rank)
    torch.cuda._lazy_call(bound)  # type: ignore[no-untyped-call]


def _bound(fraction: float, local_rank: int) -> None:
    if local_rank < torch.cuda.device_count():  # the program may have hidden some from itself
        torch.cuda.set_per_process_memory_fraction(fraction, local_rank)
