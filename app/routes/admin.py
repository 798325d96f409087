"""The administrator's page: how this machine isolates runs, and how busy it is.

Who has no pass gets the answer that any address without a page gets.
"""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from starlette.responses import RedirectResponse, Response

from app.administration import COOKIE, COOKIE_AGE_S
from app.i18n import Language
from app.panels.administration import (
    AdminPage,
    AdminView,
    Refusal,
    admin_view,
    probe_rows,
    versions,
)
from app.panels.refusals import told
from app.routes.site import Site, SiteOf, get_site
from app.routes.views import respond
from engine.errors import EngineCrashed, SandboxUnavailable
from engine.executor import Health
from engine.sandbox.doctor import Report

router = APIRouter(prefix="/{language}/admin", include_in_schema=False)


def require_pass(request: Request) -> None:
    """Let administrators by. Raises: HTTPException, as if there were no such page."""
    passes = get_site(request).administration.passes
    if not passes.admits_cookie(request.cookies.get(COOKIE, "")):
        raise HTTPException(404)


MustHavePass = Annotated[None, Depends(require_pass)]


@router.api_route("", methods=["GET", "HEAD"])
async def show(request: Request, site: SiteOf, language: Language, key: str = "") -> Response:
    """The page; with the key of a signed link first the cookie, so that the key leaves the bar."""
    if key and site.administration.passes.admits_link(key):
        return _let_in(request, site, language)
    require_pass(request)
    try:
        report, problem = await site.administration.examiner.report(), None
    except EngineCrashed as error:
        report, problem = None, str(error)
    page = _page(await _view(site, language), report, problem, site, language)
    return await respond(site, request, language, "admin.html", page)


def _let_in(request: Request, site: Site, language: Language) -> Response:
    response = RedirectResponse(f"/{language}/admin", 303)
    response.set_cookie(
        COOKIE,
        site.administration.passes.cookie(),
        max_age=COOKIE_AGE_S,
        httponly=True,
        samesite="lax",  # strict would not come along with a link from a mail or a terminal
        secure=request.url.scheme == "https",
    )
    return response


@router.get("/now")
async def now(request: Request, site: SiteOf, language: Language, _: MustHavePass) -> Response:
    """The part of the page that changes."""
    return await respond(site, request, language, "_admin.html", await _view(site, language))


@router.post("/examination")
async def examine(site: SiteOf, language: Language, _: MustHavePass) -> Response:
    """Have the doctor look again."""
    await site.administration.examiner.examine_again()
    return RedirectResponse(f"/{language}/admin", 303)


async def _view(site: Site, language: Language) -> AdminView:
    executor = site.administration.executor
    health = await executor.health()
    is_settled = site.runs.warmup.is_settled
    problem = site.runs.warmup.problem
    return admin_view(
        health=health,
        capacity=await executor.capacity(),
        is_warm=is_settled and not isinstance(problem, EngineCrashed),
        refusal=_refusal(problem, health) if is_settled else None,
        is_opted_out=site.is_unsandboxed,
        seen_at=datetime.now(UTC).strftime("%H:%M:%S"),
        translations=site.translations[language],
    )


def _refusal(problem: SandboxUnavailable | EngineCrashed | None, health: Health) -> Refusal | None:
    """What the engine said at its start, or what has become of it since."""
    match problem:
        case SandboxUnavailable(reason=reason, remedy=remedy):
            return Refusal(reason=reason, remedy=remedy)
        case EngineCrashed():
            return Refusal(reason=str(problem), remedy=None)
        case None if not health.is_ready:
            return Refusal(reason=health.reason or "", remedy=health.remedy)
        case None:
            return None


def _page(
    view: AdminView, report: Report | None, problem: str | None, site: Site, language: Language
) -> AdminPage:
    translations = site.translations[language]
    return AdminPage(
        view=view,
        machine=report.platform if report else "",
        reason=told(report.reason, translations) if report and report.reason else None,
        remedy=told(report.remedy, translations) if report and report.remedy else None,
        probes=probe_rows(report, translations) if report else (),
        report_problem=problem,
        versions=versions(),
    )
