"""How much a client may send, and how long it may have to wait."""

import asyncio
import collections
import itertools
import json
import socket
import threading
import time
from contextlib import ExitStack

import httpx
import pytest
import uvicorn

import contextgap as cg
from contextgap.team.campaign.database import Database
from contextgap.team.service import Settings, access, create_app, routes
from contextgap.team.service import app as app_module
from contextgap.team.service.access import Rates, RefusedError, create_token

from .conftest import in_process, serving


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strict")
    options = ["--max-body", "2000", "--max-rows", "5", "--max-waiting", "2"]
    with serving(folder / "bench.db", folder / "log", *options) as running:
        running.create()
        yield running


def post(running, path, body):
    return running.http.post(f"/v1/campaigns/sensors/{path}", json=body)


def test_large_bodies_are_refused_whether_announced_or_not(strict):
    large = json.dumps({"contexts": [0.0] * 1000}).encode()
    assert post(strict, "ask", {"contexts": [0.0] * 1000}).status_code == 413
    kind = {"Content-Type": "application/json"}
    chunked = strict.http.post(
        "/v1/campaigns/sensors/ask", content=iter([large[:900], large[900:]]), headers=kind
    )
    assert chunked.status_code == 413
    assert "2000 bytes" in chunked.json()["detail"]


def test_many_rows_are_refused(strict):
    for body in (
        {"contexts": [[0.0, 0.0]] * 6},
        {"pool": [[0.0, 0.0]] * 6},
        {"contexts": {"table": {"columns": ["a", "b"], "rows": [[0.0, 0.0]] * 6}}},
    ):
        refused = post(strict, "ask", body)
        assert refused.status_code == 413
        assert refused.json()["detail"] == "a request may have 5 contexts, got 6; send several"
    assert post(strict, "ask", {"contexts": [[0.0, 0.0]] * 5}).status_code == 200
    assert post(strict, "recommend", {"contexts": [[0.0, 0.0]] * 6}).status_code == 413


def test_buckets_fill_again():
    now = [0.0]
    rates = Rates("requests", 2.0, 3, clock=lambda: now[0])
    for _ in range(3):
        rates.take("a")
    rates.take("b")  # has a bucket of its own
    with pytest.raises(RefusedError) as refused:
        rates.take("a")
    assert refused.value.status == 429
    assert refused.value.headers == {"Retry-After": "1"}
    now[0] = 0.5
    rates.take("a")
    with pytest.raises(RefusedError):
        rates.take("a")
    now[0] = 100.0
    for _ in range(3):
        rates.take("a")
    with pytest.raises(RefusedError):
        rates.take("a")


def test_too_many_requests_are_asked_to_come_back(tmp_path):
    names = ("GET", "/v1/campaigns", None)
    answers = in_process(tmp_path / "x.db", *7 * [names], rate=0.1, burst=5)
    assert [each.status_code for each in answers] == [200] * 5 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) >= 8


def test_what_waits_in_line_is_limited_and_the_rest_goes_on(tmp_path, monkeypatch):
    """While a campaign is busy, others and frozen policies are answered."""
    with cg.Campaign.create(tmp_path / "x.db", "busy", ["a", "b"], seed=0) as campaign:
        campaign.tell(contexts=[[0.0], [1.0]], arms=["a", "b"], reward=[1.0, 0.0])
        campaign.freeze("policy")
    begun, go = threading.Event(), threading.Event()

    def tune(*_, **how):
        begun.set()
        assert go.wait(30)

    monkeypatch.setattr(cg.Campaign, "tune", tune)

    async def send():
        app = create_app(tmp_path / "x.db", Settings(tokens="none", waiting=2))
        transport, path = httpx.ASGITransport(app), "/v1/campaigns/busy"
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            tuning = asyncio.create_task(http.post(f"{path}/tune", json={}))
            assert await asyncio.to_thread(begun.wait, 30)
            waiting = [asyncio.create_task(http.get(f"{path}/arms")) for _ in range(5)]
            decide = {"contexts": [0.0]}
            decided = await http.post(f"{path}/policies/policy/recommend", json=decide)
            others = [decided, await http.get("/livez"), await http.get("/v1/campaigns")]
            while sum(each.done() for each in waiting) < 3:
                await asyncio.sleep(0.01)
            assert not tuning.done()
            go.set()
            found = await asyncio.gather(tuning, *waiting)
        await asyncio.to_thread(app.state.service.close)
        return others, found

    others, (tuned, *found) = asyncio.run(send())
    assert {each.status_code for each in [*others, tuned]} == {200}
    assert sorted(each.status_code for each in found) == [200, 200, 503, 503, 503]


def test_a_client_that_goes_away_in_the_middle_harms_nobody(strict):
    host, port = strict.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        head = f"POST /v1/campaigns/sensors/ask HTTP/1.1\r\nHost: {host}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        line.sendall(head.encode())
    assert strict.http.get("/livez").status_code == 200


def connect(running):
    host, port = running.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def test_a_length_and_chunks_together_are_refused(strict):
    head = "POST /v1/campaigns/sensors/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(strict) as line:
        line.sendall(head.encode() + b"2\r\n{}\r\n0\r\n\r\n")
        answer = line.makefile("rb").read()  # to the end: the connection is closed
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"a Content-Length or a Transfer-Encoding, not both" in answer


def test_who_sends_on_after_a_refusal_is_cut_off(strict):
    head = "POST /v1/campaigns/sensors/ask HTTP/1.1\r\nHost: localhost\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(strict) as line:
        line.sendall(head.encode())
        endless = itertools.repeat(b"400\r\n" + b" " * 1024 + b"\r\n")
        with pytest.raises(ConnectionError):
            collections.deque(map(line.sendall, endless), maxlen=0)


def test_names_that_come_twice_are_found_in_one_pass():
    names = ",".join(f'"k{number}":0' for number in range(300_000))
    with pytest.raises(RefusedError, match="the name 'k299999' is there twice"):
        access.strict_json(f'{{{names},"k299999":0}}'.encode())


@pytest.mark.parametrize(("size", "apart"), [(100, False), (100_000, True)])
def test_large_bodies_are_read_beside_the_event_loop(tmp_path, monkeypatch, size, apart):
    threads, decode = [], access.strict_json

    def noting(body):
        threads.append(threading.current_thread())
        return decode(body)

    monkeypatch.setattr(access, "strict_json", noting)
    body = {"contexts": [0.0, 0.0], "key": "k" * size}
    (answer,) = in_process(tmp_path / "x.db", ("POST", "/v1/campaigns/none/ask", body))
    assert answer.status_code in (404, 422)
    assert [each is not threading.main_thread() for each in threads] == [apart]


def test_wide_contexts_and_many_arms_are_refused_before_they_are_read(tmp_path):
    cg.Campaign.create(tmp_path / "x.db", "sensors", 3, seed=0).close()
    path, wide = "/v1/campaigns/sensors", [0.0] * 11
    goal = {"tolerance": 0.1, "reference": [wide, wide]}
    named = {"table": {"columns": [f"c{i}" for i in range(11)], "rows": []}}
    cells = "a context may have 10 cells, got 11"
    arms = "a campaign may have 3 arms, got "
    refused = {
        (f"{path}/ask", cells): {"contexts": wide},
        (f"{path}/ask ", cells): {"contexts": [wide[:2], wide]},
        (f"{path}/ask  ", cells): {"pool": named},
        (f"{path}/recommend", cells): {"contexts": dict.fromkeys(map(str, range(11)), 0)},
        (f"{path}/tell", cells): {"contexts": wide, "arms": 0, "reward": 0},
        ("/v1/campaigns", cells): {"name": "x", "arms": 2, "goal": goal},
        ("/v1/campaigns ", cells): {"name": "x", "arms": 2, "settings": {"features": [wide] * 2}},
        ("/v1/campaigns  ", f"{arms}1000000"): {"name": "x", "arms": 10**6},
        ("/v1/campaigns   ", f"{arms}4"): {"name": "x", "arms": ["a", "b", "c", "d"]},
        (f"{path}/arms/add", f"{arms}4"): {"arm": "one more"},
    }
    requests = [("POST", where.strip(), body) for (where, _), body in refused.items()]
    answers = in_process(tmp_path / "x.db", *requests, columns=10, arms=3)
    for (_, detail), answer in zip(refused, answers, strict=True):
        assert (answer.status_code, answer.json()["detail"]) == (413, detail)


def test_rows_and_campaigns_have_quotas(tmp_path):
    cg.Campaign.create(tmp_path / "x.db", "sensors", 3, seed=0).close()
    rows = "POST", "/v1/campaigns/sensors/ask", {"contexts": [[0.0]] * 60}
    begin = [("POST", "/v1/campaigns", {"name": f"new {i}", "arms": 2}) for i in range(3)]
    answers = in_process(tmp_path / "x.db", rows, rows, *begin, row_rate=1, campaign_rate=2)
    assert [each.status_code for each in answers] == [200, 429, 201, 201, 429]
    assert answers[1].json()["detail"] == "too many contexts; slow down"
    assert int(answers[1].headers["retry-after"]) >= 19
    assert answers[4].json()["detail"] == "too many new campaigns; slow down"


class Measured:
    """A campaign whose learner takes a second for a call and a tenth for every context."""

    def __init__(self):
        self.now = 0.0

    def learner(self):
        return self

    def ask(self, contexts=None, *, pool=None, arms=None):
        given = contexts or pool
        assert arms is None or isinstance(arms[0], str) or len(arms) == len(given)
        self.now += 1.0 + 0.1 * len(given)


@pytest.mark.parametrize("given", ["contexts", "pool"])
@pytest.mark.parametrize("arms", [None, ["a", "b"], [["a"]] * 400])
def test_what_would_take_longer_than_the_deadline_is_refused_beforehand(monkeypatch, given, arms):
    campaign = Measured()
    monkeypatch.setattr(routes.time, "thread_time", lambda: campaign.now)
    how = {"contexts": None, "pool": None, given: [[0.0]] * 400, "arms": arms}
    routes.check_duration(campaign, 400, how, 42.0)
    with pytest.raises(RefusedError) as refused:
        routes.check_duration(campaign, 400, how, 40.0)
    assert refused.value.status == 413
    assert refused.value.detail == (
        f"asking for 400 {given} at once would take about 41 s, and a request may take 40 s: "
        "send at most 195 at a time"
    )


def test_a_long_ask_that_happened_is_answered_again(tmp_path, monkeypatch):
    cg.Campaign.create(tmp_path / "x.db", "sensors", 3, seed=0).close()
    monkeypatch.setattr(routes, "_SURELY", 0.0)
    tried = iter([None, RefusedError(413, "too long")])

    def check(*_):
        if (refused := next(tried)) is not None:
            raise refused

    monkeypatch.setattr(routes, "check_duration", check)
    first, other = (
        ("POST", "/v1/campaigns/sensors/ask", {"contexts": [[0.5]] * 65, "key": key})
        for key in "ab"
    )
    done, again, refused = in_process(tmp_path / "x.db", first, first, other)
    assert done.status_code == 200
    assert again.json() == done.json()
    assert refused.status_code == 413


@pytest.fixture(scope="module")
def tuning(tmp_path_factory):
    """A service in which a tuning never ends."""
    folder = tmp_path_factory.mktemp("tuning")
    options = ["--deadline", "1", "--grace", "3", "--connections", "20"]
    with serving(folder / "bench.db", folder / "log", *options, slow=["tune"]) as running:
        yield running


def begin_tuning(running, name):
    """Keep a campaign busy; return the connection that waits for the answer."""
    running.create(name)
    assert running.http.get(f"/v1/campaigns/{name}/arms").status_code == 200
    line = connect(running)
    head = f"POST /v1/campaigns/{name}/tune HTTP/1.1\r\nHost: localhost\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    line.sendall(head.encode())
    time.sleep(0.2)
    return line


def test_a_request_that_waits_too_long_is_answered(tuning):
    with begin_tuning(tuning, "waiting"):
        late = tuning.http.get("/v1/campaigns/waiting/arms")
        assert late.status_code == 503
        assert late.headers["retry-after"] == "1"
        assert "longer than 1 s" in late.json()["detail"]
        assert tuning.http.get("/readyz").status_code == 200


def test_who_left_is_neither_waited_for_nor_served(tuning):
    with begin_tuning(tuning, "left"):
        with connect(tuning) as line:
            body = b'{"contexts": [0.0, 0.0], "key": "k"}'
            head = "POST /v1/campaigns/left/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            head += f"application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            line.sendall(head.encode() + body)
            time.sleep(0.2)
        deadline = time.monotonic() + 30
        while '"path": "/v1/campaigns/left/ask", "status": 499' not in tuning.log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_campaigns_that_begin_slowly_leave_health_and_tokens_alone(tmp_path, monkeypatch):
    go, database = threading.Event(), Database(tmp_path / "x.db")
    monkeypatch.setattr(cg.Campaign, "create", lambda *_, **__: go.wait(30))

    def token(name, *scopes):
        return {"Authorization": f"Bearer {create_token(database, name, scopes)}"}

    async def send():
        app = create_app(tmp_path / "x.db")
        transport, admin = httpx.ASGITransport(app), token("admin", "admin", "read")
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            body = {"json": {"name": "x", "arms": 2}, "headers": admin}
            begun = [asyncio.create_task(http.post("/v1/campaigns", **body)) for _ in range(40)]
            ready = await http.get("/readyz")
            names = await http.get("/v1/campaigns", headers=token("new", "read"))
            assert not any(each.done() for each in begun)
            go.set()
            await asyncio.gather(*begun)
        await asyncio.to_thread(app.state.service.close)
        return ready.status_code, names.status_code

    assert asyncio.run(send()) == (200, 200)
    database.close()


def is_closed(line) -> bool:
    """Wait for what comes on a connection; return whether it is the end."""
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


def test_half_sent_requests_do_not_keep_others_out(tuning):
    with ExitStack() as stack:
        lines = [stack.enter_context(connect(tuning)) for _ in range(60)]
        for line in lines:
            line.sendall(b"GET /livez HTTP/1.1\r\nHost: local")
        # A connection of its own: one that was kept alive may be among those that are closed.
        assert httpx.get(f"{tuning.url}/livez", timeout=30).status_code == 200
        assert is_closed(lines[0])


def test_a_header_that_does_not_come_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(app_module, "_IDLE", 0.2)
    app = create_app(tmp_path / "x.db", Settings(port=0))
    config = uvicorn.Config(app, port=0, http=app_module._Protocol, log_config=None)
    ready, where = threading.Event(), []

    def announce(address):
        where.append(address)
        ready.set()

    server = app_module._Server(config, app.state.service, announce)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(30)
        host, port = where[0].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as line:
            line.sendall(b"GET /livez HTTP/1.1\r\nX-Slow: ")
            assert is_closed(line)
    finally:
        server.should_exit = True
        thread.join()
