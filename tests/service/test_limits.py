"""How much a client may send, and how long it may have to wait."""

import concurrent.futures
import json
import socket

import pytest

import contextgap as cg
from contextgap.service.limits import Rates
from contextgap.service.problems import RefusedError

from .conftest import serving


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


def test_too_many_requests_are_told_when_to_come_back(tmp_path):
    options = ["--rate", "0.1", "--burst", "5"]
    with serving(tmp_path / "x.db", tmp_path / "log", *options) as running:
        answers = [running.http.get("/v1/campaigns").status_code for _ in range(7)]
        assert answers == [200] * 5 + [429] * 2
        assert int(running.http.get("/livez").headers["retry-after"]) >= 8


def test_what_waits_in_line_is_limited_and_the_rest_goes_on(strict, rng):
    """While a campaign is busy, others and frozen policies are answered."""
    name = "busy"
    campaign = cg.Campaign.create(strict.database, name, ["a", "b"], seed=0)
    contexts = rng.normal(size=(1500, 6))
    campaign.tell(contexts=contexts, arms=["a", "b"] * 750, reward=rng.normal(size=1500))
    campaign.freeze("policy")
    path = f"/v1/campaigns/{name}"
    decide = {"contexts": contexts[0].tolist()}
    assert strict.http.post(f"{path}/policies/policy/recommend", json=decide).status_code == 200
    assert strict.http.get(f"{path}/arms").status_code == 200  # it is open
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        tuning = pool.submit(strict.http.post, f"{path}/tune", json={})
        waiting = [pool.submit(strict.http.get, f"{path}/arms") for _ in range(5)]
        decided = [
            strict.http.post(f"{path}/policies/policy/recommend", json=decide) for _ in range(5)
        ]
        alive = strict.http.get("/livez")
        assert not tuning.done(), "the tuning was too short for this test"
        found = sorted(each.result().status_code for each in waiting)
        assert tuning.result().status_code == 200
    assert {each.status_code for each in decided} == {200}
    assert alive.status_code == 200
    assert found[0] == 200
    assert found[-1] == 503
    assert set(found) == {200, 503}


def test_a_client_that_goes_away_in_the_middle_harms_nobody(strict):
    host, port = strict.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        head = f"POST /v1/campaigns/sensors/ask HTTP/1.1\r\nHost: {host}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        line.sendall(head.encode())
    assert strict.http.get("/livez").status_code == 200
