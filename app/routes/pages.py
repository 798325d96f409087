"""Pages to read: home, course, lesson; and where a learner is in a lesson."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from app.i18n import Language, negotiate
from app.panels.contexts import CoursePage, HomePage, LessonPage
from app.routes.site import LearnerOf, SiteOf
from app.routes.views import respond, view_of_cell, view_of_check

router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
async def choose_language(request: Request) -> Response:
    """Send the browser to the home page in a language it asks for."""
    language = negotiate(request.headers.get("accept-language"))
    headers = {"Vary": "Accept-Language", "Content-Language": language}
    return RedirectResponse(f"/{language}/", 303, headers)


@router.api_route("/healthz", methods=["GET", "HEAD"])
async def healthz(site: SiteOf) -> dict[str, bool]:
    """Whether the site answers, and whether runs can start."""
    return {"ok": True, "runs": site.runs.warmup.problem is None}


@router.api_route("/{language}", methods=["GET", "HEAD"])
async def without_slash(language: Language) -> Response:
    return RedirectResponse(f"/{language}/", 308)


@router.api_route("/{language}/", methods=["GET", "HEAD"])
async def home(request: Request, site: SiteOf, language: Language) -> Response:
    page = HomePage(courses=site.catalogue.courses)
    return await respond(site, request, language, "home.html", page)


@router.api_route("/{language}/courses/{course_id}", methods=["GET", "HEAD"])
async def course(request: Request, site: SiteOf, language: Language, course_id: str) -> Response:
    page = CoursePage(course=site.catalogue.course(course_id))
    return await respond(site, request, language, "course.html", page)


@router.api_route("/{language}/lessons/{lesson_id}", methods=["GET", "HEAD"])
async def lesson(
    request: Request, site: SiteOf, learner: LearnerOf, language: Language, lesson_id: str
) -> Response:
    found = site.catalogue.lesson(lesson_id)
    progress = await site.progress.of_lesson(learner.id, found)
    runs = await site.runs.last_of_cells(learner.id, found.id)
    page = LessonPage(
        lesson=found,
        course=site.catalogue.course(found.course_id),
        cells={
            cell.id: await view_of_cell(
                site, language, found, cell, progress.cells[cell.id], runs.get(cell.id)
            )
            for cell in found.cells()
        },
        checks={
            check.id: view_of_check(found, check, progress.answers.get(check.id), language)
            for check in found.checks()
        },
        place=progress.place,
    )
    response = await respond(site, request, language, "lesson.html", page)
    site.identity.keep(learner, request, response)
    return response


@router.post("/{language}/lessons/{lesson_id}/place")
async def place(
    request: Request,
    site: SiteOf,
    learner: LearnerOf,
    language: Language,
    lesson_id: str,
    section: Annotated[str, Form()],
) -> Response:
    """Remember the section at which the learner is."""
    found = site.catalogue.lesson(lesson_id)
    here = found.section(section)
    await site.progress.learning.set_place(learner.id, found.id, here.id)
    response = Response(status_code=204)
    site.identity.keep(learner, request, response)
    return response
