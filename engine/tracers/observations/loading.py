"""What data each rank trains on: order of shuffling samplers, content of DataLoader passes.

May import torch. The batches of the first passes are digested, up to a number.
"""

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.utils.data import DistributedSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from engine.tracers.observations.digest import digest, is_plain
from engine.tracers.observations.optimizers import Optimizers
from engine.tracers.observations.recorder import Recorder, unnoticed
from engine.tracers.observations.watchpoints import Watchpoints

_MAX_PASSES = 8
_MAX_BATCHES = 256


@dataclass(slots=True, kw_only=True)
class _Order:
    """How one sampler was last iterated."""

    sampler: weakref.ref[DistributedSampler[object]]
    epoch: int
    counts: dict[int, int]
    """Steps of each optimizer at that time."""
    repeated_line: int | None = None
    """Where the same order began again after training."""
    trained: frozenset[int] = frozenset()
    """Optimizers that stepped on it the first time; one more step makes it a repetition."""
    is_reported: bool = False


@dataclass(slots=True, kw_only=True)
class _Pass:
    """One iteration over a DataLoader."""

    number: int
    line: int | None
    iterator: weakref.ref[_BaseDataLoaderIter]
    num_steps: int
    """Optimizer steps when it began."""
    sampler: Literal["distributed", "other"] = "other"
    replicas: int = 1
    replica_rank: int = 0
    order: int | None = None
    """What a shuffling DistributedSampler seeds its order with."""
    num_batches: int = 0
    numel: int = 0
    total: float = 0.0
    square: float = 0.0
    num_inputs: int = 0
    """Training forwards of outermost modules, whose inputs replace the batches in the digest."""
    first: tuple[float, float] | None = None
    is_varied: bool = False
    fed_training: bool = False
    is_open: bool = True


class Loading:
    """Samplers and DataLoaders of one rank."""

    def __init__(self, recorder: Recorder, optimizers: Optimizers) -> None:
        self._recorder = recorder
        self._optimizers = optimizers
        self._orders: dict[int, _Order] = {}
        self._passes: list[_Pass] = []

    def install(self, watchpoints: Watchpoints) -> None:
        """Stand where samplers begin and batches come."""
        watchpoints.sampler_started.before = self._sampler_started
        watchpoints.batch_loaded.after = self._batch_loaded

    def finish(self) -> None:
        """Report the passes, and orders that repeated before more training."""
        for order in self._orders.values():
            self._say_repeated(order)
        self._close_last()
        for one in self._passes:
            if one.fed_training:
                self._say_pass(one)

    # ------------------------------------------------------------------ samplers
    def _sampler_started(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        with unnoticed():
            sampler = args[0]
            if not isinstance(sampler, DistributedSampler):
                return
            if not sampler.shuffle or sampler.num_replicas < 2:
                return
            order = self._orders.get(id(sampler))
            if order is None or order.sampler() is not sampler:
                ref, counts = weakref.ref(sampler), self._optimizers.step_counts()
                self._orders[id(sampler)] = _Order(sampler=ref, epoch=sampler.epoch, counts=counts)
                return
            self._say_repeated(order)
            order.trained = self._stepped_since(order)
            if order.epoch != sampler.epoch:
                order.trained = frozenset()
            order.repeated_line = self._recorder.position.line()
            order.epoch, order.counts = sampler.epoch, self._optimizers.step_counts()

    def _stepped_since(self, order: _Order) -> frozenset[int]:
        counts = self._optimizers.step_counts()
        return frozenset(n for n, steps in counts.items() if steps > order.counts.get(n, 0))

    def _say_repeated(self, order: _Order) -> None:
        """Report a repeated order, once, if an optimizer stepped on it both times."""
        if not order.is_reported and order.trained & self._stepped_since(order):
            order.is_reported = True
            args = {"epoch": order.epoch}
            self._recorder.say("repeated-order", args, order.repeated_line)

    # ------------------------------------------------------------------ batches
    def _batch_loaded(
        self, answer: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        with unnoticed():
            iterator = args[0]
            if not isinstance(iterator, _BaseDataLoaderIter):
                return
            one = next((p for p in reversed(self._passes) if p.iterator() is iterator), None)
            if one is None:
                if len(self._passes) >= _MAX_PASSES or isinstance(answer, BaseException):
                    return
                self._close_last()
                one = self._begin(iterator)
            self._note_steps(one)
            one.is_open = not isinstance(answer, BaseException)
            if not isinstance(answer, BaseException) and one.num_batches < _MAX_BATCHES:
                one.num_batches += 1
                if not one.num_inputs:
                    _take(one, answer)

    def input_taken(self, args: tuple[object, ...]) -> None:
        """The outermost module of a training forward got these arguments.

        What a loader gives need not be what a rank trains on: a program may take its share of
        each batch. Only calls without positional tensors leave it at the batches.
        """
        one = self._passes[-1] if self._passes else None
        if one is None or not one.is_open or one.num_inputs >= _MAX_BATCHES:
            return
        with unnoticed():
            if not any(True for _ in _tensors(args)):
                return
            if not one.num_inputs:
                one.numel, one.total, one.square = 0, 0.0, 0.0
                one.first, one.is_varied = None, False
            one.num_inputs += 1
            _take(one, args)

    def _note_steps(self, one: _Pass) -> None:
        if self._optimizers.num_steps > one.num_steps:
            one.fed_training = True

    def _close_last(self) -> None:
        """A pass that was left early is over: were steps taken on its last batch?"""
        if self._passes and self._passes[-1].is_open:
            self._note_steps(self._passes[-1])

    def _begin(self, iterator: _BaseDataLoaderIter) -> _Pass:
        loader_sampler = getattr(iterator, "_index_sampler", None)
        sampler = getattr(loader_sampler, "sampler", loader_sampler)
        one = _Pass(
            number=len(self._passes),
            line=self._recorder.position.line(),
            iterator=weakref.ref(iterator),
            num_steps=self._optimizers.num_steps,
        )
        if isinstance(sampler, DistributedSampler):
            one.sampler = "distributed"
            one.replicas, one.replica_rank = sampler.num_replicas, sampler.rank
            one.order = sampler.seed + sampler.epoch if sampler.shuffle else None
        self._passes.append(one)
        return one

    def _say_pass(self, one: _Pass) -> None:
        self._recorder.say(
            "data-pass",
            {
                "number": one.number,
                "batches": one.num_batches,
                "numel": one.numel,
                "total": one.total,
                "square": one.square,
                "sampler": one.sampler,
                "replicas": one.replicas,
                "replica_rank": one.replica_rank,
                "order": one.order,
                "is_varied": int(one.is_varied),
            },
            one.line,
        )


def _take(one: _Pass, batch: object) -> None:
    """Add a batch to the digest of its pass; sums do not depend on the order of samples."""
    found = digest(_tensors(batch))
    one.numel += found.numel
    one.total += found.total
    one.square += found.square
    if one.first is None:
        one.first = (found.total, found.square)
    elif one.first != (found.total, found.square):
        one.is_varied = True


def _tensors(batch: object) -> Iterator[Tensor]:
    if isinstance(batch, Tensor):
        if is_plain(batch):
            yield batch
    elif isinstance(batch, Mapping):
        for item in batch.values():
            yield from _tensors(item)
    elif isinstance(batch, (list, tuple)):
        for item in batch:
            yield from _tensors(item)
