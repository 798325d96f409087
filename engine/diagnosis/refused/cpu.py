"""Refusals of ranks without a GPU, of batch norm and of empty shards. May import the leaves.

In the order in which they are asked: a more special one stands before a more general one.
"""

from engine.diagnosis.refused.refusal import Refusal

ON_CPU: tuple[Refusal, ...] = (
    Refusal(
        code="accelerator-missing",
        message=r"Cannot access accelerator device when none is available|[Nn]eed .*to pin memory",
    ),
    Refusal(
        code="device-id-on-cpu",
        message=r"device_id .* does not match the current compilation's accelerator",
    ),
    Refusal(
        code="hook-needs-nccl",
        message=r"communication hook required CUDA",
    ),
    Refusal(
        code="syncbn-in-transform",
        message=r"it must override the setup_context staticmethod",
        source=r"SyncBatchNorm",
    ),
    Refusal(
        code="batch-norm-channels",
        message=r"(running_mean|weight) should contain (?P<given>\d+) elements not (?P<size>\d+)",
    ),
    Refusal(
        code="batch-norm-integers",
        message=r"\"batch_norm\w*\" not implemented for|var_mean only support floating point",
    ),
    Refusal(
        code="hybrid-without-groups",
        message=r"requires explicit specification of process group or device_mesh",
    ),
    Refusal(
        code="clip-of-float64",
        message=r"vector_norm: the dtype of the input \(Double\)",
        source=r"FullyShardedDataParallel",
    ),
    Refusal(
        code="norm-of-no-elements",
        message=r"cannot compute the infinity norm on an empty tensor",
    ),
    Refusal(
        code="reduce-op",
        message=r"unsupported reduction operation|does not support RedOpType\.\w+ on complex",
    ),
)
