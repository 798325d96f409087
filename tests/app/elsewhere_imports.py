"""What belongs to others and is imported before `elsewhere` takes this system's own things away."""

import asyncio
import ctypes
import subprocess
import tempfile

import aiosqlite
import alembic.command
import anyio._backends._asyncio
import babel.messages.pofile
import fastapi.openapi.utils
import itsdangerous
import jinja2.ext
import markdown_it
import nh3
import pydantic_settings
import rich.console
import rich.status
import ruamel.yaml
import sqlalchemy.dialects.sqlite.aiosqlite
import sqlalchemy.ext.asyncio
import sse_starlette
import starlette.middleware.gzip
import starlette.middleware.trustedhost
import starlette.staticfiles
import typer.rich_utils
import uvicorn.lifespan.on
import uvicorn.loops.auto
import uvicorn.protocols.http.auto
import uvicorn.protocols.websockets.auto

__all__ = [
    "aiosqlite",
    "alembic",
    "anyio",
    "asyncio",
    "babel",
    "ctypes",
    "fastapi",
    "itsdangerous",
    "jinja2",
    "markdown_it",
    "nh3",
    "pydantic_settings",
    "rich",
    "ruamel",
    "sqlalchemy",
    "sse_starlette",
    "starlette",
    "subprocess",
    "tempfile",
    "typer",
    "uvicorn",
]
