"""The books of one rank: which storages are alive, what for, and what was alive at the peak.

May import engine.facts. Knows no torch: a storage is a number of bytes that somebody else watches.
Adding, freeing and the peak cost the same whatever is alive; only questions walk the entries.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.facts import Category, Holding, PeakFacts, Phase

_STRENGTH: dict[Category, int] = {
    "other": 0,
    "activation": 1,
    "communication": 2,
    "buffer": 3,
    "optimizer": 4,
    "gradient": 5,
    "parameter": 6,
}
"""A storage with several uses counts as the strongest: a bucket that gradients view is gradient."""


@dataclass(slots=True)  # one for each allocation: a frozen one takes four times as long to make
class Place:
    """Where in the program something was allocated, and by which op."""

    op: object
    """The op, None for a storage that was there before; its str is its name."""
    phase: Phase | None
    module: str | None
    line: int | None


@dataclass(slots=True, eq=False)
class Entry:
    """One storage."""

    number: int
    num_bytes: int
    category: Category
    place: Place
    shape: tuple[int, ...] | None
    dtype: object
    """torch's dtype; its name is made only when somebody asks."""
    born: int
    """Clock of the ledger when it got its present size."""


@dataclass(frozen=True, slots=True)
class Gone:
    """An entry that was alive at the peak and has changed since, as it was then."""

    entry: Entry
    num_bytes: int
    place: Place
    born: int


class Ledger:
    """Entries that are alive, their total and the highest total so far."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self.peak_bytes = 0
        self._sums: dict[Category, int] = dict.fromkeys(_STRENGTH, 0)
        self._alive: set[Entry] = set()
        self._clock = 0
        self._count = 0
        self._peak_clock = 0
        self._gone: list[Gone] = []
        """What was alive at the peak and is not any more, with its bytes then."""

    def add(
        self,
        num_bytes: int,
        category: Category,
        place: Place,
        shape: tuple[int, ...] | None = None,
        dtype: object = None,
    ) -> Entry:
        """Book a new storage."""
        self._clock += 1
        entry = Entry(self._count, num_bytes, category, place, shape, dtype, self._clock)
        self._count += 1
        self._alive.add(entry)
        self._grow(category, num_bytes)
        return entry

    def resize(self, entry: Entry, num_bytes: int, place: Place | None = None) -> None:
        """Give a storage another size; freed and allocated again (at place) is what it comes to."""
        self._note_end(entry)
        entry.place = place or entry.place
        self._clock += 1
        entry.born = self._clock
        difference, entry.num_bytes = num_bytes - entry.num_bytes, num_bytes
        self._grow(entry.category, difference)

    def free(self, entry: Entry) -> None:
        """Close the entry of a storage that is no more."""
        if entry in self._alive:
            self._note_end(entry)
            self._alive.discard(entry)
            self._grow(entry.category, -entry.num_bytes)

    def classify(self, entry: Entry, category: Category) -> bool:
        """Say what a storage is for, unless something stronger is known; whether that was news."""
        if _STRENGTH[category] <= _STRENGTH[entry.category]:
            return False
        if entry in self._alive:
            self._sums[entry.category] -= entry.num_bytes
            self._sums[category] += entry.num_bytes
        entry.category = category
        return True

    def sums(self) -> tuple[int, ...]:
        """Bytes held now per category, in the order of MemoryFacts."""
        sums = self._sums
        return (
            sums["parameter"],
            sums["gradient"],
            sums["optimizer"],
            sums["activation"],
            sums["buffer"],
            sums["communication"],
            sums["other"],
        )

    def peak(self, max_holdings: int) -> PeakFacts:
        """What was held at the highest moment, by what each storage turned out to be for."""
        sums: dict[Category, int] = dict.fromkeys(_STRENGTH, 0)
        groups: dict[tuple[object, ...], tuple[Gone, int, int]] = {}
        last: Gone | None = None
        for held in self._at_peak():
            entry, place = held.entry, held.place
            sums[entry.category] += held.num_bytes
            if last is None or held.born > last.born:
                last = held
            key = (entry.category, entry.shape, entry.dtype, place.phase, place.module, place.line)
            first, count, total = groups.get(key, (held, 0, 0))
            groups[key] = (first, count + 1, total + held.num_bytes)
        largest = sorted(groups.values(), key=lambda group: -group[2])[:max_holdings]
        return PeakFacts(
            parameter_bytes=sums["parameter"],
            gradient_bytes=sums["gradient"],
            optimizer_bytes=sums["optimizer"],
            activation_bytes=sums["activation"],
            buffer_bytes=sums["buffer"],
            communication_bytes=sums["communication"],
            other_bytes=sums["other"],
            peak_bytes=self.peak_bytes,
            phase=last.place.phase if last else None,
            module=last.place.module if last else None,
            line=last.place.line if last else None,
            held=tuple(_holding(*group) for group in largest if group[2]),
        )

    def _at_peak(self) -> Iterator[Gone]:
        # Copied at once: the garbage collector and other threads free storages meanwhile.
        alive, gone = list(self._alive), tuple(self._gone)
        for entry in alive:
            if entry.born <= self._peak_clock:
                yield Gone(entry, entry.num_bytes, entry.place, entry.born)
        yield from gone

    def _note_end(self, entry: Entry) -> None:
        if entry.born <= self._peak_clock and entry.num_bytes:
            self._gone.append(Gone(entry, entry.num_bytes, entry.place, entry.born))

    def _grow(self, category: Category, num_bytes: int) -> None:
        self._sums[category] += num_bytes
        self.total_bytes += num_bytes
        if self.total_bytes > self.peak_bytes:
            self.peak_bytes = self.total_bytes
            self._peak_clock = self._clock
            if self._gone:
                self._gone.clear()


def _holding(held: Gone, num_storages: int, num_bytes: int) -> Holding:
    entry, place = held.entry, held.place
    return Holding(
        category=entry.category,
        num_bytes=num_bytes,
        num_storages=num_storages,
        shape=entry.shape,
        dtype=dtype_name(entry),
        phase=place.phase,
        module=place.module,
        line=place.line,
    )


def dtype_name(entry: Entry) -> str | None:
    """The name of the dtype of an entry's first tensor, like "float32"."""
    return None if entry.dtype is None else str(entry.dtype).removeprefix("torch.")
