"""Who administers the site, and what they are told of the machine.

Owns the signed link and the cookie it gives, and the doctor's report. May import itsdangerous, the
executor's seam and engine.sandbox.doctor. There are no accounts: who can run commands as the
site's own user can read its secret, and so can sign a link.
"""

import asyncio
import os
import sys
from dataclasses import dataclass, field

from itsdangerous import BadSignature, TimestampSigner

from engine.errors import EngineCrashed
from engine.executor import Executor
from engine.executor.slots import clean_environment
from engine.sandbox.doctor import Report, decode_report, examine

COOKIE = "academy_administrator"
LINK_AGE_S = 3600
"""How long a printed link opens the page."""
COOKIE_AGE_S = 12 * 3600
_EXAMINATION_LIMIT_S = 60.0
_LINK, _PASS = b"link", b"pass"


class Passes:
    """Signs and checks the links and cookies of administrators."""

    def __init__(self, secret: str) -> None:
        self._links = TimestampSigner(secret, salt="academy.administrator.link")
        self._cookies = TimestampSigner(secret, salt="academy.administrator.cookie")

    def link_key(self) -> str:
        """What a link carries."""
        return self._links.sign(_LINK).decode("ascii")

    def admits_link(self, key: str) -> bool:
        """Whether this key was signed here, less than an hour ago."""
        return _is_signed(self._links, key, LINK_AGE_S)

    def cookie(self) -> str:
        """The value of an administrator's cookie."""
        return self._cookies.sign(_PASS).decode("ascii")

    def admits_cookie(self, value: str) -> bool:
        """Whether this cookie was given here, less than twelve hours ago."""
        return _is_signed(self._cookies, value, COOKIE_AGE_S)


def _is_signed(signer: TimestampSigner, value: str, max_age_s: int) -> bool:
    try:
        signer.unsign(value, max_age=max_age_s)
    except BadSignature:
        return False
    return True


class Examiner:
    """Asks the doctor about this machine: once, and again when told to."""

    def __init__(self) -> None:
        self._asking = asyncio.Lock()
        self._report: Report | None = None

    async def report(self) -> Report:
        """What the last examination found. Raises: EngineCrashed."""
        async with self._asking:
            if self._report is None:
                self._report = await _examine()
            return self._report

    async def examine_again(self) -> None:
        """Have the next report found out anew."""
        async with self._asking:
            self._report = None


async def _examine() -> Report:
    """The doctor in a process of its own: it forks, and this one has threads.

    Raises: EngineCrashed.
    """
    if sys.platform != "linux":
        return examine()  # which forks nothing elsewhere
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-m",
        "engine.sandbox.doctor",
        env=clean_environment(os.environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_EXAMINATION_LIMIT_S):
            said, _ = await process.communicate()
        return decode_report(said.decode())
    except (TimeoutError, ValueError) as error:
        raise EngineCrashed(f"the doctor gave no report: {type(error).__name__}") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    """What the administrator's page needs."""

    executor: Executor
    passes: Passes
    examiner: Examiner = field(default_factory=Examiner)
