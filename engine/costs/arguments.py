"""What the formulas accept: a ValueError names the argument that is out of range.

May import the standard library only.
"""


def require_at_least(name: str, value: int, least: int) -> None:
    """Refuse an argument below least. Raises: ValueError naming it."""
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")


def require_divisor(name: str, value: int, of_name: str, of: int) -> None:
    """Refuse an argument that does not divide another one. Raises: ValueError naming it."""
    require_at_least(name, value, 1)
    if of % value:
        raise ValueError(f"{name} must divide {of_name} ({of}), which {value} does not")


def require_one_of(name: str, value: object, known: tuple[object, ...]) -> None:
    """Refuse an argument outside a closed set. Raises: ValueError naming it."""
    if value not in known:
        listed = ", ".join(str(item) for item in known)
        raise ValueError(f"{name} must be one of {listed}, not {value}")
