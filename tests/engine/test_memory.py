"""What ranks hold: every byte by what it is for, from real runs, against what torch itself says."""

import itertools
import re

import pytest

from engine.events import Memory, Peak
from engine.facts import Category, MemoryFacts
from engine.program import Limits
from engine.tracers.memory.ledger import Entry, Ledger, Place
from tests.engine.conftest import Ran, Runner

HERE = Place(None, None, None, None)
START = """
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
torch.manual_seed(0)
"""


WRAPPED = (
    START
    + """
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
model = nn.Sequential(*[nn.Linear(64, 64, bias=False) for _ in range(4)])
x = torch.randn(8, 64)
"""
)
TRAIN = """
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""
PSI = 4 * 4 * 64 * 64
"""Bytes of all parameters."""


def categories(facts: MemoryFacts) -> dict[Category, int]:
    """Bytes of the categories that are not empty."""
    every: dict[Category, int] = {
        "parameter": facts.parameter_bytes,
        "gradient": facts.gradient_bytes,
        "optimizer": facts.optimizer_bytes,
        "activation": facts.activation_bytes,
        "buffer": facts.buffer_bytes,
        "communication": facts.communication_bytes,
        "other": facts.other_bytes,
    }
    return {name: num_bytes for name, num_bytes in every.items() if num_bytes}


def of_rank(ran: Ran, rank: int = 0, phase: str | None = "any") -> list[Memory]:
    """The samples of one rank, in one phase."""
    assert ran.outcome.status == "ok", (ran.outcome, ran.text(0, "stderr"))
    return [m for m in ran.trace.memory if m.rank == rank and phase in ("any", m.phase)]


def last(ran: Ran, rank: int = 0, phase: str | None = "any") -> dict[Category, int]:
    """What the last sample of one rank in one phase holds."""
    return categories(of_rank(ran, rank, phase)[-1])


def peak(ran: Ran, rank: int = 0) -> Peak:
    """The highest moment of one rank."""
    return ran.trace.peaks[rank]


# ------------------------------------------------------------------ the books
def test_the_peak_remembers_what_has_been_freed_since() -> None:
    ledger = Ledger()
    kept = ledger.add(100, "other", HERE)
    temporary = ledger.add(50, "activation", HERE, (50,), "uint8")
    ledger.free(temporary)
    ledger.add(30, "other", HERE)
    ledger.classify(kept, "parameter")
    facts = ledger.peak(10)
    assert (facts.total_bytes, ledger.total_bytes, ledger.peak_bytes) == (150, 130, 150)
    assert categories(facts) == {"parameter": 100, "activation": 50}
    assert [(h.category, h.num_bytes, h.shape) for h in facts.held] == [
        ("parameter", 100, None),
        ("activation", 50, (50,)),
    ]


def test_a_resized_storage_counts_at_the_peak_with_its_size_then() -> None:
    ledger = Ledger()
    storage = ledger.add(80, "other", HERE)
    ledger.resize(storage, 0)
    ledger.resize(storage, 60)
    ledger.classify(storage, "parameter")
    ledger.classify(storage, "activation")
    facts = ledger.peak(10)
    assert (ledger.total_bytes, ledger.peak_bytes) == (60, 80)
    assert categories(facts) == {"parameter": 80}
    ledger.resize(storage, 90)
    assert categories(ledger.peak(10)) == {"parameter": 90}


def test_freeing_twice_counts_once() -> None:
    ledger = Ledger()
    storage = ledger.add(10, "other", HERE)
    ledger.free(storage)
    ledger.free(storage)
    assert ledger.total_bytes == 0


def test_a_storage_may_be_freed_while_the_peak_is_read() -> None:
    ledger = Ledger()

    class Kind:
        def __hash__(self) -> int:
            ledger.free(entries[1])
            return 0

    entries: list[Entry] = [ledger.add(size, "other", HERE, (1,), Kind()) for size in (10, 20)]
    assert ledger.peak(10).total_bytes == 30
    assert ledger.total_bytes == 10


# ------------------------------------------------------------------ one rank
async def test_every_category_of_a_training_step_has_its_bytes(run: Runner) -> None:
    ran = await run(
        START
        + """
model = nn.Sequential(nn.Linear(100, 50, bias=False), nn.BatchNorm1d(50))
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(10, 100)
loss = model(x).sum()
loss.backward()
optimizer.step()
"""
    )
    forward = last(ran, 0, "forward")
    assert forward["parameter"] == 4 * (5000 + 50 + 50)
    assert forward["buffer"] == 4 * 50 * 2 + 8
    # Linear's output and the normalized one; batch norm keeps mean and invstd as well.
    assert forward["activation"] == 4 * (2 * 10 * 50 + 2 * 50)
    end = last(ran)
    assert end["parameter"] == end["gradient"] == 4 * 5100
    assert end["optimizer"] == 2 * 4 * 5100 + 3 * 4  # Adam's step counts are tensors of 4 bytes
    assert end["other"] == 4 * 10 * 100  # x
    assert "activation" not in end or end["activation"] <= 8


async def test_views_count_once_and_freed_storages_not_at_all(run: Runner) -> None:
    ran = await run(
        """
import torch
a = torch.zeros(1000)
views = [a[i:] for i in range(50)] + [a.view(10, 100), a.reshape(-1), a.detach(), a.t()]
b = a.numpy()
c = torch.from_numpy(b)
d = torch.empty(2000); d = None
e = torch.arange(100)
f = torch.empty(0); f.resize_(500)
g = torch.empty(10); torch.add(torch.ones(300), 1, out=g.resize_(0))
h = torch.ones(400); h.untyped_storage().resize_(0)
"""
    )
    assert last(ran) == {"other": 4000 + 800 + 2000 + 1200}
    assert peak(ran).peak_bytes >= 4000 + 8000


async def test_the_peak_says_what_was_alive_and_where_it_was_made(run: Runner) -> None:
    ran = await run(
        """
import torch
from torch import nn

class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(10, 10)

    def forward(self, x):
        big = self.inner(x).repeat(1, 1000)
        return big.mean(1)

model = Wide()
model(torch.randn(8, 10))
y = torch.zeros(10)
"""
    )
    found = peak(ran)
    largest = found.held[0]
    assert (largest.category, largest.num_bytes) == ("activation", 8 * 10_000 * 4)
    assert (largest.phase, largest.module, largest.line) == ("forward", "Wide", 11)
    assert (largest.shape, largest.dtype) == ((8, 10_000), "float32")
    assert (found.phase, found.module) == ("forward", "Wide")
    assert found.total_bytes == found.peak_bytes == max(m.peak_bytes for m in ran.trace.memory)
    assert sum(h.num_bytes for h in found.held) == found.total_bytes


async def test_a_peak_between_two_boundaries_is_seen(run: Runner) -> None:
    ran = await run("import torch\nfor _ in range(3): torch.zeros(1_000_000)\n")
    assert peak(ran).peak_bytes == 4_000_000
    assert last(ran) == {}


async def test_recomputed_activations_are_activations(run: Runner) -> None:
    ran = await run(
        START
        + """
from torch.utils.checkpoint import checkpoint
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)
    def forward(self, x):
        return checkpoint(lambda x: self.b(torch.relu(self.a(x))), x, use_reentrant=False)
model = nn.Sequential(*[Block() for _ in range(3)])
model(torch.randn(256, 64)).sum().backward()
"""
    )
    one = 256 * 64 * 4
    forward = of_rank(ran, 0, "forward")[-1]
    assert forward.activation_bytes == 3 * one  # each block keeps only its input; the last one out
    backward = of_rank(ran, 0, "backward")
    pairs = itertools.pairwise(backward)
    assert sum(b.activation_bytes == a.activation_bytes + one for a, b in pairs) == 3


async def test_the_total_agrees_with_what_the_system_gave_the_process(run: Runner) -> None:
    ran = await run(
        """
import resource, torch
def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = most()
kept = [torch.ones(4_000_000) for _ in range(8)]
kept = [t * 2 for t in kept]
print(most() - before)
"""
    )
    assert peak(ran).peak_bytes == 16 * 16_000_000
    assert abs(int(ran.text(0)) - peak(ran).peak_bytes) < 0.06 * peak(ran).peak_bytes


async def test_the_total_agrees_with_torchs_own_tracker(run: Runner) -> None:
    """The same model and step under torch.distributed._tools' tracker, at the same places."""
    ran = await run(
        START
        + """
from torch.distributed._tools.mem_tracker import MemTracker
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(32, 64)
tracker = MemTracker()
tracker.track_external(model, optimizer, x)
def show(where):
    (found,) = tracker.get_tracker_snapshot().values()
    print(where, *(f"{getattr(k, 'value', k)}={v}" for k, v in found.items()))
with tracker:
    for _ in range(2):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        show("step")
        tracker.reset_mod_stats()
        del loss
"""
    )
    theirs = dict(re.findall(r"(\w+)=(\d+)", ran.text(0).splitlines()[-1]))
    ours = of_rank(ran, 0, "step")[-1]
    assert int(theirs["Parameter"]) == ours.parameter_bytes
    assert int(theirs["Gradient"]) == ours.gradient_bytes
    assert int(theirs["Optstate"]) == ours.optimizer_bytes
    assert int(theirs["Total"]) == ours.total_bytes


# ------------------------------------------------------------------ levels
async def test_at_the_detailed_level_every_change_adds_up(run: Runner) -> None:
    ran = await run(
        """
import torch
from torch import nn
model = nn.Linear(10, 10)
model(torch.randn(4, 10)).sum().backward()
""",
        detail="allocations",
    )
    held: dict[int, int] = {}
    for change in ran.trace.allocations:
        if change.action == "free":
            assert held.pop(change.storage) == change.num_bytes
        else:
            held[change.storage] = change.num_bytes
    assert sum(held.values()) == of_rank(ran)[-1].total_bytes
    linear = [c for c in ran.trace.allocations if c.op == "aten.addmm.default"]
    assert [(c.action, c.phase, c.module, c.line, c.shape) for c in linear[:1]] == [
        ("allocate", "forward", "Linear", 5, (4, 10))
    ]


async def test_the_detailed_level_is_bounded_and_says_so(run: Runner) -> None:
    ran = await run(
        "import torch\nfor _ in range(6000): torch.zeros(10)\n", ranks=2, detail="allocations"
    )
    assert ran.outcome.status == "ok"
    assert len([a for a in ran.trace.allocations if a.rank == 1]) == 8000
    assert [n.code for n in ran.trace.notes if n.rank == 1] == ["allocations-cut"]


async def test_a_loop_of_many_steps_stays_within_the_limit_of_events(run: Runner) -> None:
    ran = await run(
        """
import torch
from torch import nn
model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(10)])
for _ in range(300):
    model(torch.randn(2, 4)).sum().backward()
""",
        ranks=2,
    )
    assert ran.outcome.status == "ok"
    assert 200 < len(of_rank(ran)) < 1000


async def test_many_tiny_ops_are_watched_only_so_far_and_a_note_says_so(run: Runner) -> None:
    ran = await run(
        "import torch\na = torch.zeros(1)\nfor _ in range(300_010): a.add_(1)\nprint(a.item())\n"
    )
    assert ran.outcome.status == "ok"
    assert ran.text(0) == "300010.0\n"
    assert [n.code for n in ran.trace.notes] == ["memory-cut"]


async def test_the_peak_of_a_sharded_step_names_the_place_that_made_it(run: Runner) -> None:
    ran = await run(
        f"{WRAPPED}\nfor layer in model: fully_shard(layer)\nfully_shard(model){TRAIN}",
        ranks=2,
        detail="allocations",
    )
    held: dict[int, int] = {}
    total = 0
    highest: tuple[int, str | None, int | None] = (0, None, None)
    for change in ran.trace.allocations:
        if change.rank != 0 or change.action == "classify":
            continue
        total -= held.pop(change.storage, 0)
        if change.action != "free":
            held[change.storage] = change.num_bytes
            total += change.num_bytes
        if total > highest[0]:
            highest = (total, change.phase, change.line)
    assert (peak(ran).peak_bytes, peak(ran).phase, peak(ran).line) == highest


async def test_an_untraced_run_reports_no_memory(run: Runner) -> None:
    ran = await run("import torch\ntorch.zeros(10)\nprint('done')\n", detail="off")
    assert ran.outcome.status == "ok"
    assert ran.text(0) == "done\n"
    assert not ran.trace.memory
    assert not ran.trace.peaks


async def test_a_rank_that_runs_out_of_memory_has_said_what_it_held(run: Runner) -> None:
    ran = await run(
        """
import torch
kept = []
while True:
    kept.append(torch.ones(2_000_000))
""",
        limits=Limits(memory_bytes=128 * 1024 * 1024),
    )
    assert ran.outcome.status == "out_of_memory"
    if ran.trace.peaks:  # unless the limit killed the rank before it could speak
        assert peak(ran).held[0].line == 5


# ------------------------------------------------------------------ wrappers
@pytest.mark.parametrize("as_view", [False, True])
async def test_ddp_buckets_are_communication_unless_gradients_live_in_them(
    run: Runner, as_view: bool
) -> None:
    ran = await run(
        f"{WRAPPED}\nmodel = DDP(model, gradient_as_bucket_view={as_view}){TRAIN}", ranks=2
    )
    end = last(ran, 1, "step")
    assert end["parameter"] == end["gradient"] == PSI
    assert end["optimizer"] == 2 * PSI + 4 * 4
    assert end.get("communication", 0) == (0 if as_view else PSI)
    assert "activation" not in end
    # x, and what the reducer keeps to find unused parameters
    assert end["other"] <= 4 * 8 * 64 + 64


@pytest.mark.parametrize(
    "wrap",
    [
        "for layer in model: fully_shard(layer)\nfully_shard(model)",
        "model = FSDP(nn.Sequential(*[FSDP(l, device_id=torch.device('cpu')) for l in model]), "
        "device_id=torch.device('cpu'))",
        "model = FSDP(nn.Sequential(*[FSDP(l, device_id=torch.device('cpu'), use_orig_params=True)"
        " for l in model]), device_id=torch.device('cpu'), use_orig_params=True)",
    ],
    ids=["fsdp2", "fsdp1", "fsdp1-use-orig-params"],
)
async def test_shards_are_counted_whole_only_while_they_are_whole(run: Runner, wrap: str) -> None:
    ran = await run(f"{WRAPPED}\n{wrap}{TRAIN}", ranks=2)
    end = last(ran, 1, "step")
    assert end["parameter"] == end["gradient"] == PSI // 2
    assert end["optimizer"] == PSI + 4 * 4
    assert "communication" not in end
    assert "activation" not in end
    forward = [m for m in of_rank(ran, 1, "forward") if m.optimizer_bytes]
    assert max(m.parameter_bytes for m in forward) == PSI // 2 + PSI // 4  # one layer is whole
    held = {h.category for h in peak(ran, 1).held}
    assert {"parameter", "gradient", "optimizer"} <= held


async def test_zero_keeps_only_its_part_of_the_optimizer_state(run: Runner) -> None:
    ran = await run(
        f"{WRAPPED}\nmodel = DDP(model, gradient_as_bucket_view=True)"
        + TRAIN.replace(
            "torch.optim.Adam(model.parameters())",
            "ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam)",
        ).replace(
            "\noptimizer",
            "\nfrom torch.distributed.optim import ZeroRedundancyOptimizer\noptimizer",
            1,
        ),
        ranks=2,
    )
    end = last(ran, 1, "step")
    assert end["parameter"] == end["gradient"] == PSI
    assert end["optimizer"] == PSI + 2 * 4


# ------------------------------------------------------------------ nothing else changes
async def test_tracing_changes_no_number_and_no_error(run: Runner) -> None:
    source = """
import torch, warnings
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch._subclasses.fake_tensor import FakeTensorMode
torch.manual_seed(0)
print((torch.ones(3, dtype=torch.int) * 0.5).dtype, (torch.ones(3, dtype=torch.half) * 2).dtype)
class Own(torch.Tensor):
    pass
print(type(torch.ones(2).as_subclass(Own) + 1).__name__)
class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        names.append(str(func)); return func(*args, **(kwargs or {}))
names = []
with Seen():
    torch.ones(2) + 1
print(names)
with FakeTensorMode():
    print(nn.Linear(3, 4)(torch.zeros(2, 3)).shape)
model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1))
weights = dict(model.named_parameters())
call = lambda v: torch.func.functional_call(model, weights, v).sum()
print(torch.func.grad(call)(torch.ones(2, 8)).sum().item())
print(torch.vmap(lambda v: model(v).sum())(torch.ones(3, 2, 8)).shape)
compiled = torch.compile(model, backend="eager")
compiled(torch.ones(2, 8)).sum().backward()
print(model[0].weight.grad.sum().item())
with torch.inference_mode():
    print(model(torch.ones(2, 8)).is_inference())
import copy, io
twin = copy.deepcopy(model)
buffer = io.BytesIO(); torch.save(model, buffer); buffer.seek(0)
print(torch.load(buffer, weights_only=False)[0].weight.equal(twin[0].weight))
for wrong in (lambda: torch.ones(2, 3) @ torch.ones(2, 3), lambda: model(torch.ones(2, 7)),
              lambda: torch.linalg.inv(torch.zeros(2, 2)), lambda: torch.zeros(2).view(3)):
    try:
        wrong()
    except Exception as error:
        print(type(error).__name__, error)
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
    def named_modules(self, *args, **kwargs):
        raise RuntimeError("not yours")
    modules = parameters = named_parameters = named_modules
    def __eq__(self, other):
        raise RuntimeError("no equality")
    __hash__ = None
    def forward(self, x):
        return self.inner(x)
print(Odd()(torch.zeros(1, 2)).shape)
class Loud(nn.Parameter):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("asked for", getattr(func, "__name__", func))
        return super().__torch_function__(func, types, args, kwargs or {})
    def untyped_storage(self):
        raise RuntimeError("not this way")
layer = nn.Linear(2, 2)
layer.weight = Loud(torch.ones(2, 2))
layer(torch.ones(1, 2)).sum().backward()
nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
print(nested.is_nested, torch.sparse_coo_tensor([[0]], [1.0], (3,)).to_dense().tolist())
with torch.no_grad():
    yes, no = lambda v: v + 1, lambda v: v - 1
    print(torch.cond(torch.tensor(True), yes, no, (torch.zeros(1),)).item())
"""
    traced, untraced = await run(source), await run(source, detail="off")
    assert untraced.outcome.status == "ok", untraced.text(0, "stderr")
    assert traced.text(0) == untraced.text(0)
    assert traced.text(0, "stderr") == untraced.text(0, "stderr")
