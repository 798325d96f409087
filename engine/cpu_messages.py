"""English sentences of what torch refuses on ranks without a GPU. Standard library only.

A part of `engine.messages`; also of refusals that have to do with batch norm and with shards.
"""

from collections.abc import Mapping
from types import MappingProxyType

ON_CPU: Mapping[str, str] = MappingProxyType(
    {
        "accelerator-missing": (
            "Line {line} (`{call}`), rank {rank}: this needs an accelerator, and these ranks run "
            "on CPU. Memory is pinned only for copies to a GPU: leave `pin_memory` and FSDP1's "
            "`cpu_offload` out here, and give `fully_shard` `CPUOffloadPolicy(pin_memory=False)`. "
            "(PyTorch: {detail})"
        ),
        "device-id-on-cpu": (
            "Line {line} (`{call}`), rank {rank}: `device_id` binds the process group to a GPU, "
            "and these ranks run on CPU. Leave it out, or pass "
            "`device_id=torch.device('cuda', local_rank) if torch.cuda.is_available() else None`. "
            "(PyTorch: {detail})"
        ),
        "hook-needs-nccl": (
            "Line {line} (`{call}`), rank {rank}: this communication hook needs nccl, and these "
            "ranks use gloo. `fp16_compress_hook` halves the traffic on gloo as well. (PyTorch: "
            "{detail})"
        ),
        "syncbn-in-transform": (
            "Line {line} (`{call}`), rank {rank}: `torch.func` transforms and `vmap` cannot go "
            "through SyncBatchNorm, whose autograd function communicates and has no rule for "
            "them. Use `backward()` or `torch.autograd.grad`, or another norm layer there. "
            "(PyTorch: {detail})"
        ),
        "batch-norm-channels": (
            "Line {line} (`{call}`), rank {rank}: the input has {given} channels in dimension 1, "
            "but this batch norm layer was made for {size}. Make it with num_features={given}, or "
            "bring the channels to dimension 1 ([N, C, ...]). (PyTorch: {detail})"
        ),
        "batch-norm-integers": (
            "Line {line} (`{call}`), rank {rank}: batch norm computes in floating point only. "
            "Convert the input first, for example with `x.float()`. (PyTorch: {detail})"
        ),
        "hybrid-without-groups": (
            "Line {line} (`{call}`), rank {rank}: HYBRID_SHARD shards inside groups of ranks and "
            "replicates between them, so it must be told the groups. Pass `device_mesh=` with a "
            "mesh of two dimensions (replicate, shard), or a pair of groups as `process_group=`. "
            "(PyTorch: {detail})"
        ),
        "clip-of-float64": (
            "Line {line} (`{call}`), rank {rank}: FSDP takes the norm of the gradients in float32 "
            "and refuses float64 ones. Train in float32, or shard with `fully_shard` and clip with "
            "`torch.nn.utils.clip_grad_norm_`. (PyTorch: {detail})"
        ),
        "norm-of-no-elements": (
            "Line {line} (`{call}`), rank {rank}: this rank's shard of a parameter is empty, since "
            "its rows do not divide by the ranks, and an infinity norm of nothing is not defined. "
            "Use the 2-norm, or sizes that every rank gets a part of. (PyTorch: {detail})"
        ),
    }
)
