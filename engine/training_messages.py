"""English sentences of what torch refuses in training. Standard library only."""

from collections.abc import Mapping
from types import MappingProxyType

TRAINING: Mapping[str, str] = MappingProxyType(
    {
        "ddp-static-graph-changed": (
            "Line {line} (`{call}`), rank {rank}: DDP was told `static_graph=True`, but the graph "
            "changed after the first step: a parameter that took part then did not now. Leave "
            "`static_graph` out, or use the same layers in every step; for layers that are used "
            "only sometimes there is `find_unused_parameters=True`. (PyTorch: {detail})"
        ),
        "ddp-unused-parameters": (
            "Line {line} (`{call}`), rank {rank}: in the step before, some parameters of the model "
            "were not used in the loss, so they got no gradient on this rank, and DDP still waits "
            "for it. Remove the unused layers, let every output take part in the loss, or "
            "construct DDP with `find_unused_parameters=True`. (PyTorch: {detail})"
        ),
        "ddp-ready-twice": (
            "Line {line} (`{call}`), rank {rank}: one parameter got its gradient twice in one "
            "backward, and DDP reduces each only once. This comes from reentrant activation "
            "checkpointing of shared layers, or from several backwards through one forward. Use "
            "`checkpoint(..., use_reentrant=False)`, or sum the losses and call `backward()` once. "
            "(PyTorch: {detail})"
        ),
        "second-backward": (
            "Line {line} (`{call}`), rank {rank}: this backward goes through a graph that an "
            "earlier backward has already freed. Run the forward again before each backward, add "
            "the losses and call `backward()` once, or detach what is carried from one step to the "
            "next (a hidden state, a running loss). (PyTorch: {detail})"
        ),
        "modified-in-place": (
            "Line {line} (`{call}`), rank {rank}: a tensor that backward still needs was "
            "overwritten after the forward. Usual culprits: `optimizer.step()` or an update of "
            "parameters between forward and backward, an in-place op such as `+=` or `relu_`, and "
            "two forwards through DDP before one backward while it broadcasts buffers "
            "(`broadcast_buffers=False` stops that). (PyTorch: {detail})"
        ),
        "nothing-to-train": (
            "Line {line} (`{call}`), rank {rank}: no parameter of this module requires a gradient, "
            "so DDP has nothing to reduce. Wrap only modules that are trained, and freeze "
            "parameters before wrapping, but not all of them. (PyTorch: {detail})"
        ),
        "wrapper-has-no-attribute": (
            "Line {line} (`{call}`), rank {rank}: `{name}` belongs to your model, not to the "
            "`{wrapper}` wrapper around it. Reach the model through `.module`; but train through "
            "the wrapper's own call, because methods called on `.module` bypass the wrapper's "
            "hooks and gradients are then not reduced. (PyTorch: {detail})"
        ),
        "wrapper-not-subscriptable": (
            "Line {line} (`{call}`), rank {rank}: the wrapper is not the container that it wraps. "
            "Index the model inside it: `model.module[...]`. (PyTorch: {detail})"
        ),
        "no-sync-not-called": (
            "Line {line} (`{call}`), rank {rank}: a method was named but not called: write `with "
            "model.no_sync():`, with the parentheses. (PyTorch: {detail})"
        ),
        "no-sync-on-sharded": (
            "Line {line} (`{call}`), rank {rank}: modules of `fully_shard` have no `no_sync()`. "
            "Call `model.set_requires_gradient_sync(False)` before the backwards that must not "
            "reduce, and `True` before the last one. (PyTorch: {detail})"
        ),
        "method-of-wrapper": (
            "Line {line} (`{call}`), rank {rank}: `{name}` is a method of the DDP wrapper, not of "
            "the model inside it. Call it on what `DDP(...)` returned. (PyTorch: {detail})"
        ),
        "not-joinable": (
            "Line {line} (`{call}`), rank {rank}: `Join` takes objects that can take part for a "
            "rank that has run out of data: DDP models and ZeroRedundancyOptimizer. FSDP cannot. "
            "Give FSDP ranks the same number of batches instead. (PyTorch: {detail})"
        ),
        "uninitialized-lazy": (
            "Line {line} (`{call}`), rank {rank}: a lazy layer has no parameters before its first "
            "forward, so there is nothing to wrap yet. Run one forward on a dummy batch, on every "
            "rank, before wrapping the model. (PyTorch: {detail})"
        ),
        "comm-hook-twice": (
            "Line {line} (`{call}`), rank {rank}: a DDP model takes one communication hook, once. "
            "Combine the hooks in one function, for example by `fp16_compress_wrapper(hook)`. "
            "(PyTorch: {detail})"
        ),
        "comm-hook-signature": (
            "Line {line} (`{call}`), rank {rank}: a communication hook is `hook(state, bucket) -> "
            "torch.futures.Future[torch.Tensor]`: its second argument must be called `bucket`, and "
            "it must return a future of the reduced tensor. (PyTorch: {detail})"
        ),
        "ddp-models-differ": (
            "Line {line} (`{call}`), rank {rank}: the ranks wrap different models: DDP compares "
            "the number and the shapes of the parameters across all ranks when it is constructed. "
            "Build the same model on every rank; nothing in its shape may depend on the rank. "
            "(PyTorch: {detail})"
        ),
        "ddp-device-ids": (
            "Line {line} (`{call}`), rank {rank}: DDP takes at most one device per rank, and none "
            "for a model on CPU. Leave `device_ids` and `output_device` out here; on GPUs write "
            "`device_ids=[local_rank]`. (PyTorch: {detail})"
        ),
        "empty-parameter-list": (
            "Line {line} (`{call}`), rank {rank}: the optimizer got no parameters. A generator "
            "such as `model.parameters()` can be read only once: pass a fresh one, or a list; and "
            "check that the model has trainable parameters at this point. (PyTorch: {detail})"
        ),
        "loss-not-scalar": (
            "Line {line} (`{call}`), rank {rank}: `backward()` starts from one number, and this "
            'loss has several: it was made with `reduction="none"`, or is not yet averaged. Call '
            "`.mean()` or `.sum()` on it first; DDP averages over the ranks, not over a rank's "
            "own samples. (PyTorch: {detail})"
        ),
        "inference-tensor": (
            "Line {line} (`{call}`), rank {rank}: a tensor made under `torch.inference_mode()` "
            "cannot take part in training. Make it under `torch.no_grad()` instead, or pass on a "
            "`.clone()` of it. (PyTorch: {detail})"
        ),
        "label-out-of-range": (
            "Line {line} (`{call}`), rank {rank}: a label or index in this rank's data is not "
            "below the number of classes (or of rows of the embedding). Check the data of this "
            "rank, and that every rank numbers the classes alike: build the mapping once from all "
            "data. At that moment: {where}. (PyTorch: {detail})"
        ),
        "pipeline-microbatches": (
            "Line {line} (`{call}`), rank {rank}: a pipeline's microbatches must all have the "
            "shape of the first one, and each stage must output what the next one takes. Choose a "
            "batch size that `n_microbatches` divides, and drop the incomplete last batch "
            "(`drop_last=True`). At that moment: {where}. (PyTorch: {detail})"
        ),
        "optimizer-state-plain": (
            "Line {line} (`{call}`), rank {rank}: the optimizer's state was loaded as plain "
            "tensors, while the parameters are sharded DTensors. Load it with "
            "`torch.distributed.checkpoint.state_dict.set_optimizer_state_dict(model, optimizer, "
            "state, options=StateDictOptions(full_state_dict=True))`, which gives each rank its "
            "shards. (PyTorch: {detail})"
        ),
        "loss-without-graph": (
            "Line {line} (`{call}`), rank {rank}: this loss is not connected to any parameter: it "
            "was computed under `torch.no_grad()` or `inference_mode`, went through `.item()`, "
            "`.detach()` or numpy, or consists of constants on this rank. A rank without data "
            "should still compute `0 * model(x).sum()`, so that its backward takes part. (PyTorch: "
            "{detail})"
        ),
        "syncbn-input-shape": (
            "Line {line} (`{call}`), rank {rank}: batch norm needs an input with a batch and a "
            "channel dimension, [N, C, ...]. Do not drop the batch dimension when a rank has only "
            "one sample: index with a slice (`x[i:i + 1]`), or `unsqueeze(0)`. (PyTorch: {detail})"
        ),
        "syncbn-double-backward": (
            "Line {line} (`{call}`), rank {rank}: SyncBatchNorm has no second derivative in "
            "PyTorch, so `create_graph=True` (a gradient penalty, meta-learning) cannot go through "
            "it. Use BatchNorm, GroupNorm or LayerNorm in the part that is differentiated twice. "
            "(PyTorch: {detail})"
        ),
        "unpacks-dtypes": (
            "Line {line} (`{call}`), rank {rank}: input and weights have different dtypes. With "
            "mixed precision let the wrapper cast the inputs (`cast_forward_inputs=True`, the "
            "default of `MixedPrecisionPolicy`), run the forward under `torch.autocast`, or "
            "convert the input to the dtype of the weights. (PyTorch: {detail})"
        ),
        "on-another-device": (
            "Line {line} (`{call}`), rank {rank}: tensors of one operation lie on different "
            "devices. Create the model and every batch on the same `device`, and move them before "
            "wrapping the model. (PyTorch: {detail})"
        ),
        "zero-not-consolidated": (
            "Line {line} (`{call}`), rank {rank}: each rank holds only its shard of this "
            "optimizer's state. Before `state_dict()`, call `consolidate_state_dict(to=0)` on "
            "*all* ranks (it communicates), then `state_dict()` on that one rank only. (PyTorch: "
            "{detail})"
        ),
        "zero-optimizer-class": (
            "Line {line} (`{call}`), rank {rank}: ZeroRedundancyOptimizer builds the optimizer of "
            "each shard itself: pass the class and its arguments, not an optimizer, for example "
            "`ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, "
            "lr=1e-3)`. (PyTorch: {detail})"
        ),
        "zero-one-dtype": (
            "Line {line} (`{call}`), rank {rank}: with `parameters_as_bucket_view=True` all "
            "parameters must have one dtype. Convert the model to one dtype, or leave that option "
            "out. (PyTorch: {detail})"
        ),
        "zero-overlap-on-gloo": (
            "Line {line} (`{call}`), rank {rank}: PyTorch runs a ZeroRedundancyOptimizer inside of "
            "DDP's communication hook on nccl only, and these ranks use gloo. Leave "
            "`overlap_with_ddp` and `hook_with_zero_step` out, and call `optimizer.step()` after "
            "the backward. (PyTorch: {detail})"
        ),
        "zero-overlap-setup": (
            "Line {line} (`{call}`), rank {rank}: with `overlap_with_ddp=True` the step happens "
            "inside DDP's communication hook: register `hook_with_zero_step` on the DDP model, and "
            "let the first few backwards pass before relying on the optimizer's state. (PyTorch: "
            "{detail})"
        ),
        "optimizer-state-mismatch": (
            "Line {line} (`{call}`), rank {rank}: this optimizer state was saved for other "
            "parameter groups. Build the model, wrap it, and create the optimizer with the same "
            "groups as when it was saved, then load. For sharded models use "
            "`torch.distributed.checkpoint.state_dict` (or `FSDP.optim_state_dict_to_load`). "
            "(PyTorch: {detail})"
        ),
        "iterable-with-sampler": (
            "Line {line} (`{call}`), rank {rank}: an IterableDataset decides its own order, so no "
            "sampler can split it over the ranks: leave `sampler` out, and let the dataset give "
            "each rank its part, for example `itertools.islice(stream, rank, None, world_size)`; "
            "keep the number of batches equal on all ranks. (PyTorch: {detail})"
        ),
        "sampler-and-shuffle": (
            "Line {line} (`{call}`), rank {rank}: with a sampler the DataLoader must not shuffle: "
            "write `DistributedSampler(dataset, shuffle=True)`, leave `shuffle` out of the "
            "DataLoader, and call `sampler.set_epoch(epoch)`. (PyTorch: {detail})"
        ),
        "sampler-rank": (
            "Line {line} (`{call}`), rank {rank}: the sampler's rank {given} is not below "
            "`num_replicas`. Ranks count from 0; leave both arguments out after "
            "`init_process_group`, and the sampler reads them from the group. (PyTorch: {detail})"
        ),
    }
)
