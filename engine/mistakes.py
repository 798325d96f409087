"""English sentences for mistakes of programs that run to their end. Standard library only.

A part of `engine.messages`: each says what happened, where, why, and what to change.
"""

from collections.abc import Mapping
from types import MappingProxyType

MISTAKES: Mapping[str, str] = MappingProxyType(
    {
        "optimizer-before-shard": (
            "Line {line} makes the optimizer before line {shard_line} shards the model. {by} "
            "replaces the parameters, so {num_stale} of the {num_parameters} parameters that the "
            "optimizer holds are no longer the model's, and its steps do not change the model. "
            "Make the optimizer after the model is wrapped."
        ),
        "gradients-dropped": (
            "Line {zero_line} clears the gradients between backward() and step(), so the step on "
            "line {line} finds none and changes nothing. Call zero_grad() after step(), or before "
            "the forward."
        ),
        "optimizer-other-parameters": (
            "The optimizer made on line {line} holds {num_idle} parameters (of {num_parameters}) "
            "that never got a gradient, while {num_unheld} parameters of the wrapped model got "
            "one and belong to no optimizer: it holds those of another copy, or parameters that "
            "were replaced after it was made. Make the optimizer from the model that is trained, "
            "after its last change."
        ),
        "stepped-under-no-sync": (
            "Line {line} steps on gradients that were never averaged: the last forward before it "
            "(line {forward_line}) ran under no_sync(), so each rank stepped on its own gradients "
            "and the replicas have drifted apart. The last microbatch before every step() must "
            "run its forward and backward outside of no_sync()."
        ),
        "stepped-unreduced": (
            "Line {line} steps while gradients still wait to be reduced: the last backward before "
            "it ran with {how}. Turn gradient synchronisation on again for the last microbatch "
            "before every step()."
        ),
        "ddp-bypassed": (
            "Line {line} runs the training forward on the inner module (model.module) and "
            "bypasses the DistributedDataParallel wrapper made on line {wrap_line}. DDP then does "
            "not average gradients in backward, and the ranks' weights drift apart. Call the "
            "wrapper itself for training; model.module is for saving and for evaluation."
        ),
        "ddp-result-unused": (
            "Line {wrap_line} makes a DistributedDataParallel wrapper and throws it away; line "
            "{line} trains the unwrapped module, so gradients are never averaged and the ranks' "
            "weights drift apart. Keep what the constructor returns, model = DDP(model), and "
            "train that."
        ),
        "added-after-ddp": (
            "The parameter {parameter} was added to the model, or replaced, after line {line} "
            "wrapped it in DistributedDataParallel. DDP averages only the gradients of the "
            "parameters that it found when it was made, so each rank trains its own copy of "
            "this one. Change the model before it is wrapped."
        ),
        "unfrozen-after-ddp": (
            "The parameter {parameter} was frozen when line {line} wrapped the model in "
            "DistributedDataParallel, and was unfrozen later. DDP averages only the gradients of "
            "parameters that required one when it was made, so each rank trains its own copy. Set "
            "requires_grad before wrapping, or wrap the model again."
        ),
        "loaded-on-some-ranks": (
            "Only {who} loaded weights on line {line}, after the model was wrapped. "
            "DistributedDataParallel broadcasts the parameters once, when it is made, so the "
            "replicas have differed since. Load on every rank, or before wrapping."
        ),
        "changed-after-ddp": (
            "The parameters on {who} were changed after line {line} wrapped the model, and on the "
            "other ranks they were not, or not alike. DistributedDataParallel broadcasts the "
            "parameters once, when it is made, so the replicas have differed since. Make the same "
            "change on every rank, or before wrapping."
        ),
        "wrapped-unequal": (
            "The ranks had different parameters after line {line} wrapped the model without "
            "broadcasting them, so the replicas train apart. Leave init_sync on, or give every "
            "rank the same weights first."
        ),
        "learning-rates-differ": (
            "On line {line}, rank {rank} steps with learning rate {rate} and rank {first_rank} "
            "with {first_rate}. Averaged gradients do not help when ranks step differently: the "
            "replicas drift apart. Use the same rate on every rank; a scheduler that follows a "
            "loss needs the loss of all ranks."
        ),
        "step-counts-differ": (
            "Rank {rank} made {num_steps} optimizer steps on line {line} and rank {other_rank} "
            "made {other_steps}, so their weights differ. Every rank must make the same steps."
        ),
        "steps-on-some-ranks": (
            "The optimizer made on line {line} made {num_steps} steps on {who} and {other_steps} "
            "on rank {rank}, so only a part of the ranks was updated and the weights no longer fit "
            "together. Every rank must call step(): with replicated or sharded parameters each "
            "rank updates its own. (A GradScaler skips the step where it finds inf: over FSDP "
            "shards that must be one decision of all ranks, as with ShardedGradScaler.)"
        ),
        "gradients-differ": (
            "At step {step} on line {line}, ranks step on different gradients: their norm is "
            "{norm} on rank {first_rank} and {other_norm} on rank {rank}. Something changed them "
            "on each rank by itself, so the replicas drift apart. What changes gradients after "
            "backward (clipping, scaling, noise) must do the same on every rank."
        ),
        "replicas-differ": (
            "The replicas that line {line} updates end with different weights on different ranks, "
            "although their gradients agree: something else changed them on some ranks only. Do "
            "the same to the parameters on every rank."
        ),
        "unsharded-parameters": (
            "The parameter {parameter} is in no unit that {by} shards: it stayed a plain tensor, "
            "nobody averages its gradients, and each rank trains its own copy. Shard the root "
            "module too, after its layers; add layers before that; and average the gradients of "
            "what it is told to ignore by hand."
        ),
        "ignored-by-ddp": (
            "The DistributedDataParallel wrapper made on line {line} was told to ignore "
            "{parameter}: it averages no gradient of it, yet an optimizer updates it, so the "
            "copies that began equal drift apart. Take it off the list, or average its gradients "
            "with all_reduce after each backward."
        ),
        "layers-unregistered": (
            "Line {line} calls a layer ({layer}, {num} such) that is not registered in the model: "
            "model.parameters() does not have its parameters, so no optimizer updates them and DDP "
            "does not average their gradients. Keep layers in nn.ModuleList or nn.ModuleDict, not "
            "in a plain list or dict; if it is to stay as it is, freeze it (requires_grad_(False))."
        ),
        "gradients-never-cleared": (
            "Line {line} steps again and again on gradients that were never cleared: each "
            "backward() adds to those that earlier steps have used already. Call "
            "optimizer.zero_grad() once per step, before the backward() of the next."
        ),
        "zero-own-gradients": (
            "The ZeroRedundancyOptimizer on line {line} steps on gradients that differ between "
            "ranks: it shards the optimizer state but does not average gradients, so each part of "
            "the model follows the batch of one rank. Wrap the model in DistributedDataParallel "
            "and train the wrapper."
        ),
        "loss-averaged-twice": (
            "all_reduce on line {line} sums the loss in place and backward() then goes through "
            "its division by {size}. Autograd does not know of the sum, and the wrapper averages "
            "gradients already: each gradient is {size} times too small. Call backward() on the "
            "local loss, and all_reduce a detached clone to show it."
        ),
        "reduced-in-graph": (
            "all_reduce on line {line} changes a tensor in place that backward() goes through. "
            "Autograd does not know of it: no gradient flows back to what the other ranks of "
            "the {size} gave, so the averaged gradient is not that of the whole. Use "
            "torch.distributed.nn.functional.all_reduce, which has a backward."
        ),
        "reduced-temporary": (
            "The tensor that {op} reduces on line {line} is a temporary: {op} works in place, and "
            "when the call returned nothing held the result. What the program goes on with is the "
            "value of its own rank. Keep the tensor: t = torch.tensor(x); dist.{op}(t); x = "
            "t.item()."
        ),
        "summed-again": (
            "{op} on line {line} sums a tensor that {op} (line {first_line}) had already summed "
            "over the ranks, unchanged since: it is too large now. If two names or entries hold "
            "one tensor, a loop over them reduces it twice; reduce a clone for each."
        ),
        "gradients-reduced-late": (
            "Line {line} steps before the gradients are reduced ({op} on line {reduce_line}), so "
            "each rank steps on its own gradients and the weights drift apart. Average the "
            "gradients after backward() and before step()."
        ),
        "reduced-on-one-rank": (
            "Line {reduce_line} combines the gradients with {op}, and at the step on line {line} "
            "ranks have different gradients: only one rank gets the result of a reduce. Use "
            "all_reduce, which gives it to every rank."
        ),
        "reduced-unequal": (
            "Line {reduce_line} reduces gradients with {op}, but at the step on line {line} ranks "
            "still have different gradients and their weights drift apart: some parameters were "
            "left out, or what was reduced was not written back. Average the gradients of every "
            "parameter that is trained."
        ),
        "averaged-unequal-replicas": (
            "The gradients agree after {op} on line {reduce_line}, but the ranks' weights differed "
            "before the first step (line {line}) already, and equal updates keep different models "
            "different. Broadcast rank 0's weights before training, or initialise with the same "
            "seed on every rank."
        ),
        "reduced-twice": (
            "Line {line} sums gradients that DistributedDataParallel has averaged already, so they "
            "become {ratio} times too large. Remove that line: DDP averages gradients in "
            "backward()."
        ),
        "never-waited": (
            "The asynchronous {op} on line {line} was never waited for: its result may be read "
            "before it is there. Call wait() on the Work that it returns before using the result."
        ),
        "unequal-before-shard": (
            "Each rank initialised its own weights, and they differ: when line {line} sharded "
            "{unit}, {by} kept each rank's own part and mixed them into a model that nobody "
            "initialised. It does not broadcast as DistributedDataParallel does. Use the same "
            "seed on every rank until the model is made, or load or broadcast the parameters "
            "before the first step."
        ),
        "unequal-before-fsdp": (
            "Each rank initialised its own weights, and they differ: when line {line} sharded "
            "{unit}, {by} kept each rank's own part and mixed them into a model that nobody "
            "initialised. Pass sync_module_states=True, which broadcasts rank 0's parameters, or "
            "use the same seed on every rank until the model is made."
        ),
        "weights-untied": (
            "Two modules share one tied parameter ({parameter}), and lines {first_line} and {line} "
            "wrap them in different units of {by}. Each unit makes a parameter of its own of it, "
            "so the weights are no longer tied and train apart. Keep modules that share a "
            "parameter in one unit."
        ),
        "clipped-by-own-norm": (
            "torch.nn.utils.clip_grad_norm_ on line {line} sees only each rank's local shard of "
            "the gradients: it clipped by {norm} on rank {rank} and by {other_norm} on rank "
            "{other_rank}, so ranks scale differently. An FSDP model has its own method, which "
            "uses the norm of the whole gradient: model.clip_grad_norm_(max_norm)."
        ),
        "clipped-late": (
            "Gradients are clipped on line {line} after step() on line {step_line} has used them, "
            "so no update is ever clipped. Clip between backward() and step()."
        ),
        "clipped-unsynced": (
            "Line {line} clips gradients after a microbatch under no_sync(): they are not averaged "
            "yet, so each rank scales its local part by a factor of its own, and what later "
            "microbatches add is clipped differently. Accumulate first; clip once, after the last "
            "backward and before step()."
        ),
        "clipped-scaled": (
            "Line {line} clips gradients that still carry the GradScaler's loss scale of {scale}, "
            "so max_norm={max_norm} cuts them as many times too far. Call "
            "scaler.unscale_(optimizer) before clipping."
        ),
        "saved-own-shards": (
            "Only {who} saved on line {line}, and what reached the file are {num_shards} local "
            "shards (for example {key}) of a state_dict that is spread over {size} ranks: the "
            "checkpoint holds a part of the model. Gather it first on every rank, with "
            "get_model_state_dict and full_state_dict=True or with full_tensor(), or save with "
            "torch.distributed.checkpoint."
        ),
        "shards-in-one-file": (
            "On line {line}, {who} save to one file, each its own {num_shards} local shards (for "
            "example {key}) of a state_dict that is spread over {size} ranks: the last one wins "
            "and the checkpoint holds a part of the model. Gather the full state_dict first, give "
            "every rank a file of its own, or save with torch.distributed.checkpoint."
        ),
        "zero-state-old": (
            "state_dict() on line {line} gives the optimizer state as consolidate_state_dict "
            "(line {gather_line}) gathered it after step {num_steps}, but the optimizer is at step "
            "{now} now. Call consolidate_state_dict on all ranks before each save."
        ),
        "conversion-unused": (
            "The result of convert_sync_batchnorm on line {line} was not used: the {layer} that it "
            "was given went on training with its own rank's statistics. A layer that is converted "
            "itself is not changed in place; a new layer is returned. Assign the return value, or "
            "convert the module around it: model = "
            "nn.SyncBatchNorm.convert_sync_batchnorm(model)."
        ),
        "syncbn-alone": (
            "The SyncBatchNorm layer {layer} (line {line}) has a process_group of one rank, so it "
            "synchronises nothing and normalises with its own rank's statistics, while the model "
            "is trained on {num} ranks. Leave process_group out, or make groups of several ranks."
        ),
        "trained-in-evaluation": (
            "Line {line} goes on training in evaluation mode: after earlier steps in training mode "
            "model.eval() was called, and model.train() was not called again. In evaluation mode "
            "{layers} behave differently: batch norm neither uses nor updates batch statistics "
            "(and synchronises none), dropout is off. Call model.train() after each validation."
        ),
        "nothing-loaded": (
            "load_state_dict on line {line} loaded nothing: with strict=False, keys that do not "
            "match are skipped, and none of them matches (given {key}, looked for {own_key}). A "
            "state_dict of a DistributedDataParallel wrapper has the prefix module.: load it into "
            "the wrapper, save model.module.state_dict(), or remove the prefix."
        ),
        "outputs-aliased": (
            "On line {line} the list of outputs for {op} has the same tensor {num} times (as "
            "[tensor] * {num} makes it), so all entries end with what the last rank sent. Make one "
            "tensor for each rank: [torch.empty_like(x) for _ in range(world_size)]."
        ),
        "set-epoch-missing": (
            "The DistributedSampler that line {line} iterates shuffles with epoch {epoch} again: "
            "every epoch has the same order. Call sampler.set_epoch(epoch) before each epoch."
        ),
        "sampler-same-rank": (
            "Every rank's DistributedSampler on line {line} has rank={replica_rank} of {replicas} "
            "replicas, so all ranks train on the same share of the data and the rest is never "
            "seen. Leave num_replicas and rank out, or pass each rank its own."
        ),
        "sampler-seeds-differ": (
            "On line {line}, rank {first_rank}'s DistributedSampler shuffles with seed {order} and "
            "rank {rank}'s with {other_order}. Each rank takes its share of an order of its own, "
            "so some samples come twice and others never. The seed and the epoch must be the same "
            "on every rank."
        ),
        "same-data-on-all-ranks": (
            "The DataLoader on line {line} gives every rank the same samples ({batches} batches), "
            "so the ranks repeat each other's work. Give it a sampler that splits the data: "
            "DistributedSampler(dataset)."
        ),
    }
)
