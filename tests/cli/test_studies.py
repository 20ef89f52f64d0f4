"""compare, tune and reproduce, small."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from tests.cli.test_policies import call

SMALL = ["--rows", "240", "--explore", "80", "--evaluate", "40", "--grid", "2", "--jobs", "1"]


def test_the_report_of_several_runs_says_how_many(tmp_path):
    call("compare", *SMALL, "--methods", "uniform", "--repetitions", "3", "--out", tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "means over 3 repetitions" in page
    assert "one run" not in page


def test_compare_goes_on_where_it_was(undrawn, tmp_path):
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
    fresh = json.loads(call("compare", *small, "--fresh", "--out", tmp_path).stdout)
    assert fresh["results"] == first["results"]
    assert all(part.stat().st_mtime_ns > age for part, age in ages.items())


@pytest.mark.slow
def test_compare_on_a_dask_cluster_gives_the_serial_table(undrawn, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    small = [*SMALL, "--methods", "kernel-ts,uniform", "--repetitions", "2", "--json"]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, protocol="tcp://", dashboard_address=":0"
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


def test_reproduce_small(undrawn, tmp_path):
    small = ["--explore", "50", "--evaluate", "20", "--repetitions", "2", "--grid", "2"]
    shown = call("reproduce", "sinusoids", *small, "--jobs", "1", "--out", tmp_path, "--json")
    found = json.loads(shown.stdout)["sinusoids"]
    assert len(found["results"]) == 6
    page = (tmp_path / "sinusoids" / "report.html").read_text()
    for part in ("Ours beside the published", "Other scales", "Looking back", "wider grid"):
        assert part in page
    assert "tuned as in the paper" in page
    assert (tmp_path / "sinusoids" / "figures" / "the-whole-grid.png").exists()


@pytest.mark.slow
def test_the_authors_protocol_small(undrawn, tmp_path):
    small = ["--protocol", "authors", "--explore", "100", "--evaluate", "20", "--grid", "2"]
    few = ["--repetitions", "2", "--jobs", "1", "--out", tmp_path]
    found = json.loads(call("reproduce", *small, *few, "--json").stdout)
    assert set(found) == {"sinusoids", "bench"}
    for name in found:
        page = (tmp_path / f"{name}-authors" / "report.html").read_text()
        assert "that of the authors&#x27; code" in page
        assert "The whole grid" in page
        records = pd.read_parquet(tmp_path / f"{name}-authors" / "records.parquet")
        assert set(records["checkpoint"]) == {50, 100}  # the first rewards do not count


def test_the_bench_small(undrawn, tmp_path):
    small = ["--explore", "80", "--evaluate", "40", "--repetitions", "2", "--grid", "2"]
    call("reproduce", "bench", *small, "--jobs", "1", "--out", tmp_path, "--json")
    page = (tmp_path / "bench" / "report.html").read_text()
    for part in ("Ours beside the published", "By number of steps", "Looking back"):
        assert part in page


@pytest.mark.slow
def test_the_spacecraft_study_small(undrawn, tmp_path):
    small = ["--explore", "60", "--evaluate", "30", "--repetitions", "2", "--grid", "2"]
    call("reproduce", "spacecraft", *small, "--jobs", "1", "--out", tmp_path, "--json")
    page = (tmp_path / "spacecraft" / "report.html").read_text()
    for part in ("In alternating phases", "The mission", "Looking back", "Other scales"):
        assert part in page
    assert (tmp_path / "spacecraft" / "figures" / "the-mission.png").exists()


def test_compare_flies_one_mission_per_repetition(undrawn, tmp_path):
    small = ["--rows", "240", "--grid", "2", "--repetitions", "2", "--methods", "uniform"]
    shown = call("compare", "spacecraft", *small, "--jobs", "1", "--out", tmp_path, "--json")
    assert json.loads(shown.stdout)["results"][0]["method"] == "uniform"
    records = pd.read_parquet(tmp_path / "records.parquet")
    last = records[records["checkpoint"] == records["checkpoint"].max()]
    assert last["average_regret"].nunique() == 2  # uniform has no randomness of its own


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["compare", "iris", "--methods", ""], ["methods must name at least one method"]),
        (["compare", "iris", "--scales", "a"], ["--scales must be numbers", "'a'"]),
        (
            ["reproduce", "nonsense"],
            ["study must be sinusoids, bench, spacecraft or all", "nonsense"],
        ),
        (
            ["reproduce", "bench", "--protocol", "mine"],
            ["protocol must be paper or authors", "mine"],
        ),
        (["reproduce", "spacecraft", "--protocol", "authors"], ["a flight's", "none in common"]),
        (["compare", "--rows", "100", "--explore", "90"], ["split asks for", "100"]),
    ],
)
def test_mistakes_get_one_line_and_code_2(arguments, parts, tmp_path):
    result = call(*arguments, "--out", tmp_path / "out", code=2)
    for part in ("error:", *parts):
        assert part in result.stderr
    assert "Traceback" not in result.output


def test_interrupting_keeps_finished_parts_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "contextgap", "compare", "--rows", "900", "--jobs", "2"]
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
