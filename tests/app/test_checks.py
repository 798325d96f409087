"""Checks over HTTP: every kind is answered, graded, kept and found again; keys stay here."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest

from app.main import create_app
from app.settings import Settings
from tests.app.check_samples import EXPLAINED, RIGHT, SAID, WRONG, write_lessons
from tests.app.conftest import OpenSite, make_client
from tests.app.rendering import read
from tests.app.scripted import ScriptedExecutor

LESSON = "/en/lessons/kinds"
HTMX = {"hx-request": "true"}
CHECKS = sorted(RIGHT)
GARBAGE = [
    "<script>alert(1)</script>",
    "\0",
    "' OR 1=1 --",
    "%s %(num)s {code}",
    "9" * 200,
    "9" * 201,
    "-1",
    "²",
    "1e999999999",
    "1/0",
    "'''",
    "(" * 200,
    "\\",
    "\x1b[31m",
    "\N{RIGHT-TO-LEFT OVERRIDE}on",
    "\N{PILE OF POO}" * 100,
]


@pytest.fixture
async def site(
    settings: Settings, tmp_path: Path, executor: ScriptedExecutor
) -> AsyncIterator[OpenSite]:
    """A site with one lesson that has a check of each kind, and a learner who has opened it."""
    lessons = write_lessons(tmp_path / "lessons")
    app = create_app(settings.model_copy(update={"lessons_dir": lessons}), executor)
    client = make_client(app, {"accept-language": "en"})
    async with app.router.lifespan_context(app), client:
        await client.get(LESSON)
        yield OpenSite(app=app, executor=executor, client=client)


def form(fields: dict[str, str]) -> dict[str, str]:
    return {f"item-{name}": text for name, text in fields.items()}


async def answer(site: OpenSite, check_id: str, fields: dict[str, str]) -> str:
    """What the page shows in place of the check."""
    response = await site.client.post(
        f"{LESSON}/checks/{check_id}", data=form(fields), headers=HTMX
    )
    assert response.status_code == 200
    assert "<html" not in response.text
    return response.text


async def page(site: OpenSite, language: str = "en") -> str:
    return unescape((await site.client.get(f"/{language}/lessons/kinds")).text)


def state_of(html: str) -> list[tuple[str, str]]:
    """What stands in the fields of a form, as it would be sent."""
    found, menu = [], ""
    for element in read(html).elements:
        attributes = element.attributes
        if element.tag == "select":
            menu = attributes["name"]
        elif element.tag == "option" and "selected" in attributes:
            found.append((menu, attributes["value"]))
        elif element.tag == "input" and attributes["type"] in ("radio", "checkbox"):
            found += [(attributes["name"], attributes["value"])] if "checked" in attributes else []
        elif element.tag == "input" and attributes["type"] == "text":
            found.append((attributes["name"], attributes["value"]))
    return found


async def test_nothing_that_is_said_to_answers_is_on_the_page_before(site: OpenSite) -> None:
    before = await page(site)
    assert [said for said in (*SAID.values(), *EXPLAINED.values()) if said in before] == []
    assert "data-announce" not in before
    assert "all_reduce(total" not in before


@pytest.mark.parametrize("check_id", CHECKS)
async def test_right_answer_is_explained(site: OpenSite, check_id: str) -> None:
    html = unescape(await answer(site, check_id, RIGHT[check_id]))
    assert EXPLAINED[check_id] in html
    assert SAID[check_id] not in html
    assert html.count("data-announce") == 1
    assert re.search(r'data-announce="(Right\.|All \d are right\.)', html)
    assert 'class="feedback"' not in html
    assert "aria-invalid" not in html


@pytest.mark.parametrize("check_id", CHECKS)
async def test_wrong_answer_is_told_why_and_nothing_more(site: OpenSite, check_id: str) -> None:
    html = unescape(await answer(site, check_id, WRONG[check_id]))
    assert SAID[check_id] in html
    assert EXPLAINED[check_id] not in html
    assert html.count("data-announce") == 1
    assert "Not quite." in html


@pytest.mark.parametrize("check_id", CHECKS)
@pytest.mark.parametrize("answers", [RIGHT, WRONG], ids=["right", "wrong"])
async def test_answer_and_verdict_are_found_again(
    site: OpenSite, check_id: str, answers: dict[str, dict[str, str]]
) -> None:
    html = await answer(site, check_id, answers[check_id])
    whole = (await site.client.get(LESSON)).text
    assert html.strip() in whole
    given = {name: text for name, text in answers[check_id].items() if text and name != "answered"}
    shown = {name: text for name, text in state_of(html) if text}
    assert shown == form(given)


@pytest.mark.parametrize("check_id", CHECKS)
async def test_without_javascript_an_answer_leads_back_to_the_check(
    site: OpenSite, check_id: str
) -> None:
    url = f"{LESSON}/checks/{check_id}"
    response = await site.client.post(url, data=form(RIGHT[check_id]))
    assert response.status_code == 303
    assert response.headers["location"] == f"{LESSON}#check-{check_id}"
    assert EXPLAINED[check_id] in await page(site)


@pytest.mark.parametrize("check_id", CHECKS)
@pytest.mark.parametrize("blank", ["", "  ", None], ids=["empty", "blanks", "unsent"])
async def test_nothing_is_told_so_and_not_kept(
    site: OpenSite, check_id: str, blank: str | None
) -> None:
    fields = {} if blank is None else dict.fromkeys(RIGHT[check_id], blank)
    html = await answer(site, check_id, fields)
    assert html.count("data-announce") == 1
    assert "Right." not in html
    assert "data-announce" not in await page(site)


async def test_ticking_nothing_is_an_answer(site: OpenSite) -> None:
    html = await answer(site, "some", {"answered": "yes"})
    assert "Nothing is ticked yet." in html
    assert "Nothing is ticked yet." in await page(site)


@pytest.mark.parametrize("check_id", CHECKS)
async def test_garbage_is_graded_or_left_out(site: OpenSite, check_id: str) -> None:
    for text in GARBAGE:
        fields = dict.fromkeys(RIGHT[check_id], text)
        html = await answer(site, check_id, {**fields, "unknown": text, "": text})
        assert "<script>" not in html
        assert EXPLAINED[check_id] not in unescape(html)
        assert (await site.client.get(LESSON)).status_code == 200


async def test_answer_as_long_as_allowed_is_kept_and_a_longer_one_is_not(site: OpenSite) -> None:
    await answer(site, "gaps", {"call": "a" * 200, "op": "b" * 201})
    shown = await page(site)
    assert "a" * 200 in shown
    assert "b" * 201 not in shown


async def test_file_in_place_of_a_text_is_no_answer(site: OpenSite) -> None:
    files = {"item-value": ("value.txt", b"256")}
    response = await site.client.post(f"{LESSON}/checks/share", files=files, headers=HTMX)
    assert response.status_code == 200
    assert "Nothing is written yet." in response.text


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"no boundary"),
        ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
        ("multipart/form-data; boundary=x; charset=undefined", b"value"),
        ("multipart/form-data; boundary=x; charset=unicode_escape", b"\\ud800"),
        ("application/x-www-form-urlencoded", b"item-value=%ED%A0%80&%ff=%00;&&=="),
        ("application/json", b"{}"),
        ("nonsense", b"\xff\0"),
    ],
)
async def test_garbled_form_is_never_a_fault_of_the_site(
    site: OpenSite, content_type: str, body: bytes
) -> None:
    if "charset" in content_type:
        part = b'--x\r\nContent-Disposition: form-data; name="item-value"\r\n\r\n%s\r\n--x--\r\n'
        body = part % body
    headers = {**HTMX, "content-type": content_type}
    response = await site.client.post(f"{LESSON}/checks/share", content=body, headers=headers)
    assert response.status_code in (200, 400)
    assert (await site.client.get(LESSON)).status_code == 200


@pytest.mark.parametrize("path", ["kinds/checks/none", "none/checks/one", "kinds/checks/choosing"])
async def test_unknown_check_is_404(site: OpenSite, path: str) -> None:
    response = await site.client.post(f"/en/lessons/{path}", data=form(RIGHT["one"]))
    assert response.status_code == 404


async def test_newest_answer_counts(site: OpenSite) -> None:
    await answer(site, "share", RIGHT["share"])
    await answer(site, "share", WRONG["share"])
    shown = await page(site)
    assert SAID["share"] in shown
    assert EXPLAINED["share"] not in shown


async def test_feedback_is_in_the_language_of_the_page_wherever_it_was_answered(
    site: OpenSite,
) -> None:
    await answer(site, "one", WRONG["one"])
    japanese = await page(site, "ja")
    assert "割るのは DDP です。" in japanese
    assert SAID["one"] not in japanese


async def test_menu_of_sections_counts_a_check_of_any_kind(site: OpenSite) -> None:
    assert (await page(site)).count("check: all right") == 0
    for check_id in CHECKS:
        await answer(site, check_id, RIGHT[check_id])
    assert (await page(site)).count("check: all right") == len(CHECKS)


async def test_lines_stand_in_the_learners_order_afterwards(site: OpenSite) -> None:
    html = await answer(site, "sorted", {"update": "2", "average": "1"})
    lines = re.findall(r'class="line-code">([^<]+)', html)
    assert lines[:2] == ["loss /= dist.get_world_size()", "optimizer.step()"]
    assert len(lines) == 5
