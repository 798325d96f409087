"""A learner's code in a cell: keep it, go back to the lesson's own, download it."""

import textwrap

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from app.i18n import Language, Translations, render_code
from app.lessons import Cell
from app.progress import CellState
from app.routes.forms import CodeField, RanksField, RevisionField, read_draft
from app.routes.site import BadCellForm, CellRefused, LearnerOf, SiteOf, is_htmx
from app.routes.views import respond, view_of_cell
from app.runs import Snapshot
from app.store import DraftConflict
from engine.messages import NOTES

router = APIRouter(
    prefix="/{language}/lessons/{lesson_id}/cells/{cell_id}", include_in_schema=False
)

CUTS = frozenset({"auto-took-cpu", "output-truncated", "events-dropped", "unsandboxed"})
"""Notes that say nothing of how the program was adapted."""


@router.post("/draft")
async def keep_draft(
    request: Request,
    site: SiteOf,
    learner: LearnerOf,
    language: Language,
    lesson_id: str,
    cell_id: str,
    code: CodeField,
    ranks: RanksField,
    revision: RevisionField,
) -> Response:
    """Keep the code; refused when another page has kept a newer one meanwhile."""
    lesson = site.catalogue.lesson(lesson_id)
    cell = lesson.cell(cell_id)
    try:
        draft = read_draft(cell, code, ranks, revision, site.translations[language])
        state = await site.progress.keep_code(learner.id, lesson.id, cell, draft)
    except (BadCellForm, DraftConflict) as error:
        stored = await site.progress.of_cell(learner.id, lesson.id, cell)
        view = await view_of_cell(site, language, lesson, cell, stored, None)
        raise CellRefused(view, "_draft_state.html", error) from error
    view = await view_of_cell(site, language, lesson, cell, state, None)
    response: Response = RedirectResponse(f"/{language}/lessons/{lesson.id}#cell-{cell.id}", 303)
    if is_htmx(request):
        response = await respond(site, request, language, "_draft_state.html", view)
    site.identity.keep(learner, request, response)
    return response


@router.post("/reset")
async def reset(
    request: Request,
    site: SiteOf,
    learner: LearnerOf,
    language: Language,
    lesson_id: str,
    cell_id: str,
) -> Response:
    """Put the lesson's own program back into the cell."""
    lesson = site.catalogue.lesson(lesson_id)
    cell = lesson.cell(cell_id)
    state = await site.progress.reset(learner.id, lesson.id, cell)
    response: Response = RedirectResponse(f"/{language}/lessons/{lesson.id}#cell-{cell.id}", 303)
    if is_htmx(request):
        last = (await site.runs.last_of_cells(learner.id, lesson.id)).get(cell.id)
        view = await view_of_cell(site, language, lesson, cell, state, last)
        response = await respond(site, request, language, "_cell.html", view)
    site.identity.keep(learner, request, response)
    return response


@router.get("/program.py")
async def download(
    site: SiteOf, learner: LearnerOf, language: Language, lesson_id: str, cell_id: str
) -> Response:
    """The learner's code as a program for torchrun."""
    lesson = site.catalogue.lesson(lesson_id)
    cell = lesson.cell(cell_id)
    state = await site.progress.of_cell(learner.id, lesson.id, cell)
    last = (await site.runs.last_of_cells(learner.id, lesson.id)).get(cell.id)
    text = program_text(cell, state, last, site.translations[language])
    headers = {
        "Content-Disposition": f'attachment; filename="{cell.program_name}"',
        "Cache-Control": "private, no-cache",
    }
    return Response(text.encode(), media_type="text/x-python; charset=utf-8", headers=headers)


def program_text(
    cell: Cell, state: CellState, last: Snapshot | None, translations: Translations
) -> str:
    """The program, with the adaptations that its last run relied on named in its first lines."""
    adaptations = _adaptations(last, translations) if last else []
    if not adaptations or last is None or last.record.source != state.code:
        return state.code
    lines = [
        translations.gettext("On CPU ranks, the site adapted this program when it last ran:"),
        *(f"- {text}" for text in adaptations),
        translations.gettext("With GPUs, run it by: %(command)s")
        % {"command": f"torchrun --nproc-per-node {state.ranks} {cell.program_name}"},
        translations.gettext("On CPU, run it by: %(command)s")
        % {"command": f"academy run {cell.program_name} --ranks {state.ranks}"},
    ]
    wrapped = [part for line in lines for part in textwrap.wrap(line, 96)]
    return "".join(f"# {line}\n" for line in wrapped) + "\n" + state.code


def _adaptations(last: Snapshot, translations: Translations) -> list[str]:
    texts = [
        render_code(translations, NOTES[note.code], note.args)
        for note in last.trace.notes
        if note.code in NOTES and note.code not in CUTS
    ]
    return list(dict.fromkeys(texts))
