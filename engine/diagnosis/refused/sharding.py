"""Refusals of FSDP, fully_shard, DTensor and device meshes. May import the engine's leaves.

In the order in which they are asked: a more special one stands before a more general one.
"""

from engine.diagnosis.refused.refusal import Refusal

SHARDING: tuple[Refusal, ...] = (
    Refusal(
        code="tied-weights",
        message=(
            r"size mismatch, got input|setStorage: sizes|"
            r"shape .* is invalid for input of size|'weight' must be 2-D"
        ),
        source=r"FullyShardedDataParallel|fsdp",
        tied=True,
    ),
    Refusal(
        code="no-copy-of-shards",
        message=(
            r"does not support deepcopy|deepcopy protocol|"
            r"base or another view of its base has been modified inplace"
        ),
        text=r"copy",
    ),
    Refusal(
        code="fsdp-forward-bypassed",
        message=(
            r"setStorage: sizes .* out of bounds for storage of size 0|"
            r"size mismatch, got input \(\d+\), mat|"
            r"base or another view of its base has been modified inplace|'weight' must be 2-D|"
            r"weight should (have at least|be)|non-zero size"
        ),
        source=r"FullyShardedDataParallel",
    ),
    Refusal(
        code="clip-on-inner",
        message=(r"`clip_grad_norm_\(\)` should only be called on the root"),
    ),
    Refusal(
        code="no-sync-on-inner-unit",
        message=(r"`no_sync\(\)` on inner FSDP instances"),
    ),
    Refusal(
        code="frozen-and-trained-flat",
        message=(r"uniform `requires_grad`"),
    ),
    Refusal(
        code="flat-dtypes",
        message=(r"uniform dtype but got|expects uniform original parameter dtype"),
    ),
    Refusal(
        code="scalar-parameter",
        message=(r"doesn't support scalar parameters\. Change (?P<name>\S+) to a 1D"),
    ),
    Refusal(
        code="summon-options",
        message=(r"writeback=True and rank0_only=True|offload_to_cpu=True and NO_SHARD|rank0_only"),
    ),
    Refusal(
        code="summon-in-forward",
        message=(
            r"Expects tensor to be unsharded|"
            r"Cannot manually unshard parameters during forward|non-root FSDP instance.*summon"
        ),
    ),
    Refusal(
        code="inner-before-root",
        message=(r"Non-root FSDP instance's `_is_root`|_is_root should not have been set"),
    ),
    Refusal(
        code="wrap-policy",
        message=(r"'(set|list|tuple|type)' object is not callable"),
        text=r"policy|FSDP|FullyShard",
        source=r"auto_wrap_policy",
    ),
    Refusal(
        code="hybrid-groups",
        message=(r"Expected process_group to be passed in as either None or Tuple"),
    ),
    Refusal(
        code="optimizer-over-views",
        message=(r"can't optimize a non-leaf Tensor"),
    ),
    Refusal(
        code="view-in-place",
        message=(r"is a view and is being modified inplace"),
    ),
    Refusal(
        code="sharded-twice",
        message=(r"can only be applied to a module once"),
    ),
    Refusal(
        code="shard-a-container",
        message=(r"does not support containers that do not implement forward"),
    ),
    Refusal(
        code="shard-inside-out",
        message=(
            r"Invariant encountered: value was None when it should not be|"
            r"already been applied.*parent"
        ),
        source=r"fully_shard",
    ),
    Refusal(
        code="shard-on-meta",
        message=(
            r"should be materialized from meta device|on meta device|meta tensors|"
            r"is a meta tensor"
        ),
    ),
    Refusal(
        code="shared-between-units",
        message=(
            r"is shared with a parameter already managed by another FSDP group|"
            r"(?P<name>\S+) is shared"
        ),
    ),
    Refusal(
        code="mesh-dimensions",
        message=(r"expects a 1D or 2D DeviceMesh|2D DeviceMesh"),
    ),
    Refusal(
        code="mesh-without-names",
        message=(
            r"Cannot slice a DeviceMesh without mesh_dim_names|"
            r"Invalid mesh_dim_names? (?P<name>.*) specified"
        ),
    ),
    Refusal(
        code="mesh-too-large",
        message=(
            r"Mesh should not be bigger than default world size (?P<size>\d+), "
            r"but found (?P<given>\d+)"
        ),
    ),
    Refusal(
        code="reshard-factor",
        message=(
            r"reshard_after_forward as an int, it should be a factor "
            r"of (?P<size>\d+), not (?P<given>\d+)"
        ),
    ),
    Refusal(
        code="strided-parameter",
        message=(r"does not support non-contiguous parameters"),
    ),
    Refusal(
        code="clip-mixed-kinds",
        message=(
            r"_foreach_norm\.\w+ got mixed torch\.Tensor and DTensor|"
            r"_foreach_(?P<name>\w+)\.\w+ got mixed"
        ),
    ),
    Refusal(
        code="load-plain-into-sharded",
        message=(r"Error\(s\) in loading state_dict[\s\S]*got mixed torch\.Tensor and DTensor"),
    ),
    Refusal(
        code="optimizer-state-plain",
        message=(r"got mixed torch\.Tensor and DTensor"),
        text=r"\.step\(",
        source=r"\w*opt\w*\.load_state_dict\(",
    ),
    Refusal(
        code="gradient-not-sharded",
        message=(r"sharded_param\.grad to be DTensor"),
    ),
    Refusal(
        code="sharded-has-no-module",
        message=(r"'FSDP\w+' object has no attribute 'module'"),
    ),
    Refusal(
        code="shard-dimension",
        message=(r"Dimension out of range"),
        text=r"Shard|distribute|redistribute|parallelize",
    ),
    Refusal(
        code="mixed-with-dtensor",
        message=(r"(?P<name>[\w.]+) got mixed torch\.Tensor and DTensor"),
    ),
    Refusal(
        code="dtensor-to-numpy",
        message=(
            r"\.numpy\(\) is not supported for tensor subclasses|"
            r"Cannot access data pointer of Tensor that doesn't have storage|"
            r"\.tolist\(\) is not supported for tensor subclasses"
        ),
    ),
    Refusal(
        code="dtensor-in-collective",
        message=(r"Operator c10d\.(?P<name>\w+)\.default does not have a sharding strategy"),
    ),
    Refusal(
        code="dtensor-no-strategy",
        message=(r"Operator (?P<name>[\w.]+) does not have a sharding strategy"),
    ),
    Refusal(
        code="other-meshes",
        message=(r"on inputs with different meshes|cross.?mesh|different (device )?mesh"),
    ),
    Refusal(
        code="placements-length",
        message=(r"`?placements`? must have the same length as `?device_mesh\.ndim`?"),
    ),
    Refusal(
        code="shard-dimension",
        message=(
            r"Sharding dim -?\d+ (greater|less) than tensor ndim|Shard(ing)? dim .* out of range"
        ),
    ),
    Refusal(
        code="to-partial",
        message=(
            r"redistribut\w+ (to|from \S+ to) P(artial)?|"
            r"redistributing to Partial is for internal use"
        ),
    ),
    Refusal(
        code="tensor-parallel-layer",
        message=(r"(?P<name>(Colwise|Rowwise)Parallel) currently only support"),
    ),
    Refusal(
        code="tensor-parallel-heads",
        message=(r"shape '.*' is invalid for input of size"),
        source=r"ColwiseParallel|RowwiseParallel",
    ),
    Refusal(
        code="local-shard-used",
        message=(
            r"The size of tensor a .* must match the size of tensor b|"
            r"mat1 and mat2 shapes cannot be multiplied"
        ),
        source=r"\.to_local\(",
    ),
)
