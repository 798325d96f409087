"""Rules for send and recv that never meet, or that meet with different sizes.

May import trace and the leaves.
"""

import ast
from collections import defaultdict

from engine.diagnosis.pairing import is_collective
from engine.diagnosis.places import Places
from engine.diagnosis.rule import Case, say
from engine.diagnosis.standing import Standing, ranks_text
from engine.events import Collective, Diagnosis
from engine.facts import Args


def unmatched(standing: Standing) -> Diagnosis | None:
    """A rank waits in send or recv: says what its peer does instead."""
    waiting = {rank: call for rank, call in standing.waiting.items() if not is_collective(call)}
    if not waiting:
        return None
    call = min(waiting.values(), key=lambda call: call.at_ns)
    peer = waiting.get(call.peer) if call.peer is not None else None
    args: Args = {
        "rank": call.rank,
        "op": call.op,
        "line": call.line,
        "missing": ranks_text([call.peer]) if call.peer is not None else "another rank",
        "peer": call.peer,
        "peer_line": peer.line if peer is not None else None,
        "where": standing.where,
    }
    return say(_code(call, peer, waiting), args, line=call.line, rank=call.rank)


def _code(call: Collective, peer: Collective | None, waiting: dict[int, Collective]) -> str:
    if _in_ring(call, waiting):
        return "all-send-first" if call.op == "send" else "all-receive-first"
    if peer is None:
        return "send-without-recv" if call.op == "send" else "recv-without-send"
    if peer.op == call.op:
        return "send-without-recv" if call.op == "send" else "recv-without-send"
    if peer.peer is None:
        return "recv-without-send" if call.op == "recv" else "send-without-recv"
    return "tags-differ" if peer.peer == call.rank else "wrong-peer"


def _in_ring(call: Collective, waiting: dict[int, Collective]) -> bool:
    """Whether the peers' calls of the same kind lead back to the rank itself."""
    at, seen = call, {call.rank}
    while at.peer is not None and (then := waiting.get(at.peer)) is not None:
        if then.op != call.op:
            return False
        if then.rank in seen:
            return True
        seen.add(then.rank)
        at = then
    return False


def sizes_differ(case: Case) -> Diagnosis | None:
    """A message is longer or shorter than what its receiver made room for."""
    if "tag" in case.program.source or any(
        c.op == "recv" and c.peer is None for c in case.trace.collectives
    ):
        return None  # then the order of calls does not tell which belong together
    sent: dict[tuple[str, int, int], list[Collective]] = defaultdict(list)
    received: dict[tuple[str, int, int], list[Collective]] = defaultdict(list)
    for call in sorted(case.trace.collectives, key=lambda call: call.at_ns):
        if call.peer is None or is_collective(call):
            continue
        if call.op == "send":
            sent[call.group, call.rank, call.peer].append(call)
        else:
            received[call.group, call.peer, call.rank].append(call)
    for pair, sends in sent.items():
        for send, recv in zip(sends, received[pair], strict=False):
            if (send.input_bytes, send.dtype) != (recv.output_bytes, recv.dtype):
                return _say_sizes(send, recv)
    return None


def _say_sizes(send: Collective, recv: Collective) -> Diagnosis:
    args: Args = {
        "rank": send.rank,
        "line": send.line,
        "peer": recv.rank,
        "peer_line": recv.line,
        "sent_bytes": send.input_bytes,
        "sent_dtype": send.dtype,
        "room_bytes": recv.output_bytes,
        "room_dtype": recv.dtype,
    }
    return say("message-differs", args, line=recv.line, rank=recv.rank)


def peer_not_there(case: Case) -> Diagnosis | None:
    """A send or recv names a rank that its group does not have: torch crashes or waits."""
    if case.outcome.status == "ok":
        return None
    places = Places(case.program.source)
    for call in case.trace.collectives:
        if call.peer is not None or is_collective(call):
            continue
        if call.op == "send" or any(_names_source(c) for c in places.calls(call.line or 0)):
            args: Args = {
                "rank": call.rank,
                "op": call.op,
                "line": call.line,
                "count": len(call.group_ranks),
            }
            return say("peer-not-there", args, line=call.line, rank=call.rank)
    return None


def _names_source(call: ast.Call) -> bool:
    return any(keyword.arg == "src" for keyword in call.keywords)
