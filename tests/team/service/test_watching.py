"""Watches of a service go on after it was stopped, killed, or moved."""

import json
import time

import numpy as np
import pytest
import sqlalchemy as sa

import contextgap as cg
from contextgap.team.campaign.campaign import load_watch
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.store import FILES, backup, restore, verify
from contextgap.team.service.hosting import UNSAVED
from tests.team.service.conftest import ARMS, in_process, serving


def frozen(database, name="watched", policies=("p",)):
    rng = np.random.default_rng(0)
    settings = {"kernel": cg.Gaussian(0.5), "seed": 0}
    campaign = cg.Campaign.create(database, name, ARMS, **settings)
    x = rng.uniform(size=(60, 2))
    arms = [ARMS[each] for each in rng.integers(3, size=60)]
    campaign.tell(contexts=x.tolist(), arms=arms, reward=x[:, 0].tolist())
    for each in policies:
        campaign.freeze(each)
    return campaign


def asked(rows, seed=1):
    return np.random.default_rng(seed).uniform(size=(rows, 2))


def body(rows):
    return {"contexts": rows.tolist()}


def path(policy="p", campaign="watched"):
    return f"/v1/campaigns/{campaign}/policies/{policy}"


def killed(running):
    running.process.kill()
    running.process.wait()


def same(found, watch):
    """Whether a report over HTTP is that of a watch, up to rounding."""
    wanted = json.loads(json.dumps(watch.report().describe()))
    for name in ("evidence", "drift_evidence"):
        assert found.pop(name) == pytest.approx(wanted.pop(name), rel=1e-9)
    for each in (found, wanted):
        each.pop("over_time")  # of which less is known of rows after which somebody asked
        each["expected_regret"], each["certificate"] = [], []
    assert found == wanted
    return True


def test_what_was_saved_goes_on_after_a_kill(place, tmp_path):
    watch = frozen(place.database, place.name).policy("p").watch()
    own = path(campaign=place.name)
    with serving(place.database, tmp_path / "log") as running:
        running.http.get(f"{own}/watch")
        rows = asked(UNSAVED + 1)
        watch.see(rows)
        running.http.post(f"{own}/recommend", json=body(rows))
        killed(running)  # before a second has passed, or after
    with serving(place.database, tmp_path / "log") as running:
        until = time.monotonic() + 30
        line = f'contextgap_watch_rows{{campaign="{place.name}",policy="p"}} {UNSAVED + 1}.0'
        while line not in running.http.get("/metrics").text:  # without a request for the policy
            assert time.monotonic() < until
            time.sleep(0.1)
        few = asked(20, seed=2)
        watch.see(few)
        running.http.post(f"{own}/recommend", json=body(few))
        drawn = running.http.post(f"{own}/watch/audit", json={**body(few), "k": 3}).json()
        audit = watch.audit(few, 3)
        assert drawn["places"] == audit.places.tolist()
        measured = few[drawn["places"]]
        told = {"arms": drawn["arms"], "rewards": [0.5] * 3, "weights": drawn["weights"]}
        running.http.post(f"{own}/watch/tell", json=body(measured) | told)
        watch.tell(measured, audit.arms, [0.5] * 3, weights=audit.weights)
        killed(running)
    with serving(place.database, tmp_path / "log") as running:
        assert same(running.http.get(f"{own}/watch").json()["watch"], watch)
        more = asked(UNSAVED - 10, seed=3)
        running.http.post(f"{own}/recommend", json=body(more))
        killed(running)
    with serving(place.database, tmp_path / "log") as running:
        found = running.http.get(f"{own}/watch").json()["watch"]
        kept = found["rows"] - watch.rows
        assert kept in (0, len(more))  # it was killed before it was saved, or after
        watch.see(more[:kept])
        assert same(found, watch)
        late = asked(30, seed=4) + 3
        running.http.post(f"{own}/recommend", json=body(late))
        watch.see(late)
    database = Database(place.database)  # it was stopped in good order: nothing is lost
    again = load_watch(database, place.name, "p", watch.policy)
    database.close()
    assert same(json.loads(json.dumps(again.report().describe())), watch)
    assert again.alarm == watch.alarm is not None


def test_a_watch_survives_its_policy_in_memory(tmp_path):
    database = str(tmp_path / "bench.db")
    frozen(database, policies=("p", "q"))
    calls = [("get", f"{path('p')}/watch", None), ("get", f"{path('q')}/watch", None)]
    for times in range(1, 4):
        for each in "pq":
            rows = asked(times, seed=times)
            calls.append(("post", f"{path(each)}/recommend", body(rows)))
    calls += calls[:2]
    found = in_process(database, *calls, policies=1)
    assert [each.json()["watch"]["rows"] for each in found[-2:]] == [6, 6]


def test_audits_by_cost_of_rewards_beyond_the_logs(tmp_path):
    database, rows = str(tmp_path / "bench.db"), asked(40)
    policy = frozen(database).policy("p")
    costs = [1.0] * 20 + [1e6] * 20
    drawn = {**body(rows), "k": 8, "costs": costs}
    few = {"arms": list(policy.recommend(rows[:2])), "rewards": [-9.0, 9.0], **body(rows[:2])}
    calls = ("audit", drawn), ("audit", {**drawn, "costs": [0.0] * 40}), ("tell", few)
    posts = [("post", f"{path()}/watch/{name}", given) for name, given in calls]
    cheap, refused, told = in_process(database, *posts)
    assert cheap.json()["places"] == policy.watch().audit(rows, 8, costs=costs).places.tolist()
    assert refused.status_code == 422
    assert "costs must be positive" in refused.json()["detail"]
    assert told.json()["watch"]["audits"] == 2
    assert told.json()["watch"]["value"] is None


def test_a_backup_has_the_watches(tmp_path):
    database = str(tmp_path / "bench.db")
    frozen(database)
    get = ("get", f"{path()}/watch", None)
    in_process(database, get, ("post", f"{path()}/recommend", body(asked(7))))
    opened = Database(database)
    backup(opened, tmp_path / "backup.db")
    assert list(verify(opened)) == []
    in_process(database, ("post", f"{path()}/recommend", body(asked(9))))
    restore(opened, tmp_path / "backup.db")
    opened.close()
    (found,) = in_process(database, get)
    assert found.json()["watch"]["rows"] == 7


def test_a_watch_that_was_altered_begins_anew(tmp_path):
    database = str(tmp_path / "bench.db")
    frozen(database)
    calls = ("get", f"{path()}/watch", None), ("post", f"{path()}/recommend", body(asked(7)))
    in_process(database, *calls)
    opened = Database(database)
    own = FILES.c.kind == "watch"
    with opened.writing() as connection:
        connection.execute(sa.update(FILES).where(own).values(bytes=b"altered"))
    assert len(list(verify(opened))) == 1
    found = in_process(database, *reversed(calls))
    assert found[0].json()["arms"]
    assert found[1].json()["watch"]["rows"] == 0
    assert list(verify(opened)) == []
    opened.close()


def test_decisions_do_not_need_the_database_that_keeps_watches(tmp_path, monkeypatch):
    database = str(tmp_path / "bench.db")
    frozen(database)

    def refuse(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("contextgap.team.service.hosting.save_watch", refuse)
    get, many = ("get", f"{path()}/watch", None), body(asked(UNSAVED + 1))
    found = in_process(database, get, ("post", f"{path()}/recommend", many), get)
    assert [each.status_code for each in found] == [200, 200, 200]
    assert found[-1].json()["watch"]["rows"] == UNSAVED + 1
