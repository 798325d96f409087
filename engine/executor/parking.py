"""What a supervisor says first: that its sandbox is ready, or why there is none.

May import the standard library only.
"""

import json

PARKED = b'{"parked":true}\n'


def why_not_parked(said: bytes) -> str:
    """Why a supervisor has no sandbox, from what it said instead."""
    if not said:
        return "the supervisor died"
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        return "the supervisor said what is not known"
    match answer:
        case {"failed": str(why)}:
            return why
    return "the supervisor said what is not known"
