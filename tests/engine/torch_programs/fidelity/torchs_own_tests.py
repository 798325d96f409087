"""Runs PyTorch's own SyncBatchNorm tests, out of the installed wheel, in this rank.

They were written for one GPU per rank: here `.cuda` gives back its tensor or module, devices by
name or number mean the CPU, and the conditions under which they would skip are taken off. TESTS
and PLANTS (faults to run them under), if set before, choose what runs. Prints one JSON line a test.
"""

import contextlib
import inspect
import json
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

shared = Path("shared")
(shared / "barrier").mkdir(parents=True, exist_ok=True)
os.environ |= {"BACKEND": "gloo", "TEMP_DIR": str(shared.absolute())}
tempfile.tempdir = str(Path.cwd())

from torch.testing._internal.common_utils import TestCase  # noqa: E402 - wants those variables
from torch.testing._internal.distributed import distributed_test  # noqa: E402


class TorchOnCpu:
    """The torch that the tests see: every device is the CPU."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def device(self, *args):
        return torch.device("cpu")


def without_devices(stock):
    def init(self, module, device_ids=None, output_device=None, **options):
        stock(self, module, **options)

    return init


class Own(distributed_test.DistributedTest._DistTestBase, TestCase):
    """The tests as methods, without the harness that would start processes for each."""

    rank = property(lambda self: dist.get_rank())


BATCH_NORM = [
    name
    for name in sorted(dir(Own))
    if name.startswith("test_DistributedDataParallel_SyncBatchNorm")
    or name
    in (
        "test_ddp_sync_bn_training_vs_eval",
        "test_ddp_uneven_inputs_stop_iteration_sync_bn",
        "test_sync_bn_logged",
    )
]

distributed_test.torch = TorchOnCpu()
nn.parallel.DistributedDataParallel.__init__ = without_devices(
    nn.parallel.DistributedDataParallel.__init__
)
nn.Module.cuda = torch.Tensor.cuda = lambda self, device=None: self
torch.cuda.set_device = lambda device: None
torch.cuda.current_device = lambda: 0
dist.init_process_group("gloo")
for plant in globals().get("PLANTS", [contextlib.nullcontext]):
    for name in globals().get("TESTS", BATCH_NORM):
        setattr(Own, name, inspect.unwrap(getattr(Own, name)))
        failed = None
        with plant() as fault:
            try:
                Own(name).debug()
            except AssertionError as error:
                failed = str(error)
        print(json.dumps({"test": name, "fault": fault, "failed": failed}))
dist.destroy_process_group()
