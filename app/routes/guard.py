"""What every request passes before it reaches a route: origin, size, and headers on the answer.

May import starlette. Code runs on this machine by request, so a page of another site must never
be able to send one.
"""

import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_BODY_BYTES = 1024 * 1024
"""A form field of 256 KiB, percent-encoded, and room for the rest."""
NONCE = "csp_nonce"
"""Key of the page's nonce in the request's state."""

Refuse = Callable[[Request], Awaitable[Response]]


class CrossSiteGuard:
    """Refuses a state-changing request that a page of another site has sent."""

    def __init__(self, app: ASGIApp, refuse: Refuse) -> None:
        self._app = app
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS:
            headers = Headers(scope=scope)
            if is_cross_site(headers):
                response = await self._refuse(Request(scope, receive))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


def is_cross_site(headers: Headers) -> bool:
    """Whether a browser says that the request was not made by our own page.

    `same-site` is refused as well: every port of localhost is one site. Programs that are no
    browsers send neither header and carry no cookie that another page could borrow.
    """
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site not in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    except ValueError:  # no browser sends an address that is none
        return True


class BodyLimit:
    """Stops reading a request's body at 1 MiB, with 413."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        num_bytes = 0

        async def limited() -> Message:
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > MAX_BODY_BYTES:
                raise HTTPException(413)  # in the reader's place: the app's own handler answers
            return message

        await self._app(scope, limited, send)


class SecurityHeaders:
    """Makes the page's nonce and puts the security headers on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(18)
        scope.setdefault("state", {})[NONCE] = nonce

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _headers(nonce):
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


def _headers(nonce: str) -> tuple[tuple[str, str], ...]:
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'nonce-{nonce}'",
            f"style-src 'self' 'nonce-{nonce}'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types htmx",
        )
    )
    return (
        ("Content-Security-Policy", policy),
        ("X-Content-Type-Options", "nosniff"),
        # Not no-referrer: with that a form's Origin becomes null and would be refused above.
        ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
    )
