"""What the warm parent prepares: memory that ranks share, hooks that are gone, ranks that end."""

import itertools
import subprocess
import sys

import pytest

from engine.sandbox import holes
from tests.engine.conftest import Runner

PRIVATE = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(16, 4))
model(torch.ones(2, 16)).sum().backward()
kib = 0
with open("/proc/self/smaps_rollup") as lines:
    for line in lines:
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            kib += int(line.split()[1])
print(kib)
"""
REHEARSED = """
from torch.nn.modules import module
from torch.optim import optimizer
from engine import rank, warm

hooks = (
    module._global_forward_pre_hooks,
    module._global_forward_hooks,
    module._global_forward_hooks_always_called,
    optimizer._global_optimizer_pre_hooks,
    optimizer._global_optimizer_post_hooks,
)
before = [dict(one) for one in hooks]
warmed = rank.warm_up("cpu")
warm.rehearse_traced(warmed.traced)
prepared = warmed.traced
assert [dict(one) for one in hooks] == before, "hooks are left"
assert prepared.memory.tracer is None
assert prepared.interception.on_collective is prepared.interception.on_wait is None
points = vars(prepared.watchpoints).values()
assert points and all(point.before is point.after is None for point in points)
print("silent")
"""


async def test_rank_has_fewer_private_megabytes_than_a_process_of_its_own(run: Runner) -> None:
    ran = await run(PRIVATE, 2)
    assert ran.outcome.status == "ok"
    assert all(0 < int(ran.text(rank)) < 20 * 1024 for rank in range(2))


async def test_rank_that_is_done_at_once_waits_for_peers_that_still_connect(run: Runner) -> None:
    at_once = "import torch.distributed as dist\ndist.init_process_group('gloo')\nprint('in')"
    for _ in range(12):
        ran = await run(at_once, 8)
        assert ran.outcome.status == "ok", ran.text(0, "stderr")


async def test_program_gets_warnings_that_the_rehearsal_would_have_used_up(run: Runner) -> None:
    warns = (
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "dist.all_gather_into_tensor(torch.empty(1), torch.ones(1))\n"
    )
    ran = await run(warns)
    assert ran.outcome.status == "ok"
    assert "deprecated" in ran.text(0, "stderr")


async def test_processes_of_one_parent_have_random_numbers_of_their_own(run: Runner) -> None:
    draws = (
        "import random, numpy, torch\nprint(random.random(), numpy.random.rand(), torch.rand(1))"
    )
    ran = await run(draws, 2)
    assert len(set(ran.text(0).split()) | set(ran.text(1).split())) == 6


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
async def test_tensor_of_a_rehearsed_shape_lies_where_its_own_rank_is(
    run: Runner, ranks: int
) -> None:
    shard = (
        "import torch, torch.distributed as dist\n"
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "from torch.distributed.fsdp import fully_shard\n"
        "dist.init_process_group('gloo')\n"
        "mesh = init_device_mesh('cpu', (dist.get_world_size(),))\n"
        "for sizes in ((16, 64), (64, 4), (64, 64)):\n"
        "    for parameter in fully_shard(torch.nn.Linear(*sizes), mesh=mesh).parameters():\n"
        "        kept = parameter.detach()\n"
        "        print(kept.device_mesh.get_coordinate(), kept.device_mesh == mesh)\n"
    )
    ran = await run(shard, ranks)
    assert ran.outcome.status == "ok", ran.text(0, "stderr")
    for rank in range(ranks):
        assert set(ran.text(rank).splitlines()) == {f"({rank},) True"}


def test_rehearsal_with_tracers_leaves_none_of_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REHEARSED], capture_output=True, text=True, check=False
    )
    assert done.stdout == "silent\n", done.stderr


def test_objects_that_are_made_after_the_filling_lie_side_by_side() -> None:
    filling = holes.fill()
    made = [bytes(300) for _ in range(40)]
    steps = {id(b) - id(a) for a, b in itertools.pairwise(made)}
    assert len(filling.blocks) > len(made)
    assert len(steps) <= 2  # the next block, and at most one change of pool
