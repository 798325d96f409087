"""What a cell's form sends, checked. May import engine.program and site."""

from typing import Annotated

from fastapi import Form

from app.i18n import Translations
from app.lessons import Cell
from app.routes.site import BadCellForm
from app.store import Draft
from engine.program import MAX_SOURCE_BYTES, Program

_MAX_DIGITS = 3

CodeField = Annotated[str, Form()]
RanksField = Annotated[str, Form()]
RevisionField = Annotated[int, Form(ge=0)]
MaybeRevisionField = Annotated[int | None, Form(ge=0)]


def read_draft(
    cell: Cell, code: str, ranks: str, revision: int, translations: Translations
) -> Draft:
    """The form's program. Raises: BadCellForm, with text in the learner's language."""
    source = code.replace("\r\n", "\n").replace("\r", "\n")
    problem = source_problem(source, translations)
    if problem is not None:
        raise BadCellForm(problem)
    is_number = ranks.isascii() and ranks.isdecimal() and len(ranks) <= _MAX_DIGITS
    if not is_number or not cell.ranks.min <= int(ranks) <= cell.ranks.max:
        said = translations.gettext("Choose from %(least)s to %(most)s ranks.")
        raise BadCellForm(said % {"least": cell.ranks.min, "most": cell.ranks.max})
    return Draft(code=source, ranks=int(ranks), revision=revision)


def source_problem(source: str, translations: Translations) -> str | None:
    """Why a source cannot be kept or run; None when it can."""
    try:
        num_bytes = len(source.encode())
    except UnicodeEncodeError:
        return translations.gettext("The program contains characters that are not valid Unicode.")
    if "\0" in source:
        return translations.gettext("The program contains a NUL character.")
    if num_bytes > MAX_SOURCE_BYTES:
        said = translations.gettext("The program has %(size)s KiB; at most %(limit)s KiB can run.")
        return said % {"size": num_bytes // 1024 + 1, "limit": MAX_SOURCE_BYTES // 1024}
    return None


def program_of(draft: Draft, cell: Cell) -> Program:
    """A checked draft as a program."""
    assert draft.code is not None
    assert draft.ranks is not None
    # The lessons' programs compute on CPU tensors, and their text speaks of ranks on CPU.
    return Program(
        source=draft.code,
        world_size=draft.ranks,
        device="cpu",
        name=cell.program_name,
        simulated_ranks=cell.simulated_ranks,
    )
