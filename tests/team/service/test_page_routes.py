"""The page's routes over HTTP: what they let through, and what comes with the files."""

import asyncio
import re
import time

import httpx
import pytest

import contextgap as cg
from contextgap.team.campaign.database import Database
from contextgap.team.service import Settings, create_app
from contextgap.team.service.access import create_token
from contextgap.team.service.page import ALLOWED, assets

from .conftest import serving


def ask(database, *requests, **settings):
    """Answers to requests, each a method, a path, and maybe headers and a body."""

    async def send():
        app = create_app(database, Settings(**{"tokens": "none"} | settings))
        transport = httpx.ASGITransport(app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                return [
                    await http.request(method, path, headers=headers, json=body)
                    for method, path, headers, body in requests
                ]
        finally:
            app.state.service.close()

    return asyncio.run(send())


def got(database, *paths, **settings):
    return ask(database, *(("GET", path, {}, None) for path in paths), **settings)


def test_files_come_with_a_strict_policy_and_without_a_token(local):
    names = ["/", *(f"/page/assets/{name}" for name in assets())]
    for answer in got(local.database, *names, tokens="required"):
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == ALLOWED
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    kinds = {name.rpartition(".")[2]: kind for name, (_, kind) in assets().items()}
    assert kinds["js"] == "text/javascript; charset=utf-8"
    assert kinds["css"] == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    "name", ["../assets.py", "..%2Fassets.py", "nothing.js", "%2Fetc%2Fpasswd"]
)
def test_no_other_files_come(local, name):
    (answer,) = got(local.database, f"/page/assets/{name}")
    assert answer.status_code == 404


def test_files_name_only_files_that_are_there():
    for name, (content, _) in assets().items():
        text = content.decode()
        for wanted in re.findall(r'from "\./([^"]+)"', text):
            assert wanted in assets(), f"{name} imports {wanted}"
        for wanted in re.findall(r'"page/assets/([^"]+)"', text):
            assert wanted in assets(), f"{name} names {wanted}"


def test_files_come_from_here_and_make_no_markup_of_text():
    for name, (content, _) in assets().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, name
        for bad in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert bad not in text, name
    page = assets()["index.html"][0].decode()
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="page/assets/app.js">']
    assert "<style" not in page
    assert not re.search(r"\s(style|on\w+)=", page)


DATA = ("status", "series", "trials", "score", "columns", "events")


def test_data_need_a_token_where_tokens_are_needed(local):
    local.create().close()
    paths = [f"/page/campaigns/{local.name}/{name}" for name in DATA]
    for answer in got(local.database, "/page/campaigns", *paths, tokens="required"):
        assert answer.status_code == 401


def test_a_token_for_one_campaign_sees_that_one_alone(local):
    local.create().close()
    cg.Campaign.create(local.database, "other", 2).close()
    database = Database(local.database)
    token = create_token(database, "bench", ["read"], campaign="other")
    database.close()
    headers = {"Authorization": f"Bearer {token}"}
    listed, own, foreign = ask(
        local.database,
        ("GET", "/page/campaigns", headers, None),
        ("GET", "/page/campaigns/other/status", headers, None),
        ("GET", f"/page/campaigns/{local.name}/status", headers, None),
        tokens="required",
    )
    assert [each["name"] for each in listed.json()["campaigns"]] == ["other"]
    assert own.status_code == 200
    assert foreign.status_code == 403


def test_unknown_campaigns_are_not_found(local):
    local.create().close()
    for answer in got(local.database, *(f"/page/campaigns/none/{name}" for name in DATA)):
        assert answer.status_code == 404


def test_reasons_name_the_trials_of_the_campaign(local, contexts):
    campaign = local.create()
    for context in contexts[:12]:
        trial = campaign.ask(context)
        campaign.tell(trial, float(context[0]))
    campaign.retract(2, "broken")
    body = {"context": contexts[3].tolist()}
    (answer,) = ask(local.database, ("POST", f"/page/campaigns/{local.name}/why", {}, body))
    arguments = answer.json()["explanation"]["trials"]
    assert arguments
    for each in arguments:
        trial = campaign.trial(each["trial"])
        assert trial.reward == each["reward"]
        assert trial.context == each["context"]
    campaign.close()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("why", {"context": [0.0]}, 422),
        ("why", {"context": "here"}, 422),
        ("why", {"context": [0.0, 0.0], "against": "nobody"}, 422),
        ("why", {}, 422),
        ("why", {"context": [0.0, 0.0], "more": 1}, 422),
        ("along", {"column": "height"}, 422),
        ("along", {"column": "column 0", "at": [[0, 0], [1, 1]]}, 422),
        ("along", {"column": 0}, 422),
    ],
)
def test_wrong_bodies_are_refused_with_a_message(local, contexts, path, body, status):
    campaign = local.create()
    campaign.tell(contexts=contexts[:4], arms=["hull", "panel"] * 2, reward=[0.0, 1.0] * 2)
    campaign.close()
    (answer,) = ask(local.database, ("POST", f"/page/campaigns/{local.name}/{path}", {}, body))
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_names_with_slashes_and_marks_are_reached(local):
    name = "a/b <i>ü</i> %2F?#"
    cg.Campaign.create(local.database, name, 2).close()
    path = "a%2Fb%20%3Ci%3E%C3%BC%3C%2Fi%3E%20%252F%3F%23"
    (answer,) = got(local.database, f"/page/campaigns/{path}/status")
    assert answer.status_code == 200


def test_a_service_with_listeners_stops_soon(local, tmp_path):
    local.create().close()
    with serving(local.database, tmp_path / "log") as service:
        path = f"/page/campaigns/{local.name}/events"
        with service.http.stream("GET", path) as stream:
            lines = stream.iter_lines()
            while next(lines) != 'data: {"event": 1}':
                pass
            start = time.monotonic()
            service.process.terminate()
            assert list(lines)[-1] == ""  # it was ended, not cut off
        service.process.wait(timeout=60)
        assert time.monotonic() - start < 10  # and not the 30 s of grace
