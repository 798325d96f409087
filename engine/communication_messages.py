"""English sentences of what torch refuses of groups and collectives. Standard library only."""

from collections.abc import Mapping
from types import MappingProxyType

COMMUNICATION: Mapping[str, str] = MappingProxyType(
    {
        "group-destroyed": (
            "Line {line} (`{call}`), rank {rank}: the process group is gone: "
            "`destroy_process_group` on line {at} came before this call. Destroy it last, after "
            "every collective, save and metric. (PyTorch: {detail})"
        ),
        "group-not-initialised": (
            "Line {line} (`{call}`), rank {rank}: there is no process group yet. Call "
            "`torch.distributed.init_process_group()` on every rank before anything that "
            "communicates: collectives, `get_rank()`, DDP, FSDP, ZeroRedundancyOptimizer, "
            "DistributedSampler. (PyTorch: {detail})"
        ),
        "init-twice": (
            "Line {line} (`{call}`), rank {rank}: the default process group already exists. Call "
            "`init_process_group` once per program; guard a second place with `if not "
            "dist.is_initialized():`, and make further groups with `new_group`. (PyTorch: {detail})"
        ),
        "backend-missing": (
            "Line {line} (`{call}`), rank {rank}: this backend does not exist here. Use `gloo` for "
            "CPU ranks and `nccl` for GPUs, or leave the argument out. (PyTorch: {detail})"
        ),
        "init-environment": (
            "Line {line} (`{call}`), rank {rank}: `init_process_group` reads {name} from the "
            "environment, and it is not there any more. torchrun sets RANK, WORLD_SIZE, "
            "MASTER_ADDR and MASTER_PORT for every rank: do not delete or replace them. (PyTorch: "
            "{detail})"
        ),
        "init-incomplete": (
            "Line {line} (`{call}`), rank {rank}: with an `init_method` of its own, "
            "`init_process_group` also needs `rank` and `world_size`. Under torchrun leave "
            "`init_method` out: everything is in the environment. (PyTorch: {detail})"
        ),
        "timeout-type": (
            "Line {line} (`{call}`), rank {rank}: a timeout is a `datetime.timedelta`, for example "
            "`timeout=timedelta(seconds=30)`, not a number. (PyTorch: {detail})"
        ),
        "rank-too-large": (
            "Line {line} (`{call}`), rank {rank}: rank {given} does not exist in a group of "
            "{size}: ranks count from 0 to world_size - 1, and each rank must give its own. "
            "torchrun sets RANK and WORLD_SIZE, so `init_process_group` needs neither argument. "
            "(PyTorch: {detail})"
        ),
        "port-in-use": (
            "Line {line} (`{call}`), rank {rank}: the port is already taken, by another rank or "
            "another program. Only one process may listen on it: let torchrun choose MASTER_PORT, "
            "do not set it or pass `tcp://...` yourself, and do not start a second group on the "
            "same port. (PyTorch: {detail})"
        ),
        "root-not-in-group": (
            "Line {line} (`{call}`), rank {rank}: a rank was named that does not exist in this "
            "group. Ranks count from 0 to world_size - 1; `src` and `dst` are global ranks also in "
            "a subgroup. (PyTorch: {detail})"
        ),
        "group-too-large": (
            "Line {line} (`{call}`), rank {rank}: a group's list names ranks that this run does "
            "not have. Ranks count from 0 to the world size - 1: make the list from "
            "`dist.get_world_size()`. (PyTorch: {detail})"
        ),
        "group-is-no-group": (
            "Line {line} (`{call}`), rank {rank}: `group` must be a process group, not a {name} "
            "of ranks. Make it once with `group = dist.new_group(ranks)`, on all ranks, and pass "
            "that. (PyTorch: {detail})"
        ),
        "rank-in-no-group": (
            "Line {line} (`{call}`), rank {rank}: `get_rank(group)` is -1 on a rank that is not a "
            "member of the group, and that was used as a rank or an index. Let only members go "
            "on: `if dist.get_rank(group) >= 0:`. (PyTorch: {detail})"
        ),
        "collective-returns-nothing": (
            "Line {line} (`{call}`), rank {rank}: a value is None here, and the program keeps "
            "what a collective returned: a collective returns nothing, but works in the tensor "
            "(or list) that it is given. Call `dist.all_reduce(x)` on a line of its own, and go "
            "on with `x`. (PyTorch: {detail})"
        ),
        "collective-arguments": (
            "Line {line} (`{call}`), rank {rank}: `{name}` was not given what it takes. What is "
            "received comes first: `all_gather(list_of_tensors, tensor)`, "
            "`all_gather_into_tensor(output, input)`, `reduce_scatter_tensor(output, input)`, "
            "`scatter(tensor, scatter_list, src)`. Allocate the output, one entry per rank in a "
            "list. (PyTorch: {detail})"
        ),
        "not-a-member": (
            "Line {line} (`{call}`), rank {rank}: this rank, or the rank named as `src` or `dst`, "
            "is not a member of the group. Only members may call a group's collectives (`if rank "
            "in ranks:`), and src and dst must be global ranks of members; "
            "`dist.get_global_rank(group, i)` gives them. (PyTorch: {detail})"
        ),
        "ranks-repeated": (
            "Line {line} (`{call}`), rank {rank}: a group's list of ranks names one rank twice. "
            "Each member may appear once. (PyTorch: {detail})"
        ),
        "peer-is-itself": (
            "Line {line} (`{call}`), rank {rank}: a rank cannot send to itself or receive from "
            "itself. Compute the peer for every rank, and skip the communication where it would be "
            "the rank itself (`if peer != rank:`). (PyTorch: {detail})"
        ),
        "list-length": (
            "Line {line} (`{call}`), rank {rank}: the list needs one entry per rank of the group: "
            "build it with `[... for _ in range(dist.get_world_size())]`, on every rank that "
            "passes it. (PyTorch: {detail})"
        ),
        "shapes-uneven": (
            "Line {line} (`{call}`), rank {rank}: the sizes do not fit the number of ranks. In "
            "all_gather every rank brings the same shape; gathered into one tensor, it has "
            "world_size times the input's rows; reduce_scatter and all_to_all_single divide "
            "dimension 0 evenly. Pad to the largest shape, or gather the sizes first. (PyTorch: "
            "{detail})"
        ),
        "gathered-dtypes": (
            "Line {line} (`{call}`), rank {rank}: the tensors of one call must have one dtype. "
            "Allocate the outputs with `torch.empty_like(tensor)`, so that they follow the input. "
            "(PyTorch: {detail})"
        ),
        "list-on-wrong-rank": (
            "Line {line} (`{call}`), rank {rank}: `{name}` belongs to the root rank alone: pass "
            "the list there, and `None` on all others, for example `{name}=parts if rank == root "
            "else None`. (PyTorch: {detail})"
        ),
        "not-a-tensor": (
            "Line {line} (`{call}`), rank {rank}: a collective moves tensors: pass a "
            "`torch.Tensor` for `{name}`, for example `torch.tensor(value)`. Lists of tensors go "
            "to the list forms, and Python objects to `all_gather_object` or "
            "`broadcast_object_list`. (PyTorch: {detail})"
        ),
        "reduce-op": (
            "Line {line} (`{call}`), rank {rank}: this is no reduction for these values. `op` is a "
            "member of `dist.ReduceOp`: SUM, AVG, PRODUCT, MIN, MAX, and for integers BAND, BOR, "
            "BXOR. For a mean use AVG on floating point, or SUM and divide by the world size. "
            "(PyTorch: {detail})"
        ),
        "average-of-integers": (
            "Line {line} (`{call}`), rank {rank}: an average of integers is no integer. Convert to "
            "floating point before an all_reduce with AVG, or use SUM and divide afterwards. "
            "(PyTorch: {detail})"
        ),
        "dtype-not-supported": (
            "Line {line} (`{call}`), rank {rank}: gloo does not know this dtype. Convert to a "
            "floating point or integer dtype before the call (float32, bfloat16, int64, uint8), "
            "and back afterwards. (PyTorch: {detail})"
        ),
        "no-handle": (
            "Line {line} (`{call}`), rank {rank}: this collective returned None instead of a "
            "handle: only with `async_op=True` (or `isend`, `irecv`) is there something to wait "
            "for, and only on members of the group. (PyTorch: {detail})"
        ),
        "not-contiguous": (
            "Line {line} (`{call}`), rank {rank}: this call needs contiguous memory. Pass "
            "`tensor.contiguous()`, and copy the result back where the call writes into it. "
            "(PyTorch: {detail})"
        ),
        "object-not-picklable": (
            "Line {line} (`{call}`), rank {rank}: object collectives pickle what they send: "
            "lambdas, local functions, open files and locks cannot travel. Send plain data, and "
            "rebuild the rest on the other side. (PyTorch: {detail})"
        ),
        "p2p-op": (
            "Line {line} (`{call}`), rank {rank}: a `P2POp` takes `dist.isend` or `dist.irecv`, "
            "the functions that do not wait; `batch_isend_irecv` takes a list of such operations, "
            "at least one. (PyTorch: {detail})"
        ),
        "monitored-barrier": (
            "Line {line} (`{call}`), rank {rank}: rank {absent} did not reach the "
            "monitored_barrier within its timeout of {limit_ms} ms. At that moment: {where}. Every "
            "rank must call it, in time. (PyTorch: {detail})"
        ),
        "spawn-inside": (
            "Line {line} (`{call}`), rank {rank}: the ranks are already running: torchrun (and "
            "this site) starts one process per rank. Leave `mp.spawn` out, and read the rank from "
            "`dist.get_rank()`. (PyTorch: {detail})"
        ),
        "environment-name": (
            "Line {line} (`{call}`), rank {rank}: the environment has no {name}. torchrun sets "
            "RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. "
            "(PyTorch: {detail})"
        ),
    }
)
