"""The leaderboard as a page of Markdown, made of what was measured and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contextgap.report.files import save
from contextgap.report.tables import three_digits
from leaderboard.board import Leaderboard
from leaderboard.contest import Contest
from leaderboard.figures import (
    critical_difference_diagram,
    rank_heat_map,
    recommender_heat_map,
    recommender_tables,
)
from leaderboard.standings import HIGH_NOISE, OVERALL, Standings

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


_TESTS = ("ranks at", "block", "blocks", "Friedman's χ²", "p", "critical difference")


def write_page(
    found: Leaderboard,
    standing: Standings,
    grid: DataFrame | None,
    page: Path,
    figures: Path,
    command: str,
) -> Path:
    """Write the page, with its figures in the folder ``images`` beside it.

    The folder ``figures`` keeps them as SVG and PNG. Without a grid, recommenders are left out.
    """
    overall = next(
        test for test in standing.tests if (test.ranked_at, test.block) == (OVERALL, "cell")
    )
    drawn = {
        "differences": critical_difference_diagram(standing.table, overall.difference),
        "ranks": rank_heat_map(standing.ranks),
    }
    if grid is not None and len(grid):
        drawn["recommenders"] = recommender_heat_map(grid)
    _draw(drawn, figures, page.parent / "images")
    page.write_text(page_text(found, standing, grid, command), encoding="utf-8")
    return page


def page_text(found: Leaderboard, standing: Standings, grid: DataFrame | None, command: str) -> str:
    """Return the page's text."""
    parts = [_head(found, command), _ranks(standing), _situations(standing), _cells(standing)]
    if grid is not None and len(grid):
        parts.append(_recommenders(grid, found.contest))
    return "\n\n".join([*parts, _protocol(found)]) + "\n"


def _draw(drawn: dict[str, Figure], figures: Path, images: Path) -> None:
    images.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        _, png = save(figure, figures, f"leaderboard-{name}")
        shutil.copyfile(png, images / png.name)


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table; columns of numbers, or of what starts like one, are flush right.

    Examples
    --------
    >>> print(markdown_table(["method", "rank"], [["uniform", 3.14159]]))
    | method | rank |
    |---|---:|
    | uniform | 3.14 |
    """
    cells = [[three_digits(value).replace("|", "\\|") for value in row] for row in rows]
    numeric = [
        all(row[place][:1] in "0123456789+−-–∞" for row in cells) for place in range(len(headers))
    ]
    rule = "|".join("---:" if number else "---" for number in numeric)
    lines = [f"| {' | '.join(headers)} |", f"|{rule}|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in cells])


def _head(found: Leaderboard, command: str) -> str:
    contest = found.contest
    return f"""# Leaderboard

{len(contest.methods)} methods on {len(contest.problems)} problems, each with
{_listed([f"{level:g}" for level in contest.noise])} standard deviations of the rewards as noise,
after {_listed([str(budget) for budget in contest.budgets])} exploration steps, mean of
{_count(contest.seeds, "seed")}. Every number, table and figure on this page was written by

```
{command}
```

Compared is the average simple regret: what the deployed rule misses, on average, on contexts it has
not met, without feedback. How it was done stands at the [end](#how-it-was-done)."""


def _ranks(standing: Standings) -> str:
    budgets = [name for name in standing.table.columns if str(name).startswith("at ")]
    rows = []
    ratios = standing.ratios
    for place, row in enumerate(standing.table.to_dict("records")):
        ratio = (
            "1"
            if place == 0
            else (
                f"{three_digits(float(ratios.estimate[place, 0]))} "
                f"({three_digits(float(ratios.low[place, 0]))} to "
                f"{three_digits(float(ratios.high[place, 0]))})"
            )
        )
        interval = f"{row['low']:.1f} to {row['high']:.1f}"
        each = [f"{row[name]:.1f}" for name in budgets]
        rows.append([row["method"], f"{row['rank']:.1f}", interval, *each, ratio])
    headers = ["method", "rank", "95 % interval", *(f"{name} steps" for name in budgets)]
    tests = [
        [
            test.ranked_at,
            test.block,
            test.friedman.blocks,
            test.friedman.statistic,
            test.friedman.p_value,
            test.difference,
        ]
        for test in standing.tests
    ]
    leader = standing.table["method"].iloc[0]
    return f"""## Ranks

In every cell, which is a problem at a noise level, the mean regret over seeds ranks the methods; 1
is the lowest, equals share the mean of their ranks. The table has averages over all cells and
budgets, and at each budget. The interval is a bootstrap in which whole problems are drawn again.
The last column is the geometric mean, over cells and budgets, of a method's regret over that of
`{leader}`, with such an interval; a regret of 0 counts there as half the smallest other regret of
its cell.

{markdown_table([*headers, f"regret over {leader}'s"], rows)}

![Average ranks; bars join methods that are not told apart](images/leaderboard-differences.png)

*Average ranks over all cells and budgets, with the bootstrap intervals. A bar on the right joins
methods whose ranks differ by less than Nemenyi's critical difference at the 5 % level, with cells
as blocks.*

{_tests_text(standing)}

{markdown_table(_TESTS, tests)}"""


def _tests_text(standing: Standings) -> str:
    problems = len(standing.ranks.index.unique("problem"))
    return (
        "Friedman's test asks whether all methods do equally well. It takes blocks to be\n"
        "independent. Cells of the same problem, which share their rows, are not, so p is too\n"
        "small and the critical difference too short where cells are the blocks. The rows with\n"
        f"problems as blocks rank each method by its mean over a problem's cells; {problems}\n"
        "problems are few, so those rows tell little apart and the bootstrap intervals are rough.\n"
        f"Over {OVERALL}, a block ranks methods by the mean of their ranks at each budget."
    )


def _situations(standing: Standings) -> str:
    rows = [
        [
            situation.name,
            _listed([f"{level:g}" for level in situation.noise]),
            _listed([str(budget) for budget in situation.budgets]),
            f"**{situation.best}**",
            f"{situation.rank:.1f}",
            ", ".join(situation.rivals) or "none",
        ]
        for situation in standing.situations
    ]
    headers = ["situation", "noise", "steps", "lowest rank", "its rank", "not told apart from it"]
    return f"""## Which method in which situation

The rule: in each situation, the method with the lowest average rank over its cells. Another is not
told apart from it where the 95 % bootstrap interval of the difference of their average ranks, whole
problems being drawn again, includes 0. Noise counts as high from {HIGH_NOISE:g} standard deviations
of the rewards; budgets are split at the geometric mean of the smallest and the largest. The best of
several is chosen and measured on the same cells, which flatters it.

{markdown_table(headers, rows)}"""


def _cells(standing: Standings) -> str:
    tables = []
    for budget in standing.means.index.unique("budget"):
        means = standing.means.xs(budget, level="budget")
        rows = [
            [f"{problem}, {noise:g}", float(values.min()), *_relative(values)]
            for (problem, noise), values in means.iterrows()
        ]
        headers = ["problem, noise", "lowest", *map(str, means.columns)]
        tables.append(f"After {budget} steps:\n\n{markdown_table(headers, rows)}")
    joined = "\n\n".join(tables)
    return f"""## Cell by cell

![Rank of every method in every cell](images/leaderboard-ranks.png)

*Ranks, averaged over budgets and rounded; bright is good.*

The tables have the lowest mean regret of each cell, and every method's as a multiple of it. Where
the lowest is 0, which has no multiples, the regret itself stands behind a plus sign.

{joined}"""


def _relative(values: Any) -> list[str]:
    best = float(values.min())
    if best > 0:
        return [three_digits(float(value) / best) for value in values]
    return ["0" if value == 0 else f"+{three_digits(float(value))}" for value in values]


def _recommenders(grid: DataFrame, contest: Contest) -> str:
    tables = [
        f"{problem}, noise {noise:g}:\n\n"
        + markdown_table(
            ["explorer", *map(str, table.columns)],
            [
                [name, *map(float, row)]
                for name, row in zip(table.index, table.to_numpy(), strict=True)
            ],
        )
        for (problem, noise), table in recommender_tables(grid).items()
    ]
    joined = "\n\n".join(tables)
    return f"""## What a recommender does to an explorer

Exploration does not depend on the rule to deploy by, so each row is one exploration of
{contest.steps} steps deployed by every recommender: average simple regret, mean of
{_count(contest.seeds, "seed")}. Each explorer has the settings tuned for it with the highest mean,
which favours that column.

![Mean regret by explorer and recommender](images/leaderboard-recommenders.png)

*Bright is good; each panel has its own scale.*

{joined}"""


def _protocol(found: Leaderboard) -> str:
    contest = found.contest
    seen = {cell.problem: cell for cell in found.cells}
    rows = []
    for name, cell in seen.items():
        explore, exploit = cell.rounds[0]
        distinct = len({row.tobytes() for row in explore.contexts})
        size = [explore.n_arms, explore.dimension, distinct, len(exploit)]
        rows.append([name, *size, cell.unit, ", ".join(str(len(h[1])) for h in cell.hold_outs)])
    headers = [
        "problem",
        "arms",
        "numbers per context",
        "different rows explored",
        "rows evaluated on",
        "standard deviation of rewards",
        "rows evaluated on when tuning",
    ]
    edge = int(found.settings["on_edge"].sum())
    seconds = found.records.groupby("method", sort=False)["seconds"].mean().sort_values()
    times = [[name, float(value)] for name, value in seconds.items()]
    return f"""## How it was done

- **Data.** Of sinusoids and spacecraft every repetition is a new sample: {contest.steps} rows to
  explore, then {contest.evaluate} to evaluate on, for the spacecraft in time order. The other data
  sets exist once and may have fewer rows than steps. Half of the rows is held out for tuning, half
  is compared on. In every repetition half of that half is for exploring, rows being drawn with
  replacement, and the rest is evaluated on, {contest.evaluate} rows at most.
- **Noise** is Gaussian, fresh at every visit, and only in what a learner hears; regret is measured
  without. Its unit is the standard deviation of the problem's rewards over arms and rows.
- **Tuning** is the same for all methods: a grid of {contest.grid} spreads × {contest.grid} ridges,
  Gaussian kernel, prior mean 0, intervals of one standard deviation, at the same noise and the
  largest budget, for each cell anew. The lowest mean regret over
  {_count(contest.hold_outs, "held-out repetition")} decides, on rows, or samples, that nothing is
  compared on; of equals, the setting whose neighbours on the grid do best. {edge} of the
  {len(found.settings)} settings chosen lie on the grid's edge.
- **Budgets** are points of one exploration, at the settings tuned for the largest.
- **Repetitions** {_first_seeds(contest.seeds)} share rows and noise among methods.

{markdown_table(headers, rows)}

Mean seconds per run of {contest.steps} steps:

{markdown_table(["method", "seconds"], times)}"""


def _first_seeds(count: int) -> str:
    return "with seed 0" if count == 1 else f"with seeds 0 to {count - 1}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
