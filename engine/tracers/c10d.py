"""The schemas of the c10d ops: which argument is what, and the call in torch's public words.

May import torch. Bytes are those of this rank's view: what it gives (input) and what it is left
with (output), so a broadcast has no input except at its root and a reduce no output except there.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed import ProcessGroup, distributed_c10d


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One c10d op: the public name of its collective and the positions of its arguments."""

    name: str
    public: str
    group: int
    input: int | None = None
    output: int | None = None
    root: int | None = None
    """Group rank of the one rank that has the input (broadcast) or the output (reduce)."""
    peer: int | None = None
    """Group rank of the other end of a point-to-point call."""
    point_to_point: bool = False

    @property
    def moves_shards(self) -> bool:
        """Whether FSDP uses it for the parameters and gradients of a unit."""
        return self.public in ("all_gather", "reduce_scatter", "all_reduce")


def _move(name: str, public: str) -> Op:
    """An op of the usual schema (outputs, inputs, group, ...)."""
    return Op(name=name, public=public, output=0, input=1, group=2)


C10D_OPS: tuple[Op, ...] = (
    Op(name="allreduce_", public="all_reduce", input=0, output=0, group=1),
    Op(name="allreduce_coalesced_", public="all_reduce", input=0, output=0, group=1),
    Op(name="broadcast_", public="broadcast", input=0, output=0, group=1, root=2),
    Op(name="reduce_", public="reduce", input=0, output=0, group=1, root=3),
    _move("allgather_", "all_gather"),
    _move("_allgather_base_", "all_gather"),
    _move("allgather_coalesced_", "all_gather"),
    _move("allgather_into_tensor_coalesced_", "all_gather"),
    _move("reduce_scatter_", "reduce_scatter"),
    _move("_reduce_scatter_base_", "reduce_scatter"),
    _move("reduce_scatter_tensor_coalesced_", "reduce_scatter"),
    _move("alltoall_", "all_to_all"),
    _move("alltoall_base_", "all_to_all"),
    _move("gather_", "gather"),
    _move("scatter_", "scatter"),
    Op(name="barrier", public="barrier", group=1),
    Op(name="monitored_barrier_", public="monitored_barrier", group=1),
    Op(name="send", public="send", input=0, group=1, peer=2, point_to_point=True),
    Op(name="recv_", public="recv", output=0, group=1, peer=2, point_to_point=True),
    Op(name="recv_any_source_", public="recv", output=0, group=1, point_to_point=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a c10d op on this rank."""

    group: str
    group_ranks: tuple[int, ...]
    input_bytes: int
    output_bytes: int
    dtype: str | None
    peer: int | None


def read_call(op: Op, args: tuple[object, ...]) -> Call:
    """Read the arguments of a call of op."""
    group = args[op.group]
    if not isinstance(group, torch.ScriptObject):
        raise AssertionError(f"{op.name} was called without a process group")
    pg = ProcessGroup.unbox(group)
    inputs = [] if op.input is None else list(_tensors(args[op.input]))
    outputs = output_tensors(op, args)
    dtype = next((str(t.dtype).removeprefix("torch.") for t in inputs + outputs), None)
    if op.root is not None and args[op.root] != pg.rank():
        inputs = inputs if op.public == "reduce" else []
        outputs = outputs if op.public == "broadcast" else []
    ranks = group_ranks(pg)
    peer = None if op.peer is None else args[op.peer]
    return Call(
        group=pg.group_name,
        group_ranks=ranks,
        input_bytes=_num_bytes(inputs),
        output_bytes=_num_bytes(outputs),
        dtype=dtype,
        peer=ranks[peer] if isinstance(peer, int) and 0 <= peer < len(ranks) else None,
    )


def output_tensors(op: Op, args: tuple[object, ...]) -> list[Tensor]:
    """The tensors that a call of op writes."""
    return [] if op.output is None else list(_tensors(args[op.output]))


def group_ranks(pg: ProcessGroup) -> tuple[int, ...]:
    """Global ranks of the group in the order of their group ranks."""
    known = distributed_c10d._world.pg_group_ranks.get(pg)
    # A group made without torch.distributed's registry has no global ranks.
    return tuple(range(pg.size())) if known is None else tuple(sorted(known, key=known.__getitem__))


def _tensors(arg: object) -> Iterator[Tensor]:
    if isinstance(arg, Tensor):
        yield arg
    elif isinstance(arg, (list, tuple)):
        for item in arg:
            yield from _tensors(item)


def _num_bytes(tensors: list[Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)
