"""Which operating systems can run programs at all. May import errors and sandbox.findings."""

import platform
import sys

from engine.errors import SandboxUnavailable
from engine.sandbox.findings import PLATFORM_FIX


def refuse_elsewhere() -> None:
    """Refuse where there is no Linux: neither a warm parent nor a sandbox can be made there.

    Raises: SandboxUnavailable.
    """
    if sys.platform != "linux":
        where = f"{sys.platform} {platform.machine()}"
        reason = f"Runs need Linux on x86_64 or aarch64; this is {where}."
        raise SandboxUnavailable(reason, PLATFORM_FIX)
