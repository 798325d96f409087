"""What ranks train equals what one process trains on the whole batch, in every mode of each tool.

The checks are in torch_programs/fidelity, several dozen in each program; a difference is the
largest one of any value on any rank. A check whose name begins with "control" leaves the tool out,
so it must be far off: else the comparison would see nothing.
"""

from dataclasses import dataclass, field

import pytest

from tests.engine.conftest import Runner
from tests.engine.fidelity.reading import PATIENT, gaps, source

FLOAT64 = 1e-12
"""Training in float64 on these small models; what was seen is below 2e-13."""
FLOAT32 = 1e-5
HALF = 5e-3
"""Two or three steps whose every value is rounded to bfloat16 or float16."""
CONTROL = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """One program: how many checks it makes, and which are not float64."""

    name: str
    ranks: int
    num_checks: int
    tolerances: dict[str, float] = field(default_factory=dict)
    """By the beginning of a check's name."""


AREAS = (
    Area(
        name="batch_norm_places",
        ranks=4,
        num_checks=33,
        tolerances={"DDP, autocast": HALF},
    ),
    Area(
        name="data_parallel",
        ranks=3,
        num_checks=26,
        tolerances={"model in torch": HALF, "fp16_compress_hook": HALF},
    ),
    Area(name="zero", ranks=3, num_checks=29),
    Area(
        name="fsdp1",
        ranks=4,
        num_checks=42,
        tolerances={"clip_grad_norm_": FLOAT32, "mixed precision": HALF},
    ),
    Area(name="fsdp2", ranks=4, num_checks=47, tolerances={"MixedPrecisionPolicy": HALF}),
    Area(name="parallel", ranks=4, num_checks=22),
    Area(name="collectives", ranks=3, num_checks=40),
)


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
async def test_ranks_compute_what_one_process_does(run: Runner, area: Area) -> None:
    program = source("fidelity/common.py", f"fidelity/{area.name}.py")
    found = gaps(await run(program, ranks=area.ranks, limits=PATIENT))
    off = {}
    for check, difference in found.items():
        known = [t for start, t in area.tolerances.items() if check.startswith(start)]
        fits = difference < (known[0] if known else FLOAT64)
        if check.startswith("control"):
            fits = difference > CONTROL
        if not fits:
            off[check] = difference
    assert not off
    assert len(found) == area.num_checks
