"""What those who run a service rely on: who did it, readiness, restores under it."""

import asyncio
import sqlite3
from contextlib import closing

import httpx
import pytest

import contextgap as cg
from contextgap.team import client
from contextgap.team.campaign.store import VERSION
from contextgap.team.service import Settings, create_app
from contextgap.team.service.app import serve


def test_the_log_says_which_token_did_it(closed):
    closed.create("who")
    headers = closed.token("bench-3", "read", "explore")
    secret = headers["Authorization"].split()[1]
    campaign = client.Campaign.open(closed.url, "who", token=secret)
    trial = campaign.ask([0.0, 0.0])
    assert trial.by == "bench-3"
    other = closed.token("bench-4", "explore")
    told = closed.http.post(
        "/v1/campaigns/who/tell", json={"trial": trial.id, "reward": 0.5}, headers=other
    )
    assert told.json()["trial"]["by"] == "bench-4"
    assert campaign.trials()["by"].tolist() == ["bench-4"]
    page = closed.http.get("/page/campaigns/who/trials", headers=headers)
    assert page.json()["trials"][0]["by"] == "bench-4"


def test_a_restore_under_a_running_service_is_noticed(service, tmp_path):
    service.create("restored")
    post = service.http.post

    def work(first, last):
        for number in range(first, last):
            path = "/v1/campaigns/restored"
            trial = post(f"{path}/ask", json={"contexts": [0.1 * number, 0.0]}).json()["trial"]
            assert trial["id"] == number
            post(f"{path}/tell", json={"trial": number, "reward": 0.5}).raise_for_status()

    def seen():
        found = service.http.get("/page/campaigns/restored/status").json()
        return found["trials"]["told"]

    work(1, 5)
    with (
        closing(sqlite3.connect(service.database)) as here,
        closing(sqlite3.connect(tmp_path / "copy")) as copy,
    ):
        here.backup(copy)
        work(5, 9)
        assert seen() == 8
        copy.backup(here)
    assert seen() == 4
    work(5, 7)
    assert seen() == 6
    listed = service.http.get("/page/campaigns").json()["campaigns"]
    assert [each["trials"] for each in listed if each["name"] == "restored"] == [6]


def test_tables_of_a_later_release_are_refused_at_start_and_while_it_runs(tmp_path):
    path = tmp_path / "bench.db"

    async def send():
        app = create_app(path, Settings(tokens="none"))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            found = [await http.get("/readyz")]
            cg.Campaign.create(path, "sensors", 2).close()
            found.append(await http.get("/readyz"))
            with closing(sqlite3.connect(path)) as later, later:
                later.execute("UPDATE contextgap_schema SET version = 99")
            found.append(await http.get("/readyz"))
        app.state.service.close()
        return found

    *before, refused = asyncio.run(send())
    assert [each.status_code for each in (*before, refused)] == [200, 200, 503]
    assert "schema version 99" in refused.json()["detail"]
    with pytest.raises(ValueError, match=f"this release knows {VERSION}"):
        serve(path, Settings(port=0), print)


def test_an_altered_trial_is_said(service):
    campaign = service.create("altered")
    campaign.ask([0.0, 0.0])
    with closing(sqlite3.connect(service.database)) as other, other:
        mine = campaign._session.store.campaign
        other.execute("UPDATE contextgap_trials SET arm = '\"boom\"' WHERE campaign = ?", [mine])
    told = service.http.post("/v1/campaigns/altered/tell", json={"trial": 1, "reward": 0.5})
    assert told.status_code == 500
    assert "trial 1 was altered" in told.json()["detail"]
