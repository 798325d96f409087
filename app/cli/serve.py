"""`academy serve`: checks what is needed, migrates, and serves. May import everything."""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO

import uvicorn
from fastapi import FastAPI
from pydantic import ValidationError
from rich.console import Console

from app.assets import staleness
from app.i18n import CatalogueError
from app.main import create_app
from app.routes.site import Site
from app.schema import LessonError
from app.settings import LOOPBACK, Settings
from app.store import StoreError, open_database
from engine.errors import SandboxUnavailable
from engine.sandbox.choice import Demand

FAILED, BAD_ARGUMENTS = 1, 2
DRAIN_S = 2


class CannotServe(Exception):
    """What is wrong, in a sentence that says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the command line says; None leaves a setting to the environment or its default."""

    host: str | None
    port: int | None
    data_dir: Path | None
    lessons_dir: Path | None
    allow_unsandboxed: bool | None
    tier: Demand | None = None


def serve_site(choice: Choice) -> int:
    """Serve until a signal comes; the exit code."""
    os.umask(0o077)  # the database and the key are this user's only
    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    try:
        settings = _settings(choice)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            place = ".".join(map(str, item["loc"])) or "settings"
            said = item["msg"].removeprefix("Value error, ")
            console.print(f"academy serve: {place}: {said}")
        return BAD_ARGUMENTS
    try:
        with _data_folder(settings):
            _migrate(settings, console)
            settings = _kept_to_this_machine(settings, console)
            app = create_app(settings)
            stale = staleness(settings.content / "static")
            if stale is not None:
                console.print(stale)
            _serve(app, settings, console)
    except LessonError as error:
        console.print(str(error))
        console.print("The site was not started: correct these lesson files first.")
        return FAILED
    except (CannotServe, CatalogueError, StoreError, OSError) as error:
        console.print(f"academy serve: {error}")
        return FAILED
    return 0


def _settings(choice: Choice) -> Settings:
    given = {key: value for key, value in asdict(choice).items() if value is not None}
    return Settings.model_validate({**Settings().model_dump(), **given})


def _kept_to_this_machine(settings: Settings, console: Console) -> Settings:
    """Where programs may run without isolation nobody else may reach the site, by no name."""
    if not settings.allow_unsandboxed:
        return settings
    console.print("programs may run without isolation: the site serves this machine only")
    if settings.allowed_hosts:
        console.print(f"not answered therefore: {', '.join(settings.allowed_hosts)}")
    host = settings.host if settings.host in LOOPBACK else LOOPBACK[0]
    if host != settings.host:
        console.print(f"listening on {host} therefore, not on {settings.host}")
    return settings.model_copy(update={"host": host, "allowed_hosts": ()})


@contextmanager
def _data_folder(settings: Settings) -> Iterator[None]:
    """Hold the data folder: two servers on one would end each other's runs."""
    settings.make_data_dir()
    with (settings.data_dir / "serve.lock").open("w") as lock:
        try:
            _lock(lock)
        except (BlockingIOError, PermissionError):  # the second is how Windows says it
            raise CannotServe(
                f"another server uses {settings.data_dir}; stop it or choose another --data-dir"
            ) from None
        yield


def _lock(file: TextIO) -> None:
    """Hold the file until it is closed. Raises: OSError where another process does."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _migrate(settings: Settings, console: Console) -> None:
    async def migrate() -> int:
        database = open_database(settings.store_url)
        try:
            return await database.migrate()
        finally:
            await database.close()

    with console.status("preparing the database"):
        num_steps = asyncio.run(migrate())
    if num_steps:
        console.print(f"database ready (schema steps applied: {num_steps})")


def _serve(app: FastAPI, settings: Settings, console: Console) -> None:
    listening = _listen(settings)
    config = uvicorn.Config(
        app,
        log_level="warning",
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
    )
    # The server raises the signal that ended it once more when it has stopped: that is no failure.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stopped)
    try:
        _Server(config, app, listening, console).run(sockets=[listening])
    finally:
        listening.close()


def _stopped(number: int, frame: FrameType | None) -> None:
    """A signal after the end of the server."""


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=512)
    except OSError as error:
        hint = ""
        if error.errno == errno.EADDRINUSE:
            hint = "; stop what listens there or choose another --port"
        where = f"{settings.host}:{settings.port}"
        raise CannotServe(f"cannot listen on {where}: {error.strerror}{hint}") from None


class _Server(uvicorn.Server):
    """Says where it serves once it does, and lets go of open streams when it stops."""

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, listening: socket.socket, console: Console
    ) -> None:
        super().__init__(config)
        self._app = app
        self._listening = listening
        self._console = console
        self._watch: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        host, port = self._listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self._console.print(f"Deep Learning Academy: http://{shown}:{port}")
        self._watch = asyncio.create_task(self._say_engine_problem())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._site().runs.close_streams()
        await super().shutdown(sockets)

    async def _say_engine_problem(self) -> None:
        warmup = self._site().runs.warmup
        await warmup.settled()
        match warmup.problem:
            case None:
                health = await self._site().administration.executor.health()
                self._console.print(f"runs can start (isolation: {health.tier})")
                if self._site().is_unsandboxed and health.tier != "open":
                    self._console.print("--allow-unsandboxed is not needed here: leave it out")
            case SandboxUnavailable(reason=reason, remedy=remedy):
                self._console.print(f"runs cannot start: {reason} {remedy}")
            case problem:
                self._console.print(f"runs cannot start: {problem}")

    def _site(self) -> Site:
        site = self._app.state.site
        assert isinstance(site, Site)
        return site
