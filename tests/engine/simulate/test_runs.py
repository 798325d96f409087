"""A simulation is an ordinary run of one sandboxed process: limits, outcome, events."""

from pathlib import Path

import pytest

from engine.events import Collective
from engine.program import MIB, Limits, Program
from engine.wire import decode_program, encode_program
from tests.engine.conftest import Runner

PROGRAMS = Path(__file__).parents[3] / "app" / "bench" / "programs"
BILLION_BYTES = 4 * 1_038_573_568
"""The benchmark's model in float32."""


@pytest.mark.parametrize("ranks", [0, -1, 4097])
def test_number_of_simulated_ranks_has_bounds(ranks: int) -> None:
    with pytest.raises(ValueError, match="simulated ranks must be from 1 to 4096"):
        Program(source="", world_size=1, simulated_ranks=ranks)


def test_simulation_of_several_processes_is_refused() -> None:
    with pytest.raises(ValueError, match="a simulation is one process, not 2"):
        Program(source="", world_size=2, simulated_ranks=4)


def test_simulated_ranks_travel_to_the_rank() -> None:
    program = Program(source="", world_size=1, simulated_ranks=4096)
    assert decode_program(encode_program(program)) == program


async def test_environment_and_groups_are_those_of_rank_0_of_many(run: Runner) -> None:
    source = """\
import os
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("nccl", init_method="env://")
print(*(os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")))
print(dist.get_rank(), dist.get_world_size())
mesh = init_device_mesh("cpu", (8, 128), mesh_dim_names=("replica", "shard"))
print(mesh["shard"].size(), mesh["replica"].get_group().size(), mesh.get_coordinate())
odd = dist.new_group(list(range(0, 1024, 2)), backend="gloo")
print(dist.get_world_size(odd), dist.get_rank(odd))
"""
    ran = await run(source, simulated_ranks=1024)
    assert ran.outcome.status == "ok", ran.text(0, "stderr")
    assert ran.text(0) == "0 0 1024\n0 1024\n128 8 [0, 0]\n512 0\n".replace("[0, 0]", "(0, 0)")


async def test_event_of_a_large_group_has_its_size_and_its_first_ranks(run: Runner) -> None:
    source = "import torch, torch.distributed as dist\ndist.init_process_group()\ndist.barrier()\n"
    ran = await run(source, simulated_ranks=4096)
    (call,) = [e for e in ran.events if isinstance(e, Collective)]
    assert (call.op, call.group_size, call.group_ranks) == ("barrier", 4096, tuple(range(64)))
    assert ran.trace.started is not None
    assert (ran.trace.started.world_size, ran.trace.started.simulated_ranks) == (1, 4096)


async def test_model_of_a_billion_parameters_fits_into_the_usual_memory_limit(run: Runner) -> None:
    source = (PROGRAMS / "simulate.py").read_text(encoding="utf-8")
    ran = await run(source, simulated_ranks=1024, limits=Limits(wall_s=120))
    assert ran.outcome.status == "ok", ran.text(0, "stderr")
    assert ran.outcome.ranks[0].peak_bytes < 256 * MIB
    steady = [m for m in ran.trace.memory if m.phase == "step"][-1]
    ideal = BILLION_BYTES // 1024
    assert ideal <= steady.parameter_bytes < 1.02 * ideal
    assert steady.gradient_bytes == steady.parameter_bytes
    num_steps_bytes = steady.optimizer_bytes - 2 * steady.parameter_bytes
    assert 0 < num_steps_bytes < 4096
    gathered = sum(c.output_bytes for c in ran.trace.collectives if c.op == "all_gather")
    assert gathered < 2.01 * BILLION_BYTES


async def test_wall_limit_ends_a_simulation(run: Runner) -> None:
    ran = await run("while True: pass", simulated_ranks=8, limits=Limits(wall_s=1))
    assert (ran.outcome.status, ran.outcome.limit) == ("timeout", "wall")


async def test_real_memory_of_a_simulation_is_limited(run: Runner) -> None:
    limits = Limits(memory_bytes=128 * MIB)
    ran = await run("x = bytearray(1 << 30)", simulated_ranks=8, limits=limits)
    assert ran.outcome.status == "out_of_memory"


async def test_program_that_raises_is_diagnosed_as_on_real_ranks(run: Runner) -> None:
    ran = await run("import torch\ntorch.ones(2, 3) @ torch.ones(2, 3)\n", simulated_ranks=8)
    assert (ran.outcome.status, ran.codes) == ("error", ["exception"])
    assert ran.outcome.diagnosis[0].line == 2


async def test_next_real_run_knows_nothing_of_a_simulation(run: Runner) -> None:
    source = "import torch\nx = torch.randn(3)\nprint(type(x).__name__, bool(x.isfinite().all()))\n"
    await run(source, simulated_ranks=8)
    real = await run(source)
    assert (real.outcome.status, real.text(0)) == ("ok", "Tensor True\n")
