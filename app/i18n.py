"""Languages and catalogues: negotiation, gettext, and sentences of engine codes.

May import the standard library, Babel and engine.messages. Catalogues are .po files, compiled in
memory at start.
"""

import gettext
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po

from engine.messages import PHRASES
from engine.refusal_messages import recognise

Language = Literal["ja", "en"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
DEFAULT_LANGUAGE: Language = "en"
LOCALE_FOLDER = Path(__file__).parent / "locale"
_MAX_HEADER_CHARACTERS = 1000
_REMEDY = "remedy"
"""The argument that holds what to change: a sentence of the refusals, or a command line."""
_PHRASE_ARGS = ("where", "missing", "op", "who", "waiting", "calls")
_WORDS = ("op", "module", "dtype")

LANGUAGE_NAMES: Mapping[Language, str] = {"ja": "日本語", "en": "English"}


def as_language(text: str) -> Language | None:
    """The language of that code, None where the site does not speak it."""
    return next((language for language in LANGUAGES if language == text), None)


def other_than(language: Language) -> Language:
    """The language to switch to."""
    return "en" if language == "ja" else "ja"


def negotiate(accept_language: str | None) -> Language:
    """The best language for an Accept-Language header; English when it names none of ours.

    Source: RFC 9110, section 12.5.4; `ja-JP` counts as `ja`, q=0 excludes.
    """
    best: Language = DEFAULT_LANGUAGE
    best_quality = 0.0
    for part in (accept_language or "")[:_MAX_HEADER_CHARACTERS].split(","):
        tag, _, rest = part.partition(";")
        language = as_language(tag.strip().lower().partition("-")[0])
        quality = _quality(rest)
        if language is not None and quality > best_quality:
            best, best_quality = language, quality
    return best


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        quality = float(value)
    except ValueError:
        return 0.0
    return quality if 0.0 <= quality <= 1.0 else 0.0


class CatalogueError(ValueError):
    """A .po file cannot be read: names the file and what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translations:
    """The catalogue of one language."""

    language: Language
    catalogue: gettext.NullTranslations

    def gettext(self, message: str) -> str:
        return self.catalogue.gettext(message)

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        return self.catalogue.ngettext(singular, plural, number)


def load_translations(folder: Path = LOCALE_FOLDER) -> dict[Language, Translations]:
    """All catalogues, every .po file of a language merged. Raises: CatalogueError."""
    return {
        language: Translations(language=language, catalogue=_load(folder / language))
        for language in LANGUAGES
    }


def _load(folder: Path) -> gettext.NullTranslations:
    merged: gettext.NullTranslations = gettext.NullTranslations()
    for path in sorted(folder.glob("*.po")):
        try:
            catalogue = read_po(io.BytesIO(path.read_bytes()), abort_invalid=True)
        except (PoFileError, UnicodeDecodeError, ValueError) as error:
            raise CatalogueError(f"{path.name}: {error}") from error
        compiled = io.BytesIO()
        write_mo(compiled, catalogue)
        compiled.seek(0)
        loaded = gettext.GNUTranslations(compiled)
        loaded.add_fallback(merged)
        merged = loaded
    return merged


def render_code(
    translations: Translations, template: str, args: Mapping[str, str | int | float | None]
) -> str:
    """A note's or diagnosis' sentence in a language; the English template is the msgid.

    None is shown as a dash. Numbers keep their form in every language. Raises: KeyError where the
    template names an argument that is not there.
    """
    shown = {name: _shown(translations, name, value) for name, value in args.items()}
    return translations.gettext(template).format_map(shown)


def _shown(
    translations: Translations, name: str, value: str | int | float | None
) -> str | int | float:
    if value is None:
        return "-"
    if name == _REMEDY and isinstance(value, str):
        known = recognise(value)
        return translations.gettext(known[0]).format_map(known[1]) if known else value
    return (
        _phrases(translations, value) if name in _PHRASE_ARGS and isinstance(value, str) else value
    )


def _phrases(translations: Translations, text: str) -> str:
    """Translate the words about ranks in an argument: "rank 0 on line 17, rank 2 had ended"."""
    for phrase in PHRASES:

        def translated(found: re.Match[str], phrase: str = phrase) -> str:
            return translations.gettext(phrase).format_map(found.groupdict())

        pattern = re.sub(r"\\\{(\w+)\\\}", _argument, re.escape(phrase))
        text = re.sub(rf"\b{pattern}\b", translated, text)
    return text


def _argument(found: re.Match[str]) -> str:
    """The pattern of a phrase's argument: the name of a call, or numbers with commas."""
    return rf"(?P<{found[1]}>[\w.]+)" if found[1] in _WORDS else rf"(?P<{found[1]}>\d+(?:, \d+)*)"
