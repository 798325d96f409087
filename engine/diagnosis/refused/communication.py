"""Refusals of process groups and collectives. May import the engine's leaves.

In the order in which they are asked: a more special one stands before a more general one.
"""

from engine.diagnosis.refused.refusal import Refusal

COMMUNICATION: tuple[Refusal, ...] = (
    Refusal(
        code="group-destroyed",
        message=(
            r"Default process group has not been initialized|Invalid process group specified|"
            r"is not initialized"
        ),
        after="destroy_process_group",
    ),
    Refusal(
        code="group-not-initialised",
        message=(
            r"Default process group has not been initialized|"
            r"needs a non-CPU accelerator device"
        ),
    ),
    Refusal(
        code="init-twice",
        message=(r"initialize the default process group twice"),
    ),
    Refusal(
        code="backend-missing",
        message=(
            r"Unknown backend type (?P<name>\S+)|doesn't have (?P<other>\w+) built in|"
            r"Invalid backend: '(?P<third>\w+)'"
        ),
    ),
    Refusal(
        code="init-environment",
        message=(r"environment variable (?P<name>\w+) expected, but not set"),
    ),
    Refusal(
        code="init-incomplete",
        message=(r"rendezvous: (?P<name>rank|world size|world_size) parameter missing"),
    ),
    Refusal(
        code="timeout-type",
        message=(r"Expected timeout argument to be of type"),
    ),
    Refusal(
        code="rank-too-large",
        message=(r"rank < size\. (?P<given>\d+) vs (?P<size>\d+)"),
    ),
    Refusal(
        code="port-in-use",
        message=(r"EADDRINUSE|address already in use"),
    ),
    Refusal(
        code="root-not-in-group",
        message=(
            r"invalid root rank: (?P<given>-?\d+)|Rank (?P<other>-?\d+) is out of range|"
            r"(?P<third>\d+) is not in range|out of range\. Valid ranks"
        ),
    ),
    Refusal(
        code="group-too-large",
        message=(r"new group's (world size|rank) should be"),
    ),
    Refusal(
        code="group-is-no-group",
        message=(r"unhashable type: '(?P<name>list|set|dict)'"),
        text=r"group|all_reduce|all_gather|broadcast|reduce|scatter|barrier",
        source=r"\bgroup\s*=\s*|ProcessGroup|dist\.",
    ),
    Refusal(
        code="rank-in-no-group",
        message=(r"^-1$"),
        source=r"get_(group_)?rank\(\s*[^)\s]",
    ),
    Refusal(
        code="not-a-member",
        message=(
            r"is not part of group|Invalid process group specified|Group .* is not registered|"
            r"_verify_params_across_processes\(\): incompatible|"
            r"not belong to the given group|Global rank \d+ is not part"
        ),
    ),
    Refusal(
        code="ranks-repeated",
        message=(r"ranks list must not contain duplicate|Rank list .* duplicate"),
    ),
    Refusal(
        code="peer-is-itself",
        message=(
            r"should not be the same as the rank of the current process|Pair is not connected|"
            r"Invalid (destination|source) rank"
        ),
    ),
    Refusal(
        code="list-length",
        message=(
            r"invalid output tensor list|output lists should be equal to world size|"
            r"Incorrect input list size (?P<given>\d+)|list index out of range$|"
            r"list assignment index out of range|invalid (input|output) (tensor )?list|"
            r"tensor list.*(must|should) (be|have)"
        ),
        text=r"gather|scatter|all_to_all|object|batch_isend",
    ),
    Refusal(
        code="shapes-uneven",
        message=(
            r"invalid tensor size at index|outputShape\[0\] \* worldSize|"
            r"output tensor size must be equal to world_size|dim 0 does not divide equally|"
            r"Number of tensor splits|Split sizes doesn't match|"
            r"input tensor must be the same size"
        ),
    ),
    Refusal(
        code="gathered-dtypes",
        message=(
            r"tensors with different dtypes|Invalid usage of tensors with different dtypes|"
            r"Tensors must have identical type|must have the same (type|dtype) as"
        ),
    ),
    Refusal(
        code="list-on-wrong-rank",
        message=(r"Argument ``(?P<name>\w+)`` must (NOT )?be specified on"),
    ),
    Refusal(
        code="not-a-tensor",
        message=(r"Expected parameter `(?P<name>\w+)`"),
    ),
    Refusal(
        code="reduce-op",
        message=(
            r"ReduceOp' has no attribute '(?P<name>\w+)'|Cannot use ReduceOp\.(?P<other>\w+)|"
            r"Unhandled ReduceOp|incompatible function arguments"
        ),
        text=r"reduce|op=|ReduceOp|scatter",
    ),
    Refusal(
        code="average-of-integers",
        message=(r"can't be cast to the desired output type"),
        text=r"reduce",
    ),
    Refusal(
        code="dtype-not-supported",
        message=(
            r"Invalid scalar type|Unsupported (data ?type|dtype)|not supported for .*gloo|"
            r"unsupported.*scalar"
        ),
        text=r"dist|reduce|gather|broadcast|scatter|send|recv",
    ),
    Refusal(
        code="no-handle",
        message=(r"'NoneType' object has no attribute '(wait|is_completed|get_future)'"),
    ),
    Refusal(
        code="collective-returns-nothing",
        message=(r"'NoneType'"),
        source=(
            r"=\s*(torch\.)?(dist|distributed)\.(all_reduce|broadcast|all_gather|reduce|gather|"
            r"scatter|reduce_scatter|all_to_all|all_gather_object|broadcast_object_list)"
            r"\((?![^\n]*async_op)"
        ),
    ),
    Refusal(
        code="collective-arguments",
        message=(
            r"(?P<name>(all_|_)?(gather|reduce|reduce_scatter|to_all|scatter|broadcast|send|recv)\w*)"
            r"\(\) (missing|takes|got)"
        ),
        text=r"gather|reduce|to_all|scatter|broadcast|send|recv",
    ),
    Refusal(
        code="not-contiguous",
        message=(r"[Tt]ensors? must be contiguous|non-contiguous|is not contiguous"),
    ),
    Refusal(
        code="object-not-picklable",
        message=(r"[Cc]an't pickle|cannot pickle|not picklable"),
    ),
    Refusal(
        code="p2p-op",
        message=(r"Invalid ``op``\. Expected ``op`` to be of type|Invalid ``p2p_op_list``"),
    ),
    Refusal(
        code="monitored-barrier",
        message=(
            r"\[Rank (?P<given>\d+)\]: Ranks? (?P<absent>[\d, ]+) "
            r"failed to pass monitoredBarrier in (?P<limit_ms>\d+) ms"
        ),
    ),
    Refusal(
        code="spawn-inside",
        message=(
            r"terminated with exit code|An attempt has been made to start a new process|"
            r"daemonic processes are not allowed"
        ),
        source=r"\bspawn\s*\(",
    ),
    Refusal(
        code="environment-name",
        message=(
            r"^'(?P<name>(LOCAL_|GLOBAL_|NODE_|WORLD_|MASTER_|SLURM_|OMPI_)\w*|RANKS?|RANK_ID|"
            r"NPROC\w*)'$"
        ),
    ),
)
