"""Stock SyncBatchNorm on CUDA beside ours on CPU: gloo ranks that share one GPU; a check only.

One process of this program per rank, with torchrun's variables. Every rank takes each case twice,
on CPU tensors and on CUDA tensors, and rank 0 prints one JSON line a case: the largest absolute
difference of anything that came out, on any rank.
"""

import json
import math
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[4]))
import engine.torch_cpu

KINDS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
SPACE = {2: (), 3: (5,), 4: (3, 4), 5: (2, 3, 2)}
CHANNELS = 4
TENSOR_CORES = torch.backends.cuda.matmul
TENSOR_CORES.allow_tf32 = False

engine.torch_cpu.prepare("cpu")  # CPU tensors only: CUDA's kernels and code stay the stock ones
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def outcome(device, num_samples, dims, dtype, layout, shift, options):
    """Everything that two training steps of one layer give, as float64 on CPU."""
    torch.manual_seed(7)
    layer = nn.SyncBatchNorm.convert_sync_batchnorm(KINDS[dims](CHANNELS, **options))
    for parameter in layer.parameters():
        nn.init.normal_(parameter, 1.0)
    layer.to(device, torch.float64 if dtype == torch.float64 else torch.float32)
    torch.manual_seed(100 + rank)
    found = []
    for _ in range(2):
        x = (torch.randn(num_samples, CHANNELS, *SPACE[dims]) * 1.5 + shift).to(dtype)
        if layout == "channels_last":
            x = x.to(memory_format=torch.channels_last)
        upstream = torch.randn(x.shape).to(dtype).to(device)
        x = x.to(device).requires_grad_()
        layer.zero_grad()
        out = layer(x)
        out.backward(upstream)
        found += [out, torch.zeros_like(x) if x.grad is None else x.grad]
        found += [torch.zeros_like(p) if p.grad is None else p.grad for p in layer.parameters()]
        found += [b.clone() for b in layer.buffers()]
    return [t.detach().double().cpu() for t in found]


def largest(a, b):
    if not a.numel():
        return 0.0
    gap = float((a - b).abs().max())
    return math.inf if math.isnan(gap) else gap


EVEN, UNEVEN, HOLE = (3, 3, 3, 3), (2, 5, 1, 3), (3, 0, 2, 4)
F32, F64 = torch.float32, torch.float64
CASES = [
    *((f"{dims}-d", UNEVEN, dims, F64, "plain", 0.7, {}) for dims in (2, 3, 4, 5)),
    ("float32", UNEVEN, 4, F32, "plain", 0.7, {}),
    ("bfloat16", UNEVEN, 4, torch.bfloat16, "plain", 0.7, {}),
    ("float16", UNEVEN, 4, torch.float16, "plain", 0.7, {}),
    ("mean 1e4", UNEVEN, 4, F32, "plain", 1e4, {}),
    ("one empty rank", HOLE, 4, F64, "plain", 0.7, {}),
    ("channels_last", UNEVEN, 4, F64, "channels_last", 0.7, {}),
    ("no affine", EVEN, 4, F64, "plain", 0.7, {"affine": False}),
    ("no bias", EVEN, 4, F64, "plain", 0.7, {"bias": False}),
    ("no running statistics", EVEN, 4, F64, "plain", 0.7, {"track_running_stats": False}),
    ("momentum None", UNEVEN, 4, F64, "plain", 0.7, {"momentum": None}),
    ("eps and momentum", EVEN, 4, F64, "plain", 0.7, {"eps": 0.1, "momentum": 0.7}),
]

for name, counts, dims, dtype, layout, shift, options in CASES:
    ours, stock = (
        outcome(torch.device(kind), counts[rank], dims, dtype, layout, shift, options)
        for kind in ("cpu", "cuda:0" if torch.cuda.is_available() else "cpu")
    )
    worst = torch.tensor(
        [max(largest(a, b) for a, b in zip(ours, stock, strict=True))], dtype=torch.float64
    )
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    if rank == 0:
        print(json.dumps({"case": name, "dtype": str(dtype), "gap": worst.item()}), flush=True)
dist.destroy_process_group()
