"""The run as a check sees it: what it may look at, and how it says what it found.

May import torch, evidence and tensors. Everything public here is documented in docs/grading.md.
"""

from collections.abc import Iterator, Mapping, Sequence

import torch

from engine.events import Collective, Memory, Outcome, Peak, Statistic, Status, Stream
from engine.facts import Args, CheckResult
from engine.grading.evidence import Evidence
from engine.grading.frames import NotExportable
from engine.grading.tensors import Shard, to_torch, whole
from engine.program import MIB

MAX_RESULTS = 64
_MAX_ID, _MAX_MESSAGE = 100, 2000
_DEFAULT = "en"


class Unfit(Exception):
    """The program did not hand out what the check needs: no fault of the check."""

    def __init__(self, code: str, said: Args) -> None:
        super().__init__(code)
        self.code = code
        self.said = said


class Exports(Mapping[str, object]):
    """What one rank handed out, by name; asking for what is not there is the program's fault."""

    def __init__(self, rank: int, evidence: Evidence) -> None:
        self._rank = rank
        self._state = evidence.states[rank] if rank < len(evidence.states) else "missing"
        self._limit_bytes = evidence.export_limit_bytes
        values = evidence.exports[rank] if rank < len(evidence.exports) else {}
        self._values = {name: to_torch(value) for name, value in values.items()}

    def __getitem__(self, name: str) -> object:
        if self._state == "too_large":
            raise Unfit("export-too-large", {"limit_mib": self._limit_bytes // MIB})
        if self._state == "malformed":
            raise Unfit("export-malformed", {"rank": self._rank})
        if name not in self._values:
            raise Unfit("export-missing", {"name": name, "rank": self._rank})
        value = self._values[name]
        if isinstance(value, NotExportable):
            args: Args = {"name": name, "rank": self._rank, "type": value.type_name}
            raise Unfit("export-unsupported", args)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class JudgedRun:
    """One run that has ended."""

    def __init__(self, evidence: Evidence) -> None:
        trace, outcome = evidence.trace, evidence.trace.outcome
        assert outcome is not None, "a run is judged after its end"
        self.status: Status = evidence.status
        self.world_size: int = evidence.world_size
        self.source: str = evidence.source
        self.outcome: Outcome = outcome
        self.exports: Sequence[Exports] = [
            Exports(rank, evidence) for rank in range(len(outcome.ranks))
        ]
        self.collectives: Sequence[Collective] = tuple(trace.collectives)
        self.statistics: Sequence[Statistic] = tuple(trace.statistics)
        self.memory: Sequence[Memory] = tuple(trace.memory)
        self.peaks: Mapping[int, Peak] = dict(trace.peaks)
        self._outputs = trace.outputs
        self._results: list[CheckResult] = []

    @property
    def results(self) -> tuple[CheckResult, ...]:
        """What the check has found so far."""
        return tuple(self._results)

    def text(self, rank: int, stream: Stream = "stdout") -> str:
        """What one rank wrote, as far as it was shown."""
        return "".join(e.text for e in self._outputs if (e.rank, e.stream) == (rank, stream))

    def expect(self, name: str, holds: object, message: str | Mapping[str, str]) -> bool:
        """Note one result; the message says what is wrong where it does not hold.

        Raises: ValueError for a name that came already, or more than the verdict can carry.
        """
        texts = {_DEFAULT: message} if isinstance(message, str) else dict(message)
        if not name or len(name) > _MAX_ID or any(result.id == name for result in self._results):
            raise ValueError(f"the name {name[:_MAX_ID]!r} is empty, too long, or comes twice")
        if len(self._results) >= MAX_RESULTS:
            raise ValueError(f"a check has at most {MAX_RESULTS} results")
        if not all(isinstance(t, str) and len(t) <= _MAX_MESSAGE for t in texts.values()):
            raise ValueError(f"a message is a text of at most {_MAX_MESSAGE} characters")
        if _DEFAULT not in texts:
            raise ValueError(f"a message in languages needs one for {_DEFAULT!r}")
        is_passed = bool(holds)
        result = CheckResult(
            id=name, is_passed=is_passed, message=texts[_DEFAULT], in_languages=texts
        )
        self._results.append(result)
        return is_passed

    def tensor(
        self,
        rank: int,
        name: str,
        *,
        shape: Sequence[int] | None = None,
        dtype: torch.dtype | None = None,
    ) -> torch.Tensor:
        """The tensor that a rank handed out; of a DTensor, what the rank held of it.

        One of another type, shape or dtype is the program's fault: a failed result.
        """
        value = self.exports[rank][name]
        found = value.local if isinstance(value, Shard) else value
        if not isinstance(found, torch.Tensor):
            raise Unfit("export-not-tensor", _about(rank, name, value))
        if shape is not None and tuple(found.shape) != tuple(shape):
            args: Args = {"name": name, "rank": rank, "actual": f"{list(found.shape)}"}
            raise Unfit("export-shape", {**args, "wanted": f"{list(shape)}"})
        if dtype is not None and found.dtype != dtype:
            said: Args = {"name": name, "rank": rank, "actual": f"{found.dtype}"}
            raise Unfit("export-dtype", {**said, "wanted": f"{dtype}"})
        return found

    def number(self, rank: int, name: str) -> float:
        """The number that a rank handed out; a tensor of one item counts."""
        value = self.exports[rank][name]
        if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
            return float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unfit("export-not-number", _about(rank, name, value))
        return float(value)

    def whole(self, name: str) -> torch.Tensor:
        """One tensor from what all ranks hold of it: alike on all, or sharded on one mesh."""
        found = whole([rank[name] for rank in self.exports])
        if found is None:
            raise Unfit("export-not-whole", {"name": name})
        return found


def _about(rank: int, name: str, value: object) -> Args:
    return {"name": name, "rank": rank, "type": type(value).__name__}
