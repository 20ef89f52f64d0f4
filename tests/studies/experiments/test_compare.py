"""Tuning and comparing: oracles, and the same table however the work is done."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.methods.explorers import EpsilonGreedy
from contextgap.studies.experiments import Grid, Study, compare, run, tune, tune_and_compare
from contextgap.studies.experiments.compare import RELATIVE_UNIT, read_methods
from contextgap.studies.experiments.run import Store, Task, execute
from contextgap.studies.problems import Problem, Sinusoids

BANDWIDTHS, RIDGES = (0.1, 0.5), (0.001, 0.1, 1.0)


def small_study(repetitions=2):
    return Study.of(
        Sinusoids(n_arms=4).sample(300, seed=0),
        hold_out=(60, 40),
        evaluate=(60, 40),
        repetitions=repetitions,
    )


def small_compare(**how):
    return compare(
        small_study(),
        methods=["contextual-gap", "kernel-ts"],
        scales=(0.5, 1.0),
        bandwidths=BANDWIDTHS,
        ridges=RIDGES,
        checkpoints=20,
        **how,
    )


@pytest.fixture(scope="module")
def serial():
    return small_compare()


def test_tuning_is_a_loop_over_runs():
    explore, exploit = small_study().hold_out
    found = tune(explore, exploit, method="kernel-ucb", bandwidths=BANDWIDTHS, ridges=RIDGES)
    expected = [
        [
            run(
                explore, exploit, method="kernel-ucb", kernel=cg.Gaussian(b), ridge=r
            ).average_regret[-1]
            for r in RIDGES
        ]
        for b in BANDWIDTHS
    ]
    np.testing.assert_array_equal(found.regret, expected)
    best = np.unravel_index(np.argmin(expected), (2, 3))
    assert found.kernel == cg.Gaussian(BANDWIDTHS[best[0]])
    assert found.ridge == RIDGES[best[1]]
    assert found.on_edge


def test_the_kernel_matrix_is_computed_once_per_bandwidth(monkeypatch):
    calls = []
    original = cg.Gaussian.__call__
    monkeypatch.setattr(
        cg.Gaussian, "__call__", lambda self, a, b: calls.append(self) or original(self, a, b)
    )
    compare(
        small_study(1),
        methods=["contextual-gap", "uniform", "kernel-ucb"],
        bandwidths=(0.11, 0.22, 0.33),
        ridges=RIDGES,
    )
    assert [kernel.bandwidth for kernel in calls[:3]] == [0.11, 0.22, 0.33]
    assert len(calls) == 3 + 3  # one per bandwidth, then one per run of the comparison


def test_default_grids_suit_raw_units():
    problem = Sinusoids(n_arms=3).sample(150, seed=0)
    moved = Problem(name="moved", contexts=1000 * problem.contexts + 7, rewards=problem.rewards)
    found = [tune(*p.split(60, 40), ridges=[0.01]) for p in (problem, moved)]
    np.testing.assert_allclose(found[0].regret, found[1].regret, rtol=1e-6, atol=1e-12)
    assert found[0].grid.unit == RELATIVE_UNIT


def test_records_are_tidy(serial):
    assert len(serial) == 2 * 2 * 2 * 3
    assert set(serial.method) == {"contextual-gap", "kernel-ts"}
    assert sorted(serial.checkpoint.unique()) == [20, 40, 60]
    assert serial.groupby(["method", "scale", "seed", "checkpoint"]).size().max() == 1
    per_method = serial.groupby("method").ridge.nunique()
    assert (per_method == 1).all()  # tuned at scale 1, kept for the others


def test_hold_out_and_evaluation_rows_are_disjoint():
    study = small_study(3)
    held = {x for part in study.hold_out for x in part.contexts[:, 0]}
    for explore, exploit in study.rounds:
        used = [*explore.contexts[:, 0], *exploit.contexts[:, 0]]
        assert len(set(used)) == 100
        assert not held & set(used)
    first, second = (set(study.rounds[i][0].contexts[:, 0]) for i in (0, 1))
    assert first != second


def test_time_order_is_kept():
    n = 90
    problem = Problem(
        name="log", contexts=np.arange(n)[:, None], rewards=np.zeros((n, 2)), ordered=True
    )
    study = Study.of(problem, hold_out=(20, 10), evaluate=(40, 20), repetitions=2)
    assert study.hold_out[0].contexts[:, 0].tolist() == list(range(20))
    for explore, exploit in study.rounds:
        assert explore.contexts[:, 0].tolist() == list(range(30, 70))
        assert exploit.contexts[:, 0].tolist() == list(range(70, 90))


@pytest.mark.parametrize("pool", ["threads", "processes"])
def test_pools_give_the_serial_table(serial, pool):
    executor = (
        ThreadPoolExecutor(2)
        if pool == "threads"
        else ProcessPoolExecutor(2, mp_context=get_context("forkserver"))
    )
    with executor:
        pd.testing.assert_frame_equal(small_compare(executor=executor), serial, check_exact=True)


@pytest.mark.slow
def test_a_dask_cluster_gives_the_serial_table(serial):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp://",
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        table = small_compare(executor=client.get_executor())
    pd.testing.assert_frame_equal(table, serial, check_exact=True)


KILLED = """
import sys
from tests.studies.experiments.test_compare import small_compare
small_compare(folder=sys.argv[1], progress=lambda done, total: print(done, total, flush=True))
"""


def test_a_killed_study_goes_on_where_it_was(serial, tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    for line in child.stdout:
        if line.split()[0] == "3":
            os.kill(child.pid, signal.SIGKILL)
            break
    child.communicate()
    finished = list((tmp_path / "parts").rglob("*.json"))
    assert 3 <= len(finished) < 12
    assert not (tmp_path / "records.parquet").exists()
    ages = {path: path.stat().st_mtime_ns for path in finished}
    steps = []
    table = small_compare(folder=tmp_path, progress=lambda done, _: steps.append(done))
    pd.testing.assert_frame_equal(table, serial, check_exact=True)
    assert steps[0] == len(finished)
    assert all(path.stat().st_mtime_ns == age for path, age in ages.items())
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "records.parquet"), serial, check_exact=True
    )


def test_other_data_or_settings_are_other_work(tmp_path):
    first = Task(len, {"explore": Sinusoids().sample(10, seed=0), "ridge": 0.1}).key()
    assert first == Task(len, {"explore": Sinusoids().sample(10, seed=0), "ridge": 0.1}).key()
    assert first != Task(len, {"explore": Sinusoids().sample(10, seed=1), "ridge": 0.1}).key()
    assert first != Task(len, {"explore": Sinusoids().sample(10, seed=0), "ridge": 0.2}).key()


def double(x):
    return {"value": 2 * x}


def fail(x):
    raise ZeroDivisionError(f"task {x}")


def test_a_half_written_result_is_done_again(tmp_path):
    store = Store(tmp_path)
    task = Task(double, {"x": 4})
    (tmp_path / f"{task.key()}.json").write_text('{"value": ')
    assert execute([task], store=store)[0]["value"] == 8
    assert Store(tmp_path).get(task.key())["value"] == 8


def test_a_failing_task_is_not_hidden():
    with ThreadPoolExecutor(1) as executor, pytest.raises(ZeroDivisionError, match="task 1"):
        execute([Task(fail, {"x": 1})], executor=executor)


def test_workers_use_one_blas_thread():
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def threads():
        return {"threads": [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]}

    assert set(execute([Task(threads, {})])[0]["threads"]) == {1}


def test_results_say_how_long_they_took():
    def nap():
        time.sleep(0.05)
        return {}

    assert execute([Task(nap, {})])[0]["seconds"] >= 0.05


def test_results_of_other_code_or_versions_are_never_mixed_in(tmp_path, monkeypatch):
    problem = Sinusoids(n_arms=3).sample(90, seed=0)
    study = Study.of(problem, hold_out=(20, 10), evaluate=(40, 20), repetitions=1)
    source = "from dataclasses import dataclass\nfrom contextgap.explorers import Explorer\n"
    source += "@dataclass(frozen=True)\nclass Mine(Explorer):\n"
    source += "    def pick(self, moment):\n        return {}\n"

    def compared(pick):
        path = tmp_path / f"mine{pick}" / "mine_explorer.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source.format(pick))
        spec = importlib.util.spec_from_file_location("mine_explorer", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "mine_explorer", module)
        spec.loader.exec_module(module)
        method = cg.Method(explorer=module.Mine(), recommender=cg.HighestMean())
        grid = {"bandwidths": [0.5], "ridges": [0.1]}
        table = compare(study, methods={"mine": method}, folder=tmp_path / "out", **grid)
        return table["average_regret"].iloc[-1]

    first = compared(0)
    assert compared(1) != first  # not what the old code gave
    assert compared(0) == first
    folder = tmp_path / "out" / "parts"
    kept = len(list((folder / cg.__version__).glob("*.json")))
    monkeypatch.setattr(sys.modules[Store.__module__], "__version__", "9.9")
    assert compared(0) == first
    assert Store(folder).of_other_versions() == {cg.__version__: kept}
    assert len(list((folder / "9.9").glob("*.json"))) == kept // 2


def test_tunings_entries_and_results_are_returned_together(serial):
    study = small_study()
    methods = read_methods(["contextual-gap", "kernel-ts"])
    grid = Grid.of(study.hold_out[0].contexts, BANDWIDTHS, RIDGES)
    phases = []
    found = tune_and_compare(
        study, methods, grid, scales=(0.5, 1.0), checkpoints=20, begin=phases.append
    )
    pd.testing.assert_frame_equal(found.results.records, serial, check_exact=True)
    assert phases == ["tuning on held-out rows", "exploring"]
    assert [(entry.label, entry.scale) for entry in found.entries[:2]] == [
        ("contextual-gap", 0.5),
        ("kernel-ts", 0.5),
    ]
    assert found.entries[0].ridge == found.tunings["contextual-gap"].ridge


def test_a_kernel_that_is_given_is_not_tuned():
    study = small_study(1)
    grid = Grid.of(study.hold_out[0].contexts, kernel=cg.Matern(0.5), ridges=RIDGES)
    found = tune_and_compare(study, read_methods(["uniform"]), grid).tunings["uniform"]
    assert found.kernel == cg.Matern(0.5)
    assert found.bandwidth == str(cg.Matern(0.5))
    assert found.regret.shape == (1, len(RIDGES))


def test_methods_that_would_share_a_label_are_refused():
    two = [EpsilonGreedy(decay=0.5), EpsilonGreedy(decay=0.9)]
    with pytest.raises(ValueError, match="two different methods are called"):
        read_methods(two)
    assert list(read_methods(dict(zip("ab", two, strict=True)))) == ["a", "b"]


def test_names_of_earlier_versions_still_stand_for_what_they_did():
    from contextgap.experiments.pilot import pilot
    from contextgap.experiments.plan import plan

    from contextgap import experiments

    assert (pilot, plan) == (experiments.pilot, experiments.plan)
    with pytest.deprecated_call(match="is now called experiments.GridSearch"):
        assert experiments.Tuning is experiments.GridSearch
    with pytest.raises(AttributeError, match="has no attribute 'tunings'"):
        experiments.tunings  # noqa: B018
