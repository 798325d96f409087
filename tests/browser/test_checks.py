"""A learner answers a check of each kind: by keyboard, in Japanese, and without JavaScript."""

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app.check_samples import RIGHT, WRONG, write_lessons
from tests.browser.conftest import Server

pytestmark = pytest.mark.browser

KINDS = "/{}/lessons/kinds"
OVERFLOWS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
TOO_SMALL = """() => [...document.querySelectorAll(
  "form.check :is(label, select, button, input[type=text])"
)].filter((e) => {
  const { width, height } = e.getBoundingClientRect();
  return width && !e.matches(".number-row label") && (width < 24 || height < 24);
}).length"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a lesson that has a check of each kind."""
    lessons = write_lessons(tmp_path_factory.mktemp("kinds") / "lessons")
    server = Server(data_dir=tmp_path_factory.mktemp("data"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ACADEMY_LESSONS_DIR", str(lessons))
        server.start()
    yield server
    server.stop()


def check_of(page: Page, check_id: str) -> Locator:
    return page.locator(f"#check-{check_id}")


def focused(page: Page) -> str:
    found = page.evaluate("document.activeElement.id")
    assert isinstance(found, str)
    return found


def tab_to(page: Page, element_id: str) -> None:
    """Press Tab until that element has the focus."""
    for _ in range(40):
        if focused(page) == element_id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reached {element_id}, but {focused(page)}")


def send(page: Page, check_id: str) -> None:
    """Answer by keyboard; the button keeps the focus."""
    button = f"check-{check_id}-go"
    tab_to(page, button)
    with page.expect_response(re.compile(f"/checks/{check_id}$")):
        page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_have_text(re.compile(r"\S"))
    assert focused(page) == button


def told(page: Page) -> Locator:
    return page.locator("#announcer")


def codes(page: Page) -> list[str]:
    return check_of(page, "sorted").locator(".line-code").all_inner_texts()


def places(page: Page) -> list[str]:
    return [s.input_value() for s in check_of(page, "sorted").locator("select").all()]


def test_all_kinds_are_answered_by_keyboard_in_japanese(page: Page) -> None:
    page.goto(KINDS.format("ja"))
    first = check_of(page, "one").locator("input").first
    first.focus()
    for _ in range(3):  # arrows go through the options, and around
        if page.locator("#check-one--adds").is_checked():
            break
        page.keyboard.press("ArrowDown")
    send(page, "one")
    expect(told(page)).to_have_text("正解です。和がどのランクにも届きます。")

    for option in check_of(page, "some").locator("input[type=checkbox]").all():
        if option.get_attribute("name") in ("item-barrier", "item-reduce"):
            option.focus()
            page.keyboard.press("Space")
    send(page, "some")
    expect(told(page)).to_have_text("正解です。集団通信は全員を待ちます。")

    for item, choice in RIGHT["pairs"].items():
        page.locator(f"#pairs-{item}-{choice}").focus()
        page.keyboard.press("Space")
    send(page, "pairs")
    expect(told(page)).to_have_text("2 問すべて正解です。")

    for line, place in RIGHT["sorted"].items():
        page.locator(f"#check-sorted--{line}--place").focus()
        page.keyboard.press(place or "Home")
    send(page, "sorted")
    expect(told(page)).to_have_text("正解です。勾配は更新の前に要ります。")
    assert places(page) == ["1", "2", "3", "4", ""]

    page.get_by_label("答え").first.focus()
    page.keyboard.insert_text("０．２５")
    tab_to(page, "check-share--unit")
    page.keyboard.press("M")
    send(page, "share")
    expect(told(page)).to_have_text("正解です。4 で割ります。")

    for number, text in enumerate(RIGHT["gaps"].values(), start=1):
        page.get_by_label(f"空欄 {number} / 3").focus()
        page.keyboard.insert_text(text)
    page.keyboard.press("Enter")  # in a text it answers, too
    expect(told(page)).to_have_text("3 問すべて正解です。どのランクにも届きます。")

    page.reload()
    answered = page.locator("form.check:has(.right)")
    expect(answered).to_have_count(6)
    expect(page.get_by_label("空欄 2 / 3")).to_have_value("sum")
    expect(page.locator("#check-share--value")).to_have_value("０．２５")
    expect(page.locator(".rail .mark.done")).to_have_count(6)


def test_feedback_stands_beside_what_it_is_about(page: Page) -> None:
    page.goto(KINDS.format("ja"))
    page.locator("#check-one--halves").check()
    check_of(page, "one").locator("button.primary").click()
    said = page.locator(".answer:has(#check-one--halves) .feedback")
    expect(said).to_have_text("違います。割るのは DDP です。")
    expect(page.locator("#check-one--halves")).to_have_accessible_description(
        "違います。割るのは DDP です。"
    )
    expect(check_of(page, "one").locator(".feedback")).to_have_count(1)

    page.get_by_label("空欄 1 / 3").fill("reduce")
    check_of(page, "gaps").locator("button.primary").click()
    expect(page.get_by_label("空欄 1 / 3")).to_have_accessible_description(
        "空欄 1：違います。1 ランクにしか届きません。"
    )
    expect(page.get_by_label("空欄 2 / 3")).not_to_have_attribute("aria-invalid", "true")


def test_same_verdict_is_announced_again(page: Page) -> None:
    page.goto(KINDS.format("en"))
    page.get_by_label("Your answer").first.fill("7")
    check_of(page, "share").locator("button.primary").click()
    expect(told(page)).to_have_text("Choose a unit.")
    page.evaluate(
        """() => {
          window.heard = [];
          const region = document.getElementById("announcer");
          new MutationObserver(() => window.heard.push(region.textContent))
            .observe(region, { childList: true, characterData: true, subtree: true });
        }"""
    )
    with page.expect_response(re.compile("/checks/share$")):
        check_of(page, "share").locator("button.primary").click()
    page.wait_for_function("window.heard.includes('Choose a unit.')")
    assert page.evaluate("window.heard[0].trim()") == ""


def test_lines_move_by_buttons_and_say_where_they_are(page: Page) -> None:
    page.goto(KINDS.format("en"))
    before = codes(page)
    assert places(page) == [""] * 5
    third = check_of(page, "sorted").locator(".line").nth(2)
    up, down = third.get_attribute("id") + "--up", third.get_attribute("id") + "--down"  # type: ignore[operator]
    last = check_of(page, "sorted").locator(".line").nth(4).get_attribute("id")

    page.locator(f"#{up}").focus()
    page.keyboard.press("Enter")
    assert (codes(page)[0], places(page)) == (before[2], ["1", "", "", "", ""])
    assert focused(page) == up
    expect(told(page)).to_have_text(f"Place 1 of 1: {before[2]}")

    page.locator(f"#{last}--up").click()
    assert codes(page)[:2] == [before[2], before[4]]
    page.locator(f"#{last}--up").click()
    assert codes(page)[:2] == [before[4], before[2]]
    page.locator(f"#{last}--up").click()  # it cannot go any higher
    assert places(page) == ["1", "2", "", "", ""]
    expect(told(page)).to_have_text(f"Place 1 of 2: {before[4]}")

    page.locator(f"#{down}").click()
    expect(told(page)).to_have_text(f"Not used: {before[2]}")
    assert focused(page) == down
    page.locator(f"#{last}--down").click()
    page.locator(f"#{last}--down").click()
    assert (codes(page), places(page)) == (before, [""] * 5)


def test_arrows_and_menus_send_one_answer(page: Page) -> None:
    page.goto(KINDS.format("en"))
    for line in ("clear", "forward", "backward", "update"):
        page.locator(f"#check-sorted--{line}--place").select_option("5")
        page.locator(f"#check-sorted--{line}--up").click()
        page.locator(f"#check-sorted--{line}--down").click()
    program = codes(page)
    shown = places(page)
    send(page, "sorted")
    assert (codes(page), places(page)) == (program, shown)
    page.reload()
    assert (codes(page), places(page)) == (program, shown)


def test_every_kind_works_without_javascript(browser: Browser, server: Server) -> None:
    context = browser.new_context(base_url=server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(KINDS.format("en"))
    expect(page.locator(".movers").first).to_be_hidden()
    for check_id, fields in RIGHT.items():
        for name, text in fields.items():
            field = check_of(page, check_id).locator(f"[name='item-{name}']")
            if field.first.get_attribute("type") in ("radio", "checkbox"):
                check_of(page, check_id).locator(f"[name='item-{name}'][value='{text}']").check()
            elif field.first.evaluate("e => e.tagName") == "SELECT":
                field.select_option(text)
            elif field.first.get_attribute("type") != "hidden":
                field.fill(text)
        check_of(page, check_id).locator("button.primary").click()
        expect(page).to_have_url(re.compile(f"#check-{check_id}$"))
        expect(check_of(page, check_id).locator(".feedback.right").last).to_be_visible()
        expect(check_of(page, check_id).locator(".feedback:not(.right)")).to_have_count(0)
    context.close()


@pytest.mark.parametrize("language", ["ja", "en"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1360])
@pytest.mark.parametrize("answers", [{}, RIGHT, WRONG], ids=["open", "right", "wrong"])
def test_checks_are_accessible_and_do_not_overflow(
    browser: Browser,
    server: Server,
    language: str,
    scheme: str,
    width: int,
    answers: dict[str, dict[str, str]],
) -> None:
    context = browser.new_context(
        base_url=server.url,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 844},
    )
    page = context.new_page()
    page.goto(KINDS.format(language))
    for check_id, fields in answers.items():
        form: dict[str, str | float | bool] = {f"item-{n}": text for n, text in fields.items()}
        url = f"{KINDS.format(language)}/checks/{check_id}"
        assert context.request.post(url, form=form).ok
    page.goto(KINDS.format(language))
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert not page.evaluate(OVERFLOWS)
    assert page.evaluate(TOO_SMALL) == 0
    context.close()
