"""Texts in several languages. May import i18n."""

from dataclasses import dataclass

from app.i18n import Language, other_than


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text in the language at hand, or in the other one where it is not translated yet."""

    value: str
    language: Language
    is_fallback: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Localized:
    """One text in one or both languages."""

    ja: str | None = None
    en: str | None = None

    def pick(self, language: Language) -> Text:
        """The text in that language, else in the other, marked."""
        own = self.ja if language == "ja" else self.en
        if own is not None:
            return Text(value=own, language=language, is_fallback=False)
        other = self.en if language == "ja" else self.ja
        return Text(value=other or "", language=other_than(language), is_fallback=True)
