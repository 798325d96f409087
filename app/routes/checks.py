"""Quick checks: a learner's answers, graded on the server and kept."""

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from app.grading import grade
from app.i18n import Language
from app.routes.site import LearnerOf, SiteOf, is_htmx
from app.routes.views import respond, view_of_check

router = APIRouter(include_in_schema=False)

FIELD = "item-"


@router.post("/{language}/lessons/{lesson_id}/checks/{check_id}")
async def answer(
    request: Request,
    site: SiteOf,
    learner: LearnerOf,
    language: Language,
    lesson_id: str,
    check_id: str,
) -> Response:
    """Grade what the learner chose; items left open are not kept."""
    lesson = site.catalogue.lesson(lesson_id)
    check = lesson.check(check_id)
    form = await request.form()
    chosen = {item.id: form.get(FIELD + item.id) for item in check.items}
    known = {choice.id for choice in check.choices}
    given = {
        item_id: choice
        for item_id, choice in chosen.items()
        if isinstance(choice, str) and choice in known
    }
    if given:
        verdict = grade(check, given, language)
        await site.progress.learning.add_answer(
            learner.id, lesson.id, check.id, given, is_right=verdict.is_right
        )
    response: Response = RedirectResponse(f"/{language}/lessons/{lesson.id}#check-{check.id}", 303)
    if is_htmx(request):
        view = view_of_check(lesson, check, given, language)
        response = await respond(site, request, language, "_check.html", view)
    site.identity.keep(learner, request, response)
    return response
