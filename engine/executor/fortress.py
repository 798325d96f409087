"""Whether warm parents of this executor run inside an outer sandbox. May import the sandbox.

Only those of ranks on CPU do: what GPUs need of the machine is more than the outer sandbox shows.
"""

import asyncio
import logging
import sys
from collections.abc import Mapping

from engine.devices import RunsOn
from engine.sandbox.choice import SandboxChoice

_log = logging.getLogger(__name__)


class Fortress:
    """Finds out once, by building it, if the outer sandbox can be had."""

    def __init__(self, choice: SandboxChoice, runs_on: RunsOn) -> None:
        # Layers that a test leaves out are those of the walls: it wants to see what else holds.
        is_admitted = choice.at_most == "fortified" and not choice.without
        self._is_wanted = is_admitted and runs_on == "cpu" and sys.platform == "linux"
        self._asking = asyncio.Lock()
        self._words: tuple[str, ...] | None = None

    async def prefix(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The words before a warm parent's own; none where it runs without an outer sandbox."""
        if not self._is_wanted:
            return ()
        async with self._asking:
            if self._words is None:
                self._words = await asyncio.to_thread(_prefix, dict(environment))
            return self._words


def _prefix(environment: dict[str, str]) -> tuple[str, ...]:
    from engine.sandbox.fortress import prefix, try_fortress  # exists on Linux only

    found = try_fortress(environment)
    if found.is_ok:
        return prefix()
    _log.info("no outer sandbox: %s", found.detail)
    return ()
