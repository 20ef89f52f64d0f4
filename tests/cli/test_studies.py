"""run, compare, tune and reproduce, small."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.experiments import run
from contextgap.problems import Sinusoids
from tests.cli.test_policies import call

SMALL = ["--rows", "240", "--explore", "80", "--evaluate", "40", "--grid", "2", "--jobs", "1"]


def test_run_freezes_the_policy_it_reports_on(tmp_path):
    found = json.loads(call("run", *SMALL, "--out", tmp_path, "--json").stdout)
    assert {row["method"] for row in found["results"]} == {
        "contextual-gap",
        "kernel-ucb",
        "uniform",
    }
    policy = cg.Policy.load(found["policy"])
    assert sum(policy.counts.values()) == 80
    problem = Sinusoids().sample(240, seed=0)
    pool = problem.take(slice(120, None))
    explore, exploit = pool.split(80, 40, seed=0)
    trace = run(explore, exploit, kernel=policy.kernel, ridge=policy.ridge, checkpoints=[80])
    ours = next(row for row in found["results"] if row["method"] == "contextual-gap")
    assert ours["average_regret"] == pytest.approx(trace.average_regret[-1])
    chosen = np.array([exploit.arms.index(arm) for arm in policy.recommend(exploit.contexts)])
    assert exploit.regret(chosen).mean() == pytest.approx(ours["average_regret"])
    page = (tmp_path / "report.html").read_text()
    assert "<svg" in page
    for figure in ("average-regret", "worst-regret", "what-was-tried", "tuning", "one-decision"):
        assert (tmp_path / "figures" / f"{figure}.svg").exists()
        assert (tmp_path / "figures" / f"{figure}.png").exists()


def test_the_report_of_one_run_is_true_of_one_run(tmp_path):
    call("run", *SMALL, "--methods", "uniform", "--out", tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "Each curve is one run" in page
    assert "means over" not in page
    assert "spread" not in page  # the same thing is called bandwidth throughout
    assert 'href="policy.cgap"' in page
    assert 'href="records.parquet"' in page
    assert "<code>contextgap" in page
    for phase in ("reading", "tuning on held-out rows", "exploring", "learning the policy"):
        assert f'<th scope="row">{phase}</th>' in page
    problem = Sinusoids().sample(240, seed=0)
    _, exploit = problem.take(slice(120, None)).split(80, 40, seed=0)
    single = min(exploit.regret(np.full(40, arm)).mean() for arm in range(exploit.n_arms))
    row = re.search("<td>best single arm</td>.*?</tr>", page).group()
    shown = re.findall(r'data-value="([^"]*)"', row)
    assert float(shown[0]) == pytest.approx(single)


def test_the_report_of_several_runs_says_how_many(tmp_path):
    call("compare", *SMALL, "--methods", "uniform", "--repetitions", "3", "--out", tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "means over 3 repetitions" in page
    assert "one run" not in page


def test_run_prints_a_table_and_where_the_report_is(tmp_path):
    shown = call("run", *SMALL, "--methods", "uniform", "--out", tmp_path)
    assert "uniform" in shown.stdout
    assert "report:" in shown.stdout
    assert "policy:" in shown.stdout
    assert shown.stderr == ""  # no progress bars where there is no terminal


def test_run_takes_settings_instead_of_tuning(tmp_path):
    call("run", *SMALL, "--bandwidth", "0.3", "--ridge", "0.02", "--out", tmp_path)
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert (policy.kernel, policy.ridge) == (cg.Gaussian(0.3), 0.02)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 90)
    frame = pd.DataFrame({"x": x, "y": rng.normal(size=90), "a": x, "b": 1 - x})
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.rename(columns={"a": "noise_a", "b": "noise_b"}).to_csv(tmp_path / "log.csv", index=False)
    return tmp_path


def test_your_own_table_and_log(table):
    small = ["--grid", "2", "--jobs", "1", "--json", "--out", table / "out"]
    call("run", table / "table.csv", "--rewards", "a,b", *small)
    assert cg.Policy.load(table / "out" / "policy.cgap").columns == ("x", "y")
    call("run", table / "log.csv", *small)
    assert cg.Policy.load(table / "out" / "policy.cgap").arms == ("noise_a", "noise_b")


def test_compare_goes_on_where_it_was(tmp_path):
    small = [*SMALL, "--methods", "contextual-gap,uniform", "--repetitions", "2", "--json"]
    first = json.loads(call("compare", *small, "--out", tmp_path).stdout)
    parts = list((tmp_path / "parts").rglob("*.json"))
    parts[0].unlink()
    ages = {part: part.stat().st_mtime_ns for part in parts[1:]}
    again = json.loads(call("compare", *small, "--out", tmp_path).stdout)
    assert again["results"] == first["results"]
    assert all(part.stat().st_mtime_ns == age for part, age in ages.items())
    assert parts[0].exists()
    records = pd.read_parquet(tmp_path / "records.parquet")
    assert len(records) == 2 * 2 * 2


def test_compare_on_a_dask_cluster_gives_the_serial_table(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    small = [*SMALL, "--methods", "kernel-ts,uniform", "--repetitions", "2", "--json"]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, protocol="tcp://", dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        call("compare", *small, "--dask", address, "--out", tmp_path / "dask")
    call("compare", *small, "--out", tmp_path / "here")
    tables = [pd.read_parquet(tmp_path / name / "records.parquet") for name in ("dask", "here")]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_tune_prints_the_best_setting(tmp_path):
    found = json.loads(call("tune", *SMALL, "--out", tmp_path, "--json").stdout)
    assert np.shape(found["regret"]) == (2, 2)
    assert found["average_regret"] == np.min(found["regret"])
    assert found["on_edge"]
    shown = call("tune", *SMALL, "--out", tmp_path).stdout
    assert "lies on the grid's edge" in shown
    assert (tmp_path / "tuning.png").exists()


def test_reproduce_small(tmp_path):
    small = ["--explore", "50", "--evaluate", "20", "--repetitions", "2", "--grid", "2"]
    shown = call("reproduce", "sinusoids", *small, "--jobs", "1", "--out", tmp_path, "--json")
    found = json.loads(shown.stdout)["sinusoids"]
    assert len(found["results"]) == 6
    page = (tmp_path / "sinusoids" / "report.html").read_text()
    for part in ("Ours beside the published", "Other scales", "Looking back", "wider grid"):
        assert part in page


def test_the_spacecraft_study_small(tmp_path):
    small = ["--explore", "150", "--evaluate", "60", "--repetitions", "2", "--grid", "2"]
    call("reproduce", "spacecraft", *small, "--jobs", "1", "--out", tmp_path, "--json")
    page = (tmp_path / "spacecraft" / "report.html").read_text()
    for part in ("In alternating phases", "The mission", "Looking back", "Other scales"):
        assert part in page
    assert (tmp_path / "spacecraft" / "figures" / "the-mission.png").exists()


def test_compare_flies_one_mission_per_repetition(tmp_path):
    small = ["--rows", "240", "--grid", "2", "--repetitions", "2", "--methods", "uniform"]
    shown = call("compare", "spacecraft", *small, "--jobs", "1", "--out", tmp_path, "--json")
    assert json.loads(shown.stdout)["results"][0]["method"] == "uniform"
    records = pd.read_parquet(tmp_path / "records.parquet")
    last = records[records["checkpoint"] == records["checkpoint"].max()]
    assert last["average_regret"].nunique() == 2  # uniform has no randomness of its own


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["run", "nonsense"], ["no problem 'nonsense'", "sinusoids"]),
        (["run", "nothing.csv", "--rewards", "a"], ["nothing.csv", "no such file"]),
        (["run", "--methods", "magic"], ["method must be one of", "'magic'"]),
        (["run", "--scale", "-1", *SMALL], ["scale must be positive", "-1"]),
        (["compare", "iris", "--methods", ""], ["methods must name at least one method"]),
        (["compare", "iris", "--scales", "a"], ["--scales must be numbers", "'a'"]),
        (["reproduce", "nonsense"], ["study must be sinusoids, spacecraft or all", "nonsense"]),
        (["compare", "--rows", "100", "--explore", "90"], ["split asks for", "100"]),
    ],
)
def test_mistakes_get_one_line_and_code_2(arguments, parts, tmp_path):
    result = call(*arguments, "--out", tmp_path / "out", code=2)
    for part in ("error:", *parts):
        assert part in result.stderr
    assert "Traceback" not in result.output


def test_interrupting_keeps_finished_parts_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "contextgap", "compare", "--rows", "3000", "--jobs", "2"]
    child = subprocess.Popen(
        [*command, "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    parts = tmp_path / "parts"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(parts.rglob("*.json")):
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)  # what Ctrl-C does to a terminal's processes
    _, complaint = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "goes on from there" in complaint
    assert "Traceback" not in complaint
    assert list(parts.rglob("*.json"))


def test_names_with_colons_are_shown_as_they_are():
    shown = call("run", "nowhere:X", code=2)
    assert "nowhere:X: there is no module nowhere" in shown.output
