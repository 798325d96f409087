"""The administrator's page: who gets in, and what it says of the machine and of the site."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from app.administration import COOKIE, COOKIE_AGE_S, LINK_AGE_S, Passes
from app.settings import Settings
from engine.errors import EngineCrashed, SandboxUnavailable
from engine.sandbox.doctor import decode_report
from tests.app.conftest import OpenSite, SiteOpener
from tests.app.scripted import ScriptedExecutor

ROOT = Path(__file__).parents[2]
PAGES = ("/en/admin", "/en/admin/now")


def admin_link(*args: str) -> str:
    """What the command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "admin-link", *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("site", "said"),
    [(None, "no site has used"), ("academy.example", "like https://academy.example")],
)
def test_link_that_could_lead_nowhere_is_not_printed(
    site: str | None, said: str, tmp_path: Path
) -> None:
    folder = tmp_path / "nothing"
    more = []
    if site is not None:
        Settings(data_dir=folder).secret()
        more = ["--site", site]
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "admin-link", "--data-dir", str(folder), *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert folder.exists() == (site is not None)


def path_of(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"


@asynccontextmanager
async def let_in(site: OpenSite, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has followed a link."""
    async with site.browser() as browser:
        key = Passes(settings.secret()).link_key()
        answer = await browser.get("/en/admin", params={"key": key})
        assert (answer.status_code, answer.headers["location"]) == (303, "/en/admin")
        yield browser


async def test_printed_link_lets_a_browser_in_and_leaves_the_address_bar(
    site: OpenSite, settings: Settings
) -> None:
    link = await asyncio.to_thread(admin_link, "--data-dir", str(settings.data_dir))
    answer = await site.client.get(path_of(link))
    assert answer.headers["location"] == "/en/admin"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert f"max-age={COOKIE_AGE_S}" in cookie
    for page in PAGES:
        assert (await site.client.get(page)).status_code == 200
    assert (await site.client.get("/ja/admin")).headers["content-language"] == "ja"


def test_link_names_the_site_and_the_language_that_are_asked_for(tmp_path: Path) -> None:
    Settings(data_dir=tmp_path).secret()
    args = ("--data-dir", str(tmp_path), "--site", "https://dl.example/", "--language", "ja")
    link = urlsplit(admin_link(*args))
    assert (link.scheme, link.netloc, link.path) == ("https", "dl.example", "/ja/admin")
    assert len(parse_qs(link.query)["key"]) == 1


@pytest.mark.parametrize("path", [*PAGES, "/ja/admin", "/en/admin?key=", "/en/admin?key=link.x.y"])
async def test_everybody_else_gets_the_answer_of_an_address_without_a_page(
    site: OpenSite, path: str
) -> None:
    nowhere = await site.client.get(f"/{path[1:3]}/nowhere-at-all")
    answer = await site.client.get(path)
    assert answer.status_code == nowhere.status_code == 404
    title = nowhere.text.partition("<h1>")[2].partition("</h1>")[0]
    assert f"<h1>{title}</h1>" in answer.text
    assert "set-cookie" not in answer.headers


async def test_examination_is_refused_to_everybody_else(site: OpenSite) -> None:
    assert (await site.client.post("/en/admin/examination")).status_code == 404


async def test_cookie_of_another_site_and_a_link_as_cookie_open_nothing(
    site: OpenSite, settings: Settings
) -> None:
    own = Passes(settings.secret())
    for value in (Passes("another secret").cookie(), own.link_key(), own.cookie()[:-1] + "~"):
        answer = await site.client.get("/en/admin", headers={"cookie": f"{COOKIE}={value}"})
        assert answer.status_code == 404


async def test_cookie_as_key_of_a_link_opens_nothing(site: OpenSite, settings: Settings) -> None:
    key = Passes(settings.secret()).cookie()
    assert (await site.client.get("/en/admin", params={"key": key})).status_code == 404


def test_links_and_cookies_end_after_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes("secret")
    key, cookie = passes.link_key(), passes.cookie()
    assert passes.admits_link(key)
    assert passes.admits_cookie(cookie)
    signed_at_s = passes._links.get_timestamp()
    later_s = signed_at_s + LINK_AGE_S + 2
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: later_s)
    assert not passes.admits_link(key)
    assert passes.admits_cookie(cookie)
    later_s = signed_at_s + COOKIE_AGE_S + 2
    assert not passes.admits_cookie(cookie)


async def test_page_shows_what_the_doctor_finds_here(site: OpenSite, settings: Settings) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "engine.sandbox.doctor"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    report = decode_report(done.stdout)
    async with let_in(site, settings) as browser:
        text = unescape((await browser.get("/en/admin")).text)
    assert report.platform in text
    rows = text.partition("<thead>")[2].partition("</table>")[0].count("<tr>") - 1
    assert rows == len(report.probes)
    for probe in report.probes:
        assert probe.is_ok or (probe.fix or "") in text
        assert (probe.errno or "") in text


async def test_page_shows_slots_queue_restarts_and_versions(
    site: OpenSite, settings: Settings
) -> None:
    async with let_in(site, settings) as browser:
        page = (await browser.get("/en/admin")).text
        fragment = (await browser.get("/en/admin/now")).text
    for words in ("Slots", "Runs in the queue", "Learners waiting", "Warm parents started again"):
        assert words in page
        assert words in fragment
    assert "torch" in page
    assert "<html" not in fragment
    assert 'hx-get="/en/admin/now"' in fragment


async def test_page_says_why_runs_are_refused_and_what_to_change(
    open_site: SiteOpener, settings: Settings
) -> None:
    problem = SandboxUnavailable("It cannot be.", "sysctl -w this.line=1")
    async with open_site(ScriptedExecutor(problem)) as site:
        await site.site.runs.warmup.settled()
        async with let_in(site, settings) as browser:
            text = (await browser.get("/en/admin/now")).text
    assert "Runs are refused." in text
    assert "It cannot be." in text
    assert "<code>sysctl -w this.line=1</code>" in text


async def test_page_says_that_the_engine_died_or_is_not_up_yet(
    open_site: SiteOpener, settings: Settings
) -> None:
    executor = ScriptedExecutor(EngineCrashed("the warm parent fell"))
    executor.warm = asyncio.Event()
    async with open_site(executor) as site, let_in(site, settings) as browser:
        assert "The engine is warming up." in (await browser.get("/en/admin/now")).text
        executor.warm.set()
        await site.site.runs.warmup.settled()
        text = (await browser.get("/en/admin/now")).text
    assert "Runs are refused." in text
    assert "the warm parent fell" in text
    assert "not known yet" in text


async def test_doctor_looks_again_when_asked(site: OpenSite, settings: Settings) -> None:
    examiner = site.site.administration.examiner
    async with let_in(site, settings) as browser:
        await browser.get("/en/admin")
        first = await examiner.report()
        await browser.get("/en/admin")
        assert await examiner.report() is first
        answer = await browser.post("/en/admin/examination")
        assert (answer.status_code, answer.headers["location"]) == (303, "/en/admin")
        assert await examiner.report() is not first


async def test_another_site_cannot_have_the_doctor_look(site: OpenSite, settings: Settings) -> None:
    async with let_in(site, settings) as browser:
        headers = {"sec-fetch-site": "cross-site"}
        assert (await browser.post("/en/admin/examination", headers=headers)).status_code == 403
