"""A learner's own rows: who they are, drafts with revisions, answers, places."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.engine import Database
from app.store.tables import answers, drafts, now, places
from app.store.upsert import ensure_learner, upsert


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A learner's code in one cell; code and ranks are None after a reset.

    The revision only ever grows, through resets too: a page that was left open elsewhere can
    therefore never pass for the newest.
    """

    code: str | None
    ranks: int | None
    revision: int


class DraftConflict(Exception):
    """The stored draft is newer than the one that the change was based on."""

    def __init__(self, stored: Draft) -> None:
        super().__init__(f"the stored draft has revision {stored.revision}")
        self.stored = stored


@dataclass(frozen=True, slots=True)
class Learning:
    """Reads and writes of one learner; a write is committed when its call returns."""

    database: Database

    async def save_draft(
        self, learner_id: str, lesson_id: str, cell_id: str, draft: Draft, *, force: bool = False
    ) -> Draft:
        """Store a draft that is based on `draft.revision`; what is now stored.

        The same code again is no change. `force` takes whatever revision is there as the base.
        Raises: DraftConflict.
        """
        async with self.database.write() as connection:
            await ensure_learner(connection, learner_id)
            stored = (await _drafts(connection, learner_id, lesson_id, cell_id)).get(cell_id)
            base = stored.revision if stored else 0
            if stored and (stored.code, stored.ranks) == (draft.code, draft.ranks):
                return stored
            if stored and not force and draft.revision != base:
                raise DraftConflict(stored)
            saved = Draft(code=draft.code, ranks=draft.ranks, revision=base + 1)
            values = {
                "code": saved.code,
                "ranks": saved.ranks,
                "revision": saved.revision,
                "updated_at": now(),
            }
            keys = {"learner_id": learner_id, "lesson_id": lesson_id, "cell_id": cell_id}
            await connection.execute(upsert(connection, drafts, keys, values))
            return saved

    async def drafts(self, learner_id: str, lesson_id: str) -> dict[str, Draft]:
        """The learner's drafts in a lesson, by cell id."""
        async with self.database.read() as connection:
            return await _drafts(connection, learner_id, lesson_id, None)

    async def add_answer(
        self,
        learner_id: str,
        lesson_id: str,
        check_id: str,
        given: Mapping[str, str],
        *,
        is_right: bool,
    ) -> None:
        """Keep one more answer to a check; earlier ones stay."""
        async with self.database.write() as connection:
            await ensure_learner(connection, learner_id)
            await connection.execute(
                insert(answers).values(
                    learner_id=learner_id,
                    lesson_id=lesson_id,
                    check_id=check_id,
                    given=dict(given),
                    is_right=is_right,
                    created_at=now(),
                )
            )

    async def last_answers(self, learner_id: str, lesson_id: str) -> dict[str, dict[str, str]]:
        """The newest answer to each check of a lesson: item id -> choice id, by check id."""
        query = (
            select(answers.c.check_id, answers.c.given)
            .where(answers.c.learner_id == learner_id, answers.c.lesson_id == lesson_id)
            .order_by(answers.c.id)
        )
        async with self.database.read() as connection:
            rows = (await connection.execute(query)).all()
        return {row.check_id: dict(row.given) for row in rows}

    async def set_place(self, learner_id: str, lesson_id: str, section_id: str) -> None:
        """Note the section at which the learner is."""
        async with self.database.write() as connection:
            await ensure_learner(connection, learner_id)
            keys = {"learner_id": learner_id, "lesson_id": lesson_id}
            values = {"section_id": section_id, "updated_at": now()}
            await connection.execute(upsert(connection, places, keys, values))

    async def place(self, learner_id: str, lesson_id: str) -> str | None:
        """Id of the section where the learner was last."""
        query = select(places.c.section_id).where(
            places.c.learner_id == learner_id, places.c.lesson_id == lesson_id
        )
        async with self.database.read() as connection:
            found = (await connection.execute(query)).scalar()
        return None if found is None else str(found)


async def _drafts(
    connection: AsyncConnection, learner_id: str, lesson_id: str, cell_id: str | None
) -> dict[str, Draft]:
    query = select(drafts).where(drafts.c.learner_id == learner_id, drafts.c.lesson_id == lesson_id)
    if cell_id is not None:
        query = query.where(drafts.c.cell_id == cell_id)
    rows = await connection.execute(query)
    return {
        row.cell_id: Draft(code=row.code, ranks=row.ranks, revision=row.revision) for row in rows
    }
