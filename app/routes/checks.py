"""Checks: a learner's answers, graded on the server and kept."""

from collections.abc import Iterable

from fastapi import APIRouter, HTTPException, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from app.grading import grade
from app.i18n import Language
from app.routes.site import LearnerOf, SiteOf, is_htmx
from app.routes.views import respond, view_of_check

router = APIRouter(include_in_schema=False)

FIELD = "item-"
_MAX_CHARACTERS = 200


@router.post("/{language}/lessons/{lesson_id}/checks/{check_id}")
async def answer(
    request: Request,
    site: SiteOf,
    learner: LearnerOf,
    language: Language,
    lesson_id: str,
    check_id: str,
) -> Response:
    """Grade what the learner gave; where that is nothing, nothing is kept."""
    lesson = site.catalogue.lesson(lesson_id)
    check = lesson.check(check_id)
    given = _given(await _form(request), check.fields)
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


async def _form(request: Request) -> FormData:
    try:
        return await request.form()
    except UnicodeError as error:  # of a part that names an encoding of its own
        raise HTTPException(400) from error


def _given(form: FormData, names: Iterable[str]) -> dict[str, str]:
    """The texts that were sent for these fields, less those that no learner can have meant."""
    sent = {name: form.get(FIELD + name) for name in names}
    return {name: text for name, text in sent.items() if isinstance(text, str) and _is_answer(text)}


def _is_answer(text: str) -> bool:
    """Neither empty nor endless, and such as every database keeps and every page can show."""
    if not text.strip() or len(text) > _MAX_CHARACTERS:
        return False
    return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text)
