"""Who may ask for what: other sites, host names, sizes, headers, and the learner's cookie."""

import httpx
import pytest
from itsdangerous import TimestampSigner

from app.identity import COOKIE, YEAR_S
from tests.app.conftest import OpenSite, make_client
from tests.app.scripted import ScriptedExecutor

LESSON = "/en/lessons/tiny"
RUNS = f"{LESSON}/cells/hello/runs"
FORM = {"code": "print(1)", "ranks": "2"}


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://testserver"},
        {"origin": "http://evil.example"},
        {"origin": "http://testserver:8001"},
        {"origin": "null"},
        {"origin": "http://[x"},
    ],
)
async def test_other_sites_cannot_start_or_stop_runs(
    site: OpenSite, executor: ScriptedExecutor, headers: dict[str, str]
) -> None:
    page = await site.client.post(RUNS, data=FORM, headers=headers)
    assert page.status_code == 403
    assert "another site" in page.text
    api = await site.client.post("/api/runs", json={"source": "1", "ranks": 1}, headers=headers)
    assert api.status_code == 403
    assert api.json()["status"] == 403
    assert (await site.client.delete("/api/runs/x", headers=headers)).status_code == 403
    assert executor.refs == []


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"origin": "http://testserver"},
        {},
    ],
)
async def test_own_pages_and_programs_can_start_runs(
    site: OpenSite, executor: ScriptedExecutor, headers: dict[str, str]
) -> None:
    assert (await site.client.post(RUNS, data=FORM, headers=headers)).status_code == 303
    assert len(executor.refs) == 1


async def test_links_from_other_sites_open_pages(site: OpenSite) -> None:
    answer = await site.client.get(LESSON, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "testserver.evil.example", "", "127.0.0.1.nip.io"]
)
async def test_unknown_host_name_is_refused(site: OpenSite, host: str) -> None:
    answer = await site.client.get(LESSON, headers={"host": host})
    assert answer.status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000", "LOCALHOST:1"])
async def test_loopback_names_are_answered(site: OpenSite, host: str) -> None:
    answer = await site.client.get(LESSON, headers={"host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize("path", [LESSON, "/nowhere", "/api/runs/x", "/static/vendor/none.js"])
async def test_every_answer_has_the_security_headers(site: OpenSite, path: str) -> None:
    headers = (await site.client.get(path)).headers
    policy = headers["content-security-policy"]
    for part in (
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
        "require-trusted-types-for 'script'",
    ):
        assert part in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


async def test_nonce_is_new_on_every_page_and_the_one_of_its_policy(site: OpenSite) -> None:
    pages = [await site.client.get(LESSON) for _ in range(2)]
    nonces = [
        page.headers["content-security-policy"].split("'nonce-")[1].split("'")[0] for page in pages
    ]
    assert nonces[0] != nonces[1]
    for page, nonce in zip(pages, nonces, strict=True):
        assert f'nonce="{nonce}"' in page.text


async def test_request_larger_than_a_mebibyte_is_413(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    form = {"code": "#" * (1024 * 1024), "ranks": "2"}
    page = await site.client.post(RUNS, data=form)
    assert page.status_code == 413
    assert "<html" in page.text
    api = await site.client.post("/api/runs", json={"source": "#" * (1 << 20), "ranks": 1})
    assert api.status_code == 413
    assert api.headers["content-type"] == "application/problem+json"
    assert executor.refs == []


def cookie_of(answer: httpx.Response) -> str:
    return answer.headers["set-cookie"]


async def test_cookie_is_signed_and_safe_and_set_once(site: OpenSite) -> None:
    first = await site.client.get(LESSON)
    assert cookie_of(first).startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie_of(first)
    assert "SameSite=lax" in cookie_of(first)
    assert f"Max-Age={YEAR_S}" in cookie_of(first)
    assert "Secure" not in cookie_of(first)
    assert "set-cookie" not in (await site.client.get(LESSON)).headers


async def test_cookie_is_secure_over_https(site: OpenSite) -> None:
    async with make_client(site.app, {}) as client:
        answer = await client.get(f"https://testserver{LESSON}")
    assert "Secure" in cookie_of(answer)


async def test_cookie_growing_old_is_renewed_for_the_same_learner(
    site: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.client.get(LESSON)
    await site.client.post(f"{LESSON}/place", data={"section": "ask"})
    signed_at = TimestampSigner("x").get_timestamp()
    later = signed_at + 40 * 24 * 3600
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda self: later)
    answer = await site.client.get(LESSON)
    assert cookie_of(answer).startswith(f"{COOKIE}=")
    assert 'data-place="ask"' in answer.text


@pytest.mark.parametrize("value", ["", "x", "00.11.22", "{id}", "{id}.AAAA.BBBB", "\xff"])
async def test_forged_cookie_is_a_new_learner_and_no_error(site: OpenSite, value: str) -> None:
    await site.client.get(LESSON)
    await site.client.post(f"{LESSON}/place", data={"section": "ask"})
    learner_id = site.client.cookies[COOKIE].split(".")[0]
    forged = f"{COOKIE}={value.format(id=learner_id)}".encode("latin-1")
    async with make_client(site.app, {}) as client:
        answer = await client.get(LESSON, headers=[(b"cookie", forged)])
    assert answer.status_code == 200
    assert 'data-place="ask"' not in answer.text
    assert cookie_of(answer).startswith(f"{COOKIE}=")


async def test_cookie_signed_with_another_key_is_not_believed(site: OpenSite) -> None:
    await site.client.get(LESSON)
    await site.client.post(f"{LESSON}/place", data={"section": "ask"})
    learner_id = site.client.cookies[COOKIE].split(".")[0]
    other = TimestampSigner("another key", salt="academy.learner").sign(learner_id).decode()
    async with make_client(site.app, {"cookie": f"{COOKIE}={other}"}) as client:
        assert 'data-place="ask"' not in (await client.get(LESSON)).text


async def test_other_learner_gets_404_for_everything_of_a_run(
    site: OpenSite, executor: ScriptedExecutor
) -> None:
    await site.client.get(LESSON)
    await site.client.post(RUNS, data=FORM)
    run_id = executor.refs[0].run_id
    assert (await site.client.get(f"/en/runs/{run_id}")).status_code == 200
    async with site.browser() as other:
        await other.get(LESSON)
        for method, path in (
            ("GET", f"/en/runs/{run_id}"),
            ("GET", f"/en/runs/{run_id}/stream"),
            ("POST", f"/en/runs/{run_id}/cancel"),
            ("GET", f"/api/runs/{run_id}"),
            ("GET", f"/api/runs/{run_id}/events"),
            ("DELETE", f"/api/runs/{run_id}"),
        ):
            assert (await other.request(method, path)).status_code == 404, path
        assert run_id not in (await other.get(LESSON)).text
    assert not (await site.site.runs.get(run_id, learner_of(site))).has_ended


def learner_of(site: OpenSite) -> str:
    return site.client.cookies[COOKIE].split(".")[0]
