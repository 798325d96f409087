"""Which exception is which HTTP status, and how it is said. Nothing else in the app knows."""

from dataclasses import dataclass

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.i18n import Translations, render_code
from app.lessons import NotFound
from app.routes.site import BadCellForm
from app.routes.views import engine_problem_text
from app.runs import QueueFull, RunNotFound, TooManyRuns
from app.store import DraftConflict, StoreError
from engine.errors import EngineCrashed, EngineError, ProgramRefused, SandboxUnavailable
from engine.messages import DIAGNOSES


class CrossSite(Exception):
    """A page of another site sent a request that would change something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What an exception means for who asked."""

    status_code: int
    title: str
    detail: str


def explain(error: Exception, request: Request, translations: Translations) -> Problem:
    """The status and the words for an exception."""
    _ = translations.gettext
    status_code, detail = _explain_ours(error, translations)
    if status_code == 0:
        status_code, detail = _explain_http(error, request, translations)
    titles = {
        400: _("Not understood"),
        403: _("Refused"),
        404: _("Not found"),
        405: _("Not allowed"),
        409: _("Changed elsewhere"),
        413: _("Too large"),
        422: _("Not accepted"),
        429: _("Too many at once"),
        503: _("Not available now"),
    }
    return Problem(
        status_code=status_code,
        title=titles.get(status_code, _("Something went wrong")),
        detail=detail,
    )


def _explain_ours(error: Exception, translations: Translations) -> tuple[int, str]:
    _ = translations.gettext
    match error:
        case NotFound():
            return 404, _("There is no such page.")
        case RunNotFound():
            return 404, _("There is no such run.")
        case BadCellForm():
            return 422, error.text
        case DraftConflict():
            return 409, _(
                "This program was changed in another window or on another device. "
                "Choose which version to keep."
            )
        case TooManyRuns():
            said = _(
                "You have %(limit)s runs going, as many as one learner may. "
                "Stop one, or wait until it ends."
            )
            return 429, said % {"limit": error.limit}
        case QueueFull():
            return 503, _("Very many runs are waiting. Try again in a minute.")
        case ProgramRefused():
            return 422, render_code(translations, DIAGNOSES[error.code], error.said)
        case SandboxUnavailable() | EngineCrashed():
            return 503, engine_problem_text(error, translations)
        case EngineError() | StoreError():
            return 503, _("The site cannot do this at the moment. Try again soon.")
        case CrossSite():
            return 403, _(
                "This request came from a page of another site and was refused. "
                "Behind a proxy, make sure that it passes the Host header on."
            )
    return 0, ""


def _explain_http(
    error: Exception, request: Request, translations: Translations
) -> tuple[int, str]:
    _ = translations.gettext
    if isinstance(error, RequestValidationError):
        if any(item["loc"][0] == "path" for item in error.errors()):
            return 404, _("There is no such page.")
        if not request.url.path.startswith("/api/"):
            return 422, _("The form was not complete.")
        said = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        return 422, "; ".join(said)
    status_code = error.status_code if isinstance(error, HTTPException) else 500
    details = {
        400: _("The request could not be read."),
        404: _("There is no such page."),
        405: _("This address does not take such a request."),
        413: _("The request is larger than the site accepts."),
    }
    failed = _("The site failed to answer. This was not your fault.")
    return status_code, details.get(status_code, failed)
