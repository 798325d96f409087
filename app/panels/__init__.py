"""What the page shows of a run: view models (contexts) and how they are built from a Trace.

`run_view` makes a pane or a frame; `trace_json` and `marks_json` make the stream's named messages.
"""

from app.panels.timeline import trace_json
from app.panels.view import marks_json, num_events, run_view

__all__ = ["marks_json", "num_events", "run_view", "trace_json"]
