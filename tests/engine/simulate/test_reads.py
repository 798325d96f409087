"""A program that reads values is told so, and where; one that reads only shapes is not."""

import pytest

from tests.engine.conftest import Runner

BEGIN = """\
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group()
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4))
loss = model(torch.randn(2, 4)).square().sum()
loss.backward()
"""
LINE = BEGIN.count("\n") + 1

READS = [
    ('print("loss", loss.item())', "loss.item()"),
    ('print(f"loss {loss:.3f}")', 'f"loss {loss:.3f}"'),
    ("print(loss)", "print(loss)"),
    ("if loss > 0: pass", "loss > 0"),
    ("weights = model.module.weight.tolist()", "model.module.weight.tolist()"),
    ("array = loss.detach().numpy()", "loss.detach().numpy()"),
    ("where = model.module.weight.grad.nonzero()", "model.module.weight.grad.nonzero()"),
    ("big = loss[loss > 0]", "loss[loss > 0]"),
    ('torch.save(model.state_dict(), "model.pt")', 'torch.save(model.state_dict(), "model.pt")'),
    (
        "dist.all_gather_object([None] * dist.get_world_size(), 1)",
        "dist.all_gather_object([None] * dist.get_world_size(), 1)",
    ),
    ("sums = torch.zeros(1); sums += loss.detach(); sums.item()", "sums.item()"),
]


@pytest.mark.parametrize(("code", "call"), READS, ids=[code for code, _ in READS])
async def test_read_of_a_value_is_named_with_its_line(run: Runner, code: str, call: str) -> None:
    ran = await run(BEGIN + code + "\n", simulated_ranks=64)
    assert ran.outcome.status == "error"
    (found,) = ran.outcome.diagnosis
    assert (found.code, found.line, found.rank) == ("cannot-simulate", LINE, 0)
    assert found.args["call"] == call


async def test_read_that_the_program_swallows_fails_the_run_all_the_same(run: Runner) -> None:
    code = "try:\n    loss.item()\nexcept Exception:\n    pass\nprint('went on')\n"
    ran = await run(BEGIN + code, simulated_ranks=64)
    assert ran.text(0) == "went on\n"
    assert ran.outcome.status == "error"
    assert [(d.code, d.line) for d in ran.outcome.diagnosis] == [("cannot-simulate", LINE + 1)]


async def test_call_that_works_on_values_is_named_with_its_line(run: Runner) -> None:
    code = "counts = torch.histogram(loss.detach().reshape(1), 4)\n"
    ran = await run(BEGIN + code, simulated_ranks=64)
    assert [(d.code, d.line) for d in ran.outcome.diagnosis] == [("cannot-simulate-call", LINE)]


async def test_same_read_on_a_real_rank_is_no_mistake(run: Runner) -> None:
    ran = await run(BEGIN + "print(loss.item() >= 0)\n")
    assert (ran.outcome.status, ran.text(0)) == ("ok", "True\n")


KNOWN = """\
import copy
import numpy as np
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

assert loss.shape == () and loss.dtype is torch.float32 and loss.device.type == "cpu"
rates = [rate.item() for rate in torch.linspace(0, 0.5, 3)]
assert rates == [0, 0.25, 0.5], rates
data = TensorDataset(torch.randn(256, 4), torch.randint(3, (256,)))
sampler = DistributedSampler(data)
sampler.set_epoch(1)
assert sorted(torch.randperm(5).tolist()) == [0, 1, 2, 3, 4]
sizes = [len(x) for x, _ in DataLoader(data, batch_size=3, sampler=sampler)]
assert sizes == [3, 1], sizes
total = torch.tensor([1.0, 2.0])
total += 1
total[0] = 7
assert total.tolist() == [7, 3] and str(total) == "tensor([7., 3.])"
assert total.numpy()[1] == 3 and np.asarray(total).shape == (2,)
assert copy.deepcopy(model.module).weight.shape == (4, 4)
assert model(torch.from_numpy(np.ones((2, 4), dtype=np.float32))).shape == (2, 4)
checkpoint(model, torch.randn(2, 4), use_reentrant=False).sum().backward()
torch.compile(model.module, backend="eager")(torch.randn(2, 4)).sum().backward()
with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
    assert model(torch.randn(2, 4)).dtype is torch.bfloat16
model.load_state_dict(model.state_dict())
assert torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).shape == ()
print("done")
"""


async def test_shapes_and_numbers_of_the_program_itself_can_be_read(run: Runner) -> None:
    ran = await run(BEGIN + KNOWN, simulated_ranks=64)
    assert (ran.outcome.status, ran.text(0)) == ("ok", "done\n"), ran.text(0, "stderr")
    assert ran.codes == []


async def test_collective_makes_a_known_value_unknown(run: Runner) -> None:
    code = "import torch, torch.distributed as dist\ndist.init_process_group()\nx = torch.ones(1)\n"
    read = "print(x.item())\n"
    known = await run(code + read, simulated_ranks=2)
    assert (known.outcome.status, known.text(0)) == ("ok", "1.0\n")
    unknown = await run(code + "dist.all_reduce(x)\n" + read, simulated_ranks=2)
    assert unknown.codes == ["cannot-simulate"]
