"""Kernels of SyncBatchNorm as people get them wrong; a test puts this before a program.

PLANTS has one context manager a fault, and one without: inside, the faulty kernel stands in for
ours in this rank, and the context gives the fault's name.
"""

import contextlib
import functools

import torch

from engine.torch_cpu import kernels


def no_sync(x, mean, invstd, running_mean, running_var, momentum, eps, counts):
    """Each rank goes on with its own statistics."""
    own = [part.unsqueeze(0) for part in kernels.stats(x, eps)]
    own_count = counts.new_full((1,), x.numel() // x.size(1))
    return kernels.gather_stats(x, *own, running_mean, running_var, momentum, eps, own_count)


def unweighted_counts(x, mean, invstd, running_mean, running_var, momentum, eps, counts):
    """The mean of the ranks' means, whatever their batches; the total count is right."""
    even = torch.full_like(counts, float(counts.sum()) / max(len(counts), 1))
    return kernels.gather_stats(x, mean, invstd, running_mean, running_var, momentum, eps, even)


def biased_running_var(x, mean, invstd, running_mean, running_var, momentum, eps, counts):
    """n where n - 1 belongs: the running variance becomes too small."""
    before = None if running_var is None else running_var.clone()
    result = kernels.gather_stats(x, mean, invstd, running_mean, running_var, momentum, eps, counts)
    if before is not None and counts.sum() > 1:
        n = float(counts.sum())
        kept = before * (1 - momentum)
        running_var.copy_(kept + (running_var - kept) * (n - 1) / n)
    return result


def no_backward_all_reduce(grad_out, x, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    """The input gradient is made from this rank's sums only."""
    own = kernels.backward_reduce(grad_out, x, mean, invstd, weight, True, False, False)[:2]
    return kernels.backward_elemt(grad_out, x, mean, invstd, weight, *own, count)


def local_count(grad_out, x, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    """The global sums are divided by this rank's own number of values."""
    own = count.new_full((1,), x.numel() // x.size(1))
    return kernels.backward_elemt(grad_out, x, mean, invstd, weight, sum_dy, sum_dy_xmu, own)


def mean_of_squares(x, eps):
    """E[x^2] - E[x]^2, which cancels where the mean is large."""
    if x.numel() == 0:
        return kernels.stats(x, eps)
    wide = x.to(kernels.statistics_dtype(x.dtype))
    other = [dim for dim in range(x.dim()) if dim != 1]
    mean = wide.mean(other)
    return mean, (wide.square().mean(other) - mean.square() + eps).rsqrt()


FAULTS = {
    "no sync": ("batch_norm_gather_stats_with_counts", no_sync),
    "unweighted counts": ("batch_norm_gather_stats_with_counts", unweighted_counts),
    "biased running_var": ("batch_norm_gather_stats_with_counts", biased_running_var),
    "missing backward all_reduce": ("batch_norm_backward_elemt", no_backward_all_reduce),
    "local count": ("batch_norm_backward_elemt", local_count),
    "E[x^2] - E[x]^2": ("batch_norm_stats", mean_of_squares),
}


@contextlib.contextmanager
def planted(fault):
    """Let a faulty kernel stand in for ours; None plants nothing."""
    library = torch.library.Library("aten", "IMPL")
    if fault is not None:
        op, kernel = FAULTS[fault]
        library.impl(op, kernel, "CPU", allow_override=True)
    try:
        yield fault
    finally:
        library._destroy()


PLANTS = [functools.partial(planted, fault) for fault in (None, *FAULTS)]
