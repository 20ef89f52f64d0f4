"""The leaderboard as it is started, small; its page and its figures."""

import importlib
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from contextgap.methods.method import METHODS, RECOMMENDED
from contextgap.studies.experiments.compare import FULL, SINGLE, YARDSTICKS
from leaderboard import board
from leaderboard.board import Contest, code_digest, compare_at, seconds_of_runs
from leaderboard.figures import curves, ratio_heat_map
from leaderboard.page import markdown_table
from leaderboard.places import places
from leaderboard.ranking import Means
from leaderboard.run import app, command_line, compare_all
from leaderboard.standings import cells_of
from tests.cli.test_policies import call

compare = importlib.import_module("contextgap.studies.experiments.compare")
SCRIPT = "python benchmarks/leaderboard/run.py"
OWN = "tests.studies.experiments.test_defaults_oracles:AlwaysTheLast"
TINY = [
    *("--problems", "wine,iris"),
    *("--methods", f"auto,uniform,{OWN}"),
    *("--budgets", "40,20"),
    *("--seeds", "2"),
    *("--jobs", "1"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboard")
    page = folder / "docs" / "board.md"
    return folder, page, call(*TINY, "--out", folder, "--page", page, app=app)


@pytest.fixture(scope="module")
def records(made):
    return pd.read_parquet(made[0] / "records.parquet")


def tables(text):
    """Return every table as rows of cells, its heading first."""
    blocks = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in blocks
    ]


@pytest.mark.slow
def test_there_is_a_record_per_problem_method_seed_and_budget(made, records):
    keys = ["problem", "method", "seed", "budget"]
    assert records.groupby(keys).size().eq(1).all()
    assert len(records) == 2 * (3 + 2) * 2 * 2
    assert sorted(records["seed"].unique()) == [300, 301]
    assert set(records["method"]) == {"auto", "uniform", OWN, *YARDSTICKS}
    assert "regret over that of auto" in made[2].stdout
    assert made[2].stderr == ""


@pytest.mark.slow
def test_records_are_those_of_single_runs(records):
    place = places()["wine"]
    explore, deploy = place.pair(40, 301)
    method = Contest().entered()["uniform"]
    expected = compare.explore_once(explore, deploy, method, [20, 40], 301)["reached"]
    chosen = records.query("problem == 'wine' and method == 'uniform' and seed == 301")
    assert chosen.set_index("budget")["average_regret"].to_dict() == {
        one["checkpoint"]: one["average_regret"] for one in expected
    }


@pytest.mark.slow
def test_the_pages_numbers_are_those_found(made, records):
    text = made[1].read_text()
    assert all(len({len(row) for row in table}) == 1 for table in tables(text))
    summary, situations, at_20, behind_20, at_40, _, sizes = tables(text)
    assert [row[0] for row in summary[-2:]] == [f"*{FULL}*", f"*{SINGLE}*"]
    assert len(summary) == 2 + 3 + 2
    assert [row[0] for row in situations[2:]] == [
        "fewer than 1000 steps",
        "little or no noise",
        "fewer than 6 arms",
    ]
    assert [row[0] for row in at_20[2:]] == [row[0] for row in sizes[2:]] == ["wine", "iris"]
    part = records.query("problem == 'iris' and budget == 20")
    by_seed = part.pivot(index="seed", columns="method", values="average_regret")
    shown = dict(zip(at_20[0], at_20[3], strict=True))
    mean, error = map(float, shown["uniform"].strip("*").split(" ± "))
    assert mean == pytest.approx(by_seed["uniform"].mean(), abs=error / 10 + 1e-3)
    assert error == pytest.approx(by_seed["uniform"].sem(), rel=0.06)
    gap = by_seed["uniform"] - by_seed["auto"]
    told = dict(zip(behind_20[0], behind_20[3], strict=True))["uniform"]
    assert ("▲" in told or "▼" in told) == (abs(gap.mean()) > 2 * gap.sem())
    assert float(told.split(" ±")[0].replace("−", "-")) == pytest.approx(gap.mean(), abs=0.01)
    lowest = part.groupby("method")["average_regret"].mean().drop(list(YARDSTICKS)).idxmin()
    assert shown[lowest].startswith("**")
    assert "±" in dict(zip(at_40[0], at_40[2], strict=True))[FULL]


@pytest.mark.slow
def test_the_page_names_its_command_and_shows_its_figures(made):
    _, page, _ = made
    text = page.read_text()
    assert f"{SCRIPT} --problems wine,iris --methods auto,uniform,{OWN} --budgets 20,40" in text
    named = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert named == ["images/leaderboard-ratios.png", "images/leaderboard-curves.png"]
    for name in named:
        assert (page.parent / name).read_bytes().startswith(b"\x89PNG")
    assert "chosen on seeds below 300" in text


@pytest.mark.slow
def test_problems_that_are_not_run_keep_the_rows_of_a_page(made, tmp_path):
    page, again = made[1], tmp_path / "again.md"
    one = [*TINY, "--problems", "iris", "--keep", page, "--page", again, "--out", tmp_path]
    call(*one, app=app)
    before, after = tables(page.read_text()), tables(again.read_text())
    assert after[2:] == before[2:]  # cell by cell, and sizes
    for kept, fresh in zip(after[0][2:], before[0][2:], strict=True):
        assert kept[0] == fresh[0]
        assert kept[2:] == fresh[2:]
        ratios = [float(row[1].split(" (")[0]) for row in (kept, fresh)]
        assert ratios[0] == pytest.approx(ratios[1], rel=0.05)
    text = again.read_text()
    assert "The rows of iris were run by it. Those of wine are from an earlier run" in text
    assert f"--problems iris --methods auto,uniform,{OWN} --budgets 20,40 --seeds 2 --keep" in text
    for options, words in (
        (["--methods", "auto,max-variance"], "the page to keep must compare auto, max-variance"),
        (["--first-seed", "301"], "the page to keep must be from 2 repetitions, seeds 301 to 302"),
    ):
        shown = call(*one, *options, code=2, app=app)
        assert words in shown.stderr.replace("\n", " ")


@pytest.mark.slow
def test_it_goes_on_where_it_stopped(made, monkeypatch, tmp_path):
    folder, _, _ = made
    runs = []
    original = compare.Learner
    monkeypatch.setattr(compare, "Learner", lambda *a, **k: runs.append(k) or original(*a, **k))
    contest = Contest(methods=("auto", "uniform", "max-variance"), budgets=(20, 40), seeds=2)
    found = compare_all([places()["iris"]], contest, 1, folder)
    assert len(runs) == 2  # the method that is new
    assert len(found) == (3 + 2) * 2 * 2
    monkeypatch.setattr("leaderboard.run.code_digest", lambda: "other code")
    runs.clear()
    compare_all([places()["iris"]], Contest(methods=("auto",), budgets=(20,), seeds=1), 1, folder)
    assert len(runs) == 1 + 1  # nothing of other code is used; full information fits once


def test_an_estimate_runs_one_seed(tmp_path):
    small = ["--problems", "iris", "--methods", "uniform", "--reference", "uniform"]
    once = ["--budgets", "20", "--seeds", "5", "--estimate"]
    shown = call(*TINY, *small, *once, "--out", tmp_path, app=app)
    assert "core-minutes of 5 seeds" in shown.stdout
    assert "core-minutes in all" in shown.stdout
    assert len(list(tmp_path.rglob("*.json"))) == 1 + 2


def test_seconds_of_a_run_count_once():
    rows = [("a", "ours", 1, 10, 3.0), ("a", "ours", 1, 20, 3.0)]  # one run, two budgets
    rows += [("a", FULL, 1, 10, 1.0), ("a", FULL, 1, 20, 5.0)]  # a fit for each
    columns = ["problem", "method", "seed", "budget", "seconds"]
    found = seconds_of_runs(pd.DataFrame(rows, columns=columns))
    assert found.set_index("method")["seconds"].to_dict() == {"ours": 3.0, FULL: 6.0}


def test_budgets_beyond_what_there_is_to_explore_are_left_out():
    few = places()["iris"]
    short = type(few)("short", lambda steps, seed: few.pair(min(steps, 25), seed), few.rows)
    contest = Contest(methods=("uniform",), reference="uniform", budgets=(20, 40), seeds=1)
    assert set(compare_at(short, contest)["budget"]) == {20}
    with pytest.raises(ValueError, match="short has 25 rows to explore"):
        compare_at(short, Contest(methods=("uniform",), budgets=(40,), seeds=1))


def test_auto_is_entered_once():
    contest = Contest(methods=("uniform", "auto"))
    assert list(contest.entered()) == ["auto", "uniform"]
    assert contest.entered()["auto"] == METHODS[RECOMMENDED]
    assert next(iter(Contest(methods=("auto",), reference="uniform").entered())) == "uniform"


def test_the_digest_is_of_code_and_not_of_comments(tmp_path, monkeypatch):
    package = tmp_path / "contextgap"
    (package / "models").mkdir(parents=True)
    (package / "report").mkdir()
    code, figure = package / "models" / "dense.py", package / "report" / "curves.py"
    monkeypatch.setattr(board.contextgap, "__file__", str(package / "__init__.py"))
    digests = []
    for text, drawn in (("x = 1", "a"), ("x = 1  # why", "b"), ("x = 2", "b")):
        code.write_text(text)
        figure.write_text(drawn)
        digests.append(code_digest())
    assert digests[0] == digests[1] != digests[2]


def test_the_command_says_what_is_not_usual():
    assert command_line(Contest(), None, None) == SCRIPT
    contest = Contest(problems=("iris",), seeds=7, first_seed=400, reference="uniform")
    assert command_line(contest, None, None) == (
        f"{SCRIPT} --problems iris --seeds 7 --first-seed 400 --reference uniform"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--problems", "sines"], "problems must be among sinusoids-0"),
        (["--methods", "magic,uniform"], "method must be one of"),
        (["--budgets", "10,many"], "--budgets must be whole numbers such as 100,1000"),
    ],
)
def test_bad_options_are_named(tmp_path, options, words):
    shown = call(*options, "--jobs", "1", "--out", tmp_path, code=2, app=app)
    assert words in shown.stderr.replace("\n", " ")


def ink_at_the_edge(figure):
    """Whether anything is drawn on the outermost two pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    edges = (pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:])
    return any((edge != 255).any() for edge in edges)


def many_cells():
    rng = np.random.default_rng(3)
    rows = [
        (problem, method, seed, budget, rng.uniform(0, 1))
        for problem in places()
        for method in (*Contest().entered(), *YARDSTICKS)
        for seed in range(3)
        for budget in (100, 300, 1000, 2000)
    ]
    columns = ["problem", "method", "seed", "budget", "average_regret"]
    return cells_of(pd.DataFrame(rows, columns=columns), "knowledge-gradient")


@pytest.mark.parametrize("draw", [ratio_heat_map, curves])
def test_figures_stay_on_their_paper(draw):
    assert not ink_at_the_edge(draw(many_cells()))


def test_figures_of_perfect_methods_can_be_drawn():
    regret = np.array([0.0] * (len(many_cells()[0].labels) - 1) + [1.0])  # of the single arm alone
    cells = [
        replace(cell, regrets=Means(regret, 0 * regret), behind=Means(regret, 0 * regret))
        for cell in many_cells()[:8]
    ]
    assert ratio_heat_map(cells).axes[0].images[0].get_array()[0, 0] == 0
    assert len(curves(cells).axes) == 2


def test_the_heat_map_has_the_ratios():
    cells = many_cells()
    figure = ratio_heat_map(cells)
    titles = [ax.get_title() for ax in figure.axes]
    panel = figure.axes[titles.index("uniform")].images[0].get_array()
    regret = dict(zip(cells[5].labels, cells[5].regrets.mean, strict=True))
    expected = np.log(regret["uniform"] / regret["knowledge-gradient"])
    assert panel[1, 1] == pytest.approx(np.clip(expected, -np.log(4), np.log(4)))


def test_a_pipe_in_a_cell_stays_in_it():
    assert markdown_table(["a"], [["x|y"]]).splitlines()[2] == "| x\\|y |"
