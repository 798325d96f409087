"""One run as its pane draws it, from what the run's events say so far.

Owns RunView. May import contexts, the figures beside it, i18n and the engine's leaves and trace.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, get_args

from app.i18n import Translations, render_code
from app.panels.contexts import (
    DiagnosisView,
    NoteView,
    PanelName,
    RankLine,
    RunState,
    RunView,
)
from app.panels.marks import encode_marks, failure_marks
from app.panels.output import is_truncated, output_chunks
from app.panels.statistics import layer_panels
from app.panels.timeline import timeline_panel
from engine.events import Diagnosis, Note, RankEnd
from engine.facts import Arg
from engine.messages import DIAGNOSES, NOTES
from engine.trace import Trace

MIB = 1024 * 1024
ALL_PANELS: tuple[PanelName, ...] = get_args(PanelName)


class RunRecordLike(Protocol):
    """What is known of a run beside its events."""

    @property
    def run_id(self) -> str: ...
    @property
    def lesson_id(self) -> str: ...
    @property
    def cell_id(self) -> str: ...
    @property
    def world_size(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def state(self) -> RunState: ...
    @property
    def position(self) -> int | None: ...
    @property
    def elapsed_s(self) -> float: ...
    @property
    def wall_limit_s(self) -> float: ...
    @property
    def source(self) -> str: ...
    @property
    def is_stale(self) -> bool: ...


def run_view(
    *,
    record: RunRecordLike,
    trace: Trace,
    translations: Translations,
    output_from: int = 0,
    panels: Sequence[PanelName] = (),
) -> RunView:
    """Build a run's view; `output` starts at `trace.outputs[output_from]`.

    `panels` come first and in their order; what they leave out follows.
    """
    outcome = trace.outcome
    diagnosis = _diagnosis(outcome.diagnosis if outcome else (), translations)
    marks = failure_marks(record.source, outcome.ranks if outcome else (), diagnosis)
    return RunView(
        run_id=record.run_id,
        cell_id=record.cell_id,
        lesson_id=record.lesson_id,
        state=record.state,
        status=outcome.status if outcome else None,
        position=record.position,
        elapsed_s=outcome.elapsed_s if outcome else record.elapsed_s,
        wall_limit_s=record.wall_limit_s,
        world_size=record.world_size,
        device=record.device,
        is_stale=record.is_stale,
        output=output_chunks(trace, output_from),
        output_is_truncated=is_truncated(trace),
        notes=_notes(trace.notes, translations),
        diagnosis=diagnosis,
        marks=marks,
        layers=layer_panels(trace),
        timeline=timeline_panel(trace, record.world_size),
        ranks=tuple(_rank_line(end) for end in outcome.ranks) if outcome else (),
        dropped_events=outcome.dropped_events if outcome else 0,
        panels=tuple(dict.fromkeys((*panels, *ALL_PANELS))),
        marks_json=encode_marks(marks),
        num_events=num_events(trace),
    )


def marks_json(view: RunView) -> str:
    """The failure marks of a view, as the stream's `marks` event carries them."""
    return view.marks_json


def num_events(trace: Trace) -> int:
    """How many events were folded into the trace: the position that its stream goes on from."""
    lists = (trace.outputs, trace.collectives, trace.statistics, trace.notes)
    return sum(len(events) for events in lists) + sum(
        event is not None for event in (trace.started, trace.outcome)
    )


def _notes(notes: Iterable[Note], translations: Translations) -> tuple[NoteView, ...]:
    """Say each note once: the words of the first rank, and which ranks reported it.

    A note whose arguments name its rank is merged only with those that differ by nothing else.
    """
    found: dict[tuple[str, frozenset[tuple[str, Arg]]], list[Note]] = {}
    for note in sorted(notes, key=_rank_meant):
        others = frozenset(item for item in note.args.items() if item[0] != "rank")
        key = (note.code, others if "rank" in note.args else frozenset())
        found.setdefault(key, []).append(note)
    views = []
    for (code, _), same in found.items():
        text = _sentence(translations, NOTES, same[0])
        ranks = {_rank_meant(note) for note in same} - {-1}
        alike = {_rank_meant(n) for n in same if _sentence(translations, NOTES, n) == text} - {-1}
        views.append(
            NoteView(code=code, text=text, ranks=tuple(sorted(ranks)), num_alike=len(ranks - alike))
        )
    return tuple(views)


def _rank_meant(note: Note) -> int:
    """The rank that a note is about: its arguments know better than who sent it."""
    rank = note.args.get("rank")
    return rank if isinstance(rank, int) else note.rank


def _diagnosis(
    diagnosis: Iterable[Diagnosis], translations: Translations
) -> tuple[DiagnosisView, ...]:
    return tuple(
        DiagnosisView(
            code=item.code,
            text=_sentence(translations, DIAGNOSES, item),
            line=item.line,
            rank=item.rank,
        )
        for item in diagnosis
    )


def _sentence(
    translations: Translations, templates: Mapping[str, str], said: Note | Diagnosis
) -> str:
    template = templates.get(said.code)
    if template is None:
        return said.message
    try:
        return render_code(translations, template, said.args)
    except (KeyError, ValueError, IndexError):  # a rank's note is not bound to have its arguments
        return said.message


def _rank_line(end: RankEnd) -> RankLine:
    return RankLine(
        rank=end.rank,
        exit=end.exit,
        cpu_s=end.cpu_s,
        peak_mib=end.peak_bytes / MIB,
        line=end.stack[0].line if end.stack else None,
    )
