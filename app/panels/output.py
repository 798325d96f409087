"""What the ranks wrote, merged into as few pieces as the page needs.

Owns OutputChunk. May import contexts and the engine's trace.
"""

from collections.abc import Sequence

from app.panels.contexts import OutputChunk
from engine.events import Output
from engine.trace import Trace

MAX_BYTES_PER_RANK = 256 * 1024


def output_chunks(trace: Trace, output_from: int = 0) -> tuple[OutputChunk, ...]:
    """Merge what each rank wrote from `trace.outputs[output_from]` on, up to 256 KiB per rank.

    Consecutive pieces of one rank and stream become one, whatever other ranks wrote in between:
    every rank has a box of its own.
    """
    earlier, new = trace.outputs[:output_from], trace.outputs[output_from:]
    used_bytes = _bytes_per_rank(earlier)
    newest: dict[int, list[Output]] = {}
    groups: list[list[Output]] = []
    for output in new:
        if used_bytes.get(output.rank, 0) >= MAX_BYTES_PER_RANK:
            continue
        used_bytes[output.rank] = used_bytes.get(output.rank, 0) + _num_bytes(output)
        group = newest.get(output.rank)
        if group is None or group[-1].stream != output.stream:
            group = []
            groups.append(group)
            newest[output.rank] = group
        group.append(output)
    ended = {output.rank: output.text.endswith("\n") for output in earlier if output.text}
    chunks = []
    for group in groups:
        rank = group[0].rank
        chunks.append(_chunk(group, continues_line=not ended.get(rank, True)))
        ended[rank] = chunks[-1].text.endswith("\n")
    return tuple(chunks)


def is_truncated(trace: Trace) -> bool:
    """Whether some rank wrote more than the page shows."""
    if any(note.code == "output-truncated" for note in trace.notes):
        return True
    return any(used > MAX_BYTES_PER_RANK for used in _bytes_per_rank(trace.outputs).values())


def _chunk(group: Sequence[Output], *, continues_line: bool) -> OutputChunk:
    first = group[0]
    return OutputChunk(
        rank=first.rank,
        stream=first.stream,
        text="".join(output.text for output in group),
        at_s=first.at_ns / 1e9,
        continues_line=continues_line,
    )


def _bytes_per_rank(outputs: Sequence[Output]) -> dict[int, int]:
    used: dict[int, int] = {}
    for output in outputs:
        used[output.rank] = used.get(output.rank, 0) + _num_bytes(output)
    return used


def _num_bytes(output: Output) -> int:
    return len(output.text) if output.text.isascii() else len(output.text.encode(errors="replace"))
