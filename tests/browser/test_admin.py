"""The administrator's page in a real browser: it refreshes itself, fits, and can be read."""

import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Server

pytestmark = pytest.mark.browser


def follow_link(page: Page, server: Server, language: str = "en") -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "app.cli", "admin-link",
            "--data-dir", str(server.data_dir), "--site", server.url, "--language", language,
        ],
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    page.goto(done.stdout.strip())
    expect(page).to_have_url(f"{server.url}/{language}/admin")


def test_state_is_redrawn_by_itself(page: Page, server: Server) -> None:
    follow_link(page, server)
    expect(page.locator("#now")).to_contain_text("Runs can start.", timeout=60_000)
    page.locator("#now").evaluate("element => element.dataset.old = 'yes'")
    expect(page.locator("#now[data-old]")).to_have_count(0, timeout=10_000)
    expect(page.locator("#now")).to_have_count(1)
    expect(page.locator("#now")).to_contain_text("Slots")


def test_examination_comes_back_to_the_page(page: Page, server: Server) -> None:
    follow_link(page, server)
    page.get_by_role("button", name="Examine again").click()
    expect(page.get_by_role("heading", name="What this machine allows")).to_be_visible()
    expect(page).to_have_url(f"{server.url}/en/admin")


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1360])
def test_page_fits_and_has_no_barriers(
    page: Page, server: Server, language: str, scheme: str, width: int
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 844})
    follow_link(page, server, language)
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0
    assert Axe().run(page).response["violations"] == []


def test_it_is_read_without_javascript(context: BrowserContext, server: Server) -> None:
    assert context.browser is not None
    plain = context.browser.new_context(java_script_enabled=False)
    try:
        page = plain.new_page()
        follow_link(page, server)
        expect(page.get_by_role("rowheader", name="Slots", exact=True)).to_be_visible()
    finally:
        plain.close()
