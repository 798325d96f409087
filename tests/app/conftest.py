"""Sites for tests: the real templates and store, a tiny course, and an executor of choice."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from app.main import create_app
from app.routes.site import Site
from app.settings import Settings
from engine.executor import Executor
from tests.app.scripted import ScriptedExecutor

ROOT = Path(__file__).parents[2]
LESSONS = Path(__file__).parent / "lessons"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSite:
    """A site that is up, and a browser on it."""

    app: FastAPI
    executor: Executor
    client: httpx.AsyncClient

    @property
    def site(self) -> Site:
        site = self.app.state.site
        assert isinstance(site, Site)
        return site

    def browser(self, **headers: str) -> httpx.AsyncClient:
        """Another browser, with cookies of its own."""
        return make_client(self.app, {"accept-language": "en", **headers})


def make_client(app: FastAPI, headers: dict[str, str]) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers)


SiteOpener = Callable[[Executor], AbstractAsyncContextManager[OpenSite]]


@pytest.fixture(scope="session")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's templates and static files with the tests' own lessons."""
    folder = tmp_path_factory.mktemp("content")
    for name in ("templates", "static"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(LESSONS, folder / "lessons")
    return folder


@pytest.fixture
def settings(tmp_path: Path, content: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", content_dir=content, allowed_hosts=("testserver",))


@pytest.fixture
def open_site(settings: Settings) -> SiteOpener:
    """Opens a site on the test's one data folder; again after it was closed, it is a restart."""

    @asynccontextmanager
    async def open_it(executor: Executor) -> AsyncIterator[OpenSite]:
        app = create_app(settings, executor)
        client = make_client(app, {"accept-language": "en"})
        async with app.router.lifespan_context(app), client:
            yield OpenSite(app=app, executor=executor, client=client)

    return open_it


@pytest.fixture
def executor() -> ScriptedExecutor:
    return ScriptedExecutor()


@pytest.fixture
async def site(open_site: SiteOpener, executor: ScriptedExecutor) -> AsyncIterator[OpenSite]:
    async with open_site(executor) as opened:
        yield opened
