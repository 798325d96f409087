"""Composition root: builds the site's parts, the web application, and its answers to exceptions.

May import everything.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from app.administration import Administration, Passes
from app.assets import built_stamp
from app.i18n import LANGUAGES, Language, load_translations, negotiate
from app.identity import Identity
from app.lessons import Catalogue, NotFound, load_catalogue
from app.main.problems import CrossSite, explain
from app.panels.contexts import ErrorPage
from app.progress import Progress
from app.routes import admin, api, checks, docs, drafts, pages, runs
from app.routes.api_schema import Problem as ProblemBody
from app.routes.api_schema import describe
from app.routes.guard import BodyLimit, CrossSiteGuard, SecurityHeaders
from app.routes.render import Templates
from app.routes.site import CellRefused, Site, is_htmx
from app.routes.views import respond
from app.runs import QueueFull, RunNotFound, RunPolicy, RunService, TooManyRuns
from app.settings import Settings
from app.store import DraftConflict, EventWriter, Learning, RunStore, StoreError, open_database
from engine.errors import EngineError
from engine.executor import Executor
from engine.executor.local import LocalExecutor

NUM_PARKED = 2
_log = logging.getLogger(__name__)
DESCRIPTION = (
    "Runs one torchrun program on real ranks and reports what every rank printed, computed and "
    "sent, as the pages of the site do."
)


def create_app(settings: Settings, executor: Executor | None = None) -> FastAPI:
    """The web application. Raises: LessonErrors, OSError."""
    catalogue = load_catalogue(settings.lessons)
    app = Academy(
        title="Deep Learning Academy",
        description=DESCRIPTION,
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(settings, catalogue, executor),
    )
    for family in (api, docs, admin, pages, runs, checks, drafts):
        app.include_router(family.router)
    app.mount("/static/vendor", Assets(settings.content / "static" / "vendor"))
    _add_handlers(app)
    # The last one added is the outermost.
    app.add_middleware(BodyLimit)
    app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=5)
    app.add_middleware(CrossSiteGuard, refuse=_refuse_cross_site)
    app.add_middleware(
        TrustedHostMiddleware, allowed_hosts=list(settings.hosts), www_redirect=False
    )
    return app


class Academy(FastAPI):
    """The web application, with the security headers on its failures too."""

    def build_middleware_stack(self) -> ASGIApp:
        return SecurityHeaders(super().build_middleware_stack())

    def openapi(self) -> dict[str, object]:
        return describe(super().openapi())


class Assets(StaticFiles):
    """The built scripts and styles; an address with a stamp never changes its content."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, check_dir=False)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        is_stamped = b"v=" in scope["query_string"]
        response.headers["Cache-Control"] = (
            "public, max-age=31536000, immutable" if is_stamped else "no-cache"
        )
        return response


def _lifespan(
    settings: Settings, catalogue: Catalogue, executor: Executor | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.site = await _open_site(settings, catalogue, executor, stack)
            yield

    return lifespan


async def _open_site(
    settings: Settings, catalogue: Catalogue, executor: Executor | None, stack: AsyncExitStack
) -> Site:
    settings.make_data_dir()
    database = open_database(settings.store_url)
    stack.push_async_callback(database.close)
    await database.migrate()
    writer = EventWriter(database)
    writer.start()
    stack.push_async_callback(writer.close)
    engine = executor or LocalExecutor(
        slots=settings.slots,
        num_parked=min(settings.slots, NUM_PARKED),
        sandbox=settings.sandbox,
    )
    stack.push_async_callback(engine.close)
    policy = RunPolicy(
        runs_per_learner=settings.runs_per_learner, queue_wait_s=settings.queue_wait_s
    )
    service = RunService(engine, RunStore(database), writer, policy)
    await service.open()
    stack.push_async_callback(service.close)
    translations = load_translations()
    stamp = built_stamp(settings.content / "static") or "unbuilt"
    return Site(
        catalogue=catalogue,
        translations=translations,
        templates=Templates(settings.content / "templates", translations, stamp),
        identity=Identity(settings.secret()),
        progress=Progress(Learning(database)),
        runs=service,
        administration=Administration(executor=engine, passes=Passes(settings.secret())),
        is_unsandboxed=settings.allow_unsandboxed,
    )


# ------------------------------------------------------------------ exceptions -> answers
def _add_handlers(app: FastAPI) -> None:
    for kind in (
        HTTPException,
        RequestValidationError,
        NotFound,
        RunNotFound,
        TooManyRuns,
        QueueFull,
        EngineError,
        StoreError,
        Exception,
    ):
        app.add_exception_handler(kind, _answer)
    app.add_exception_handler(CellRefused, _answer_in_cell)


async def _answer(request: Request, error: Exception) -> Response:
    """A page, or a JSON problem under /api, in the learner's language."""
    site: Site = request.app.state.site
    language = _language(request)
    problem = explain(error, request, site.translations[language])
    if problem.status_code == 503:
        _log.warning("%s %s: %s", request.method, request.url.path, error)
    if request.url.path.startswith("/api/") or request.url.path == "/healthz":
        body = ProblemBody(
            type="about:blank",
            title=problem.title,
            status=problem.status_code,
            detail=problem.detail,
        )
        return JSONResponse(
            body.model_dump(), problem.status_code, media_type=ProblemBody.MEDIA_TYPE
        )
    page = ErrorPage(status_code=problem.status_code, title=problem.title, detail=problem.detail)
    response = await respond(site, request, language, "error.html", page, problem.status_code)
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


async def _answer_in_cell(request: Request, error: Exception) -> Response:
    """For htmx the cell's own fragment with the reason in it; else as any other exception."""
    assert isinstance(error, CellRefused)
    if not is_htmx(request):
        return await _answer(request, error.cause)
    site: Site = request.app.state.site
    language = _language(request)
    problem = explain(error.cause, request, site.translations[language])
    is_conflict = isinstance(error.cause, DraftConflict)
    view = replace(error.view, error=problem.detail, is_conflict=is_conflict)
    return await respond(site, request, language, error.template, view, problem.status_code)


async def _refuse_cross_site(request: Request) -> Response:
    return await _answer(request, CrossSite())


def _language(request: Request) -> Language:
    first = request.url.path.split("/")[1]
    for language in LANGUAGES:
        if language == first:
            return language
    return negotiate(request.headers.get("accept-language"))
