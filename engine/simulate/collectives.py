"""Collectives of simulated tensors: nothing is sent, and every call has ended at once.

May import torch. Kernels for the c10d ops at the Meta key, below the tracers. A Work is made of a
future that has the call's outputs as its result, as gloo's have: DDP's reducer takes them from
there, and the futures of torch's own fake process group have none.
"""

import torch
from torch import Tensor
from torch._C import _distributed_c10d
from torch._C._distributed_c10d import Work

_OUTPUTS_AND_WORK = (
    "allreduce_",
    "broadcast_",
    "allgather_",
    "_allgather_base_",
    "reduce_scatter_",
    "_reduce_scatter_base_",
    "alltoall_",
    "scatter_",
)
_WORK = (
    "allreduce_coalesced_",
    "reduce_",
    "allgather_coalesced_",
    "allgather_into_tensor_coalesced_",
    "reduce_scatter_tensor_coalesced_",
    "alltoall_base_",
    "gather_",
    "barrier",
    "send",
    "recv_",
    "recv_any_source_",
)


def register_collectives() -> torch.library.Library:
    """Register the kernels; they live as long as the library that is returned."""
    library = torch.library.Library("c10d", "IMPL")  # type: ignore[no-untyped-call]
    for name in _OUTPUTS_AND_WORK:
        library.impl(name, _outputs_and_work, "Meta", allow_override=True)  # type: ignore[no-untyped-call]
    for name in _WORK:
        library.impl(name, _work_only, "Meta", allow_override=True)  # type: ignore[no-untyped-call]
    library.impl("monitored_barrier_", _nothing, "Meta", allow_override=True)  # type: ignore[no-untyped-call]
    return library


def _outputs_and_work(outputs: object, *_: object) -> tuple[object, torch.ScriptObject]:
    return outputs, _work(outputs)


def _work_only(outputs: object, *_: object) -> torch.ScriptObject:
    return _work(outputs)


def _nothing(*_: object) -> None:
    return None


def _work(outputs: object) -> torch.ScriptObject:
    future: torch.futures.Future[list[Tensor]] = torch.futures.Future()
    tensors = [outputs] if isinstance(outputs, Tensor) else outputs
    if isinstance(tensors, list) and tensors and isinstance(tensors[0], list):
        tensors = tensors[0]
    future.set_result(tensors if isinstance(tensors, list) else [])
    # torch has no type for it
    work: Work = _distributed_c10d._create_work_from_future(future)  # type: ignore[attr-defined]
    return work.boxed()
