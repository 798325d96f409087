"""What a learner has done in a lesson: the code in its cells, answers, and their place.

May import store and lessons.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.lessons import Cell, Lesson
from app.store import Draft, Learning


@dataclass(frozen=True, slots=True, kw_only=True)
class CellState:
    """What is in a learner's cell: their draft, or the lesson's own program."""

    code: str
    ranks: int
    is_draft: bool
    revision: int
    """Of the draft; 0 when there never was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonProgress:
    """All that a lesson page restores, besides runs."""

    cells: Mapping[str, CellState]
    """By cell id; every cell of the lesson has one."""
    answers: Mapping[str, Mapping[str, str]]
    """Newest answers by check id: item id -> choice id."""
    place: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Reads and writes a learner's progress; a write is kept when its call returns."""

    learning: Learning

    async def of_lesson(self, learner_id: str, lesson: Lesson) -> LessonProgress:
        drafts = await self.learning.drafts(learner_id, lesson.id)
        return LessonProgress(
            cells={cell.id: cell_state(cell, drafts.get(cell.id)) for cell in lesson.cells()},
            answers=await self.learning.last_answers(learner_id, lesson.id),
            place=await self.learning.place(learner_id, lesson.id),
        )

    async def of_cell(self, learner_id: str, lesson_id: str, cell: Cell) -> CellState:
        drafts = await self.learning.drafts(learner_id, lesson_id)
        return cell_state(cell, drafts.get(cell.id))

    async def keep_code(
        self,
        learner_id: str,
        lesson_id: str,
        cell: Cell,
        draft: Draft,
        *,
        force: bool = False,
    ) -> CellState:
        """Keep what the learner has in the cell. Raises: DraftConflict."""
        saved = await self.learning.save_draft(learner_id, lesson_id, cell.id, draft, force=force)
        return cell_state(cell, saved)

    async def reset(self, learner_id: str, lesson_id: str, cell: Cell) -> CellState:
        """Go back to the lesson's own program."""
        nothing = Draft(code=None, ranks=None, revision=0)
        return await self.keep_code(learner_id, lesson_id, cell, nothing, force=True)


def cell_state(cell: Cell, draft: Draft | None) -> CellState:
    """What is in the cell, given the learner's draft of it."""
    revision = draft.revision if draft else 0
    if draft is None or draft.code is None:
        return CellState(
            code=cell.source, ranks=cell.ranks.default, is_draft=False, revision=revision
        )
    ranks = cell.ranks.default if draft.ranks is None else draft.ranks
    return CellState(
        code=draft.code,
        ranks=min(max(ranks, cell.ranks.min), cell.ranks.max),
        is_draft=(draft.code, ranks) != (cell.source, cell.ranks.default),
        revision=revision,
    )
