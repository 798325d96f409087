"""What both kinds of event streams share."""

SEND_DEADLINE_S = 20.0
"""After this long a reader who takes nothing is let go; they can resume."""
MAX_POSITION = 1 << 40


def position_of(last_event_id: str | None) -> int:
    """How many events the reader has, from Last-Event-ID; 0 when it makes no sense."""
    if last_event_id is None or not last_event_id.isascii() or not last_event_id.isdecimal():
        return 0
    return min(int(last_event_id[:16]), MAX_POSITION)
