"""SyncBatchNorm on 3 ranks against BatchNorm over the global batch; prints one JSON line a case.

Every value is the largest absolute difference on this rank, over two training steps. PLANTS
(context managers that give a fault's name) and ONLY (names of cases), if set before, choose what
runs.
"""

import contextlib
import json
import math

import torch
import torch.distributed as dist
from torch import nn

KINDS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
SPACE = {2: (), 3: (5,), 4: (3, 4), 5: (2, 3, 2)}
CHANNELS = 4


def worst(*differences):
    sizes = [float(d.detach().double().abs().max()) for d in differences if d.numel()]
    return max((math.inf if math.isnan(size) else size for size in sizes), default=0.0)


def inputs(dims, total, dtype, layout, shift):
    x = torch.randn(total, CHANNELS, *SPACE[dims], dtype=torch.float64) * 1.5 + shift
    x = x.to(dtype)
    if layout == "channels_last":
        x = x.to(memory_format=torch.channels_last if dims == 4 else torch.channels_last_3d)
    if layout == "transposed":
        x = x.transpose(2, 3).contiguous().transpose(2, 3)
    return x


def case(name, counts, dims=4, dtype=torch.float64, layout="plain", shift=0.7, **options):
    torch.manual_seed(len(name))
    begin = sum(counts[: dist.get_rank()])
    mine = slice(begin, begin + counts[dist.get_rank()])
    reference = KINDS[dims](CHANNELS, dtype=torch.float64, **options)
    for parameter in reference.parameters():
        nn.init.normal_(parameter, 1.0)
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(KINDS[dims](CHANNELS, **options))
    synced.to(torch.float64 if dtype == torch.float64 else torch.float32)
    synced.load_state_dict(reference.state_dict())
    result = {"case": name, "output": 0.0, "input_grad": 0.0, "parameter_grad": 0.0, "buffers": 0.0}
    for _ in range(2):
        x = inputs(dims, sum(counts), dtype, layout, shift)
        upstream = torch.randn(x.shape, dtype=torch.float64).to(dtype)
        whole = x.double().requires_grad_()
        part = x[mine].detach().requires_grad_()
        out_ref, out = reference(whole), synced(part)
        reference.zero_grad()
        synced.zero_grad()
        out_ref.backward(upstream.double())
        out.backward(upstream[mine])
        parameter_grads = []
        for p, q in zip(synced.parameters(), reference.parameters(), strict=True):
            total = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(total)
            parameter_grads.append(total - q.grad)
        buffers = zip(synced.buffers(), reference.buffers(), strict=True)
        grad = part.grad if len(part) else part  # stock leaves an empty input without a gradient
        differences = {
            "output": worst(out - out_ref[mine]),
            "input_grad": worst(grad - whole.grad[mine]),
            "parameter_grad": worst(*parameter_grads),
            "buffers": worst(*[b - c for b, c in buffers]),
        }
        result |= {key: max(result[key], value) for key, value in differences.items()}
    result["dtypes"] = [str(out.dtype), str(grad.dtype)]
    result["keeps_layout"] = out.stride() == part.stride()
    return result


def every_rank_empty():
    synced = nn.SyncBatchNorm(CHANNELS)
    x = torch.zeros(0, CHANNELS, 3, 3, requires_grad=True)
    synced(x).sum().backward()
    running = [*synced.running_mean.tolist(), *synced.running_var.tolist()]
    return {"case": "every rank empty", "running": running, "grad": x.grad}


EVEN, UNEVEN = (2, 2, 2), (1, 4, 2)
CASES = [
    ("even", EVEN, {}),
    *((f"unequal {dims}-d", UNEVEN, {"dims": dims}) for dims in (2, 3, 4, 5)),
    ("one sample per rank", (1, 1, 1), {"dims": 2}),
    ("one empty rank", (3, 0, 2), {}),
    ("only one rank has data", (0, 5, 0), {}),
    ("no affine", EVEN, {"affine": False}),
    ("weight without bias", EVEN, {"bias": False}),
    ("no running statistics", EVEN, {"track_running_stats": False}),
    ("momentum None", UNEVEN, {"momentum": None}),
    ("eps and momentum", EVEN, {"eps": 0.1, "momentum": 0.7}),
    ("channels_last", UNEVEN, {"layout": "channels_last"}),
    ("channels_last_3d", UNEVEN, {"dims": 5, "layout": "channels_last"}),
    ("non-contiguous", UNEVEN, {"layout": "transposed"}),
    ("mean 1e4 in float32", UNEVEN, {"dtype": torch.float32, "shift": 1e4}),
    ("bfloat16", UNEVEN, {"dtype": torch.bfloat16}),
    ("bfloat16, one empty rank", (3, 0, 2), {"dtype": torch.bfloat16}),
    ("float16", UNEVEN, {"dtype": torch.float16}),
    ("float16, one empty rank", (3, 0, 2), {"dtype": torch.float16}),
]

dist.init_process_group("gloo")
for plant in globals().get("PLANTS", [contextlib.nullcontext]):
    with plant() as fault:
        for name, counts, options in CASES:
            if name in globals().get("ONLY", [name]):
                print(json.dumps(case(name, counts, **options) | {"fault": fault}))
print(json.dumps(every_rank_empty() | {"fault": None}))
dist.destroy_process_group()
