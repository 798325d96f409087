"""The programs of `academy bench soak` and how each has to end. Standard library only."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

HELD_NAME = "soak-held"
"""In the command line of the rank of a run that waits to be struck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One program and the status that it ends with."""

    name: str
    source: str
    ranks: int
    status: str
    cancel_after: str = ""
    """The run is cancelled once it has printed this."""


NORMAL = Kind(
    name="normal",
    ranks=2,
    status="ok",
    source="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 16)).sum().backward()
optimizer.step()
total = torch.ones(8)
dist.all_reduce(total)
print(total.sum().item())
dist.destroy_process_group()
""",
)
HELD = Kind(
    name="held",
    ranks=1,
    status="cancelled",
    cancel_after="held",
    source=f"""\
import os
import sys

wait = "import time; print('held', flush=True); time.sleep(3600)"
os.execv(sys.executable, [sys.executable, "-c", wait, "{HELD_NAME}"])
""",
)
_SHARDED = Kind(
    name="sharded",
    ranks=4,
    status="ok",
    source="""\
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group()
model = fully_shard(torch.nn.Linear(32, 32))
optimizer = torch.optim.AdamW(model.parameters())
model(torch.ones(4, 32)).sum().backward()
optimizer.step()
print(dist.get_rank(), flush=True)
dist.destroy_process_group()
""",
)
_SMALL = Kind(name="small", ranks=1, status="ok", source="print('one rank')\n")
_THREE = Kind(
    name="three ranks",
    ranks=3,
    status="ok",
    source="import torch.distributed as dist\ndist.init_process_group()\ndist.barrier()\n",
)
_RAISES = Kind(name="raises", ranks=2, status="error", source="raise ValueError('on purpose')\n")
_EXITS = Kind(name="exits", ranks=1, status="error", source="import os\nos._exit(3)\n")
_CRASHES = Kind(
    name="crashes",
    ranks=1,
    status="error",
    source="import os\nimport signal\n\nos.kill(os.getpid(), signal.SIGSEGV)\n",
)
_CANCELLED = Kind(
    name="cancelled",
    ranks=2,
    status="cancelled",
    cancel_after="up",
    source="print('up', flush=True)\nwhile True:\n    pass\n",
)
_FLOODS = Kind(
    name="floods",
    ranks=1,
    status="output_limit",
    source="while True:\n    print('x' * 65536)\n",
)
_LITTERS = Kind(
    name="litters",
    ranks=1,
    status="ok",
    source="""\
import os
import tempfile
import time

tempfile.mkdtemp()
open("/dev/shm/left", "wb").write(bytes(1 << 20))
open("left", "wb").write(bytes(1 << 20))
os.pipe()
if os.fork() == 0:
    os.setpgid(0, 0)
    time.sleep(3600)
""",
)
_HANGS = Kind(
    name="hangs",
    ranks=2,
    status="deadlock",
    source="""\
import torch
import torch.distributed as dist

dist.init_process_group()
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(1))
else:
    dist.recv(torch.ones(1), src=0)
""",
)
_CYCLE = (
    *(NORMAL, NORMAL, _SMALL, NORMAL, _RAISES, NORMAL, _LITTERS, NORMAL, _CANCELLED, NORMAL),
    *(NORMAL, _SHARDED, NORMAL, _EXITS, NORMAL, _THREE, NORMAL, _CRASHES, NORMAL, _FLOODS),
)
_HANGS_EVERY = 100


def mix() -> Iterator[Kind]:
    """Kinds without end: every other run is a normal one, few stand still."""
    for number in count():
        hangs = number % _HANGS_EVERY == _HANGS_EVERY - 1
        yield _HANGS if hangs else _CYCLE[number % len(_CYCLE)]
