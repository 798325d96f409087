"""Exceptions of the engine: our faults and refusals. May import engine.facts.

EngineError
+-- SandboxUnavailable     this machine cannot isolate a run, and the operator did not opt out
+-- ProgramRefused         this program cannot run on this machine, whatever it does
    +-- DeviceUnavailable  it asks for a device that this machine lacks
    +-- TierTooWeak        it asks for more than what this machine's isolation can hold
+-- EngineCrashed          the zygote or a supervisor died
+-- WireError              a line from a rank or a supervisor broke the protocol

A learner's failing program is none of these: it is an ordinary `Outcome`.
"""

from engine.facts import Args


class EngineError(Exception):
    """Something that is not the learner's fault went wrong."""


class SandboxUnavailable(EngineError):
    """No isolation, no run: names what this machine refuses and what to change."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason} {remedy}")
        self.reason = reason
        self.remedy = remedy


class ProgramRefused(EngineError):
    """This program cannot run here: a code of the diagnosis says why."""

    def __init__(self, message: str, *, code: str, args: Args) -> None:
        super().__init__(message)
        self.code = code
        self.said = dict(args)
        """Arguments of the code's sentence."""


class DeviceUnavailable(ProgramRefused):
    """The requested device cannot run this program here."""


class TierTooWeak(ProgramRefused):
    """What isolates runs on this machine cannot hold so many ranks."""


class EngineCrashed(EngineError):
    """The zygote or a supervisor died or could not start."""


class WireError(EngineError):
    """A line is not a valid event; `reason` says why without quoting learner data."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
