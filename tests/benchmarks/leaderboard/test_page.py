"""The leaderboard's figures and page."""

import re

import numpy as np
import pandas as pd
import pytest

from contextgap.methods import METHODS
from leaderboard.board import Leaderboard
from leaderboard.contest import Contest, cells_of
from leaderboard.figures import (
    critical_difference_diagram,
    rank_heat_map,
    recommender_heat_map,
)
from leaderboard.page import markdown_table, page_text, write_page
from leaderboard.standings import standings

CONTEST = Contest(problems=("sinusoids", "iris"), budgets=(30, 60), seeds=2, evaluate=40)


def make_records(contest=CONTEST, seed=3):
    rng = np.random.default_rng(seed)
    rows = [
        (problem, noise, budget, method, number, rng.uniform() * (place + 1) / budget, 1.0, 0.1)
        for problem in contest.problems
        for noise in contest.noise
        for budget in contest.budgets
        for place, method in enumerate(contest.methods)
        for number in range(contest.seeds)
    ]
    keys = ["problem", "noise", "budget", "method", "seed"]
    return pd.DataFrame(rows, columns=[*keys, "average_regret", "worst_regret", "seconds"])


def make_grid():
    rng = np.random.default_rng(4)
    rows = [
        ("sinusoids", noise, explorer, recommender, seed, rng.uniform(0.01, 1))
        for noise in (0.0, 0.5)
        for explorer in ("contextual-gap", "uniform")
        for recommender in ("smallest gap", "highest mean")
        for seed in range(2)
    ]
    columns = ["problem", "noise", "explorer", "recommender", "seed", "average_regret"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture(scope="module")
def found():
    cells = tuple(c for name in CONTEST.problems for c in cells_of(name, (0.0,), CONTEST))
    settings = pd.DataFrame({"on_edge": [True, False, True]})
    return Leaderboard(CONTEST, make_records(), settings, cells)


@pytest.fixture(scope="module")
def standing(found):
    return standings(found.records)


@pytest.fixture(scope="module")
def page(found, standing, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    return write_page(
        found, standing, make_grid(), folder / "docs.md", folder / "figures", "contextgap x"
    )


def lines_with(axes, gid):
    return [line for line in axes.lines if line.get_gid() == gid]


def inside(figure):
    """Whether every text lies within the figure."""
    figure.canvas.draw()
    box = figure.bbox
    texts = [t for t in figure.findobj(lambda a: hasattr(a, "get_text")) if t.get_text().strip()]
    for text in texts:
        if not text.get_visible():
            continue
        extent = text.get_window_extent()
        if extent.width and not (
            extent.x0 >= box.x0 - 1
            and extent.x1 <= box.x1 + 1
            and extent.y0 >= box.y0 - 1
            and extent.y1 <= box.y1 + 1
        ):
            return f"{text.get_text()!r} at {extent}"
    return ""


def test_bars_join_what_is_not_told_apart():
    table = pd.DataFrame(
        {
            "method": ["uniform", "kernel-ts", "kernel-ucb"],
            "rank": [2.6, 1.2, 2.2],
            "low": [2.0, 1.0, 2.0],
            "high": [3.0, 2.0, 3.0],
        }
    )
    figure = critical_difference_diagram(table, 0.5)
    axes = figure.axes[0]
    (bar,) = lines_with(axes, "not told apart")
    low, high = bar.get_ydata()
    assert (round(low), round(high)) == (1, 2)  # the second and third row
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["kernel-ts", "kernel-ucb", "uniform"]
    assert [line.get_xdata()[0] for line in lines_with(axes, "rank")] == [1.2, 2.2, 2.6]
    assert inside(figure) == ""


@pytest.mark.parametrize("difference", [0.9, 3.56, 6.2, 30.0])
def test_the_diagram_stays_on_its_paper(standing, difference):
    assert inside(critical_difference_diagram(standing.table, difference)) == ""


def test_the_heat_map_has_the_ranks(standing):
    figure = rank_heat_map(standing.ranks)
    values = figure.axes[0].images[0].get_array()
    assert values.shape == (len(METHODS), 2 * 3)
    cell = standing.ranks.xs(("iris", 0.5), level=("problem", "noise")).mean()
    np.testing.assert_allclose(values[:, 5], cell.to_numpy())
    assert inside(figure) == ""


def test_the_recommender_heat_map_has_the_means():
    grid = make_grid()
    figure = recommender_heat_map(grid)
    assert [ax.get_title() for ax in figure.axes] == ["sinusoids, noise 0", "sinusoids, noise 0.5"]
    values = figure.axes[1].images[0].get_array()
    rows = grid[(grid.noise == 0.5) & (grid.explorer == "uniform")]
    mean = rows[rows.recommender == "highest mean"].average_regret.mean()
    assert values[1, 1] == pytest.approx(mean)
    assert inside(figure) == ""


def test_the_page_shows_every_figure_it_names(page):
    text = page.read_text()
    named = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert named == [
        "images/leaderboard-differences.png",
        "images/leaderboard-ranks.png",
        "images/leaderboard-recommenders.png",
    ]
    for name in named:
        assert (page.parent / name).read_bytes().startswith(b"\x89PNG")
    assert (page.parent / "figures" / "leaderboard-ranks.svg").exists()
    assert "contextgap x\n" in text


def tables(text):
    """Return every table as rows of cells, its heading first."""
    blocks = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in blocks
    ]


def test_the_pages_numbers_are_those_found(page, found, standing):
    first, tests, situations, at_30, *_ = tables(page.read_text())
    assert [row[0] for row in first[2:]] == standing.table["method"].tolist()
    assert [row[1] for row in first[2:]] == [f"{r:.1f}" for r in standing.table["rank"]]
    assert len(tests) == 2 + len(standing.tests)
    assert [row[3].strip("*") for row in situations[2:]] == [s.best for s in standing.situations]
    assert len(at_30) == 2 + 2 * 3
    row = dict(zip(at_30[0], at_30[2], strict=True))
    cell = found.records.query("problem == 'sinusoids' and noise == 0 and budget == 30")
    means = cell.groupby("method").average_regret.mean()
    assert float(row["lowest"]) == pytest.approx(means.min(), rel=5e-3)
    assert float(row["uniform"]) == pytest.approx(means["uniform"] / means.min(), rel=5e-3)
    assert all(len({len(row) for row in table}) == 1 for table in tables(page.read_text()))


def test_without_a_grid_there_is_no_section_of_it(found, standing):
    assert "recommender" in page_text(found, standing, make_grid(), "x")
    for nothing in (None, make_grid()[:0]):
        assert "recommender" not in page_text(found, standing, nothing, "x")


def test_no_multiples_of_zero(found):
    records = make_records()
    nothing = (records.method == "uniform") & (records.problem == "iris")
    records.loc[nothing, "average_regret"] = 0.0
    board = Leaderboard(CONTEST, records, found.settings, found.cells)
    table = tables(page_text(board, standings(records), None, "x"))[3]
    row = dict(zip(table[0], next(row for row in table if row[0] == "iris, 0"), strict=True))
    assert row["uniform"] == "0"
    means = records.query(
        "problem == 'iris' and noise == 0 and budget == 30 and method=='kernel-ts'"
    )
    assert float(row["kernel-ts"]) == pytest.approx(means.average_regret.mean(), rel=5e-3)
    assert row["kernel-ts"].startswith("+")


def test_a_pipe_in_a_cell_stays_in_it():
    assert markdown_table(["a"], [["x|y"]]).splitlines()[2] == "| x\\|y |"
