"""The JSON API, and that what its documents promise is so."""

import json

import httpx
import pytest

from engine.events import Outcome
from engine.wire import decode
from tests.app.conftest import OpenSite
from tests.app.scripted import ScriptedExecutor, outcome, output, started

PROGRAM = {"source": "print(1)", "ranks": 2}


def messages(text: str) -> list[tuple[int, str]]:
    """(id, data) of each message of an event stream."""
    found = []
    for block in filter(None, text.strip().split("\n\n")):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            found.append((int(fields["id"]), fields["data"]))
    return found


async def test_run_can_be_started_followed_and_read(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    created = await site.client.post("/api/runs", json=PROGRAM)
    assert created.status_code == 201
    run_id = created.json()["id"]
    assert executor.programs[run_id].world_size == 2
    state = (await site.client.get(f"/api/runs/{run_id}")).json()
    assert (state["state"], state["status"]) == ("starting", None)
    executor.put(run_id, started(), output("é\n"), outcome())
    stream = await site.client.get(f"/api/runs/{run_id}/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    found = messages(stream.text)
    assert [position for position, _ in found] == [1, 2, 3]
    assert isinstance(decode(found[-1][1]), Outcome)
    state = (await site.client.get(f"/api/runs/{run_id}")).json()
    assert (state["state"], state["status"], state["num_events"]) == ("ended", "ok", 3)


async def test_stream_resumes_after_last_event_id_with_exactly_the_rest(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    run_id = (await site.client.post("/api/runs", json=PROGRAM)).json()["id"]
    executor.put(run_id, started(), *(output(f"{n}\n", seq=n) for n in range(300)), outcome())
    url = f"/api/runs/{run_id}/events"
    every = messages((await site.client.get(url)).text)
    assert len(every) == 302
    for last in (1, 150, 301):
        rest = await site.client.get(url, headers={"last-event-id": str(last)})
        assert messages(rest.text) == every[last:]
    for beyond in ("302", "99999999999999999999"):  # the outcome is always the last that comes
        again = await site.client.get(url, headers={"last-event-id": beyond})
        assert messages(again.text) == every[-1:]
    for senseless in ("-1", "x", "1.5", ""):
        again = await site.client.get(url, headers={"last-event-id": senseless})
        assert messages(again.text) == every


async def test_deleting_a_run_cancels_it_and_again_changes_nothing(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    run_id = (await site.client.post("/api/runs", json=PROGRAM)).json()["id"]
    for _ in range(2):
        assert (await site.client.delete(f"/api/runs/{run_id}")).status_code == 204
        found = messages((await site.client.get(f"/api/runs/{run_id}/events")).text)
        assert json.loads(found[-1][1])["status"] == "cancelled"


@pytest.mark.parametrize(
    "body",
    [
        {"source": "1", "ranks": 0},
        {"source": "1", "ranks": 9},
        {"source": "1", "ranks": "two"},
        {"source": "1", "ranks": 1, "device": "tpu"},
        {"source": "1", "ranks": 1, "more": 1},
        {"source": "\0", "ranks": 1},
        {"source": "#" * (256 * 1024 + 1), "ranks": 1},
        {"ranks": 1},
        [],
    ],
)
async def test_program_that_cannot_run_is_422_with_a_problem(
    site: OpenSite, executor: ScriptedExecutor, body: object
) -> None:
    answer = await site.client.post("/api/runs", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"].startswith("body")
    assert executor.refs == []


@pytest.mark.parametrize("raw", [b"{", b'{"source": "\\ud800", "ranks": 1}', b"\xff"])
async def test_body_that_is_no_valid_json_is_refused(site: OpenSite, raw: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = await site.client.post("/api/runs", content=raw, headers=headers)
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(("method", "tail"), [("GET", ""), ("GET", "/events"), ("DELETE", "")])
async def test_unknown_run_is_404_with_a_problem(site: OpenSite, method: str, tail: str) -> None:
    answer = await site.client.request(method, f"/api/runs/none{tail}")
    assert answer.status_code == 404
    assert answer.json() == {
        "type": "about:blank",
        "title": "Not found",
        "status": 404,
        "detail": "There is no such run.",
    }


async def test_caller_without_a_cookie_is_limited_too(site: OpenSite) -> None:
    answers: list[httpx.Response] = []
    for _ in range(4):
        async with site.browser() as caller:
            answers.append(await caller.post("/api/runs", json=PROGRAM))
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429]


async def test_schema_documents_the_api_and_nothing_else(site: OpenSite) -> None:
    schema = (await site.client.get("/api/openapi.json")).json()
    assert {(path, method) for path, found in schema["paths"].items() for method in found} == {
        ("/api/runs", "post"),
        ("/api/runs/{run_id}", "get"),
        ("/api/runs/{run_id}", "delete"),
        ("/api/runs/{run_id}/events", "get"),
    }
    for found in schema["paths"].values():
        for operation in found.values():
            assert operation["summary"]
            assert operation["description"]
    text = json.dumps(schema)
    references = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert references <= set(schema["components"]["schemas"])


async def test_documented_example_is_accepted(site: OpenSite, executor: ScriptedExecutor) -> None:
    schema = (await site.client.get("/api/openapi.json")).json()
    fields = schema["components"]["schemas"]["RunRequest"]["properties"]
    body = {"source": fields["source"]["examples"][0], "ranks": fields["ranks"]["examples"][0]}
    assert (await site.client.post("/api/runs", json=body)).status_code == 201
    assert executor.refs != []


async def test_docs_page_lists_every_operation_and_loads_nothing_from_elsewhere(
    site: OpenSite,
) -> None:
    page = await site.client.get("/api/docs")
    schema = (await site.client.get("/api/openapi.json")).json()
    for path, found in schema["paths"].items():
        for method in found:
            assert f"<code>{method.upper()} {path}</code>" in page.text
    assert 'src="http' not in page.text
    assert 'href="http' not in page.text
