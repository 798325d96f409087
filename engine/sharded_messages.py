"""English sentences of what torch refuses of sharded models and their states. Standard library."""

from collections.abc import Mapping
from types import MappingProxyType

SHARDED: Mapping[str, str] = MappingProxyType(
    {
        "tied-weights": (
            "Line {line} (`{call}`), rank {rank}: two layers share one weight, but FSDP wraps them "
            "apart, so the second finds a shard in its place. Wrap the layers that share a weight "
            "in one unit: exclude them from the auto wrap policy, or wrap their common parent. "
            "(PyTorch: {detail})"
        ),
        "no-copy-of-shards": (
            "Line {line} (`{call}`), rank {rank}: a sharded model cannot be copied. Build a second "
            "model, shard it the same way, and load the first one's state dict. (PyTorch: {detail})"
        ),
        "fsdp-forward-bypassed": (
            "Line {line} (`{call}`), rank {rank}: parameters of an FSDP module were used outside "
            "of its forward, where each rank holds only a flat shard. Call the wrapped model "
            "itself (move `encode` and the like into forward), wrap the submodule that you call, "
            "or open `FSDP.summon_full_params(model)` on all ranks. (PyTorch: {detail})"
        ),
        "clip-on-inner": (
            "Line {line} (`{call}`), rank {rank}: the norm spans all FSDP units, so "
            "`clip_grad_norm_` is called once, on the outermost FSDP module: "
            "`model.clip_grad_norm_(max_norm)`. (PyTorch: {detail})"
        ),
        "no-sync-on-inner-unit": (
            "Line {line} (`{call}`), rank {rank}: `no_sync()` works on the outermost FSDP module "
            "only. Write `with model.no_sync():` for the whole model. (PyTorch: {detail})"
        ),
        "frozen-and-trained-flat": (
            "Line {line} (`{call}`), rank {rank}: one FSDP unit flattens its parameters into one "
            "tensor, which is either trained or frozen. Construct FSDP with "
            "`use_orig_params=True`, or wrap frozen and trained layers in units of their own. "
            "(PyTorch: {detail})"
        ),
        "flat-dtypes": (
            "Line {line} (`{call}`), rank {rank}: one FSDP unit flattens its parameters into one "
            "tensor of one dtype. Bring the model to one dtype before wrapping and let "
            "`MixedPrecision` do the casts, or wrap layers of another dtype apart. (PyTorch: "
            "{detail})"
        ),
        "scalar-parameter": (
            "Line {line} (`{call}`), rank {rank}: the parameter `{name}` has no dimension that "
            "could be sharded. Make it a vector of one element: `nn.Parameter(torch.ones(1))`. "
            "(PyTorch: {detail})"
        ),
        "summon-options": (
            "Line {line} (`{call}`), rank {rank}: `summon_full_params` cannot write back what only "
            "rank 0 changed. Use `rank0_only=True, writeback=False` to read, or change the "
            "parameters on all ranks alike. (PyTorch: {detail})"
        ),
        "summon-in-forward": (
            "Line {line} (`{call}`), rank {rank}: `summon_full_params` must not run inside of a "
            "forward or backward, where FSDP gathers and frees the parameters itself. Call it "
            "between the steps, on all ranks. (PyTorch: {detail})"
        ),
        "inner-before-root": (
            "Line {line} (`{call}`), rank {rank}: an inner FSDP unit was called before the "
            "outermost one, and so took itself for the root. Call the outermost module first; use "
            "the inner one only through it. (PyTorch: {detail})"
        ),
        "wrap-policy": (
            "Line {line} (`{call}`), rank {rank}: `auto_wrap_policy` takes a policy, not a "
            "collection of classes: `ModuleWrapPolicy({{nn.Linear}})`, or "
            "`functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={{...}})`. "
            "(PyTorch: {detail})"
        ),
        "hybrid-groups": (
            "Line {line} (`{call}`), rank {rank}: HYBRID_SHARD needs two groups: one to shard in "
            "and one to replicate over. Pass the pair, pass a 2D `device_mesh`, or leave "
            "`process_group` out. (PyTorch: {detail})"
        ),
        "optimizer-over-views": (
            "Line {line} (`{call}`), rank {rank}: the optimizer got tensors that were computed "
            "from parameters (views, slices, casts, gathered copies), not the parameters "
            "themselves. Pass `model.parameters()` of the wrapped model; with FSDP construct it "
            "with `use_orig_params=True` for groups by name. (PyTorch: {detail})"
        ),
        "view-in-place": (
            "Line {line} (`{call}`), rank {rank}: inside of an FSDP forward the parameters are "
            "views of one gathered flat tensor and must not be changed in place. Change them under "
            "`FSDP.summon_full_params(model)`, or compute a new tensor. (PyTorch: {detail})"
        ),
        "sharded-twice": (
            "Line {line} (`{call}`), rank {rank}: `fully_shard` was already applied to this "
            "module. Apply it once to every block, from the inside out, and once to the whole "
            "model. (PyTorch: {detail})"
        ),
        "shard-a-container": (
            "Line {line} (`{call}`), rank {rank}: a ModuleList or ModuleDict is never called, so "
            "there is no forward to gather for. Apply `fully_shard` to each of its layers, and to "
            "the model around it. (PyTorch: {detail})"
        ),
        "shard-inside-out": (
            "Line {line} (`{call}`), rank {rank}: the units were sharded from the outside in: the "
            "outer `fully_shard` has already taken the parameters of this layer. Call "
            "`fully_shard` on the inner layers first, and on the whole model last. (PyTorch: "
            "{detail})"
        ),
        "shard-on-meta": (
            "Line {line} (`{call}`), rank {rank}: parameters still lie on the meta device: they "
            "have shapes but no values. After sharding call `model.to_empty(device=...)` and "
            "initialise them (`reset_parameters`), or load a checkpoint, before the first forward; "
            "DDP takes no meta modules at all. (PyTorch: {detail})"
        ),
        "shared-between-units": (
            "Line {line} (`{call}`), rank {rank}: tied weights must lie in one unit. Shard the "
            "modules that share the weight together, `fully_shard([a, b])`, or leave both to the "
            "unit around them. (PyTorch: {detail})"
        ),
        "mesh-dimensions": (
            "Line {line} (`{call}`), rank {rank}: `fully_shard` takes a mesh of one dimension "
            "(shard) or two (replicate, shard). Slice it from a larger one by name: "
            '`mesh["dp_replicate", "dp_shard"]`. (PyTorch: {detail})'
        ),
        "mesh-without-names": (
            "Line {line} (`{call}`), rank {rank}: a mesh is sliced by the names it was made with. "
            'Give them to `init_device_mesh(..., mesh_dim_names=("dp", "tp"))`, and use one of '
            "them. (PyTorch: {detail})"
        ),
        "mesh-too-large": (
            "Line {line} (`{call}`), rank {rank}: the mesh has places for {given} ranks, but this "
            "run has {size}. The product of its dimensions must be the world size: compute it from "
            "`dist.get_world_size()`. (PyTorch: {detail})"
        ),
        "reshard-factor": (
            "Line {line} (`{call}`), rank {rank}: `reshard_after_forward={given}` does not divide "
            "{size}, the number of ranks that shard. Use True, False or a factor of it. (PyTorch: "
            "{detail})"
        ),
        "strided-parameter": (
            "Line {line} (`{call}`), rank {rank}: a parameter is not contiguous in memory (a "
            "transposed weight, for example). Store it as `nn.Parameter(weight.contiguous())` "
            "before sharding. (PyTorch: {detail})"
        ),
        "clip-mixed-kinds": (
            "Line {line} (`{call}`), rank {rank}: some parameters are sharded DTensors and others "
            "plain tensors, so no one norm can be taken over both. Apply `fully_shard` to the "
            "whole model as well, so that the root unit takes the rest. (PyTorch: {detail})"
        ),
        "load-plain-into-sharded": (
            "Line {line} (`{call}`), rank {rank}: one side of this load is sharded and the other "
            "is not: `load_state_dict` copies tensor by tensor. Use `set_model_state_dict(model, "
            "state, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))` to "
            "load a full state dict into a sharded model, and `get_model_state_dict(..., "
            "full_state_dict=True)` to get one out. (PyTorch: {detail})"
        ),
        "gradient-not-sharded": (
            "Line {line} (`{call}`), rank {rank}: on a sharded model `p.grad` is a DTensor, and a "
            "plain tensor was put there. Leave gradients to `zero_grad()` and `backward()`, or "
            "make one with `torch.zeros_like(p)`. (PyTorch: {detail})"
        ),
        "sharded-has-no-module": (
            "Line {line} (`{call}`), rank {rank}: `fully_shard` changes the model in place and "
            "wraps nothing, so there is no `.module`: use the model itself, also for its "
            "`state_dict()`. (PyTorch: {detail})"
        ),
        "shard-dimension": (
            "Line {line} (`{call}`), rank {rank}: `Shard(d)` names a dimension that the tensor "
            "does not have: they count from 0. (PyTorch: {detail})"
        ),
        "mixed-with-dtensor": (
            "Line {line} (`{call}`), rank {rank}: `{name}` was given a sharded DTensor and a plain "
            "tensor together. Bring both to one kind: `distribute_tensor(x, mesh, placements)` for "
            "the plain one, or `.full_tensor()` (on all ranks) or `.to_local()` for the sharded "
            "one. (PyTorch: {detail})"
        ),
        "dtensor-to-numpy": (
            "Line {line} (`{call}`), rank {rank}: this parameter is a sharded DTensor. Gather it "
            "first, on all ranks: `p.full_tensor().detach().numpy()`; `p.to_local()` is this "
            "rank's shard only. (PyTorch: {detail})"
        ),
        "dtensor-in-collective": (
            "Line {line} (`{call}`), rank {rank}: a sharded DTensor went into a collective or "
            "wrapper that expects plain tensors. DDP and ZeroRedundancyOptimizer do not go with "
            "`fully_shard`, which shards gradients and optimizer state already: use one of them, "
            "with a plain optimizer. (PyTorch: {detail})"
        ),
        "dtensor-no-strategy": (
            "Line {line} (`{call}`), rank {rank}: DTensor does not know how to shard `{name}`. "
            "Gather the tensor before it (`x.full_tensor()` or `redistribute` to Replicate), or "
            "apply it to `x.to_local()` if it works on each shard alone. (PyTorch: {detail})"
        ),
        "other-meshes": (
            "Line {line} (`{call}`), rank {rank}: the two DTensors live on different meshes. "
            "Create one `DeviceMesh` and use it, or slices of it, for everything that meets in one "
            "operation. (PyTorch: {detail})"
        ),
        "placements-length": (
            "Line {line} (`{call}`), rank {rank}: a DTensor needs one placement per dimension of "
            "the *mesh*, not of the tensor: `[Shard(0)]` on a 1D mesh, `[Replicate(), Shard(0)]` "
            "on a 2D one. (PyTorch: {detail})"
        ),
        "to-partial": (
            "Line {line} (`{call}`), rank {rank}: Partial marks values that still have to be "
            "summed; one cannot redistribute into it. Redistribute to `Replicate()` or "
            "`Shard(dim)`, or build it with `DTensor.from_local(x, mesh, [Partial()])`. (PyTorch: "
            "{detail})"
        ),
        "tensor-parallel-layer": (
            "Line {line} (`{call}`), rank {rank}: `{name}` shards nn.Linear and nn.Embedding only. "
            "Name those layers in the plan of `parallelize_module`, and leave others out. "
            "(PyTorch: {detail})"
        ),
        "tensor-parallel-heads": (
            "Line {line} (`{call}`), rank {rank}: after column-wise sharding each rank has only "
            "its part of the features, so a view with the full size does not fit. Use `-1` for the "
            "heads, divide their number by the size of the mesh, or keep a DTensor with "
            "`use_local_output=False`. (PyTorch: {detail})"
        ),
        "local-shard-used": (
            "Line {line} (`{call}`), rank {rank}: `to_local()` gives this rank's shard only, whose "
            "shape differs from the whole tensor's. Gather it for such a computation: "
            "`full_tensor()`, on all ranks. (PyTorch: {detail})"
        ),
        "state-dict-prefix": (
            "Line {line} (`{call}`), rank {rank}: one side of this load was wrapped in DDP and the "
            "other was not: DDP puts `module.` before every key. Save `model.module.state_dict()`, "
            "and load it into the model before wrapping, or into `model.module`. (PyTorch: "
            "{detail})"
        ),
        "state-dict-compiled": (
            "Line {line} (`{call}`), rank {rank}: one side of this load was compiled and the other "
            "was not: `torch.compile(model)` puts `_orig_mod.` before every key. Save and load the "
            "uncompiled model. (PyTorch: {detail})"
        ),
        "state-dict-kind": (
            "Line {line} (`{call}`), rank {rank}: this state dict was saved as another kind than "
            "it is loaded as. Use the same `FSDP.state_dict_type(model, ...)` on both sides: "
            "FULL_STATE_DICT for a plain model or another number of ranks, SHARDED_STATE_DICT with "
            "torch.distributed.checkpoint. (PyTorch: {detail})"
        ),
        "state-dict-other-model": (
            "Line {line} (`{call}`), rank {rank}: the saved keys or shapes are not those of this "
            "model. Build the model exactly as it was saved, and save and load at the same stage: "
            "both before wrapping, or both after. (PyTorch: {detail})"
        ),
        "checkpoint-missing-key": (
            "Line {line} (`{call}`), rank {rank}: the checkpoint has no entry `{name}`. The state "
            "dict given to `dcp.load` must have the keys that were saved "
            "(`DefaultLoadPlanner(allow_partial_load=True)` skips what is not there). Save and "
            "load with the same nesting and wrappers. (PyTorch: {detail})"
        ),
        "checkpoint-shape": (
            "Line {line} (`{call}`), rank {rank}: the tensor in the checkpoint has another shape "
            "than the one to load into. `dcp.load` fills the tensors it is given: allocate them "
            "with the shapes that were saved; the number of ranks may differ, the model may not. "
            "(PyTorch: {detail})"
        ),
        "checkpoint-not-there": (
            "Line {line} (`{call}`), rank {rank}: there is no complete checkpoint at this place. "
            "Save with `dcp.save` on *all* ranks to the same `checkpoint_id` first (the metadata "
            "is written last, by one rank), and load from the same folder. (PyTorch: {detail})"
        ),
        "outside-the-folder": (
            "Line {line} (`{call}`), rank {rank}: a run may write only in its own folder. Use a "
            "relative path, such as `checkpoint`, for files and checkpoints. (PyTorch: {detail})"
        ),
        "checkpoint-returns-nothing": (
            "Line {line} (`{call}`), rank {rank}: `dcp.load` returns nothing: it fills the state "
            "dict that it is given. Build `state = {{...}}` first, call `dcp.load(state, "
            "checkpoint_id=...)`, then use `state`. (PyTorch: {detail})"
        ),
        "checkpoint-wants-dict": (
            "Line {line} (`{call}`), rank {rank}: a checkpoint is saved from a dictionary of "
            "tensors. Pass `model.state_dict()`, or `get_model_state_dict(model)` for sharded "
            "models, not the module. (PyTorch: {detail})"
        ),
        "checkpoint-is-folder": (
            "Line {line} (`{call}`), rank {rank}: a distributed checkpoint is a folder, which "
            "`torch.load` cannot read. Use `dcp.load(state, checkpoint_id=...)`, or convert it "
            "once with `torch.distributed.checkpoint.format_utils.dcp_to_torch_save`. (PyTorch: "
            "{detail})"
        ),
        "file-not-there": (
            "Line {line} (`{call}`), rank {rank}: there is no `{name}` when this rank looks for "
            "it. If another rank writes it, let all ranks meet in `dist.barrier()` after the "
            "writing and before the reading, and use one name on all ranks. (PyTorch: {detail})"
        ),
        "state-dict-empty": (
            "Line {line} (`{call}`), rank {rank}: an empty state dict was given. Ranks without the "
            "file may pass `{{}}` only together with `StateDictOptions(full_state_dict=True, "
            "broadcast_from_rank0=True)`: rank 0 then sends its values to the others. (PyTorch: "
            "{detail})"
        ),
        "weights-only": (
            "Line {line} (`{call}`), rank {rank}: `torch.load` reads only tensors and plain "
            "containers unless told otherwise. Save state dicts instead of whole objects; for a "
            "file of your own that you trust, pass `weights_only=False`. (PyTorch: {detail})"
        ),
    }
)
