"""What all entries of lesson files are made of. May import pydantic."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Id = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$",
        max_length=80,
        description="A name that never changes: lower-case letters, digits and hyphens.",
    ),
]


def not_blank(text: str) -> str:
    """The text. Raises: ValueError where there is nothing to see in it."""
    if not text.strip():
        raise ValueError("a text must not be blank: write it, or take the key out")
    return text


Words = Annotated[str, Field(min_length=1, max_length=8000), AfterValidator(not_blank)]


class Entry(BaseModel):
    """A map of keys in a lesson file: no further keys, and no value is taken for another kind."""

    model_config = ConfigDict(extra="forbid", strict=True)
    example: ClassVar[str | None] = None
    """How one is written, where its required keys do not tell."""


class LocalizedEntry(Entry):
    """One text per language; a missing one falls back to the other and is marked on the page."""

    ja: Annotated[Words | None, Field(description="Japanese")] = None
    en: Annotated[Words | None, Field(description="English")] = None

    @model_validator(mode="after")
    def _has_one(self) -> "LocalizedEntry":
        if self.ja is None and self.en is None:
            raise ValueError("write at least one of `ja` and `en`")
        return self
