"""A real server and a real Chromium. Without a browser tests are skipped, but fail under CI."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright

ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
]
LESSON = "synchronized-batch-norm-and-sharded-state"


def find_browser(playwright: Playwright) -> str | None:
    """The environment's, Playwright's own, or one on PATH."""
    own = playwright.chromium.executable_path
    candidates = [os.environ.get("ACADEMY_CHROMIUM"), own if Path(own).exists() else None]
    candidates += [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    return next((path for path in candidates if path), None)


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    path = find_browser(playwright)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium here, and under CI browser tests must run")
        pytest.skip("no Chromium here: set ACADEMY_CHROMIUM or install chromium")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS + sandbox)
    yield browser
    browser.close()


@dataclass(slots=True)
class Server:
    """`academy serve` on a free port with a data folder of its own."""

    data_dir: Path
    process: subprocess.Popen[str] | None = None
    url: str = ""

    def start(self) -> None:
        port = self.url.rpartition(":")[2] or "0"
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "app.cli", "serve",
                "--port", port, "--data-dir", str(self.data_dir),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                self.url = found[0]
                return
        raise AssertionError(f"the server did not start: {said}")

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def lesson(self, language: str) -> str:
        return f"{self.url}/{language}/lessons/{LESSON}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(data_dir=tmp_path_factory.mktemp("data"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=server.url, viewport={"width": 1360, "height": 900})
    yield context
    context.close()


class Faults:
    """What a page must never do: script errors, CSP violations, failed requests."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.seen.append(f"error: {error}"))
        page.on(
            "console",
            lambda m: self.seen.append(f"console: {m.text}") if m.type == "error" else None,
        )


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def page(context: BrowserContext, faults: Faults) -> Iterator[Page]:
    page = context.new_page()
    faults.watch(page)
    yield page
    assert faults.seen == []
