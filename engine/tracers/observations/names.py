"""What observations there are, by name, and what their arguments mean. Standard library only.

The rules of `engine.diagnosis` read them by name. Numbers count per rank from 0 and are the same
on every rank that runs the same lines. Digests are pairs (total, square): a weighted sum of all
values and the sum of their squares, so that equal tensors have equal digests.
"""

from typing import Literal

ObservationName = Literal[
    # A DDP wrapper was made. wrapper, ranks, numel, total, square (after DDP's own broadcast).
    "wrapped",
    # A module under a wrapper loaded a state dict. wrapper.
    "loaded",
    # An outermost optimizer's step begins (steps 1, 2, 4, ...): one report per kind of its
    # parameters. optimizer, step, kind ("wrapper 0", "plain"), ranks, num_parameters, numel,
    # num_with_gradient, total, square, gradient_total, gradient_square, rate (of the first
    # group), num_sharded (parameters of the same optimizer that are shards), zero (1: ZeRO).
    "step",
    # The optimizer's parameters as it, or the program, ends. optimizer (None: it never
    # stepped), steps, kind (or "sharded"), made_line, numel, total, square.
    "end",
    # A step used gradients that the last backward left local. optimizer, step, how, forward_line.
    "stepped-unsynced",
    # A step used gradients of a wrapper whose forward never ran. optimizer, wrapper, wrap_line,
    # forward_line, is_alive (0: the wrapper itself is gone), num_forwards (of the wrapper).
    "inner-forward",
    # A wrapped module trains parameters that its reducer does not know. wrapper, wrap_line,
    # parameter, reason ("added" or "unfrozen").
    "unmanaged",
    # An optimizer holds parameters that sharding has replaced. optimizer_line, shard_line, by,
    # num_stale, num_parameters.
    "stale-parameters",
    # A step without a gradient, after zero_grad dropped them. optimizer, zero_line.
    "dropped-gradients",
    # At the end: parameters of an optimizer that never had a gradient at a checked step, while
    # parameters of a wrapped or sharded model had one and no optimizer held them. optimizer_line,
    # num_idle, num_parameters, num_unheld.
    "idle-parameters",
    # A layer that ran inside of a wrapper, got gradients, and is neither in its module nor in an
    # optimizer. layer (its class), num (of such layers).
    "unregistered",
    # Of a plain optimizer's parameter beside shards: its name. optimizer, parameter, by.
    "unsharded",
    # The program's own collective used gradients. optimizer, op, is_late (1: after the step).
    "reduced-by-hand",
    # A collective of the program's own used gradients that DDP had averaged. ratio (norm of the
    # first such gradient at the step to its norm before), size (of the group).
    "reduced-twice",
    # A sharded unit still has its initial values at its first step. unit, by, ranks, numel,
    # total, square (before sharding), module.
    "initial-shards",
    # One parameter went into two sharded units. by, parameter, first_line.
    "untied",
    # Gradients of FSDP1 shards were clipped. norm (that was used), max_norm, size (of the group).
    "clipped-shards",
    # A wrapper was told to ignore parameters that need gradients. wrapper, parameter (the first).
    "ignoring",
    # Gradients were clipped after the step that used them. step_line.
    "clipped-late",
    # Gradients were clipped under no_sync, and more was added before the step. wrapper.
    "clipped-unsynced",
    # GradScaler.step of gradients that were clipped while they had its scale. max_norm, scale.
    "clipped-scaled",
    # The second step in a row on gradients that a backward added to used ones. optimizer.
    "uncleared",
    # A backward went through a tensor that all_reduce had changed in place. size (of the group),
    # numel.
    "reduced-in-graph",
    # A small tensor went into all_reduce and was gone when the call returned. op.
    "reduced-temporary",
    # A small tensor went into all_reduce twice, unchanged in between. op, first_line.
    "summed-again",
    # torch.save wrote shards. path, key, num_shards, size (ranks that hold one), how.
    "saved-shards",
    # ZeRO's state_dict() gave what consolidate_state_dict had gathered before later steps.
    # gather_line, steps (of the optimizer then), now (its steps).
    "old-state",
    # A batch norm ran although convert_sync_batchnorm had made another layer for it, which never
    # ran. layer, convert_line.
    "unconverted",
    # A shuffling DistributedSampler gave the same order again and training went on. epoch.
    "repeated-order",
    # A pass of a DataLoader that fed training. number, batches, numel, total, square,
    # sampler ("distributed" or "other"), replicas, replica_rank, order (seed of
    # the shuffling), is_varied (1: batches differ).
    "data-pass",
    # A gathering call got the same tensor for what several ranks send. op, num (outputs).
    "aliased-outputs",
    # load_state_dict(strict=False) found none of its keys. key (given), own_key (looked for).
    "loaded-nothing",
    # Steps were taken in evaluation mode after others in training mode. layers (class names).
    "evaluating",
    # A SyncBatchNorm trains with a group of this rank alone. layer.
    "alone-in-group",
    # An asynchronous call was never waited for. op.
    "never-waited",
    # Reported by engine.exhaustion as the program fails: what it asked for that a limit refused.
    "limit-reached",
]
