"""Devices at the site's border: refusals and the choice of `auto`, in the learner's language."""

import asyncio

import pytest

from app.i18n import Language
from engine.devices import Gpus, choose_device
from engine.events import Note
from engine.executor import RunRef
from engine.messages import NOTES, render
from engine.program import Check, Program
from tests.app.conftest import OpenSite, SiteOpener
from tests.app.scripted import ScriptedExecutor, outcome, started

CELL = "lessons/tiny/cells/hello"
ON_CUDA = {"source": "print(1)", "ranks": 4, "device": "cuda"}
SAID: dict[Language, tuple[str, ...]] = {
    "en": ("each rank needs a GPU of its own", "ranks: 4", "GPUs: 1"),
    "ja": ("1 ランクにつき 1 つの GPU が必要", "ランク数: 4", "GPU 数: 1"),
}
LANGUAGES = pytest.mark.parametrize("language", list(SAID))


class OneGpuExecutor(ScriptedExecutor):
    """Takes what one GPU can run, and refuses the rest as a real executor does."""

    async def submit(
        self, program: Program, ref: RunRef, *, learner: str = "", check: Check | None = None
    ) -> None:
        choose_device(program, Gpus(numbers=(0,)))
        await super().submit(program, ref, learner=learner, check=check)


class RefusingExecutor(ScriptedExecutor):
    """Refuses all programs, as if each had asked for the device cuda."""

    async def submit(
        self, program: Program, ref: RunRef, *, learner: str = "", check: Check | None = None
    ) -> None:
        asked = Program(source=program.source, world_size=4, device="cuda")
        choose_device(asked, Gpus(numbers=(0,)))


@pytest.fixture
def executor() -> ScriptedExecutor:
    return OneGpuExecutor()


@LANGUAGES
async def test_api_refuses_more_ranks_than_gpus_with_a_problem_that_counts_them(
    site: OpenSite, language: Language
) -> None:
    headers = {"accept-language": language}
    answer = await site.client.post("/api/runs", json=ON_CUDA, headers=headers)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert all(part in answer.json()["detail"] for part in SAID[language])


async def test_as_many_ranks_as_gpus_are_taken_on_cuda(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    answer = await site.client.post("/api/runs", json={**ON_CUDA, "ranks": 1})
    assert answer.status_code == 201
    assert executor.programs[answer.json()["id"]].device == "cuda"


@LANGUAGES
async def test_cell_shows_why_its_program_was_refused(
    open_site: SiteOpener, language: Language
) -> None:
    async with open_site(RefusingExecutor()) as site:
        form = {"code": "1", "ranks": "2"}
        url = f"/{language}/{CELL}/runs"
        in_cell = await site.client.post(url, data=form, headers={"hx-request": "true"})
        page = await site.client.post(url, data=form)
    for answer in (in_cell, page):
        assert answer.status_code == 422
        assert all(part in answer.text for part in SAID[language])


@LANGUAGES
async def test_run_that_was_taken_before_the_engine_knew_its_gpus_says_why_it_ended(
    open_site: SiteOpener, language: Language
) -> None:
    executor = OneGpuExecutor()
    executor.warm = asyncio.Event()
    async with open_site(executor) as site:
        created = await site.client.post("/api/runs", json=ON_CUDA)
        assert created.status_code == 201
        executor.warm.set()
        run_id = created.json()["id"]
        await site.client.get(f"/api/runs/{run_id}/events")  # ends with the run
        page = await site.client.get(f"/{language}/runs/{run_id}")
    assert all(part in page.text for part in SAID[language])


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "the number of GPUs that this machine has for runs is 1"), ("ja", "GPU は 1 個です")],
)
async def test_page_says_that_auto_took_cpu(
    site: OpenSite, executor: ScriptedExecutor, language: Language, said: str
) -> None:
    created = await site.client.post("/api/runs", json={"source": "print(1)", "ranks": 4})
    run_id = created.json()["id"]
    args = {"ranks": 4, "gpus": 1}
    note = Note(
        rank=-1,
        seq=1,
        at_ns=0,
        code="auto-took-cpu",
        message=render(NOTES["auto-took-cpu"], args),
        args=args,
    )
    executor.put(run_id, started(4), note, outcome())
    await site.client.get(f"/api/runs/{run_id}/events")
    page = await site.client.get(f"/{language}/runs/{run_id}")
    assert said in page.text
    assert (await site.client.get(f"/api/runs/{run_id}")).json()["device"] == "cpu"
