"""Who a request comes from: an anonymous learner, named by a signed cookie.

May import the standard library, itsdangerous and starlette's request and response. The learner's
row is created by the store at their first write.
"""

import secrets
from dataclasses import dataclass

from itsdangerous import BadSignature, TimestampSigner
from starlette.requests import Request
from starlette.responses import Response

COOKIE = "academy_learner"
YEAR_S = 365 * 24 * 3600
RENEW_AFTER_S = 30 * 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """The learner behind a request."""

    id: str
    needs_cookie: bool
    """The answer must carry a cookie: there was none, it was forged, or it is growing old."""
    is_new: bool
    """The request named no learner that we know of."""


class Identity:
    """Reads and writes the learner's cookie."""

    def __init__(self, secret: str) -> None:
        self._signer = TimestampSigner(secret, salt="academy.learner")

    def learner(self, request: Request) -> Learner:
        """The request's learner; a new one when the cookie is missing, forged or too old."""
        cookie = request.cookies.get(COOKIE, "")
        try:
            value, signed_at = self._signer.unsign(cookie, max_age=YEAR_S, return_timestamp=True)
            age_s = self._signer.get_timestamp() - signed_at.timestamp()
            return Learner(
                id=value.decode("ascii"), needs_cookie=age_s > RENEW_AFTER_S, is_new=False
            )
        except BadSignature:
            return Learner(id=secrets.token_hex(16), needs_cookie=True, is_new=True)

    def keep(self, learner: Learner, request: Request, response: Response) -> None:
        """Put the learner's cookie on the response where it needs one."""
        if not learner.needs_cookie:
            return
        # Lax, not strict: strict would drop the cookie on a link from another site, and the page
        # would then greet the learner as a new one and overwrite who they were.
        response.set_cookie(
            COOKIE,
            self.cookie_of(learner.id),
            max_age=YEAR_S,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )

    def cookie_of(self, learner_id: str) -> str:
        """The value of the cookie that names a learner."""
        return self._signer.sign(learner_id).decode("ascii")
