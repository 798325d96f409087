"""A learner opens the lesson, presses Run, and watches four real ranks: in both languages."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import LESSON, Faults, Server

pytestmark = pytest.mark.browser

SYNC, PLAIN = "sync-batch-norm", "plain-batch-norm"
MATCH = "#check-what-is-it-for"
NUM_CHANNELS = 3
DRAWN = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3]) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
  }
  return seen.size;
}"""
OVERFLOWS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def open_lesson(page: Page, language: str) -> None:
    page.goto(f"/{language}/lessons/{LESSON}")
    expect(page.locator("html")).to_have_attribute("lang", language)


def write(page: Page, cell: str, program: str) -> None:
    """Replace the whole program in the real editor."""
    editor = page.locator(f"#cell-{cell} .cm-content")
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(program)


def press_run(page: Page, cell: str) -> None:
    page.locator(f"#go-{cell}").click()


def wait_for_end(page: Page, cell: str) -> None:
    expect(page.locator(f"#run-{cell} .state-ended")).to_be_visible(timeout=40_000)


@pytest.mark.parametrize("language", ["ja", "en"])
def test_four_ranks_run_and_their_statistics_agree(page: Page, language: str) -> None:
    open_lesson(page, language)
    press_run(page, SYNC)
    wait_for_end(page, SYNC)
    for rank in range(4):
        expect(page.locator(f"#run-{SYNC}-log-{rank}")).to_contain_text(f"rank {rank}")
    # One all_gather of 2C + 1 values in forward, one all_reduce of 2C in backward, on four ranks.
    rows = page.locator(f"#run-{SYNC}-calls tbody tr").all_inner_texts()
    cells = [row.split("\t") for row in rows]
    assert [(c[0], c[5], c[6], c[3]) for c in cells] == [
        ("all_gather", "4", "1", str(2 * NUM_CHANNELS + 1)),
        ("all_reduce", "4", "1", str(2 * NUM_CHANNELS)),
    ]
    forward, backward = {"ja": ("順伝播", "逆伝播"), "en": ("forward", "backward")}[language]
    assert [c[1] for c in cells] == [forward, backward]
    figure = page.locator(f"#run-{SYNC}-statistics figure").first
    expect(figure).to_have_class(re.compile("agree"))
    assert figure.locator("circle.dot").count() == 4 * NUM_CHANNELS
    # Equal statistics stand on one vertical line per channel, the global batch's.
    for channel in range(NUM_CHANNELS):
        dots = figure.locator("circle.dot").all()[channel * 4 : channel * 4 + 4]
        assert len({dot.get_attribute("cx") for dot in dots}) == 1
    canvas = page.locator(f"#run-{SYNC} collective-timeline canvas[tabindex]")
    assert canvas.evaluate(DRAWN) > 3


def test_plain_batch_norm_scatters(page: Page) -> None:
    open_lesson(page, "en")
    press_run(page, PLAIN)
    wait_for_end(page, PLAIN)
    figure = page.locator(f"#run-{PLAIN}-statistics figure").first
    expect(figure).not_to_have_class(re.compile("agree"))
    expect(figure).to_contain_text("4 different means")
    dots = figure.locator("circle.dot").all()[:4]
    assert len({dot.get_attribute("cx") for dot in dots}) == 4


def test_adaptation_is_said_on_the_page(page: Page) -> None:
    open_lesson(page, "ja")
    press_run(page, SYNC)
    wait_for_end(page, SYNC)
    expect(page.locator(f"#run-{SYNC}-findings")).to_contain_text("CPU")


def test_syntax_error_marks_its_line_in_the_editor(page: Page) -> None:
    open_lesson(page, "ja")
    write(page, PLAIN, 'print("一")\nx = "日本語" +\nprint("三")\n')
    press_run(page, PLAIN)
    wait_for_end(page, PLAIN)
    mark = page.locator(f"#cell-{PLAIN} .cm-lintRange-error, #cell-{PLAIN} .cm-lintPoint-error")
    expect(mark).not_to_have_count(0)
    line = mark.first.evaluate("e => e.closest('.cm-line').textContent")
    assert line == 'x = "日本語" +'
    expect(page.locator(f"#run-{PLAIN}-findings")).to_contain_text("2")


def test_exception_in_one_rank_shows_that_ranks_source_line(page: Page) -> None:
    open_lesson(page, "en")
    program = (
        "import os\nimport torch.distributed as dist\n"
        'dist.init_process_group("gloo")\n'
        "if dist.get_rank() == 2:\n"
        '    missing = {"あ": 1}["い"]\n'
        "dist.barrier()\n"
    )
    write(page, PLAIN, program)
    press_run(page, PLAIN)
    wait_for_end(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-log-2")).to_contain_text('missing = {"あ": 1}["い"]')
    expect(page.locator(f"#run-{PLAIN}-findings")).to_contain_text("Rank 2 raised KeyError")


def test_stop_ends_an_endless_program(page: Page) -> None:
    open_lesson(page, "en")
    write(page, PLAIN, 'print("going", flush=True)\nwhile True:\n    pass\n')
    press_run(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-log-0")).to_contain_text("going", timeout=20_000)
    page.locator(f"#stop-{PLAIN}").click()
    wait_for_end(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-state")).to_contain_text("Stopped")


def test_the_newest_of_two_quick_runs_is_the_one_shown(page: Page) -> None:
    open_lesson(page, "en")
    write(page, PLAIN, 'import time\ntime.sleep(1.5)\nprint("to the end")\n')
    answers: list[str] = []
    page.on("response", lambda r: answers.append(r.url) if r.url.endswith("/runs") else None)
    page.locator(f"#go-{PLAIN}").dblclick()
    expect(page.locator(f"#cell-{PLAIN} .pane")).to_have_attribute("aria-busy", "true")
    expect(page.locator(f"#cell-{PLAIN} .pane")).to_have_attribute("aria-busy", "false")
    wait_for_end(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-state")).to_contain_text("Finished")
    for rank in range(4):
        expect(page.locator(f"#run-{PLAIN}-log-{rank}")).to_have_text("to the end")
    assert len(answers) == 2


def test_too_much_output_is_cut_with_a_notice(page: Page) -> None:
    open_lesson(page, "en")
    write(page, PLAIN, 'print("first")\nfor _ in range(10_000): print("x" * 1023)\n')
    press_run(page, PLAIN)
    wait_for_end(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-state")).to_contain_text("too much output")
    expect(page.locator(f"#run-{PLAIN}-findings")).to_contain_text("8 MiB")
    expect(page.locator(f"#run-{PLAIN}-log-0")).to_contain_text("x" * 100)


def test_keyboard_runs_and_leaves_the_editor(page: Page) -> None:
    open_lesson(page, "en")
    write(page, PLAIN, 'print("by keyboard")\n')
    page.keyboard.press("Control+Enter")
    wait_for_end(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-log-0")).to_contain_text("by keyboard")
    page.locator(f"#cell-{PLAIN} .cm-content").click()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    inside = page.evaluate("document.activeElement.closest('.cm-editor') !== null")
    assert not inside


def test_japanese_composition_ends_whole_in_the_program(page: Page) -> None:
    open_lesson(page, "ja")
    write(page, PLAIN, 'print("")\n')
    page.keyboard.press("Control+Home")
    for _ in range(len('print("')):
        page.keyboard.press("ArrowRight")
    devtools = page.context.new_cdp_session(page)
    for piece in ("に", "にほ", "にほん", "日本"):
        position = {"selectionStart": len(piece), "selectionEnd": len(piece)}
        devtools.send("Input.imeSetComposition", {"text": piece, **position})
    devtools.send("Input.insertText", {"text": "日本"})
    expect(page.locator(f"#code-{PLAIN}")).to_have_value('print("日本")\n')
    page.keyboard.press("Control+Enter")
    wait_for_end(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-log-0")).to_contain_text("日本")


def test_draft_result_and_place_survive_a_restart_without_a_run(
    page: Page, server: Server, faults: Faults
) -> None:
    open_lesson(page, "en")
    write(page, PLAIN, 'print("kept for later")\n')
    press_run(page, PLAIN)
    wait_for_end(page, PLAIN)
    run_id = page.locator(f"#run-{PLAIN}").get_attribute("data-run-id")
    page.locator("#zero-stages").scroll_into_view_if_needed()
    with page.expect_response(re.compile("/place$")):
        page.locator("#pick-the-right-tool").evaluate("e => e.scrollIntoView()")
    server.stop()
    server.start()
    page.goto(f"/en/lessons/{LESSON}")
    expect(page.locator(f"#code-{PLAIN}")).to_have_value('print("kept for later")\n')
    expect(page.locator(f"#run-{PLAIN}-log-0")).to_contain_text("kept for later")
    assert page.locator(f"#run-{PLAIN}").get_attribute("data-run-id") == run_id
    expect(page.locator("#pick-the-right-tool")).to_be_in_viewport()
    faults.seen.clear()  # the browser logs what it asked of the stopped server


def test_reset_brings_the_lessons_program_back(page: Page) -> None:
    open_lesson(page, "en")
    write(page, PLAIN, "print(1)\n")
    page.locator(f"#reset-{PLAIN}").click()
    asked = page.locator(f"#cell-{PLAIN} dialog")
    asked.locator("button[value=keep]").click()
    expect(asked).to_be_hidden()
    expect(page.locator(f"#code-{PLAIN}")).to_have_value("print(1)\n")
    page.locator(f"#reset-{PLAIN}").click()
    asked.locator("button[value=reset]").click()
    expect(page.locator(f"#cell-{PLAIN} .cm-content")).to_contain_text("Plain BatchNorm")


def test_result_is_marked_when_the_program_has_changed(page: Page) -> None:
    open_lesson(page, "en")
    press_run(page, SYNC)
    wait_for_end(page, SYNC)
    expect(page.locator(f"#run-{SYNC} .stale")).to_be_hidden()
    page.locator(f"#cell-{SYNC} .cm-content").click()
    page.keyboard.type("# changed")
    expect(page.locator(f"#run-{SYNC} .stale")).to_be_visible()


def test_quick_check_gives_feedback_per_choice(page: Page) -> None:
    open_lesson(page, "ja")
    check = page.locator(MATCH)
    for fieldset in check.locator("fieldset").all():
        fieldset.locator("input").first.check()
    check.locator("button.primary").click()
    expect(check.locator(".feedback")).to_have_count(check.locator("fieldset").count())
    expect(check.locator(".verdict-line")).to_be_visible()
    page.reload()
    expect(check.locator(".feedback").first).to_be_visible()


def test_lost_connection_during_a_run_is_said_and_the_stream_resumes(
    page: Page, faults: Faults
) -> None:
    open_lesson(page, "en")
    program = "import time\nfor i in range(60):\n    print('line', i, flush=True)\n"
    write(page, PLAIN, program + "    time.sleep(0.1)\n")
    press_run(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-log-0")).to_contain_text("line 3", timeout=20_000)
    page.context.set_offline(True)
    page.context.set_offline(False)
    wait_for_end(page, PLAIN)
    text = page.locator(f"#run-{PLAIN}-log-0").inner_text()
    assert [int(n) for n in re.findall(r"line (\d+)", text)] == list(range(60))
    faults.seen.clear()  # the browser logs the requests that the outage broke


def test_two_learners_at_once_see_only_their_own_runs(browser: Browser, server: Server) -> None:
    pages = []
    for name in ("first", "second"):
        page = browser.new_context(base_url=server.url).new_page()
        open_lesson(page, "en")
        write(page, PLAIN, f'print("of the {name} learner")\n')
        pages.append((name, page))
    for _, page in pages:
        press_run(page, PLAIN)
    for name, page in pages:
        wait_for_end(page, PLAIN)
        expect(page.locator(f"#run-{PLAIN}-log-0")).to_contain_text(f"of the {name} learner")
    run_id = pages[0][1].locator(f"#run-{PLAIN}").get_attribute("data-run-id")
    response = pages[1][1].goto(f"/en/runs/{run_id}")
    assert response is not None
    assert response.status == 404
    for _, page in pages:
        page.context.close()


@pytest.mark.parametrize("language", ["ja", "en"])
def test_whole_lesson_reads_and_runs_without_javascript(
    browser: Browser, server: Server, language: str
) -> None:
    context = browser.new_context(base_url=server.url, java_script_enabled=False)
    page = context.new_page()
    open_lesson(page, language)
    assert page.locator("main section h2").count() >= 13
    page.locator(f"#code-{PLAIN}").fill('print("no script")\n')
    press_run(page, PLAIN)
    expect(page.locator(f"#run-{PLAIN}-log-0")).to_contain_text("no script", timeout=20_000)
    context.close()


@pytest.mark.parametrize("language", ["ja", "en"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1360])
def test_page_is_accessible_and_does_not_overflow(
    browser: Browser, server: Server, language: str, scheme: str, width: int
) -> None:
    context = browser.new_context(
        base_url=server.url,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 844},
    )
    page = context.new_page()
    open_lesson(page, language)
    press_run(page, SYNC)
    wait_for_end(page, SYNC)
    page.locator(MATCH).locator("button.primary").scroll_into_view_if_needed()
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert not page.evaluate(OVERFLOWS)
    context.close()


@pytest.mark.parametrize("path", ["/{}/", "/{}/courses/distributed-deep-learning", "/{}/nowhere"])
@pytest.mark.parametrize("language", ["ja", "en"])
def test_other_pages_are_accessible(page: Page, faults: Faults, path: str, language: str) -> None:
    page.goto(path.format(language))
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert not page.evaluate(OVERFLOWS)
    faults.seen.clear()  # the browser logs the 404 that was asked for
