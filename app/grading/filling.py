"""Grades code with gaps, gap by gap. May import lessons.

Two texts are the same where Python reads the same tokens in them, whatever the blanks and quotes.
"""

import re
import tokenize
from collections.abc import Iterable, Mapping
from io import StringIO

from app.grading.verdicts import Part, Verdict, verdict_of
from app.grading.words import NOT_THIS_TEXT, NOTHING_WRITTEN, TOO_LONG
from app.i18n import Language
from app.lessons import FillCheck, Gap

_MAX_CHARACTERS = 200
_STRING = re.compile(r"(\w*)('{3}|\"{3}|'|\")(.*)\2", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CONTROL = re.compile(r"[\0-\x08\x0b-\x1f\x7f]")
"""Never in a line of code; the tokenizer of some Pythons fails on them with SystemError."""
_ALL_WAS_READ = "EOF in multi-line statement"
"""How the tokenizer ends code with a bracket whose other half is outside of the gap."""
_IGNORED = (tokenize.NL, tokenize.ENDMARKER)
_LAYOUT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def grade_gaps(check: FillCheck, given: Mapping[str, str], language: Language) -> Verdict:
    """Grade gap id -> what was written into it."""
    parts = tuple(_part(gap, given.get(gap.id, "").strip()) for gap in check.gaps)
    return verdict_of(parts, language, check.explanation)


def _part(gap: Gap, text: str) -> Part:
    if not text or len(text) > _MAX_CHARACTERS:
        feedback = TOO_LONG if text else NOTHING_WRITTEN
        return Part(item_id=gap.id, is_given=False, is_right=False, feedback=feedback)
    if _is_among(text, gap.answers, gap):
        return Part(item_id=gap.id, is_given=True, is_right=True)
    wrong = next((wrong for wrong in gap.wrong if _is_among(text, wrong.answers, gap)), None)
    return Part(
        item_id=gap.id,
        is_given=True,
        is_right=False,
        feedback=wrong.feedback if wrong else NOT_THIS_TEXT,
        misconception=wrong.misconception if wrong else None,
    )


def _is_among(text: str, answers: Iterable[str], gap: Gap) -> bool:
    written = _form(text, gap)
    return any(written == _form(answer, gap) for answer in answers)


def _form(text: str, gap: Gap) -> tuple[str, ...] | str:
    """What texts that are the same have in common."""
    text = (text.casefold() if gap.ignore_case else text).strip().replace("\r\n", "\n")
    tokens = _tokens(text)
    return " ".join(text.replace('"', "'").split()) if tokens is None else tokens


def _tokens(text: str) -> tuple[str, ...] | None:
    """The Python tokens of a text, None where it is no Python."""
    if text.endswith("\\") or _CONTROL.search(text):
        return None
    found = []
    try:
        for token in tokenize.generate_tokens(StringIO(text).readline):
            if token.type == tokenize.ERRORTOKEN:
                return None
            if token.type not in _IGNORED:
                found.append(_spelling(token))
    except tokenize.TokenError as error:
        if _ALL_WAS_READ not in str(error):
            return None
    except (SyntaxError, ValueError):
        return None
    return tuple(found)


def _spelling(token: tokenize.TokenInfo) -> str:
    """A token as it is written with double quotes and the least escapes."""
    name = tokenize.tok_name[token.type]
    if token.type in _LAYOUT:
        return f"<{name}>"
    if name.endswith("STRING_START"):  # of an f-string, from Python 3.12 on
        return _prefix(token.string.rstrip("'\"")) + '"'
    if name.endswith("STRING_END"):
        return '"'
    string = _STRING.fullmatch(token.string) if token.type == tokenize.STRING else None
    if string is None:
        return token.string
    prefix, body = _prefix(string[1]), string[3]
    return f'{prefix}"{body if "r" in prefix else _ESCAPED.sub(_unescaped, body)}"'


def _prefix(letters: str) -> str:
    return "".join(sorted(letters.lower().replace("u", "")))


def _unescaped(found: re.Match[str]) -> str:
    return found[1] if found[1] in "'\"" else found[0]
