"""What the service answers, beside what the campaign itself says."""

import asyncio
import concurrent.futures
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

import contextgap as cg
from contextgap.team.campaign import NotFoundError
from contextgap.team.client import Campaign
from contextgap.team.service import Settings, create_app
from contextgap.team.service.hosting import Hosting
from tests.team.campaign.oracle import check, to_bytes
from tests.team.service.test_watching import same

from .conftest import ARMS, KERNEL, in_process, serving

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def told(service):
    """A campaign with some rewards and a frozen policy."""
    campaign = service.create("told")
    for number in range(12):
        context = [number / 12, (number * 5 % 12) / 12]
        campaign.tell(contexts=context, arms=ARMS[number % 3], reward=context[number % 2])
    campaign.freeze("first/flight?")
    return campaign


def test_policies_are_downloaded_as_they_were_frozen(service, told):
    policy = told.policy("first/flight?")
    path = f"/v1/campaigns/told/policies/{quote('first/flight?', safe='')}"
    file = service.http.get(f"{path}/cgap")
    assert file.content == to_bytes(policy)
    assert "filename*=UTF-8''first%2Fflight%3F.cgap" in file.headers["content-disposition"]
    assert service.http.get(f"{path}/rebuilt").content == file.content
    assert service.http.get(f"{path}/card").json()["card"] == json.loads(
        json.dumps(policy.card.describe())
    )
    with zipfile.ZipFile(io.BytesIO(service.http.get(f"{path}/c?float32=true").content)) as archive:
        names = archive.namelist()
        assert any(name.endswith(".c") for name in names)
        assert b"float" in b"".join(map(archive.read, names))


def test_the_onnx_graph_decides_the_same(service, told, tmp_path, rng):
    onnxruntime = pytest.importorskip("onnxruntime")
    policy = told.policy("first/flight?")
    path = f"/v1/campaigns/told/policies/{quote('first/flight?', safe='')}"
    (tmp_path / "downloaded.onnx").write_bytes(service.http.get(f"{path}/onnx").content)
    policy.to_onnx(tmp_path / "own.onnx")
    contexts = rng.uniform(0, 1, size=(50, 2))
    answers = []
    for name in ("downloaded.onnx", "own.onnx"):
        session = onnxruntime.InferenceSession(tmp_path / name)
        answers.append(session.run(None, {session.get_inputs()[0].name: contexts})[0].tolist())
    assert answers[0] == answers[1]
    body = {"contexts": contexts.tolist()}
    found = service.http.post(f"{path}/recommend", json=body).json()["arms"]
    assert found == policy.recommend(contexts).tolist()
    one = service.http.post(f"{path}/recommend", json={"contexts": contexts[0].tolist()}).json()
    assert one == {"arm": found[0]}
    few = {"contexts": contexts[:3].tolist(), "arms": ["hull", "boom"]}
    assert service.http.post(f"{path}/recommend", json=few).json()["arms"] == list(
        policy.recommend(contexts[:3], arms=["hull", "boom"])
    )


def test_frozen_policies_are_served_without_the_database(tmp_path):
    file = tmp_path / "bench.db"
    with cg.Campaign.create(file, "sensors", ARMS, seed=0) as campaign:
        campaign.tell(contexts=[[0.0, 0.0], [1.0, 1.0]], arms=["hull", "boom"], reward=[1.0, 0.0])
        campaign.freeze("p")

    async def send():
        app = create_app(file, Settings(tokens="none"))
        transport = httpx.ASGITransport(app)
        path, body = "/v1/campaigns/sensors/policies/p/recommend", {"contexts": [0.0, 0.0]}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            before = await http.post(path, json=body)
            for each in tmp_path.glob("bench.db*"):
                each.unlink()
            return [before.json(), (await http.post(path, json=body)).json()]

    assert asyncio.run(send()) == [{"arm": "hull"}] * 2


def test_a_database_that_is_away_is_said_so(caplog):
    url = "postgresql://nobody@127.0.0.1:1/none"
    paths = ("/livez", "/readyz", "/v1/campaigns", "/v1/campaigns/sensors/arms")
    alive, *answers = in_process(url, *[("GET", path, None) for path in paths])
    assert alive.status_code == 200
    for answer in answers:
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert "the database cannot be used now" in answer.json()["detail"]
    assert not caplog.records


def test_errors_are_answered_alike_within_the_framework_and_outside(tmp_path, monkeypatch, caplog):
    async def fail(*_, **__):
        raise RuntimeError("secret")

    monkeypatch.setattr(Hosting, "policy", fail)
    policy = "/v1/campaigns/sensors/policies/p"
    requests = [("GET", f"{policy}/card", None)]
    requests += [("POST", f"{policy}/recommend", body) for body in ({"contexts": [0.0]}, {"a": 1})]
    inside, outside, invalid = in_process(tmp_path / "x.db", *requests)
    for answer in (inside, outside):
        assert answer.status_code == 500
        assert answer.json()["detail"] == "the service failed; its log says how"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert inside.headers == outside.headers
    assert "a: is not a field" in invalid.json()["detail"]
    assert [record.getMessage() for record in caplog.records] == ["failed"] * 2


def test_keys_in_the_header_and_in_the_body_are_the_same(service):
    service.create("keys")
    ask = {"contexts": [0.0, 0.0]}
    path = "/v1/campaigns/keys/ask"
    first = service.http.post(path, json={**ask, "key": "k"}).json()
    again = service.http.post(path, json=ask, headers={"Idempotency-Key": "k"})
    assert again.json() == first
    other = service.http.post(path, json={"contexts": [1.0, 0.0], "key": "k"})
    assert other.status_code == 409


def test_natural_json(service):
    """Contexts as people write them."""
    made = {"name": "natural", "arms": ["a", "b"], "lease": "ever"}
    made["settings"] = {"columns": {"hour": {"type": "Cyclic", "period": 24}, "mode": "category"}}
    made["settings"]["features"] = {"a": [1.0, "x"], "b": [2.0, "y"]}
    reference = [{"hour": 3, "mode": "eco"}, {"hour": 7.5, "mode": "sport"}]
    made["goal"] = {"tolerance": 0.1, "reference": reference}
    assert service.http.post("/v1/campaigns", json=made).status_code == 201
    path = "/v1/campaigns/natural"
    trial = service.http.post(f"{path}/ask", json={"contexts": reference[0]}).json()["trial"]
    assert trial["context"] == reference[0]
    assert trial["until"] is None
    both = service.http.post(f"{path}/ask", json={"contexts": reference}).json()["trials"]
    assert [each["context"] for each in both] == reference
    about = service.http.get(path).json()
    assert about["arms"] == ["a", "b"]
    assert about["goal"]["tolerance"] == 0.1


@pytest.mark.parametrize("text", [r"\ud800", r"\u0000"])
def test_text_that_cannot_be_shown_again_is_refused(service, text):
    campaign = service.create(f"text {text[2:]}", kernel=None)
    path = f"/v1/campaigns/{quote(campaign.name)}"
    told = {"contexts": {"mode": "eco"}, "arms": "hull", "reward": 1.0}
    assert service.http.post(f"{path}/tell", json=told).status_code == 200
    before = campaign.status().log
    for call, body in {
        f"{path}/ask": '{"contexts": {"mode": "TEXT"}}',
        f"{path}/tell": '{"contexts": [{"mode": "TEXT"}], "arms": ["hull"], "reward": [1.0]}',
        f"{path}/arms/add": '{"arm": "TEXT"}',
        f"{path}/trials/1/retract": '{"why": "TEXT"}',
        "/v1/campaigns": '{"name": "never", "arms": ["TEXT", "b"]}',
    }.items():
        headers = {"Content-Type": "application/json"}
        answer = service.http.post(call, content=body.replace("TEXT", text), headers=headers)
        assert answer.status_code == 422, (call, answer.text)
    assert campaign.status().log == before
    assert "never" not in cg.Campaign.names(service.database)
    assert campaign.trials()["mode"].tolist() == ["eco"]


def test_an_unknown_field_lists_those_there_are(service):
    service.create("fields")
    said = service.http.post("/v1/campaigns/fields/ask", json={"context": [0, 0]}).json()["detail"]
    assert said.startswith("context: is not a field of this request; its fields are key, contexts")
    goal = {"tolerance": 0.1, "reference": [[0, 0]], "shares": 1}
    body = {"name": "n", "arms": 2, "goal": goal}
    said = service.http.post("/v1/campaigns", json=body).json()["detail"]
    assert said.endswith("its fields are tolerance, share, reference")


def test_a_list_of_dates_that_may_be_one_context_or_several_is_refused(service):
    columns = {"date": "date"}
    service.create("days", kernel=None, columns=columns)
    days = [{"date": "2024-05-01"}, {"date": "2024-05-02"}]
    for listed in (days, days[:1]):
        answer = service.http.post("/v1/campaigns/days/ask", json={"contexts": listed})
        assert answer.status_code == 422
        assert "one context of dates and times, or several contexts" in answer.json()["detail"]
    table = {"table": {"columns": ["date"], "rows": [["2024-05-01"], ["2024-05-02"]]}}
    by_name = [{"date": {"date": day["date"]}} for day in days]
    for contexts in (table, by_name):
        found = service.http.post("/v1/campaigns/days/ask", json={"contexts": contexts}).json()
        assert len(found["trials"]) == 2
    with Campaign.open(service.url, "days") as client:
        asked = client.ask([{"date": date(2024, 5, 1)}, {"date": date(2024, 5, 2)}])
    assert [trial.context["date"] for trial in asked] == [date(2024, 5, 1), date(2024, 5, 2)]


def test_calls_that_wait_are_committed_together_and_each_fails_alone(service):
    """Many at once, some of them wrong: the log is as if they had come one by one."""
    campaign = service.create("crowd", kernel=cg.Gaussian(0.5))
    clients = Campaign.open(service.url, "crowd")

    def work(number):
        trial = clients.ask([number / 40, 0.5], key=f"ask {number}")
        if number % 4 == 0:
            with pytest.raises(ValueError, match="'wing'"):
                clients.tell(contexts=[0.0, 0.0], arms="wing", reward=1.0)
            with pytest.raises(NotFoundError):
                clients.cancel(1000)
        return clients.tell(trial, number / 40)

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        done = list(pool.map(work, range(40)))
    assert sorted(trial.id for trial in done) == list(range(1, 41))
    assert {trial.id: trial.reward for trial in campaign.find_trials("told")} == {
        trial.id: trial.reward for trial in done
    }
    check(campaign)


def test_metrics_count_by_route(service, told):
    for _ in range(3):
        service.http.get("/v1/campaigns/told/arms")
    service.http.get("/v1/campaigns/none/arms")
    text = service.http.get("/metrics").text
    route = 'route="/v1/campaigns/{campaign}/arms"'
    lines = [line for line in text.splitlines() if line.startswith("contextgap_requests_total")]
    counted = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    name = f'contextgap_requests_total{{method="GET",{route},status="%s"}}'
    assert counted[name % 200] >= 3
    assert counted[name % 404] >= 1
    assert "told" not in text
    assert "contextgap_request_seconds_bucket" in text
    assert "process_resident_memory_bytes" in text


def test_logs_are_one_line_of_json_per_request(tmp_path):
    with serving(tmp_path / "x.db", tmp_path / "log") as running:
        headers = {"Idempotency-Key": "k 1"}
        running.http.post("/v1/campaigns", json={"name": "a b", "arms": 2}, headers=headers)
        running.http.get("/v1/campaigns/a%20b/arms")
        running.http.get("/nowhere")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    asked = [line for line in lines if line["message"] == "request"]
    assert [(each["method"], each["path"], each["status"]) for each in asked] == [
        ("POST", "/v1/campaigns", 201),
        ("GET", "/v1/campaigns/a b/arms", 200),
        ("GET", "/nowhere", 404),
    ]
    assert asked[0]["key"] == "k 1"
    assert asked[0]["ms"] > 0
    assert lines[-1]["message"] == "stopped"


def test_what_clients_write_stays_in_its_line_and_field(tmp_path):
    with serving(tmp_path / "x.db", tmp_path / "log", "--log", "text") as running:
        running.http.get("/a%0A2024-01-01T00:00:00 info request%1B[2J")
        running.http.get("/b status=200", headers={"Idempotency-Key": "k token=admin"})
        running.http.get("/livez")
    text = (tmp_path / "log").read_text()
    assert "\x1b" not in text
    lines = [line for line in text.splitlines() if " request " in line]
    assert len(lines) == 3
    assert "info request method=GET path=/livez status=200" in lines[2]
    assert r'path="/a\n2024-01-01T00:00:00 info request\u001b[2J" status=404' in lines[0]
    assert 'path="/b status=200" status=404' in lines[1]
    assert 'key="k token=admin"' in lines[1]


def test_answers_cannot_be_framed_kept_or_taken_for_something_else(service):
    service.create("headers")
    ask = service.http.post("/v1/campaigns/headers/ask", json={"contexts": [0.0, 0.0]})
    refused = service.http.post("/v1/campaigns/headers/ask", json={})
    assert (ask.status_code, refused.status_code) == (200, 422)
    for answer in (ask, refused, service.http.get("/docs"), service.http.get("/livez")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    for page in ("/docs", "/"):
        allowed = service.http.get(page).headers["content-security-policy"]
        assert "frame-ancestors 'none'" in allowed


def test_nothing_is_redirected(service):
    for path in ("/v1/campaigns/", "/docs/", "/page/campaigns/"):
        answer = service.http.get(path, headers={"Host": "localhost:1"})
        assert answer.status_code == 404
        assert "location" not in answer.headers


def test_invented_methods_are_counted_as_one(service):
    for number in range(20):
        service.http.request(f"INVENTED{number}", "/livez")
    text = service.http.get("/metrics").text
    assert "INVENTED" not in text
    assert 'method="other"' in text


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_numbers_and_text_that_no_database_has_are_refused(request, tmp_path, kind):
    """Never by a 500, and each with a reason."""
    url = tmp_path / "x.db" if kind == "sqlite" else request.getfixturevalue("server")
    cg.Campaign.create(url, "bounds", ["a", "b"], seed=0).close()
    here, page, far = "/v1/campaigns/bounds", "/page/campaigns/bounds/trials", "9" * 30
    asked = {
        f"{here}/trials/9000000000": (404, 422),
        f"{here}/trials/{far}": (422,),
        f"{here}/trials?after={far}": (422,),
        f"{here}/trials?after=9000000000": (200, 422),
        f"{page}?before={far}": (422,),
        f"{page}?before=-{far}": (422,),
        f"{page}?text=%00": (422,),
        f"{page}?arm=%00": (422,),
        f"{here}/policies/%00/cgap": (404, 422),
        "/v1/campaigns/%00/arms": (404, 422),
    }
    told = [
        {"trial": trial, "reward": [1.0, 1.0] if isinstance(trial, list) else 1.0}
        for trial in (3_000_000_000, int(far), [1, 3_000_000_000])
    ]
    table = {"table": {"columns": ["x"], "rows": [[0.0]], "levels": [{"x": 1}]}}
    answers = in_process(
        url,
        *[("GET", path, None) for path in asked],
        *[("POST", f"{here}/tell", body) for body in told],
        ("POST", f"{here}/ask", {"contexts": table}),
    )
    allowed = [*asked.values(), *len(told) * [(404, 422)], (422,)]
    for answer, wanted in zip(answers, allowed, strict=True):
        assert answer.status_code in wanted, (answer.url, answer.text)
    assert "levels must be among its columns" in answers[-1].json()["detail"]


def test_what_takes_long_keeps_neither_others_nor_a_stop_waiting(tmp_path):
    """A policy is rebuilt, then a campaign tuned, and neither ever ends."""
    options = {"slow": ["tune", "rebuild"]}
    with serving(tmp_path / "x.db", tmp_path / "log", "--grace", "1.5", **options) as running:
        campaign = running.create()
        campaign.tell(contexts=[[0.0], [1.0]], arms=["hull", "boom"], reward=[1.0, 0.0])
        campaign.freeze("p")
        here = "/v1/campaigns/sensors"
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            rebuilt = pool.submit(running.http.get, f"{here}/policies/p/rebuilt")
            time.sleep(0.3)
            asked = running.http.post(f"{here}/ask", json={"contexts": [0.5]})
            assert asked.status_code == 200
            assert not rebuilt.done()
            tuning = pool.submit(running.http.post, f"{here}/tune", json={})
            time.sleep(0.3)
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(timeout=60) == 0
            for each in (rebuilt, tuning):
                assert each.exception() is not None or each.result().status_code == 503


def test_a_stop_finishes_what_runs(tmp_path, rng):
    """What was under way is answered, and a snapshot is left."""
    file = tmp_path / "bench.db"
    with serving(file, tmp_path / "log") as running:
        campaign = cg.Campaign.create(file, "busy", ["a", "b"], seed=0)
        contexts = rng.normal(size=(300, 4))
        campaign.tell(contexts=contexts, arms=["a", "b"] * 150, reward=rng.normal(size=300))
        running.http.get("/v1/campaigns/busy/arms")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(running.http.post, "/v1/campaigns/busy/tune", json={})
            time.sleep(0.3)
            running.process.send_signal(signal.SIGTERM)
            assert answer.result().status_code == 200
        assert running.process.wait(timeout=60) == 0
    assert campaign.status(fresh=False).tuning is not None
    check_log = [event.kind for event in _events(campaign)]
    assert check_log[-1] == "tune"


def _events(campaign):
    store = campaign._session.store
    with store.reading() as connection:
        return list(store.events(connection))


def test_a_port_that_is_taken_is_said_so(service, tmp_path):
    port = service.url.rpartition(":")[2]
    command = [sys.executable, "-m", "contextgap", "serve", "--port", port]
    done = subprocess.run(
        [*command, "--database", str(tmp_path / "x.db")],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ},
    )
    assert done.returncode == 2
    assert f"cannot listen at 127.0.0.1, port {port}" in done.stderr
    assert "Traceback" not in done.stderr


class _Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_of_routes_loads_nothing_from_elsewhere(service):
    page = service.http.get("/docs")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    links = _Links()
    links.feed(page.text)
    assert links.found == ["openapi.json"]
    document = service.http.get("/openapi.json").json()
    for path in document["paths"]:
        assert path in page.text


def test_every_route_is_documented(service):
    document = service.http.get("/openapi.json").json()
    app = create_app("unused.db")
    assert set(document["paths"]) == {route.path for route in app.routes}
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            assert route["summary"], path
            assert route["description"], path
            if path.startswith("/v1/"):
                assert "422" in route["responses"] or method == "get"
                assert {"401", "403", "503"} <= set(route["responses"])
                assert route["security"][0]["token"]
            if method == "post":
                assert "requestBody" in route


def test_parts_that_cannot_be_made_are_refused(service):
    for kernel in ({"type": "Gaussian"}, {"type": "Sum"}, {"bandwidth": 1.0}, {"type": ["x"]}):
        body = {"name": "odd", "arms": 2, "settings": {"kernel": kernel}}
        refused = service.http.post("/v1/campaigns", json=body)
        assert refused.status_code == 422, kernel
    body = {"name": "odd", "arms": 2, "settings": {"kernel": KERNEL, "ridge": -1}}
    assert "ridge must be positive" in service.http.post("/v1/campaigns", json=body).text


def test_the_documentation_lists_all_routes():
    """docs/service.md has a row for each route, as it is."""
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    rows = [
        f"| `{method} {route.path.removeprefix('/v1')}` | {route.summary} | "
        f"{route.scope_needed or 'none'} |"
        for route in create_app("unused.db").routes
        for method in sorted(route.methods)
    ]
    assert "\n".join(rows) in page


def test_a_policy_is_watched_from_when_somebody_asks(service, rng):
    campaign = service.create("watched")
    for context in rng.uniform(0, 1, size=(60, 2)):
        arm = ARMS[int(rng.integers(3))]
        campaign.tell(contexts=context.tolist(), arms=arm, reward=float(context[0]))
    campaign.freeze("p")
    path = "/v1/campaigns/watched/policies/p"
    few = rng.uniform(0, 1, size=(20, 2))
    asked = {"contexts": few.tolist()}
    before = service.http.post(f"{path}/recommend", json=asked).json()
    assert service.http.get(f"{path}/watch").json()["watch"]["rows"] == 0
    assert service.http.post(f"{path}/recommend", json=asked).json() == before
    one = {"contexts": few[0].tolist(), "arms": ARMS[:2]}
    assert service.http.post(f"{path}/recommend", json=one).json()["arm"] in ARMS[:2]
    beyond = {"contexts": (few + 3).tolist()}
    service.http.post(f"{path}/recommend", json=beyond)
    found = service.http.get(f"{path}/watch").json()
    watch = campaign.policy("p").watch()
    watch.see(few)
    watch.see(few[0], eligible=ARMS[:2])
    watch.see(few + 3)
    assert found["text"] == str(watch)
    assert same(found["watch"], watch)
    assert "outside what was seen" in found["watch"]["alarm"]["advice"]
    drawn = service.http.post(f"{path}/watch/audit", json={"contexts": few.tolist(), "k": 3}).json()
    assert len(drawn["places"]) == len(drawn["arms"]) == len(drawn["weights"]) == 3
    told = {
        "contexts": few[drawn["places"]].tolist(),
        "arms": drawn["arms"],
        "rewards": [0.5] * 3,
        "weights": drawn["weights"],
    }
    assert service.http.post(f"{path}/watch/tell", json=told).json()["watch"]["audits"] == 3
    wrong = service.http.post(f"{path}/watch/tell", json={**told, "weights": [99.0] * 3})
    assert wrong.status_code == 422
    assert "weights must be those of the audit" in wrong.json()["detail"]
    lines = service.http.get("/metrics").text.splitlines()
    assert 'contextgap_watch_rows{campaign="watched",policy="p"} 41.0' in lines
    assert 'contextgap_watch_alarm{campaign="watched",policy="p"} 1.0' in lines


def test_a_policy_of_few_rewards_cannot_be_watched(service, told):
    path = f"/v1/campaigns/told/policies/{quote('first/flight?', safe='')}"
    found = service.http.get(f"{path}/watch")
    assert found.status_code == 422
    assert "a watch compares with at least 20 different contexts" in found.json()["detail"]
