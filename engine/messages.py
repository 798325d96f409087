"""English sentences for note and diagnosis codes, with named arguments. Standard library only.

The app translates the same templates (they are the msgids of its catalogues), so a code's
sentence is written once here and once per further language.
"""

from collections.abc import Mapping
from types import MappingProxyType

from engine.collective_messages import COLLECTIVES
from engine.communication_messages import COMMUNICATION
from engine.cpu_messages import ON_CPU
from engine.facts import Args
from engine.limit_messages import LIMITS
from engine.mistakes import MISTAKES
from engine.sandbox_messages import SANDBOX
from engine.sharded_messages import SHARDED
from engine.training_messages import TRAINING

NOTES: Mapping[str, str] = MappingProxyType(
    {
        "syncbn-on-cpu": (
            "SyncBatchNorm ran on CPU ranks: stock PyTorch refuses CPU tensors here, so the five "
            "kernels that it lacks on CPU were supplied and its device check was lifted. Its "
            "autograd code and its collectives are the stock ones."
        ),
        "ddp-syncbn-check-lifted": (
            "DistributedDataParallel accepted SyncBatchNorm layers on CPU: its constructor's "
            "device check was lifted."
        ),
        "device-ids-dropped": (
            "device_ids={device_ids} was dropped: these ranks run on CPU, where "
            "DistributedDataParallel takes no device_ids."
        ),
        "fsdp-device-id": (
            "device_id=cpu was supplied to FullyShardedDataParallel: these ranks run on CPU, "
            "where stock PyTorch asks for a device_id."
        ),
        "fsdp-sync-check-lifted": (
            "FullyShardedDataParallel accepted sync_module_states=True on CPU: stock PyTorch "
            "broadcasts from GPU memory only, so this check was lifted."
        ),
        "fsdp-offload-on-cpu": (
            "FSDP's offloading of states to CPU was replaced by copies: these ranks hold all on "
            "CPU already, where stock PyTorch would go on with memory that it freed or overwrote."
        ),
        "nccl-to-gloo": (
            'The backend "{backend}" was replaced by "gloo": nccl needs one GPU per rank, and '
            "these ranks run on CPU."
        ),
        "auto-took-cpu": (
            "These ranks run on CPU. On GPUs each rank needs one of its own: {ranks} ranks were "
            "asked for, and the number of GPUs that this machine has for runs is {gpus}."
        ),
        "output-truncated": (
            "Rank {rank} printed more than {limit_kib} KiB; the rest of its output is not shown."
        ),
        "events-dropped": (
            "{count} trace lines of rank {rank} were malformed or too long and were dropped."
        ),
        "allocations-cut": (
            "A rank made more than {count} changes of memory: its detailed trace ends there, "
            "and the figures at boundaries go on."
        ),
        "memory-cut": (
            "A rank ran more than {count} tensor ops: what it holds is not traced from there on, "
            "since watching so many would slow it down. Collectives are."
        ),
        "unsandboxed": (
            "This run was not isolated: the operator started the engine without a sandbox."
        ),
    }
)

DIAGNOSES: Mapping[str, str] = MappingProxyType(
    {
        **COLLECTIVES,
        **TRAINING,
        **COMMUNICATION,
        **SHARDED,
        **SANDBOX,
        **ON_CPU,
        **LIMITS,
        "syntax-error": "Line {line} is not valid Python: {detail}.",
        "exception": "Rank {rank} raised {type} on line {line}: {detail}",
        "exception-outside": "Rank {rank} raised {type}: {detail}",
        "rank-exited": "Rank {rank} ended with exit code {exit}.",
        "no-network": (
            "Rank {rank} tried to reach the network on line {line}. Runs have no network: put what "
            "the program needs into the program itself."
        ),
        "rank-killed": "Rank {rank} was killed by signal {signal}.",
        "sandbox-violation": (
            "Rank {rank} made a system call that the sandbox forbids and was killed."
        ),
        "cuda-on-cpu-ranks": (
            "Line {line} asks for a CUDA device, but these ranks run on CPU. Write `{suggestion}` "
            "instead, with `{setup}` near the top."
        ),
        "one-sample-per-rank": (
            "The batch of rank {rank} has only one value per channel on line {line}, and BatchNorm "
            "cannot take a variance of one sample. Give every rank a batch of at least two "
            "samples, or convert to SyncBatchNorm, which uses the batch of all ranks."
        ),
        "forward-bypassed": (
            "Line {line} uses a sharded module without its forward on rank {rank}: its parameters "
            "are gathered by hooks around forward, so here they were still sharded. Call the "
            "model itself, or name the method with `register_fsdp_forward_method`."
        ),
        "cuda-call-on-cpu-ranks": (
            "Line {line} calls CUDA, but these ranks run on CPU. Write `{suggestion}` instead."
        ),
        "cannot-simulate": (
            "Line {line} reads the values of a tensor: `{call}`. Simulated ranks have tensors of "
            "the right shapes and sizes, but without values, so this line cannot be simulated. "
            "Take it out, or read shapes instead; to see values, run the program on real ranks."
        ),
        "cannot-simulate-call": (
            "Line {line} calls what works on the values of a tensor: `{call}`. Simulated ranks "
            "have tensors of the right shapes and sizes, but without values. Take the line out of "
            "the simulation, or run the program on real ranks."
        ),
        **MISTAKES,
        "cpu-tensor-on-gpu-ranks": (
            "Line {line} (`{call}`), rank {rank}: these ranks run on GPUs, and a tensor or module "
            "is still on CPU here. Put `{setup}` near the top and move it with `.to(device)`, or "
            "choose the device cpu for the run. (PyTorch: {detail})"
        ),
        "ranks-share-a-gpu": (
            "Several ranks use the same GPU, and nccl needs one for each rank. Put `{setup}` near "
            "the top, before `init_process_group`. (PyTorch: {detail})"
        ),
        "gpu-out-of-memory": (
            "Rank {rank} asked for more memory on line {line} than is left of the {percent} % of "
            "its GPU that a run may take. Use a smaller model or batch, or shard the model over "
            "more ranks. (PyTorch: {detail})"
        ),
        "cuda-no-gpu": (
            "The program was to run on the device cuda, and this machine has no GPU for runs "
            "(ranks: {ranks}, GPUs: {gpus}). Choose the device auto or cpu."
        ),
        "cuda-too-few-gpus": (
            "On the device cuda each rank needs a GPU of its own, and this machine has too few "
            "for runs (ranks: {ranks}, GPUs: {gpus}). Choose fewer ranks, or the device auto or "
            "cpu."
        ),
        "cuda-not-built": (
            "The program was to run on the device cuda, and the PyTorch that is installed here "
            "was built without CUDA (ranks: {ranks}, GPUs of the machine: {gpus}). Choose the "
            "device auto or cpu, or have a PyTorch with CUDA installed."
        ),
        "engine-failure": "The engine failed; this is not your program's fault. Run it again.",
    }
)

PHRASES: tuple[str, ...] = (
    "rank {rank} called {op} on line {line}",
    "ranks {ranks} called {op} on line {line}",
    "rank {rank} called {op}",
    "ranks {ranks} called {op}",
    "layer {module}",
    "{num} {dtype} values",
    "rank {rank} failed on line {line}",
    "rank {rank} failed",
    "rank {rank} was killed",
    "rank {rank} in {op} on line {line}",
    "rank {rank} on line {line}",
    "rank {rank} had ended",
    "rank {rank} outside the program",
    "ranks {ranks}",
    "rank {rank}",
    "its partner",
    "another rank",
    "a collective",
)
"""What `where`, `missing` and `op` are made of, longer before shorter."""


def render(template: str, args: Args) -> str:
    """Fill a template's named arguments; None is shown as a dash."""
    return template.format_map({k: "-" if v is None else v for k, v in args.items()})
