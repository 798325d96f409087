"""Pages over HTTP: languages, errors, and what a learner finds again after a restart."""

import re

import httpx
import pytest

from engine.errors import SandboxUnavailable
from engine.executor import Queued
from tests.app.conftest import OpenSite, SiteOpener
from tests.app.scripted import ScriptedExecutor, outcome, output, started

LESSON = "/en/lessons/tiny"
CELL = f"{LESSON}/cells/hello"
CHECK = f"{LESSON}/checks/which"
HTMX = {"hx-request": "true"}


@pytest.mark.parametrize(
    ("accepts", "language"),
    [("ja-JP,ja;q=0.9,en;q=0.5", "ja"), ("en-GB", "en"), ("fr", "en"), ("", "en")],
)
async def test_root_leads_to_the_language_that_the_browser_asks_for(
    site: OpenSite, accepts: str, language: str
) -> None:
    answer = await site.client.get("/", headers={"accept-language": accepts})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/{language}/")
    assert answer.headers["vary"] == "Accept-Language"
    assert answer.headers["content-language"] == language


@pytest.mark.parametrize("language", ["ja", "en"])
@pytest.mark.parametrize("path", ["/", "/courses/basics", "/lessons/tiny"])
async def test_page_is_in_its_language_and_links_to_itself_in_the_other(
    site: OpenSite, language: str, path: str
) -> None:
    answer = await site.client.get(f"/{language}{path}")
    other = "en" if language == "ja" else "ja"
    assert answer.status_code == 200
    assert f'<html lang="{language}">' in answer.text
    assert f'href="/{other}{path}"' in answer.text
    assert answer.headers["content-language"] == language


@pytest.mark.parametrize(
    "path",
    [
        "/fr/",
        "/nowhere",
        "/ja/courses/none",
        "/ja/lessons/later",
        "/ja/runs/none",
        "/ja/runs/none/stream",
        "/ja/lessons/tiny/cells/none/program.py",
    ],
)
async def test_unknown_address_is_404_with_a_page(site: OpenSite, path: str) -> None:
    answer = await site.client.get(path, headers={"accept-language": "ja"})
    assert answer.status_code == 404
    assert '<html lang="ja">' in answer.text
    assert 'href="/ja/"' in answer.text


@pytest.mark.parametrize("path", ["/en/", LESSON, "/api/docs", "/healthz"])
async def test_head_is_answered_like_get_without_a_body(site: OpenSite, path: str) -> None:
    head, whole = await site.client.head(path), await site.client.get(path)
    assert head.status_code == whole.status_code == 200
    assert head.headers["content-type"] == whole.headers["content-type"]


async def test_wrong_method_is_405_with_a_page(site: OpenSite) -> None:
    answer = await site.client.get(f"{CELL}/runs")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert "<h1>" in answer.text


async def test_bug_in_the_site_is_500_with_a_page_and_without_its_text(
    site: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: object, learner_id: str, lesson: object) -> None:
        raise RuntimeError("internal detail")

    monkeypatch.setattr("app.progress.Progress.of_lesson", broken)
    answer = await site.client.get(LESSON)
    assert answer.status_code == 500
    assert '<html lang="en">' in answer.text
    assert "internal detail" not in answer.text
    assert "content-security-policy" in answer.headers


async def test_page_says_why_runs_cannot_start(open_site: SiteOpener) -> None:
    executor = ScriptedExecutor(SandboxUnavailable("No namespaces here.", "Allow them."))
    async with open_site(executor) as site:
        await site.site.runs.warmup.settled()
        page = await site.client.get(LESSON)
        assert "No namespaces here. Allow them." in page.text
        refused = await site.client.post(f"{CELL}/runs", data={"code": "1", "ranks": "2"})
        assert refused.status_code == 503
        fragment = await site.client.post(
            f"{CELL}/runs", data={"code": "1", "ranks": "2"}, headers=HTMX
        )
        assert fragment.status_code == 503
        assert 'id="run-hello"' in fragment.text
        assert "<html" not in fragment.text


async def test_everything_is_found_again_after_a_restart_without_running_again(
    open_site: SiteOpener,
) -> None:
    executor = ScriptedExecutor()
    async with open_site(executor) as site:
        form = {"code": "print('mine')", "ranks": "3"}
        assert (await site.client.post(f"{CELL}/runs", data=form)).status_code == 303
        run_id = executor.refs[0].run_id
        executor.put(run_id, started(3), output("seen by the learner\n"), outcome())
        learner = site.client.cookies
        await site.client.get(f"/en/runs/{run_id}/stream")
        draft = {"code": "print('draft')", "ranks": "4", "revision": "1"}
        await site.client.post(f"{CELL}/draft", data=draft)
        await site.client.post(CHECK, data={"item-reduce": "sum", "item-broadcast": "sum"})
        await site.client.post(f"{LESSON}/place", data={"section": "ask"})
        before = (await site.client.get(LESSON)).text
    restarted = ScriptedExecutor()
    async with open_site(restarted) as site:
        site.client.cookies = learner
        after = (await site.client.get(LESSON)).text
    assert restarted.refs == []
    for found in (
        "print(&#39;draft&#39;)",
        '<option value="4" selected>',
        "seen by the learner",
        f'data-run-id="{run_id}"',
        "Nothing is added up.",
        'data-place="ask"',
    ):
        assert found in after
    assert without_nonce(after) == without_nonce(before)


def without_nonce(page: str) -> str:
    return re.sub(r'nonce="[^"]+"', "", page)


async def test_answers_are_graded_and_the_key_is_not_on_the_page_before(site: OpenSite) -> None:
    before = await site.client.get(LESSON)
    assert "Every rank gets the sum." not in before.text
    right = {"item-reduce": "sum", "item-broadcast": "copy"}
    answer = await site.client.post(CHECK, data=right, headers=HTMX)
    assert answer.status_code == 200
    assert 'id="check-which"' in answer.text
    assert "<html" not in answer.text
    assert "Every rank gets the sum." in answer.text
    assert "Every rank gets a copy." in answer.text


async def test_unknown_choices_count_as_no_answer(site: OpenSite) -> None:
    answer = await site.client.post(CHECK, data={"item-reduce": "<script>"}, headers=HTMX)
    assert answer.status_code == 200
    assert "<script>" not in answer.text


async def test_check_without_javascript_leads_back_to_the_check(site: OpenSite) -> None:
    await site.client.get(LESSON)
    answer = await site.client.post(CHECK, data={"item-reduce": "sum"})
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{LESSON}#check-which"
    assert "Every rank gets the sum." in (await site.client.get(LESSON)).text


async def test_unknown_section_is_404_and_the_place_stays(site: OpenSite) -> None:
    await site.client.get(LESSON)
    kept = await site.client.post(f"{LESSON}/place", data={"section": "ask"})
    assert (kept.status_code, kept.content) == (204, b"")
    refused = await site.client.post(f"{LESSON}/place", data={"section": "none"})
    assert refused.status_code == 404
    assert 'data-place="ask"' in (await site.client.get(LESSON)).text


async def draft(client: httpx.AsyncClient, code: str, revision: int) -> httpx.Response:
    form = {"code": code, "ranks": "2", "revision": str(revision)}
    return await client.post(f"{CELL}/draft", data=form, headers=HTMX)


async def test_draft_on_an_older_revision_is_409_with_the_newest_revision(site: OpenSite) -> None:
    await site.client.get(LESSON)
    first = await draft(site.client, "one", 0)
    assert (first.status_code, 'value="1"' in first.text) == (200, True)
    assert (await draft(site.client, "two", 1)).status_code == 200
    conflict = await draft(site.client, "three", 1)
    assert conflict.status_code == 409
    assert 'id="draft-hello"' in conflict.text
    assert 'value="2"' in conflict.text
    assert "another window" in conflict.text
    assert ">\ntwo</textarea>" in (await site.client.get(LESSON)).text
    assert (await draft(site.client, "three", 2)).status_code == 200


async def test_reset_gives_the_lessons_own_program_back(site: OpenSite) -> None:
    await site.client.get(LESSON)
    await draft(site.client, "mine", 0)
    answer = await site.client.post(f"{CELL}/reset", headers=HTMX)
    assert 'id="cell-hello"' in answer.text
    assert "dist.init_process_group" in answer.text
    assert "mine</textarea>" not in answer.text
    conflict = await draft(site.client, "from another window", 1)
    assert conflict.status_code == 409


async def test_browsers_line_ends_become_pythons(site: OpenSite) -> None:
    await site.client.get(LESSON)
    await draft(site.client, "a\r\nb\r\n", 0)
    program = await site.client.get(f"{CELL}/program.py")
    assert program.content == b"a\nb\n"
    assert program.headers["content-disposition"] == 'attachment; filename="hello.py"'


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"code": "1", "ranks": "5"}, "from 1 to 4"),
        ({"code": "1", "ranks": "-1"}, "from 1 to 4"),
        ({"code": "1", "ranks": "²"}, "from 1 to 4"),
        ({"code": "1", "ranks": "9" * 5000}, "from 1 to 4"),
        ({"code": "1", "ranks": "0000000029"}, "from 1 to 4"),
        ({"code": "1", "ranks": "000000002" + "9" * 30}, "from 1 to 4"),
        ({"code": "1", "ranks": "٢"}, "from 1 to 4"),
        ({"code": "#" * (256 * 1024 + 1), "ranks": "2"}, "at most 256 KiB"),
        ({"code": "\0", "ranks": "2"}, "NUL"),
    ],
)
async def test_cell_that_cannot_run_is_422_and_says_why(
    site: OpenSite, executor: ScriptedExecutor, form: dict[str, str], said: str
) -> None:
    answer = await site.client.post(f"{CELL}/runs", data=form, headers=HTMX)
    assert answer.status_code == 422
    assert 'id="run-hello"' in answer.text
    assert said in answer.text
    page = await site.client.post(f"{CELL}/runs", data=form)
    assert page.status_code == 422
    assert "<html" in page.text
    assert executor.refs == []


async def test_refusal_is_in_the_learners_language(site: OpenSite) -> None:
    answer = await site.client.post(
        "/ja/lessons/tiny/cells/hello/runs", data={"code": "1", "ranks": "5"}, headers=HTMX
    )
    assert answer.status_code == 422
    assert re.search(r"[ぁ-ん]", answer.text)


async def test_form_without_its_fields_is_422(site: OpenSite) -> None:
    answer = await site.client.post(f"{CELL}/runs", data={})
    assert answer.status_code == 422
    assert "<html" in answer.text


async def test_one_run_more_than_allowed_is_429(site: OpenSite, executor: ScriptedExecutor) -> None:
    await site.client.get(LESSON)
    for _ in range(3):
        answer = await site.client.post("/api/runs", json={"source": "1", "ranks": 1})
        assert answer.status_code == 201
    refused = await site.client.post(
        f"{CELL}/runs", data={"code": "kept", "ranks": "2"}, headers=HTMX
    )
    assert refused.status_code == 429
    assert "3 runs" in refused.text
    assert ">\nkept</textarea>" in (await site.client.get(LESSON)).text
    assert len(executor.refs) == 3


async def test_learner_without_a_cookie_cannot_evade_the_limit(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    for _ in range(3):
        answer = await site.browser().post("/api/runs", json={"source": "1", "ranks": 1})
        assert answer.status_code == 201
    form = {"code": "1", "ranks": "2"}
    refused = await site.browser().post(f"{CELL}/runs", data=form, headers=HTMX)
    assert refused.status_code == 429
    assert len(executor.refs) == 3


async def test_api_takes_numbers_as_numbers_only(site: OpenSite) -> None:
    for ranks in (True, "2", 2.5):
        answer = await site.client.post("/api/runs", json={"source": "1", "ranks": ranks})
        assert answer.status_code == 422


async def test_queue_position_is_shown(site: OpenSite, executor: ScriptedExecutor) -> None:
    await site.client.get(LESSON)
    await site.client.post(f"{CELL}/runs", data={"code": "1", "ranks": "2"})
    run_id = executor.refs[0].run_id
    executor.put(run_id, Queued(position=2))
    for _ in range(1000):  # each request gives the run's own task a turn
        page = await site.client.get(f"/en/runs/{run_id}")
        if "2 runs ahead" in page.text:
            return
    raise AssertionError("the position never came")
