"""`academy admin-link`: print the address that opens the administrator's page.

May import settings, i18n and administration.
"""

import sys
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from app.administration import COOKIE_AGE_S, LINK_AGE_S, Passes
from app.i18n import Language
from app.settings import Settings

FAILED = 1


def print_link(data_dir: Path | None, site: str | None, language: Language) -> int:
    """Print a fresh link for a site that uses this data folder; the exit code."""
    try:
        settings = Settings() if data_dir is None else Settings(data_dir=data_dir)
        if not settings.has_secret():
            sys.stderr.write(
                f"academy admin-link: no site has used {settings.data_dir} yet; name the folder "
                "of the one that serves with --data-dir\n"
            )
            return FAILED
        key = Passes(settings.secret()).link_key()
    except (ValidationError, OSError) as error:
        sys.stderr.write(f"academy admin-link: {error}\n")
        return FAILED
    if site is not None and not site.startswith(("http://", "https://")):
        sys.stderr.write(f"academy admin-link: --site must be an address, like https://{site}\n")
        return FAILED
    base = (site or f"http://{_host(settings)}:{settings.port}").rstrip("/")
    sys.stdout.write(f"{base}/{language}/admin?key={quote(key)}\n")
    sys.stderr.write(
        f"The link opens for {LINK_AGE_S // 60} minutes; a browser that followed it stays "
        f"administrator for {COOKIE_AGE_S // 3600} hours. Pass it to nobody.\n"
    )
    return 0


def _host(settings: Settings) -> str:
    if settings.host in ("0.0.0.0", "::"):  # noqa: S104 - every address: this one is among them
        return "127.0.0.1"
    return f"[{settings.host}]" if ":" in settings.host else settings.host
