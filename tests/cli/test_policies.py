"""learn, recommend and show on real files."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import contextgap as cg
from contextgap.cli.app import app
from contextgap.tables.files import labels_of


def call(*arguments, code=0, app=app):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def trials(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "trials.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "density", "solver", "score"])
        for size, density in zip(rng.uniform(0, 100, 60), rng.uniform(0, 1, 60), strict=True):
            solver = str(rng.choice(["exact", "greedy"]))
            writer.writerow([size, density, solver, density if solver == "exact" else 0.5])
    return path


@pytest.fixture
def learnt(trials, tmp_path):
    path = tmp_path / "policy.cgap"
    call("learn", trials, "--arm", "solver", "--reward", "score", "-o", path)
    return path


def rows(text):
    return list(csv.DictReader(text.splitlines()))


def test_a_policy_from_logged_trials_is_the_librarys(trials, learnt):
    table = rows(trials.read_text())
    contexts = np.array([[float(row["size"]), float(row["density"])] for row in table])
    learner = cg.Learner(
        ["exact", "greedy"], kernel=cg.Gaussian.from_contexts(contexts), prior_mean="auto", seed=0
    ).fit(contexts, [row["solver"] for row in table], [float(row["score"]) for row in table])
    policy = cg.Policy.load(learnt)
    np.testing.assert_array_equal(policy.recommend(contexts), learner.recommend(contexts))
    assert policy.columns == ("size", "density")


@pytest.mark.parametrize(("points", "kind"), [(8, "bounded"), (0, "exact"), (512, "exact")])
def test_trials_may_be_represented_by_support_points(trials, tmp_path, points, kind):
    path = tmp_path / "policy.cgap"
    outcome = ("--arm", "solver", "--reward", "score", "--bandwidth", "9", "--ridge", "0.1")
    call("learn", trials, *outcome, "--points", points, "-o", path)
    policy = cg.Policy.load(path)
    assert policy.state.model.kind == kind
    assert sum(policy.counts.values()) == 60


def test_recommend_writes_arm_and_bound(learnt, tmp_path):
    path = tmp_path / "contexts.csv"
    path.write_text("density,note,size\n0.1,a,50\n0.95,b,50\n")  # other order, a surplus column
    answers = rows(call("recommend", learnt, path).stdout)
    assert [row["arm"] for row in answers] == ["greedy", "exact"]
    assert {row["bound"] for row in answers} == {"heuristic"}
    policy = cg.Policy.load(learnt)
    expected = policy.certificate([[50, 0.1], [50, 0.95]]).bound
    np.testing.assert_allclose([float(row["regret_bound"]) for row in answers], expected)
    target = tmp_path / "answers.csv"
    shown = call("recommend", learnt, path, "-o", target).stdout
    assert rows(target.read_text()) == answers
    assert "2 recommendations" in shown
    assert json.loads(call("recommend", learnt, path, "--json").stdout)[1]["arm"] == "exact"


def test_show_says_what_a_policy_holds(learnt):
    text = call("show", learnt).stdout
    for part in ("HighestMean", "Gaussian(bandwidth=(", "size, density", "exact", "heuristic"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80
    described = json.loads(call("show", learnt, "--json").stdout)
    assert sum(described["observations"].values()) == 60
    assert described["kernel"]["type"] == "Sum"
    card = described["card"]
    assert card["estimator"] == "direct"
    assert card["rewards"] == card["looked_at"] == 60
    for part in ("score card", "value of the policy", "always ", "rewards predicted leave-one-out"):
        assert part in text


def test_learn_says_how_good_it_is_and_what_was_tried(trials, tmp_path):
    table = rows(trials.read_text())
    with trials.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*table[0], "chance"])
        writer.writeheader()
        writer.writerows({**row, "chance": 0.5} for row in table)
    arguments = ["learn", trials, "--arm", "solver", "--reward", "score", "--propensity", "chance"]
    text = call(*arguments, "-o", tmp_path / "p.cgap").stdout
    for part in ("doubly robust", "models tried", "constant", "linear", "chosen"):
        assert part in text
    shown, path = text.rsplit("policy: ", 1)  # the path is as long as it is
    assert path.strip() == str(tmp_path / "p.cgap")
    assert max(map(len, shown.splitlines())) <= 80
    result = json.loads(call(*arguments, "-o", tmp_path / "p.cgap", "--json").stdout)
    assert result["columns"] == ["size", "density"]
    assert result["tuning"]["chosen"] in [each["name"] for each in result["tuning"]["candidates"]]
    assert cg.Policy.load(tmp_path / "p.cgap").card.estimator == "doubly robust"
    assert "doubly robust" in call("show", tmp_path / "p.cgap").stdout


def test_a_policy_that_one_arm_equals_is_warned_about(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "noise.csv"
    lines = ["x,arm,reward"]
    lines += [f"{x},{rng.choice(['a', 'b'])},{rng.normal()}" for x in rng.normal(size=80)]
    path.write_text("\n".join(lines))
    arguments = ["learn", path, "--arm", "arm", "--reward", "reward", "-o", tmp_path / "p.cgap"]
    assert "no significant gain" in call(*arguments).stdout
    assert "no significant gain" in call("show", tmp_path / "p.cgap").stdout


LEARN = ["learn", "{trials}", "--arm", "solver", "--reward", "score", "-o", "{folder}/x"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["show", "{folder}/none.cgap"], ["none.cgap"]),
        (["show", "{trials}"], ["trials.csv", "not a contextgap file"]),
        (["recommend", "{policy}", "{trials}x"], ["trials.csvx"]),
        (
            ["learn", "{trials}", "--arm", "robot", "--reward", "score", "-o", "{folder}/x"],
            ["no column 'robot'", "'solver'"],
        ),
        (
            [*LEARN, "--ridge", "-1"],
            ["ridge must be positive", "-1"],
        ),
        (
            [*LEARN, "--method", "magic"],
            ["method must be one of", "magic"],
        ),
        (
            ["learn", "{trials}", "--arm", "score", "--reward", "solver", "-o", "{folder}/x"],
            ["line 2", "'solver'", "a number is needed"],
        ),
    ],
)
def test_mistakes_get_one_line_and_code_2(arguments, parts, trials, learnt, tmp_path):
    places = {"folder": tmp_path, "trials": trials, "policy": learnt}
    result = call(*(argument.format(**places) for argument in arguments), code=2)
    for part in ("error:", *parts):
        assert part in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "x").exists()


def test_a_trial_without_an_arm_is_named(tmp_path):
    path = tmp_path / "trials.csv"
    path.write_text("x,arm,reward\n1,a,2\n1,,3\n")
    result = call("learn", path, "--arm", "arm", "--reward", "reward", "-o", "p", code=2)
    assert "line 3" in result.stderr
    assert "the arm tried is missing" in result.stderr


def test_version():
    assert call("--version").stdout == f"contextgap {cg.__version__}\n"


def test_outcomes_cannot_be_contexts(trials):
    result = call(*(x.format(trials=trials, folder=trials.parent) for x in LEARN), code=0)
    assert result.exit_code == 0
    wanted = [*LEARN, "--context", "score,size"]
    result = call(*(x.format(trials=trials, folder=trials.parent) for x in wanted), code=2)
    assert "'score' cannot be context and outcome at once" in result.stderr


def test_a_folder_that_does_not_exist_is_named(trials):
    wanted = [x.format(trials=trials, folder="/nonexistent") for x in LEARN]
    assert "there is no folder /nonexistent" in call(*wanted, code=2).stderr


def test_whole_number_arms_stay_numbers_in_numeric_order(tmp_path):
    path = tmp_path / "log.csv"
    lines = ["id,x,arm,reward"]
    lines += [f"row{i},{i},{(10, 9, 2)[i % 3]},{float(i % 3 == i // 10)}" for i in range(30)]
    path.write_text("\n".join(lines))
    policy = tmp_path / "p.cgap"
    call("learn", path, "--arm", "arm", "--reward", "reward", "--context", "x", "-o", policy)
    assert cg.Policy.load(policy).arms == (2, 9, 10)
    answers = json.loads(call("recommend", policy, path, "--json").stdout)
    assert {type(answer["arm"]) for answer in answers} == {int}
    assert json.loads(call("show", policy, "--json").stdout)["arms"] == [2, 9, 10]


@pytest.mark.parametrize("separator", [",", ";"])
def test_arms_with_decimals_are_numbers_in_numeric_order(tmp_path, separator):
    """Also where they are written in several ways, and with decimal commas."""
    path, point = tmp_path / "log.csv", "," if separator == ";" else "."
    written = ["10.0", "5.0", "5", "2.5"]
    lines = [f"{x},{written[x % 4]},{float(x % 4 == 1 + x // 20)}" for x in range(40)]
    text = "\n".join(["x,arm,reward", *lines]).replace(",", separator).replace(".", point)
    path.write_text(text)
    policy, options = tmp_path / "p.cgap", ["--arm", "arm", "--reward", "reward"]
    call("learn", path, *options, "--bandwidth", 1, "--fallback", "10", "-o", policy)
    found = cg.Policy.load(policy)
    assert [(type(arm), arm) for arm in found.arms] == [(float, 2.5), (float, 5.0), (float, 10.0)]
    assert found.counts == {2.5: 10, 5.0: 20, 10.0: 10}
    assert found.fallback.arm == 10.0
    new = tmp_path / "new.csv"
    new.write_text("x,may\n1,10|2.5\n1,5\n".replace(",", separator).replace(".", point))
    for name in ("out.csv", "out.parquet"):
        call("recommend", policy, new, "--eligible", "may", "-o", tmp_path / name)
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert table["arm"].dtype == float
    assert table["arm"].isin([10.0, 2.5, 5.0]).all()
    assert table["arm"][1] == 5.0
    again = tmp_path / "out.csv"
    assert f"{separator}5{point}0{separator}" in again.read_text()
    shown = call("recommend", policy, path, "-o", again).stdout
    assert shown.index("2.5") < shown.index("5.0") < shown.index("10.0")


def test_arms_that_are_codes_or_too_long_for_numbers_stay_text(tmp_path):
    for arms in (["007", "5"], ["0.10000000000000000001", "0.1"], ["1e999", "5"], ["5.0", "a"]):
        assert list(labels_of(arms).values()) == sorted(arms)
    assert labels_of(["9", "-10", "9"]) == {"-10": -10, "9": 9}
    assert labels_of(["1,5", "2"], decimal_comma=True) == {"1,5": 1.5, "2": 2.0}
    assert labels_of(["1,5", "2"]) == {"1,5": "1,5", "2": "2"}


def test_policies_whose_numbers_are_text_work_as_they_did(tmp_path):
    """Earlier versions learnt them from files."""
    learner = cg.Learner(["10.0", "5.0"], kernel=cg.Gaussian(1.0), ridge=0.1, seed=0)
    learner.fit([{"x": 0.0}, {"x": 0.0}], ["10.0", "5.0"], [1, 0])
    learner.freeze().save(tmp_path / "p.cgap")
    (tmp_path / "new.csv").write_text("x,may\n0,5.0\n0,10.0|5.0\n")
    given = ["--eligible", "may"]
    shown = call("recommend", tmp_path / "p.cgap", tmp_path / "new.csv", *given).stdout
    assert [row["arm"] for row in rows(shown)] == ["5.0", "10.0"]


def test_recommend_keeps_the_users_columns(learnt, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text('id,density,size,note\nx7,0.1,50,a\nx9,0.95,50,"b,c"\n')
    answers = rows(call("recommend", learnt, path).stdout)
    assert [row["id"] for row in answers] == ["x7", "x9"]
    assert [row["note"] for row in answers] == ["a", "b,c"]
    added = ["arm", "status", "regret_bound", "bound"]
    assert list(answers[0]) == ["id", "density", "size", "note", *added]
    plain = rows(call("recommend", learnt, path, "--no-bounds").stdout)
    assert list(plain[0]) == ["id", "density", "size", "note", "arm", "status"]
    assert [row["arm"] for row in plain] == [row["arm"] for row in answers]
    path.write_text("arm,density,size\nold,0.1,50\n")
    (both,) = rows(call("recommend", learnt, path, "--no-bounds").stdout)
    assert (both["arm"], both["recommended_arm"]) == ("old", "greedy")
    path.write_text("status,density,size\nold,0.1,50\n")
    (answer,) = rows(call("recommend", learnt, path).stdout)
    assert (answer["status"], answer["recommended_status"]) == ("old", "recommended")
    assert "arm" in answer


def run_program(*arguments, **how):
    command = [sys.executable, "-m", "contextgap", *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **how)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_a_full_disk_is_one_line(learnt):
    with open("/dev/full", "w") as full:
        done = run_program("show", learnt, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "error: cannot write the output: No space left on device\n"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder of the system's own")
def test_a_folder_that_may_not_be_written_to_is_named(trials, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o555)
    if os.geteuid() == 0:  # who may write into every folder but this
        folder = Path("/proc")
    arguments = ["learn", trials, "--arm", "solver", "--reward", "score"]
    done = run_program(*arguments, "-o", folder / "p.cgap", stdout=subprocess.PIPE)
    assert done.returncode == 2
    assert str(folder / "p.cgap") in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_out_of_memory_is_one_line(learnt, monkeypatch):
    def full(path):
        raise MemoryError(f"{path} takes 9000 MB of memory to load, more than is available")

    monkeypatch.setattr(cg.Policy, "load", full)
    result = call("show", learnt, code=2)
    assert "out of memory" in result.output
    assert "9000 MB" in result.output.replace("\n", " ")
    assert "Traceback" not in result.output


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_closed_output_is_no_failure(learnt, options):
    command = " ".join([sys.executable, "-m", "contextgap", "show", str(learnt), *options])
    done = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
