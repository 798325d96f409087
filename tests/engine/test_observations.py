"""What ranks observe for the diagnosis: seldom, unnoticed by the program, true."""

import re
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import nn

from engine import diagnosis
from engine.events import Observation
from engine.tracers.observations.digest import digest, is_plain
from engine.tracers.observations.names import ObservationName
from tests.engine.conftest import Ran, Runner

RULES = Path(diagnosis.__file__).parent


def seen(ran: Ran, name: str, rank: int = 0) -> list[Observation]:
    return [o for o in ran.trace.observations if o.name == name and o.rank == rank]


def test_rules_read_only_observations_that_exist() -> None:
    read = set()
    for path in RULES.glob("*.py"):
        read |= set(
            re.findall(r'(?:observed\(\w+(?:\.\w+)?|seen\()[, ]*"([\w-]+)"', path.read_text())
        )
    assert len(read) > 15
    assert read <= set(get_args(ObservationName))


def test_digest_tells_values_apart_but_not_ranks_that_agree() -> None:
    torch.manual_seed(0)
    one, two = torch.randn(5, 4), torch.randn(3)
    assert digest([one, two]) == digest([one.clone(), two.clone()])
    assert digest([one, two]).numel == 23
    assert digest([one, two]) != digest([one + 1e-3, two])
    assert digest([one, one * 2]) != digest([one * 2, one])
    assert digest([torch.full((2,), 3 + 4j)]).square == pytest.approx(50)


def test_digest_takes_halves_integers_and_empties() -> None:
    half, whole = torch.ones(3, dtype=torch.bfloat16), torch.arange(3)
    assert digest([half, whole, torch.empty(0)]).square == 3 + 5
    assert digest([]).numel == 0


def test_only_dense_tensors_with_data_are_plain() -> None:
    assert is_plain(torch.ones(2))
    assert is_plain(nn.Parameter(torch.ones(2)))
    assert not is_plain(torch.ones(2, device="meta"))
    assert not is_plain(torch.eye(2).to_sparse())
    assert not is_plain(None)


TRAINS = """
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(nn.Linear(4, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
for step in range(100):
    opt.zero_grad()
    model(torch.randn(3, 4)).sum().backward()
    opt.step()
dist.destroy_process_group()
"""


async def test_steps_are_digested_at_powers_of_two_and_at_the_end(run: Runner) -> None:
    ran = await run(TRAINS, ranks=2)
    steps = [o.args["step"] for o in seen(ran, "step")]
    assert steps == [1, 2, 4, 8, 16, 32, 64]
    (end,) = seen(ran, "end")
    assert (end.args["steps"], end.args["numel"]) == (100, 10)
    assert end.args["total"] == seen(ran, "end", rank=1)[0].args["total"]
    assert ran.codes == []


UNNOTICED = """
import copy, io, pickle
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils._python_dispatch import TorchDispatchMode

class Count(TorchDispatchMode):
    ops = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.ops += 1
        return func(*args, **(kwargs or {}))

dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Linear(4, 2)
before = set(vars(net)), set(vars(net.weight))
model = DDP(net)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
state = torch.get_rng_state()
per_step = []
for step in range(4):
    loss = model(torch.ones(3, 4)).sum()
    loss.backward()
    with Count():
        began = Count.ops
        opt.step()
        per_step.append(Count.ops - began)
    opt.zero_grad()
print("ops of each step equal:", len(set(per_step)) == 1)
print("random state untouched:", torch.equal(torch.get_rng_state(), state))
print("nothing hangs on the module:", before == (set(vars(net)), set(vars(net.weight))))
hooks = net._forward_hooks, net._forward_pre_hooks, opt._optimizer_step_pre_hooks
print("hooks:", *map(len, hooks))
copied = pickle.loads(pickle.dumps(copy.deepcopy(net)))
print("copies alike:", torch.equal(copied.weight, net.weight))
torch.save(net.state_dict(), buffer := io.BytesIO())
print("saved:", torch.save.__name__, len(buffer.getvalue()) > 0)
try:
    torch.save(net.state_dict())
except TypeError as error:
    print("refused:", "f" in str(error))
dist.destroy_process_group()
"""


async def test_program_notices_nothing(run: Runner) -> None:
    ran = await run(UNNOTICED, ranks=2)
    assert ran.outcome.status == "ok", ran.text(0, "stderr")
    assert ran.text(0).splitlines() == [
        "ops of each step equal: True",
        "random state untouched: True",
        "nothing hangs on the module: True",
        "hooks: 0 0 0",
        "copies alike: True",
        "saved: save True",
        "refused: True",
    ]


HOSTILE = """
import torch
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
import torch.distributed as dist

class Odd(nn.Module):
    is_odd = False
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
    def named_parameters(self, *args, **kwargs):
        if Odd.is_odd:
            raise KeyError("no names")
        return super().named_parameters(*args, **kwargs)
    def forward(self, x):
        return x * self.weight

dist.init_process_group("gloo")
odd = Odd()
ddp = DDP(odd)
Odd.is_odd = True
opt = torch.optim.SGD([odd.weight], lr=torch.tensor(0.1))
for step in range(3):
    ddp(torch.ones(3)).sum().backward()
    opt.step()
    opt.zero_grad()
opt.param_groups[0]["params"] = "nothing"
try:
    opt.step()
except Exception as error:
    print("stock error:", type(error).__name__)
sparse = nn.Embedding(5, 2, sparse=True)
meta = torch.optim.SGD([nn.Parameter(torch.ones(2, device="meta"))], lr=0.1)
meta.step()
other = torch.optim.SGD(sparse.parameters(), lr=0.1)
sparse(torch.tensor([1])).sum().backward()
other.step()
other.zero_grad()
print("done")
dist.destroy_process_group()
"""


async def test_hostile_objects_only_lose_observations(run: Runner) -> None:
    ran = await run(HOSTILE, ranks=2)
    assert ran.outcome.status == "ok", ran.text(0, "stderr")
    assert ran.text(0) == "stock error: AttributeError\ndone\n"
    assert ran.codes == []


LOCAL = """
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    for step in range(3):
        with model.no_sync():
            model(torch.randn(3, 4)).sum().backward()
        opt.step()
        opt.zero_grad()
    dist.destroy_process_group()

main()
"""


async def test_end_is_seen_although_a_function_has_freed_everything(run: Runner) -> None:
    ran = await run(LOCAL, ranks=2)
    assert [o.args["steps"] for o in seen(ran, "end")] == [3]
    assert ran.codes == ["stepped-under-no-sync"]


DISTRIBUTED_CHECKPOINT = """
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))
fully_shard(model)
dcp.save({"model": model.state_dict()}, checkpoint_id="ckpt")
torch.save({"epoch": 1, "note": ["text", None]}, f"meta.pt")
print("saved")
dist.destroy_process_group()
"""


async def test_distributed_checkpoint_is_no_partial_save(run: Runner) -> None:
    ran = await run(DISTRIBUTED_CHECKPOINT, ranks=2)
    assert ran.text(0) == "saved\n", ran.text(0, "stderr")
    assert seen(ran, "saved-shards") == []
    assert ran.codes == []


WARNED = """
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
model = DDP(nn.Linear(2, 2), broadcast_buffers=False)  # here
dist.destroy_process_group()
"""


async def test_warnings_of_watched_calls_point_at_the_program(run: Runner) -> None:
    ran = await run(WARNED, ranks=1)
    line = next(n for n, text in enumerate(WARNED.splitlines(), 1) if "# here" in text)
    assert re.search(rf"\.py:{line}: FutureWarning: .*broadcast_buffers", ran.text(0, "stderr"))


ONLY_FORWARD = """
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = nn.Linear(8, 8)
fully_shard(model)
other = nn.Linear(2, 2)
step = torch.optim.SGD(other.parameters(), lr=0.1).step
(model(torch.ones(2, 8)).sum() + other(torch.ones(1, 2)).sum()).backward()
step()
dist.destroy_process_group()
"""


async def test_own_initial_values_matter_only_to_who_trains_them(run: Runner) -> None:
    ran = await run(ONLY_FORWARD, ranks=2)
    assert seen(ran, "initial-shards") == []
    assert ran.codes == []
