"""run: the learner as users get it, small."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.methods.method import read_method
from contextgap.studies.problems import Spacecraft
from tests.cli.test_policies import call

SMALL = ["iris", "--explore", "30", "--evaluate", "20", "--jobs", "1"]
# Settings spare the time that learning them takes.
GIVEN = {"kernel": cg.Gaussian(1.0), "ridge": 0.1, "width": cg.PosteriorWidth(1.5)}
SET = ["--bandwidth", "1", "--ridge", "0.1", "--scale", "1.5", "--repetitions", "2"]
TABLE = ["--rewards", "a,b", "--jobs", "1", "--methods", "auto,uniform", *SET]
DEFAULT = read_method("auto").name
LINES = {DEFAULT, "uniform", "kernel-ucb", "full information", "best single arm"}


def learnt(explore, seed=0, rule=None, **settings):
    """A user's own loop."""
    learner = cg.Learner(explore.arms, seed=seed, **{"method": "auto", **settings})
    for context, heard in zip(explore.contexts, explore.observations, strict=True):
        arm = learner.ask(context)
        learner.tell(context, arm, heard[explore.arms.index(arm)])
        if rule is not None and learner.done(rule):
            break
    return learner


def regret(learner, exploit):
    chosen = [exploit.arms.index(arm) for arm in learner.recommend(exploit.contexts)]
    return exploit.regret(chosen).mean()


def by_name(found):
    return {row["method"]: row for row in found["results"]}


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flown")
    sizes = ["--rows", "100", "--explore", "16", "--evaluate", "30", "--jobs", "1"]
    shown = call("run", "spacecraft", *sizes, "--seed", "3", "--json", "--out", folder)
    flights = [Spacecraft().sample(100, seed=seed).split(16, 30) for seed in (3, 4, 5)]
    return folder, json.loads(shown.stdout), flights


def iris(seed=0):
    return cg.problems.Classification("iris").sample(seed=seed).split(30, 20)


def test_what_is_shown_is_what_a_users_own_loop_gets(flown):
    folder, found, flights = flown
    rows = by_name(found)
    for name in (DEFAULT, "uniform"):
        own = [
            regret(learnt(explore, seed, method=name), exploit)
            for seed, (explore, exploit) in enumerate(flights, 3)
        ]
        assert rows[name]["average_regret"] == pytest.approx(np.mean(own), rel=1e-12)
        assert rows[name]["error"] == pytest.approx(np.std(own, ddof=1) / np.sqrt(3))
    records = pd.read_parquet(folder / "records.parquet")
    steps = records[records["method"] == "uniform"]["checkpoint"].unique()
    assert steps.tolist() == list(range(1, 17))


def test_yardsticks_are_beside_the_methods(flown):
    _, found, flights = flown
    rows = by_name(found)
    assert set(rows) == LINES
    single = [exploit.regret_table.mean(axis=0).min() for _, exploit in flights]
    assert rows["best single arm"]["average_regret"] == pytest.approx(np.mean(single))
    for row in rows.values():
        ratio = row["average_regret"] / rows["uniform"]["average_regret"]
        assert row["ratio_to_uniform"] == pytest.approx(ratio)
    means = [row["average_regret"] for row in found["results"]]
    assert means == sorted(means)


def test_the_saved_policy_decides_as_the_learner_after_the_first_flight(flown):
    _, found, [(explore, exploit), *_] = flown
    policy, learner = cg.Policy.load(found["policy"]), learnt(explore, 3)
    chosen = policy.recommend(exploit.contexts).tolist()
    assert chosen == learner.recommend(exploit.contexts).tolist()
    assert policy.columns == explore.columns
    assert policy.method.name == DEFAULT
    assert policy.card.value.value == pytest.approx(learner.score().value.value)


def test_the_report_says_what_it_shows(flown):
    folder, *_ = flown
    page = (folder / "report.html").read_text()
    assert "means over 3 repetitions; bands are one standard error" in page
    assert "contexts, with default settings, and was then" in page
    assert "in every repetition" not in page  # flights differ
    assert f"<td>{DEFAULT} (default)</td>" in page
    assert f"holds what {DEFAULT} (default) learnt" in page
    assert "value of the policy" in page
    assert "3 to 5" in page  # the seeds
    for name in ("policy.cgap", "records.parquet", "picks.parquet"):
        assert f'href="{name}"' in page
    assert "<code>contextgap" in page
    for phase in ("reading", "exploring", "learning the policy", "drawing"):
        assert f'<th scope="row">{phase}</th>' in page
    for figure in ("average-regret", "worst-regret", "what-was-tried", "the-policy"):
        assert (folder / "figures" / f"{figure}.svg").exists()
        assert (folder / "figures" / f"{figure}.png").exists()


def test_without_a_problem_the_bench_is_explored(undrawn, tmp_path):
    sizes = ["--explore", "30", "--evaluate", "20", "--repetitions", "1", "--jobs", "1"]
    shown = call("run", *sizes, *SET, "--out", tmp_path)
    assert "bench: 30 steps explored, then deployed on 20 rows" in shown.stdout


def test_the_table_has_all_five_lines_in_80_columns(undrawn, tmp_path):
    shown = call("run", *SMALL, *SET, "--out", tmp_path)
    assert shown.stderr == ""  # no progress bars where there is no terminal
    lines = shown.stdout.splitlines()
    assert max(len(line) for line in lines if line[:1] in "┏│") <= 80
    for name in LINES - {DEFAULT} | {f"{DEFAULT} (default)"}:
        assert len([line for line in lines if line.startswith(f"│ {name} ")]) == 1, name
    for part in ("30 steps explored, then deployed on 20 rows, 2 times", "± error", "× uniform"):
        assert part in shown.stdout
    assert "score card" in shown.stdout
    assert f"policy: {tmp_path / 'policy.cgap'}" in shown.stdout
    assert "report:" in shown.stdout


def test_settings_are_given_to_all_learners(undrawn, tmp_path):
    shown = call("run", *SMALL, *SET, "--json", "--out", tmp_path)
    rows = by_name(json.loads(shown.stdout))
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert {name: getattr(policy, name) for name in GIVEN} == GIVEN
    for name in (DEFAULT, "uniform"):
        own = [
            regret(learnt(explore, seed, method=name, **GIVEN), exploit)
            for seed, (explore, exploit) in enumerate(map(iris, range(2)))
        ]
        assert rows[name]["average_regret"] == pytest.approx(np.mean(own))
    own = [informed(*iris(seed)) for seed in range(2)]
    assert rows["full information"]["average_regret"] == pytest.approx(np.mean(own))
    assert "Gaussian(bandwidth=1" in (tmp_path / "report.html").read_text()


def informed(explore, exploit):
    learner = cg.Learner(explore.arms, method="uniform", **GIVEN)
    contexts, arms = np.tile(explore.contexts, (len(explore.arms), 1)), np.array(explore.arms)
    learner.fit(contexts, arms.repeat(len(explore)), explore.observations.T.ravel())
    return regret(learner, exploit)


def test_one_repetition_has_no_error_and_without_uniform_there_is_no_ratio(undrawn, tmp_path):
    once = ["--methods", "kernel-ucb", "--ridge", "0.02", "--repetitions", "1"]
    shown = call("run", *SMALL, *once, "--out", tmp_path)
    assert "±" not in shown.stdout.split("score card")[0]
    assert "× uniform" not in shown.stdout
    page = (tmp_path / "report.html").read_text()
    assert "Each curve is one run" in page
    assert "means over" not in page
    explore, exploit = iris()
    row = re.search("<td>best single arm</td>.*?</tr>", page).group()
    single = exploit.regret_table.mean(axis=0).min()
    assert float(re.findall(r'data-value="([^"]*)"', row)[0]) == pytest.approx(single)
    policy = cg.Policy.load(tmp_path / "policy.cgap")  # the first method's
    assert policy.method.name == "kernel-ucb"
    assert (policy.kernel, policy.ridge) == (cg.Gaussian.from_contexts(explore.contexts), 0.02)


def test_until_stops_early_by_contexts_that_are_not_deployed_on(undrawn, tmp_path):
    given = ["--until", "1.5", "--share", "0.6", "--methods", "contextual-gap", *SET]
    shown = call("run", *SMALL, *given, "--json", "--out", tmp_path)
    found = json.loads(shown.stdout)["stopping"]
    whole = cg.problems.Classification("iris").sample(seed=0)
    held_out, explore, exploit = whole.split(20, 30, 20)
    rule = cg.StoppingRule(1.5, 0.6, held_out.contexts)
    learner = learnt(explore, method="contextual-gap", rule=rule, **GIVEN)
    used = sum(learner.counts.values())
    assert 0 < used < 30
    assert (found["stopped_after"], found["of_steps"]) == (used, 30)
    assert found["saved"] == pytest.approx(1 - used / 30)
    assert found["average_regret"] == pytest.approx(regret(learner, exploit))
    assert found["bounds"] == "heuristic"
    shown = call("run", *SMALL, *given, "--out", tmp_path)
    assert f"contextual-gap stopped after {used} of 30 steps" in shown.stdout


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 90)
    frame = pd.DataFrame({"x": x, "y": rng.normal(size=90), "a": x, "b": 1 - x})
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.rename(columns={"a": "noise_a", "b": "noise_b"}).to_csv(tmp_path / "log.csv", index=False)
    return tmp_path


def test_your_own_table_is_shuffled_anew_each_time(undrawn, table):
    call("run", table / "table.csv", *TABLE, "--out", table / "out")
    assert cg.Policy.load(table / "out" / "policy.cgap").columns == ("x", "y")
    records = pd.read_parquet(table / "out" / "records.parquet")
    singles = records[(records["method"] == "best single arm") & (records["checkpoint"] == 45)]
    maker = cg.problems.Table(table / "table.csv", rewards=["a", "b"])
    parts = [maker.sample(seed=seed).split(45, 45)[1] for seed in (0, 1)]
    own = [part.regret_table.mean(axis=0).min() for part in parts]
    assert singles["average_regret"].tolist() == pytest.approx(own)
    assert len(set(own)) == 2


def test_rows_in_time_order_stay_so_and_the_errors_say_it(undrawn, table):
    shown = call("run", table / "table.csv", *TABLE, "--ordered", "--out", table / "out")
    assert "the methods' own randomness only" in shown.stdout
    assert "in every repetition" in (table / "out" / "report.html").read_text()
    records = pd.read_parquet(table / "out" / "records.parquet")
    assert records[records["method"] == "best single arm"]["average_regret"].nunique() == 1
    shown = call("run", table / "log.csv", *TABLE[2:], "--out", table / "out")
    assert cg.Policy.load(table / "out" / "policy.cgap").arms == ("noise_a", "noise_b")
    assert "the methods' own randomness only" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["nonsense"], ["no problem 'nonsense'", "sinusoids"]),
        (["nothing.csv", "--rewards", "a"], ["nothing.csv", "no such file"]),
        (["--methods", "magic"], ["method must be one of", "'magic'"]),
        (["--methods", ""], ["methods must name at least one method"]),
        ([*SMALL, "--scale", "-1"], ["scale must be positive", "-1"]),
        (["--rows", "100", "--explore", "100"], ["split asks for 101 rows", "100"]),
    ],
)
def test_mistakes_get_one_line_and_code_2(arguments, parts, tmp_path):
    result = call("run", *arguments, "--out", tmp_path / "out", code=2)
    for part in ("error:", *parts):
        assert part in result.stderr
    assert "Traceback" not in result.output


def test_names_with_colons_are_shown_as_they_are():
    shown = call("run", "nowhere:X", code=2)
    assert "nowhere:X: there is no module nowhere" in shown.output
