"""Typed contexts of the templates: every template gets exactly one of these as `page` or `view`.

May import lessons, i18n, grading and the engine's leaves. Templates run under StrictUndefined, so
a field that is not here does not exist there. Times are seconds since the run's start.
"""

import math
from dataclasses import dataclass
from typing import Literal

from app.grading import Verdict
from app.i18n import Language
from app.lessons import Cell, Check, Course, FillCheck, Lesson, OrderCheck, OrderLine
from engine.events import Status
from engine.facts import Phase
from engine.program import Limits

RunState = Literal["queued", "starting", "running", "ended"]
PanelName = Literal["statistics", "collectives", "output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteContext:
    """What every page's frame needs (`site` in templates)."""

    language: Language
    other_language: Language
    other_language_url: str
    """The same page in the other language."""
    csp_nonce: str
    assets_stamp: str
    """Changes when the built assets change; part of their URLs."""
    is_unsandboxed: bool
    """The operator opted out of isolation: a permanent banner says so."""
    engine_problem: str | None
    """Why runs cannot start here, in the page's language; None when they can."""


# ------------------------------------------------------------------ a run
@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChunk:
    """Consecutive text of one rank and stream."""

    rank: int
    stream: Literal["stdout", "stderr"]
    text: str
    at_s: float
    continues_line: bool = False
    """What this rank wrote before did not end its line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteView:
    """An adaptation or cut, in the page's language, with the ranks that reported it."""

    code: str
    text: str
    ranks: tuple[int, ...]
    num_alike: int
    """Further ranks of which the same was said with arguments of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisView:
    """One diagnosis in the page's language."""

    code: str
    text: str
    line: int | None
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureMark:
    """Where the editor marks a failure. Columns count UTF-16 code units from 0, lines from 1."""

    line: int
    column: int | None
    end_line: int | None
    end_column: int | None
    text: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticPoint:
    """One channel of one rank, and its place in the figure (SVG user units)."""

    rank: int
    value: float
    x: float | None
    """None for a value that has no place on an axis, such as nan."""
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticRow:
    """One channel of one layer: what each rank used, and the value over the global batch."""

    channel: int
    points: tuple[StatisticPoint, ...]
    batch_value: float
    batch_x: float | None
    spread: float
    """max - min over ranks of the used value."""
    top: float
    bottom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTick:
    """A labelled place on a figure's value axis (SVG user units)."""

    x: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPanel:
    """The newest forward of one batch-norm layer; drawn as dots per rank around the batch value."""

    module: str
    step: int
    num_steps: int
    statistic: Literal["mean", "var"]
    is_synced: bool
    """Whether every rank normalised with synchronized values."""
    agree: bool
    """Whether all ranks used the global batch's values, up to the rounding of float32."""
    is_finite: bool
    """Whether every value is a number: training that diverges ends in inf and nan."""
    num_different: int
    """Different values of one channel over the ranks, in the channel where they differ most."""
    num_channels: int
    rows: tuple[StatisticRow, ...]
    """The first channels only, at most 8."""
    low: float
    high: float
    counts: tuple[tuple[int, float], ...]
    """(rank, values per channel) of the local input."""
    ticks: tuple[AxisTick, ...]
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """Calls that the ranks of a group made together (same op, bytes, phase, module, line)."""

    op: str
    phase: Phase | None
    module: str | None
    line: int | None
    num_calls: int
    """Calls per rank (the largest over ranks)."""
    ranks: tuple[int, ...]
    group_size: int
    input_bytes: int
    """Per call and rank."""
    output_bytes: int
    dtype: str | None
    num_values: int | None
    """input_bytes in elements of dtype."""
    median_us: float | None
    num_unfinished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePanel:
    """Collectives: a table by call site, and a canvas fed with every call."""

    rows: tuple[CollectiveRow, ...]
    num_calls: int
    total_input_bytes_per_rank: tuple[int, ...]
    json: str
    """For <collective-timeline>: see `app.panels.timeline`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLine:
    """How one rank ended."""

    rank: int
    exit: int | None
    cpu_s: float
    peak_mib: float
    line: int | None
    """Where it was when the run was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run as `_run.html` and `_frame.html` draw it."""

    run_id: str
    cell_id: str
    lesson_id: str
    state: RunState
    status: Status | None
    position: int | None
    """Runs ahead in the queue."""
    elapsed_s: float
    wall_limit_s: float
    world_size: int
    device: str
    is_stale: bool
    """The learner's code has changed since this run."""
    output: tuple[OutputChunk, ...]
    """In a frame: only what is new."""
    output_is_truncated: bool
    notes: tuple[NoteView, ...]
    diagnosis: tuple[DiagnosisView, ...]
    marks: tuple[FailureMark, ...]
    layers: tuple[LayerPanel, ...]
    timeline: TimelinePanel
    ranks: tuple[RankLine, ...]
    dropped_events: int
    panels: tuple[PanelName, ...]
    """In the order to show."""
    marks_json: str
    """`marks` as the editor reads them."""
    num_events: int
    """Position in the run's events up to which this view goes: where its stream takes over."""


# ------------------------------------------------------------------ a lesson page
@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """One cell with what this learner has in it."""

    lesson_id: str
    cell: Cell
    code: str
    """The draft, or the lesson's own program."""
    ranks: int
    is_draft: bool
    revision: int
    """Revision of the draft, 0 when there is none."""
    run: RunView | None
    """The learner's last run of this cell."""
    wall_limit_s: float = Limits().wall_s
    error: str | None = None
    """Why the last request on this cell was refused, in the page's language."""
    is_conflict: bool = False  # another page has kept a newer draft


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckView:
    """One check, with this learner's last answer and its verdict."""

    lesson_id: str
    check: Check
    given: dict[str, str]
    """What was answered, by field of the check."""
    verdict: Verdict | None

    @property
    def lines(self) -> tuple[OrderLine, ...]:
        """Lines to put in order, as they are shown: where the learner put them, then the others."""
        assert isinstance(self.check, OrderCheck)
        shown = self.check.shown_lines()
        return tuple(sorted(shown, key=lambda line: _place(self.given.get(line.id, ""))))

    def gap_number(self, gap_id: str) -> int:
        """Which gap it is, from 1 on."""
        assert isinstance(self.check, FillCheck)
        return 1 + [gap.id for gap in self.check.gaps].index(gap_id)


def _place(given: str) -> float:
    return int(given) if given.isascii() and given.isdecimal() else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonPage:
    """Context of lesson.html."""

    lesson: Lesson
    course: Course
    cells: dict[str, CellView]
    checks: dict[str, CheckView]
    place: str | None
    """Id of the section where this learner was last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoursePage:
    """Context of course.html."""

    course: Course


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePage:
    """Context of home.html."""

    courses: tuple[Course, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Context of run.html: one run on a page of its own (used without JavaScript)."""

    view: RunView
    source: str
    lesson_url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPage:
    """Context of error.html."""

    status_code: int
    title: str
    detail: str
