"""Rules for the making of groups: by members only, by one rank, or under different addresses.

May import trace and the leaves.
"""

import ast
import re

from engine.diagnosis.rule import say
from engine.diagnosis.standing import Standing, call_name, ranks_text
from engine.events import Diagnosis
from engine.facts import Args

_ENVIRONMENT = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
_SETS = ("world_size", "rank", "init_method", "store")


def not_made_together(standing: Standing) -> Diagnosis | None:
    """Some rank waits in the making of a group in which not all ranks take part."""
    starting = [rank for rank, op in standing.making.items() if op == "init_process_group"]
    if starting:
        return _rendezvous(standing, starting)
    making = [rank for rank, op in standing.making.items() if _is_group(op)]
    num_ranks = len(standing.case.outcome.ranks)
    if not making or (len(making) == num_ranks and _all_on_one_line(standing, making)):
        return None
    rank = making[0]
    line = standing.trail(rank)[0]
    others = [end.rank for end in standing.case.outcome.ranks if end.rank not in making]
    place = next((p for p in standing.places.around(line) if p.kind == "branch"), None)
    args: Args = {
        "rank": rank,
        "op": standing.making[rank],
        "line": line,
        "missing": ranks_text(others) if others else "another rank",
        "at": place.header if place is not None else None,
        "text": place.text if place is not None else None,
        "where": standing.where,
    }
    code = "group-by-some" if place is None else "group-in-branch"
    return say(code, args, line=place.header if place else line, rank=rank)


def _is_group(op: str) -> bool:
    return op.startswith("new_") or op in ("split_group", "init_device_mesh")


def _all_on_one_line(standing: Standing, ranks: list[int]) -> bool:
    return len({standing.trail(rank)[0] for rank in ranks}) == 1


def _rendezvous(standing: Standing, starting: list[int]) -> Diagnosis:
    ranks = [end.rank for end in standing.case.outcome.ranks]
    line = standing.trail(starting[0])[0]
    others = [rank for rank in ranks if rank not in starting]
    said = _said(standing, line)
    args: Args = {
        "who": ranks_text(starting),
        "line": line,
        "missing": ranks_text(others) if others else None,
        "world_size": len(ranks),
        "suggestion": said,
        "where": standing.where,
    }
    if others:
        return say("init-by-some", args, line=line, rank=others[0])
    code = "init-never-meets" if said is None else "init-overridden"
    return say(code, args, line=line, rank=starting[0])


def _said(standing: Standing, line: int) -> str | None:
    """What the program itself says about the rendezvous: arguments, then the environment."""
    for call in standing.places.calls(line):
        if call_name(call).endswith("init_process_group"):
            own = [f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords if k.arg in _SETS]
            if own:
                return ", ".join(own)[:120]
    source = standing.case.program.source
    found = re.search(rf"environ\S*\W+({'|'.join(_ENVIRONMENT)})\b[^\n]*", source)
    return found[0][:120].strip() if found and "=" in found[0] else None
