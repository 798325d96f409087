"""Rank 1 never joins the second all_reduce and never receives what rank 0 would send it."""

import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(2))  # ends
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(2))  # hangs
elif dist.get_rank() == 2:
    dist.recv(torch.ones(2), src=1)  # hangs too
else:
    threading.Event().wait()
