"""Whether the bundled JavaScript and CSS match their sources: one content stamp, kept beside them.

Owns the stamp. May import the standard library only: the build hook of static/ loads this file by
its path, in an environment where nothing of the app is installed.
"""

import hashlib
from pathlib import Path

SOURCE_PATTERNS = (
    "js/*.js",
    "css/*.css",
    "package.json",
    "package-lock.json",
    ".npmrc",
    "build_hook.py",
)
STAMP_PATH = Path("vendor/stamp.txt")
STAMP_LENGTH = 16


def source_stamp(static: Path) -> str | None:
    """Hash the names and contents of the asset sources; None where a wheel left them out."""
    if not (static / "package.json").is_file():
        return None
    digest = hashlib.sha256()
    for pattern in SOURCE_PATTERNS:
        for path in sorted(static.glob(pattern)):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(static).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()[:STAMP_LENGTH]


def built_stamp(static: Path) -> str | None:
    """Read the stamp of the sources that the bundles were built from; None if never built."""
    try:
        return (static / STAMP_PATH).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None


def staleness(static: Path) -> str | None:
    """Say in one English sentence what to run when the bundles miss or are older; None if fresh."""
    built, source = built_stamp(static), source_stamp(static)
    if built is None:
        return "The page's scripts and styles are not built. Run: pip install -e ."
    if source is not None and source != built:
        return "The page's scripts and styles are older than their sources. Run: pip install -e ."
    return None
