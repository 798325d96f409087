"""Runs on pages: start from a cell, follow live, stop, look at again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import RedirectResponse, Response

from app.i18n import Language, Translations
from app.lessons import Cell, Lesson, NotFound
from app.panels import marks_json, run_view, trace_json
from app.panels.contexts import RunPage, SiteContext
from app.routes.forms import (
    CodeField,
    MaybeRevisionField,
    RanksField,
    program_of,
    read_draft,
)
from app.routes.site import BadCellForm, CellRefused, LearnerOf, OwnerOf, Site, SiteOf, is_htmx
from app.routes.stream import SEND_DEADLINE_S, position_of
from app.routes.views import respond, site_context, view_of_cell, view_of_run
from app.runs import NewRun, QueueFull, Snapshot, Step, TooManyRuns
from app.store import Draft, DraftConflict, StoreError
from engine.errors import EngineError

router = APIRouter(prefix="/{language}", include_in_schema=False)

LastEventId = Annotated[str | None, Header()]


@router.post("/lessons/{lesson_id}/cells/{cell_id}/runs")
async def start(
    request: Request,
    site: SiteOf,
    learner: LearnerOf,
    owner: OwnerOf,
    language: Language,
    lesson_id: str,
    cell_id: str,
    code: CodeField,
    ranks: RanksField,
    revision: MaybeRevisionField = None,
) -> Response:
    """Keep the code of a cell and run it."""
    lesson = site.catalogue.lesson(lesson_id)
    cell = lesson.cell(cell_id)
    try:
        draft = read_draft(cell, code, ranks, revision or 0, site.translations[language])
        await _keep(site, learner.id, lesson, cell, draft, force=revision is None)
        new = NewRun(program=program_of(draft, cell), lesson_id=lesson.id, cell_id=cell.id)
        run_id = await site.runs.start(owner, new)
    except (BadCellForm, TooManyRuns, QueueFull, EngineError, StoreError) as error:
        state = await site.progress.of_cell(learner.id, lesson.id, cell)
        view = await view_of_cell(site, language, lesson, cell, state, None)
        raise CellRefused(view, "_cell_error.html", error) from error
    response: Response = RedirectResponse(f"/{language}/lessons/{lesson.id}#cell-{cell.id}", 303)
    if is_htmx(request):
        snapshot = await site.runs.get(run_id, learner.id)
        run = await view_of_run(site, language, snapshot, cell)
        response = await respond(site, request, language, "_run.html", run, 201)
    site.identity.keep(learner, request, response)
    return response


async def _keep(
    site: Site, learner_id: str, lesson: Lesson, cell: Cell, draft: Draft, *, force: bool
) -> None:
    if (draft.code, draft.ranks) == (cell.source, cell.ranks.default):
        state = await site.progress.of_cell(learner_id, lesson.id, cell)
        if not state.is_draft:
            return  # the lesson's own program needs no draft
    try:
        await site.progress.keep_code(learner_id, lesson.id, cell, draft, force=force)
    except DraftConflict:
        return  # a newer one was kept elsewhere: run this one, and let saving ask which to keep


@router.api_route("/runs/{run_id}", methods=["GET", "HEAD"])
async def show(
    request: Request, site: SiteOf, learner: LearnerOf, language: Language, run_id: str
) -> Response:
    """One run on a page of its own."""
    snapshot = await site.runs.get(run_id, learner.id)
    lesson_id = snapshot.record.lesson_id
    page = RunPage(
        view=await view_of_run(site, language, snapshot, _cell_of(site, snapshot)),
        source=snapshot.record.source,
        lesson_url=_lesson_url(language, snapshot) if lesson_id else None,
    )
    return await respond(site, request, language, "run.html", page)


@router.post("/runs/{run_id}/cancel")
async def cancel(
    request: Request, site: SiteOf, learner: LearnerOf, language: Language, run_id: str
) -> Response:
    """Stop a run."""
    await site.runs.cancel(run_id, learner.id)
    snapshot = await site.runs.get(run_id, learner.id)
    if is_htmx(request):
        view = await view_of_run(site, language, snapshot, _cell_of(site, snapshot))
        return await respond(site, request, language, "_run.html", view)
    has_lesson = bool(snapshot.record.lesson_id)
    target = (
        f"{_lesson_url(language, snapshot)}#cell-{snapshot.record.cell_id}"
        if has_lesson
        else f"/{language}/runs/{run_id}"
    )
    return RedirectResponse(target, 303)


@router.get("/runs/{run_id}/stream")
async def stream(
    request: Request,
    site: SiteOf,
    learner: LearnerOf,
    language: Language,
    run_id: str,
    last_event_id: LastEventId = None,
) -> Response:
    """The run as it goes on: frames for htmx, and JSON for the canvas and the editor."""
    steps = await site.runs.follow(run_id, learner.id, position_of(last_event_id))
    frames = _frames(site, request, language, steps)
    return EventSourceResponse(frames, send_timeout=SEND_DEADLINE_S)


async def _frames(
    site: Site, request: Request, language: Language, steps: AsyncIterator[Step]
) -> AsyncIterator[ServerSentEvent]:
    frame = site_context(site, request, language)
    async for step in steps:
        for message in await asyncio.to_thread(_messages, site, request, frame, step):
            yield message


def _messages(
    site: Site, request: Request, frame: SiteContext, step: Step
) -> list[ServerSentEvent]:
    """The messages of one step: the canvas's calls, marks and end, and the frame with the id."""
    snapshot = step.snapshot
    translations: Translations = site.translations[frame.language]
    cell = _cell_of(site, snapshot)
    view = run_view(
        record=snapshot.record,
        trace=snapshot.trace,
        translations=translations,
        output_from=step.output_from,
        panels=cell.panels if cell else (),
    )
    messages = []
    if len(snapshot.trace.collectives) > step.collectives_from or snapshot.has_ended:
        calls = trace_json(snapshot.trace, step.collectives_from)
        messages.append(ServerSentEvent(event="trace", data=calls, sep="\n"))
    html = site.templates.text(request, "_frame.html", site=frame, context=view)
    # The id goes last: who loses the connection before it gets all of this step again.
    messages.append(ServerSentEvent(data=html, id=str(snapshot.num_events), sep="\n"))
    if snapshot.has_ended:
        messages.append(ServerSentEvent(event="marks", data=marks_json(view), sep="\n"))
        messages.append(ServerSentEvent(event="done", data=view.status or "", sep="\n"))
    return messages


def _cell_of(site: Site, snapshot: Snapshot) -> Cell | None:
    record = snapshot.record
    if not record.cell_id:
        return None
    try:
        return site.catalogue.lesson(record.lesson_id).cell(record.cell_id)
    except NotFound:  # the lesson has changed since
        return None


def _lesson_url(language: Language, snapshot: Snapshot) -> str:
    record = snapshot.record
    return f"/{language}/lessons/{record.lesson_id}"
