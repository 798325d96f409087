"""Why programs cannot run here, in the page's language. May import i18n and refusal_messages."""

from app.i18n import Translations
from engine.refusal_messages import recognise


def told(said: str, translations: Translations) -> str:
    """A sentence or line of the engine's in the page's language; as it is where it is none."""
    known = recognise(said)
    return translations.gettext(known[0]).format_map(known[1]) if known else said
