"""Tensor, sequence and pipeline parallelism, alone and with FSDP2. After common.py; 4 ranks."""
# ruff: noqa: F821 - the names of common.py

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
    pipeline,
)
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

data = batches(width=8)
reference = net(width=8)
train(reference, sgd(reference), data)
one = init_device_mesh("cpu", (4,))
two = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}

model = parallelize_module(net(width=8), one, PLAN)
train(model, sgd(model), data)
check("tensor parallel", states(model.state_dict(), reference.state_dict()))

# Rows of the batch go to the data dimension, shards of each layer to the other.
model = parallelize_module(net(width=8), two["tensor"], PLAN)
for layer in (model[0], model[2]):
    fully_shard(layer, mesh=two["data"])
fully_shard(model, mesh=two["data"])
halves = [x.tensor_split(2)[rank // 2] for x in data]
train(model, sgd(model), halves)
check("tensor parallel and FSDP2", states(model.state_dict(), reference.state_dict()))


class Block(nn.Module):
    """A residual block with a norm, over [N, sequence, width]."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.double()

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())


torch.manual_seed(1)
sequences = torch.randn(3, 2, 8, 8, dtype=torch.float64)
alone = Block()
train(alone, sgd(alone), sequences)
block = parallelize_module(
    Block(),
    one,
    {
        "norm": SequenceParallel(),
        "up": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
        "down": RowwiseParallel(output_layouts=Shard(1)),
    },
)
parallelize_module(block, one, {"up": ColwiseParallel()})
opt = sgd(block)
for x in sequences:
    opt.zero_grad()
    out = block(DTensor.from_local(x.chunk(4, 1)[rank], one, [Shard(1)]).to_local())
    # Each rank has a quarter of the sequence: its mean weighs a quarter of the loss.
    (out.to_local() if isinstance(out, DTensor) else out).square().mean().div(4).backward()
    opt.step()
gathered = [p.grad for p in block.parameters()]
check("sequence parallel runs", [(float(all(g is not None for g in gathered)), 1.0)])

# DTensor algebra: any layout gives what the whole tensors give.
torch.manual_seed(2)
a, b = torch.randn(5, 6, dtype=torch.float64), torch.randn(6, 7, dtype=torch.float64)
for left in (Replicate(), Shard(0), Shard(1)):
    for right in (Replicate(), Shard(0), Shard(1)):
        product = distribute_tensor(a, one, [left]) @ distribute_tensor(b, one, [right])
        check(f"DTensor {left} @ {right}", [(product, a @ b), (product.sum(0), (a @ b).sum(0))])
moved = distribute_tensor(a, one, [Shard(0)]).redistribute(one, [Shard(1)])
check("redistribute", [(moved, a)])
with loss_parallel():
    logits = distribute_tensor(b, one, [Shard(1)]).requires_grad_()
    labels = torch.arange(6) % 7
    loss = nn.functional.cross_entropy(logits, distribute_tensor(labels, one, [Replicate()]))
    loss.backward()
whole_logits = b.clone().requires_grad_()
want = nn.functional.cross_entropy(whole_logits, labels)
want.backward()
check("loss_parallel", [(loss, want), (logits.grad, whole_logits.grad)])
spread = distribute_module(net(width=8), one)
check("distribute_module", states(spread.state_dict(), net(width=8).state_dict()))


# Pipelines: stages on ranks, microbatches through them, the same weights as one process.
def stages(num):
    torch.manual_seed(1)
    return [nn.Sequential(nn.Linear(8, 8), nn.Tanh()).double() for _ in range(num)]


def loss_of(out, target):
    return (out - target).square().mean()


x, target = data[0], data[1]
for name, schedule, num_stages in (
    ("GPipe", ScheduleGPipe, world),
    ("1F1B", Schedule1F1B, world),
    ("interleaved 1F1B", ScheduleInterleaved1F1B, 2 * world),
):
    alone = nn.Sequential(*stages(num_stages))
    loss_of(alone(x), target).backward()
    modules = stages(num_stages)
    own = list(range(rank, num_stages, world))
    pipes = [PipelineStage(modules[i], i, num_stages, torch.device("cpu")) for i in own]
    runner = schedule(pipes if num_stages > world else pipes[0], 4, loss_fn=loss_of)
    losses = []
    if rank == 0 and world - 1 not in own:
        runner.step(x)
    elif rank == world - 1:
        runner.step(target=target, losses=losses)
    else:
        runner.step()
    check(
        f"pipeline, {name}",
        [
            (p.grad, q.grad)
            for i in own
            for p, q in zip(modules[i].parameters(), alone[i].parameters(), strict=True)
        ],
    )
    total = torch.stack(losses).mean() if losses else None
    check(f"pipeline, {name}: loss", [(total, loss_of(alone(x), target))] if losses else [])

model = net(width=8)
split = pipeline(model, (x[:2],), split_spec={
    "1": SplitPoint.BEGINNING, "2": SplitPoint.BEGINNING, "3": SplitPoint.BEGINNING,
})  # fmt: skip
runner = ScheduleGPipe(split.build_stage(rank, torch.device("cpu")), 4)
out = runner.step(x) if rank == 0 else runner.step()
check("pipeline traced from one module", [(out, model(x))] if rank == world - 1 else [])
dist.destroy_process_group()
