"""Runs as learners see them: start, follow, cancel, and find again after a restart.

May import store and the engine's seam and leaves. A run lives by itself: connections come and go.
"""

from app.runs.live import LiveRun, RunRecord, Snapshot, Step
from app.runs.requests import NewRun, Owner, QueueFull, RunNotFound, RunPolicy, TooManyRuns
from app.runs.service import RunService

__all__ = [
    "LiveRun",
    "NewRun",
    "Owner",
    "QueueFull",
    "RunNotFound",
    "RunPolicy",
    "RunRecord",
    "RunService",
    "Snapshot",
    "Step",
    "TooManyRuns",
]
