"""What those who run a service rely on: who did it, readiness, restores under it."""

import sqlite3
import subprocess
import sys
from contextlib import closing

from contextgap.team import client
from contextgap.team.campaign.schema import VERSION

from .conftest import serving


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
    with serving(path, tmp_path / "log") as running:
        assert running.http.get("/readyz").status_code == 200
        running.create()
        assert running.http.get("/readyz").status_code == 200
        with closing(sqlite3.connect(path)) as later, later:
            later.execute("UPDATE contextgap_schema SET version = 99")
        refused = running.http.get("/readyz")
        assert refused.status_code == 503
        assert "schema version 99" in refused.json()["detail"]
    command = [sys.executable, "-m", "contextgap", "serve", "--port", "0", "--database", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert f"this release knows {VERSION}" in ended.stderr


def test_an_altered_trial_is_said(service):
    campaign = service.create("altered")
    campaign.ask([0.0, 0.0])
    with closing(sqlite3.connect(service.database)) as other, other:
        mine = campaign._session.store.campaign
        other.execute("UPDATE contextgap_trials SET arm = '\"boom\"' WHERE campaign = ?", [mine])
    told = service.http.post("/v1/campaigns/altered/tell", json={"trial": 1, "reward": 0.5})
    assert told.status_code == 500
    assert "trial 1 was altered" in told.json()["detail"]
