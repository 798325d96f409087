"""Refusals in training with DDP, batch norm and optimizers. May import the engine's leaves.

In the order in which they are asked: a more special one stands before a more general one.
"""

from engine.diagnosis.refused.refusal import Refusal

TRAINING: tuple[Refusal, ...] = (
    Refusal(
        code="ddp-static-graph-changed",
        message=(r"training graph has changed in this iteration"),
    ),
    Refusal(
        code="ddp-unused-parameters",
        message=(r"Expected to have finished reduction in the prior iteration"),
    ),
    Refusal(
        code="ddp-ready-twice",
        message=(r"mark a variable ready only once"),
    ),
    Refusal(
        code="second-backward",
        message=(r"backward through the graph a second time"),
    ),
    Refusal(
        code="modified-in-place",
        message=(r"modified by an inplace operation"),
    ),
    Refusal(
        code="nothing-to-train",
        message=(r"is not needed when a module doesn't have any parameter"),
    ),
    Refusal(
        code="wrapper-has-no-attribute",
        message=(
            r"'(?P<wrapper>DistributedDataParallel|"
            r"FullyShardedDataParallel)' object has no attribute '(?P<name>\w+)'"
        ),
    ),
    Refusal(
        code="wrapper-not-subscriptable",
        message=(
            r"'(?P<wrapper>DistributedDataParallel|"
            r"FullyShardedDataParallel)' object is not (subscriptable|iterable)|"
            r"object of type '(?P<other>DistributedDataParallel|"
            r"FullyShardedDataParallel)' has no len"
        ),
    ),
    Refusal(
        code="no-sync-not-called",
        message=(r"'method' object does not support the context manager protocol"),
        text=r"no_sync|join|summon",
    ),
    Refusal(
        code="no-sync-on-sharded",
        message=(r"'FSDP\w+' object has no attribute 'no_sync'"),
    ),
    Refusal(
        code="method-of-wrapper",
        message=(r"object has no attribute '(?P<name>no_sync|register_comm_hook)'"),
    ),
    Refusal(
        code="not-joinable",
        message=(
            r"object has no attribute 'join_hook'|requires all objects to be Joinable|"
            r"join.*not.*Joinable"
        ),
    ),
    Refusal(
        code="uninitialized-lazy",
        message=(r"uninitialized parameter|Modules with uninitialized parameters can't be used"),
    ),
    Refusal(
        code="comm-hook-twice",
        message=(r"register_comm_hook or register_builtin_comm_hook can only be called once"),
    ),
    Refusal(
        code="comm-hook-signature",
        message=(
            r"^'bucket'$|Communication hook: (bucket|return) annotation|"
            r"callback must return a torch\.futures"
        ),
        text=r"comm_hook|backward",
    ),
    Refusal(
        code="ddp-models-differ",
        message=(
            r"appears not to match (sizes|strides) of the same param|"
            r"DDP expects same model across all ranks"
        ),
    ),
    Refusal(
        code="ddp-device-ids",
        message=(
            r"device_ids can only be None or contain a single element|"
            r"device_ids and output_device arguments (only work|were specified)|"
            r"DistributedDataParallel device_ids"
        ),
    ),
    Refusal(
        code="empty-parameter-list",
        message=(r"got an empty parameter list"),
    ),
    Refusal(
        code="loss-not-scalar",
        message=(r"grad can be implicitly created only for scalar outputs"),
    ),
    Refusal(
        code="inference-tensor",
        message=(
            r"Inference tensors cannot be saved for backward|[Ii]nplace update to inference tensor"
        ),
    ),
    Refusal(
        code="label-out-of-range",
        message=(r"Target (?P<name>-?\d+) is out of bounds|index out of range in self"),
    ),
    Refusal(
        code="pipeline-microbatches",
        message=(r"Failed to run stage (forward|backward)|[Ss]hape mismatch.*stage"),
        source=r"pipelining",
    ),
    Refusal(
        code="loss-without-graph",
        message=(r"does not require grad and does not have a grad_fn"),
    ),
    Refusal(
        code="syncbn-input-shape",
        message=(r"expected at least 2D input"),
    ),
    Refusal(
        code="syncbn-double-backward",
        message=(r"derivative for aten::batch_norm_backward_elemt is not implemented"),
    ),
    Refusal(
        code="unpacks-dtypes",
        message=(
            r"must have the same dtype|expected scalar type \w+ but found \w+|"
            r"Input type .* and (weight|bias) type .* should be the same"
        ),
    ),
    Refusal(
        code="on-another-device",
        message=(
            r"Expected all tensors to be on the same device|is on device \w+.* but expected|"
            r"on different device"
        ),
    ),
    Refusal(
        code="zero-not-consolidated",
        message=(r"Optimizer state has not been consolidated"),
    ),
    Refusal(
        code="zero-optimizer-class",
        message=(
            r"missing 1 required positional argument: 'optimizer_class'|"
            r"'(?P<name>\w+)' object is not callable"
        ),
        text=r"Zero|optimizer_class|ZeRO",
    ),
    Refusal(
        code="zero-one-dtype",
        message=(r"ZeroRedundancyOptimizer only supports using the same dense type"),
    ),
    Refusal(
        code="zero-overlap-on-gloo",
        message=(r"Overlapping DDP with ZeRO may meet hangs"),
    ),
    Refusal(
        code="zero-overlap-setup",
        message=(r"overlap_with_ddp|hook_with_zero|has not been fully initialized"),
        source=r"ZeroRedundancyOptimizer",
    ),
    Refusal(
        code="optimizer-state-mismatch",
        message=(
            r"loaded state dict (contains a parameter group that doesn't match|"
            r"has a different number of parameter groups)|"
            r"doesn't match the size of optimizer's group"
        ),
    ),
    Refusal(
        code="iterable-with-sampler",
        message=(r"IterableDataset: expected unspecified sampler"),
    ),
    Refusal(
        code="sampler-and-shuffle",
        message=(r"sampler option is mutually exclusive with shuffle"),
    ),
    Refusal(
        code="sampler-rank",
        message=(r"Invalid rank (?P<given>\d+), rank should be in the interval"),
    ),
)
