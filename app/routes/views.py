"""Builds the views that several page families show: cells, checks and runs of one learner.

May import all of app below the routes.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from fastapi import Request
from starlette.responses import HTMLResponse

from app.grading import grade
from app.i18n import Language, Translations
from app.lessons import Cell, Check, Lesson
from app.panels import run_view
from app.panels.contexts import CellView, CheckView, RunView, SiteContext
from app.panels.refusals import told
from app.progress import CellState
from app.routes.render import Page, PageFacts, View
from app.routes.site import Site
from app.runs import Snapshot
from engine.errors import EngineCrashed, SandboxUnavailable


def engine_problem_text(
    problem: SandboxUnavailable | EngineCrashed, translations: Translations
) -> str:
    """Why runs cannot start here, in the page's language."""
    if isinstance(problem, SandboxUnavailable):
        said = translations.gettext("Programs cannot run here. %(reason)s %(remedy)s")
        reason, remedy = told(problem.reason, translations), told(problem.remedy, translations)
        return said % {"reason": reason, "remedy": remedy}
    said = translations.gettext("Programs cannot run at the moment: %(reason)s")
    return said % {"reason": str(problem)}


def site_context(site: Site, request: Request, language: Language) -> SiteContext:
    """The frame of a page of this site."""
    problem = site.runs.warmup.problem
    translations = site.translations[language]
    facts = PageFacts(
        is_unsandboxed=site.is_unsandboxed,
        engine_problem=engine_problem_text(problem, translations) if problem else None,
    )
    return site.templates.site_context(request, language, facts)


async def respond(
    site: Site,
    request: Request,
    language: Language,
    name: str,
    context: Page | View,
    status_code: int = 200,
) -> HTMLResponse:
    """Render a page or fragment of this site."""
    frame = site_context(site, request, language)
    return await site.templates.render(
        request, name, site=frame, context=context, status_code=status_code
    )


async def view_of_run(
    site: Site, language: Language, snapshot: Snapshot, cell: Cell | None, code: str | None = None
) -> RunView:
    """A run as its pane draws it; stale if `code`, what is in the cell now, is another."""
    record = snapshot.record
    if code is not None:
        record = replace(record, is_stale=code != record.source)

    def build() -> RunView:
        return run_view(
            record=record,
            trace=snapshot.trace,
            translations=site.translations[language],
            panels=cell.panels if cell else (),
        )

    return await asyncio.to_thread(build)


async def view_of_cell(
    site: Site,
    language: Language,
    lesson: Lesson,
    cell: Cell,
    state: CellState,
    last: Snapshot | None,
) -> CellView:
    """A cell with what the learner has in it, and their last run."""
    run = await view_of_run(site, language, last, cell, state.code) if last else None
    return CellView(
        lesson_id=lesson.id,
        cell=cell,
        code=state.code,
        ranks=state.ranks,
        is_draft=state.is_draft,
        revision=state.revision,
        run=run,
    )


def view_of_check(
    lesson: Lesson, check: Check, given: Mapping[str, str] | None, language: Language
) -> CheckView:
    """A check with the learner's last answers, graded again."""
    return CheckView(
        lesson_id=lesson.id,
        check=check,
        given=dict(given or {}),
        verdict=grade(check, given, language) if given is not None else None,
    )
