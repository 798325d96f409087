"""What an executor orders of a warm parent, as the one argument of its command line.

May import devices, sandbox.choice and pydantic.
"""

from dataclasses import dataclass

from pydantic import TypeAdapter

from engine.devices import RunsOn
from engine.sandbox.choice import SandboxChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class ZygoteOrder:
    """How a warm parent is to warm up and to park."""

    control: int
    """Descriptor of its connection to the executor."""
    num_parked_ranks: int
    """Ranks that each parked sandbox has before the program is known."""
    runs_on: RunsOn
    sandbox: SandboxChoice
    is_enclosed: bool = False
    """It is started inside the outer sandbox of the tier fortified."""


def encode_order(order: ZygoteOrder) -> str:
    """One word of a command line."""
    return TypeAdapter(ZygoteOrder).dump_json(order).decode()


def decode_order(text: str) -> ZygoteOrder:
    """The order of one word. Raises: ValueError."""
    return TypeAdapter(ZygoteOrder).validate_json(text)
