"""Templates -> responses: one typed context each, in the page's language.

May import contexts and i18n.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse

from app.i18n import LANGUAGES, Language, Translations
from app.panels.administration import AdminPage, AdminView
from app.panels.contexts import (
    CellView,
    CheckView,
    CoursePage,
    ErrorPage,
    HomePage,
    LessonPage,
    RunPage,
    RunView,
    SiteContext,
)
from app.routes.api_schema import ApiDocsPage
from app.routes.guard import NONCE

Page = HomePage | CoursePage | LessonPage | RunPage | ErrorPage | ApiDocsPage | AdminPage
View = CellView | RunView | CheckView | AdminView


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """What the frame of every page says of the site at this moment."""

    is_unsandboxed: bool
    engine_problem: str | None


class Templates:
    """One Jinja environment per language, over the same files."""

    def __init__(
        self, folder: Path, translations: Mapping[Language, Translations], assets_stamp: str
    ) -> None:
        self._stamp = assets_stamp
        self._environments = {
            language: _environment(folder, translations[language], assets_stamp)
            for language in LANGUAGES
        }

    def site_context(self, request: Request, language: Language, facts: PageFacts) -> SiteContext:
        """What the page's frame needs for this request."""
        other = next(item for item in LANGUAGES if item != language)
        return SiteContext(
            language=language,
            other_language=other,
            other_language_url=_url_in(request, other),
            csp_nonce=str(getattr(request.state, NONCE)),
            assets_stamp=self._stamp,
            is_unsandboxed=facts.is_unsandboxed,
            engine_problem=facts.engine_problem,
        )

    def text(self, request: Request, name: str, *, site: SiteContext, context: Page | View) -> str:
        """Fill a template; pages see their context as `page`, fragments theirs as `view`."""
        template = self._environments[site.language].get_template(name)
        key = "view" if isinstance(context, View) else "page"

        def url_for_language(language: Language) -> str:
            return _url_in(request, language)

        return template.render({key: context, "site": site, "url_for_language": url_for_language})

    async def render(
        self,
        request: Request,
        name: str,
        *,
        site: SiteContext,
        context: Page | View,
        status_code: int = 200,
    ) -> HTMLResponse:
        """The response of a page or fragment, rendered off the event loop."""

        def fill() -> str:
            return self.text(request, name, site=site, context=context)

        headers = {"Content-Language": site.language, "Cache-Control": "private, no-cache"}
        return HTMLResponse(await run_in_threadpool(fill), status_code, headers)


def _environment(folder: Path, translations: Translations, assets_stamp: str) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.newstyle_gettext = True  # type: ignore[attr-defined]
    environment.install_gettext_translations(translations, newstyle=True)  # type: ignore[attr-defined]

    def asset(name: str) -> str:
        return f"/static/vendor/{name}?v={assets_stamp}"

    environment.globals["asset"] = asset
    return environment


def _url_in(request: Request, language: Language) -> str:
    """The address of the same page in another language."""
    _, first, *rest = (*request.url.path.split("/"), "")
    if first not in LANGUAGES:
        return f"/{language}/"
    path = "/".join(("", language, *rest)).rstrip("/") if any(rest) else f"/{language}/"
    return f"{path}?{request.url.query}" if request.url.query else path
