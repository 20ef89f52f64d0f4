"""The leaderboard as a page of Markdown, made of what was measured and nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from contextgap.methods.method import METHODS, RECOMMENDED
from contextgap.studies.experiments.compare import FULL, SINGLE, YARDSTICKS
from contextgap.studies.report.page import three_digits
from leaderboard.board import Contest
from leaderboard.places import DEPLOYED, SCENARIOS, VISITS, places
from leaderboard.ranking import ERRORS, Means, chance_alarms
from leaderboard.standings import FEWEST, Cell, Situation, Standing

WORSE, BETTER = "▲", "▼"


@dataclass(frozen=True, eq=False)
class Findings:
    """All that the page is made of."""

    contest: Contest
    command: str
    cells: Sequence[Cell]
    standings: Sequence[Standing]
    situations: Sequence[Situation]
    sizes: Sequence[Mapping[str, Any]]
    run: Sequence[str]
    left_out: Sequence[str] = ()

    @property
    def reference(self) -> str:
        return self.cells[0].labels[0]


def page_text(found: Findings) -> str:
    """Return the page."""
    parts = [_head(found), _summary(found), _situations(found), _cells(found), _protocol(found)]
    return "\n\n".join(parts) + "\n"


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
        all(row[place].lstrip("*")[:1] in "0123456789+−-–∞" for row in cells)
        for place in range(len(headers))
    ]
    rule = "|".join("---:" if number else "---" for number in numeric)
    lines = [f"| {' | '.join(headers)} |", f"|{rule}|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in cells])


def with_error(mean: float, error: float, signed: bool = False) -> str:
    """Return a mean with its standard error, to the error's second digit.

    Examples
    --------
    >>> with_error(0.12345, 0.0123), with_error(-3.0, 12.3, signed=True), with_error(0.5, 0.0)
    ('0.123 ± 0.012', '−3 ± 12', '0.500 ± 0')
    """
    if error == 0:
        text = three_digits(mean) if mean else "0"
        return (text.replace("-", "−") if mean <= 0 or not signed else f"+{text}") + " ± 0"
    places = max(0, 1 - math.floor(math.log10(float(f"{error:.1e}"))))
    sign = "+" if signed else ""
    return f"{mean:{sign}.{places}f} ± {error:.{places}f}".replace("-", "−")


def _head(found: Findings) -> str:
    contest, today = found.contest, date.today()
    problems = len({cell.problem for cell in found.cells})
    methods = len(found.cells[0].labels) - len(YARDSTICKS)
    missing = (
        f"\n\nLeft out, as their data were not present: {', '.join(found.left_out)}."
        if found.left_out
        else ""
    )
    chosen_on = (
        "; constants of the library and its default method were chosen on seeds below 300"
        if contest.first_seed >= 200
        else ""
    )
    return f"""# Leaderboard

{methods} methods on {problems} problems with default settings: `cg.Learner(arms, method=...)`,
which learns hyperparameters from the rewards. They explore {_listed(contest.budgets)} steps and are
then deployed, without feedback, on new rows. One command writes every number, table and figure of
this page, last on {today.day} {today:%B %Y}:

```
{found.command}
```

Numbers come {_repetitions(contest)}{chosen_on}.{_kept(found)}
All numbers are average simple regrets. Every row has two yardsticks. *{FULL.capitalize()}* is
the same model after observing the rewards of all arms at every context.
*{SINGLE.capitalize()}* is the arm that is best on average for the deployed rows, known in
hindsight; a method with more regret does not yet use the context. The reference is
`{found.reference}`{_role(found.reference)}.{missing}

The [problems](#problems), and how to [enter your own method](#a-method-of-your-own), are at the
end."""


def _repetitions(contest: Contest) -> str:
    first, last = contest.numbers[0], contest.numbers[-1]
    return f"from {contest.seeds} repetitions, seeds {first} to {last}"


def _kept(found: Findings) -> str:
    kept = [name for name in dict.fromkeys(c.problem for c in found.cells) if name not in found.run]
    if not kept:
        return ""
    return f"""
The rows of {_listed(found.run)} were run by it. Those of {_listed(kept)} are from an earlier run
of the same command without `--problems` and `--keep`; averages use the printed numbers."""


def _role(reference: str) -> str:
    if reference != "auto":
        return ""
    return f", the default: `{RECOMMENDED}`"


def _summary(found: Findings) -> str:
    own = [one for one in found.standings if one.rank is not None]
    rows = [
        [
            f"*{one.method}*" if one.rank is None else one.method,
            "1" if one.method == found.reference else _ratio(one),
            "–" if one.rank is None else f"{one.rank:.1f}",
            "–" if one.method == found.reference else one.better,
            "–" if one.method == found.reference else one.worse,
        ]
        for one in found.standings
    ]
    headers = ["method", f"regret over {found.reference}'s", "mean rank", "cells better", "worse"]
    alarms = chance_alarms(found.contest.seeds)
    return f"""## Over all problems

{markdown_table(headers, rows)}

The first number is the geometric mean, over budgets and then over problems, of a method's regret
over that of `{found.reference}`. In brackets is a 95 % interval from a bootstrap over
problems, with the sinusoids drawn together, and clicks with payments. If it contains 1, there is
no significant difference. A regret of 0 counts as half the smallest other one of its cell.

Ranks are among the {len(own)} methods. A cell is a problem at a budget. It counts as better or
worse where the mean difference to `{found.reference}`, seed by seed, is beyond two standard errors.
With {found.contest.seeds} seeds this happens by chance in about {100 * alarms:.0f} % of the cells
without a difference: of {len(found.cells)} cells in about {alarms * len(found.cells):.0f}.
Cells of one problem are not independent.

![Regret of every method over the reference's, by problem and budget](images/leaderboard-ratios.png)

*Regret over that of `{found.reference}`, by problem and number of steps. A dot: a significant
difference.*

![Regret by budget on several problems](images/leaderboard-curves.png)

*Mean regret by number of steps, with standard errors. Methods share their seeds, so two may
differ significantly although their bars overlap; see the tables below. Full information may be
below the axis.*"""


def _ratio(one: Standing) -> str:
    low, high = three_digits(one.low), three_digits(one.high)
    return f"{three_digits(one.ratio)} ({low} to {high})"


def _situations(found: Findings) -> str:
    order = [one.method for one in found.standings if one.rank is not None]
    others = [name for name in order if name != found.reference]
    rows = []
    for situation in found.situations:
        by_name = {one.method: one for one in situation.standings}
        shown = [_short(by_name[name]) for name in others]
        rows.append([situation.name, situation.problems, situation.cells, *shown])
    tried = len(others) * len(rows)
    return f"""## Which method in which situation

Regret over that of `{found.reference}`, as above, by situation; in brackets the numbers of cells
that are better and worse. Bold: the interval excludes 1, and there are at least
{FEWEST} independent problems. Of the {tried} entries one in twenty may be bold by chance: a single
one is a hint, not a finding.

{markdown_table(["situation", "problems", "cells", *others], rows)}"""


def _short(one: Standing) -> str:
    ratio = f"**{three_digits(one.ratio)}**" if one.significant else three_digits(one.ratio)
    return f"{ratio} ({one.better}, {one.worse})"


def _cells(found: Findings) -> str:
    tables = []
    for budget in found.contest.budgets:
        part = [cell for cell in found.cells if cell.budget == budget]
        if not part:
            continue
        headers = ["problem", *part[0].labels]
        tables.append(
            f"### After {budget} steps\n\n"
            + markdown_table(headers, [[cell.problem, *_regrets(cell)] for cell in part])
            + f"\n\nDifference to `{found.reference}`:\n\n"
            + markdown_table(
                ["problem", *part[0].labels[1:]],
                [[cell.problem, *_differences(cell)] for cell in part],
            )
        )
    return f"""## Cell by cell

Mean regret ± standard error, in the units of the problem. Bold: the lowest of the methods, and all
without a significant difference from it. Below each table are the differences to
`{found.reference}`, mean over seeds ± standard error; {BETTER} less regret and {WORSE} more, beyond
two standard errors.

{(chr(10) * 2).join(tables)}"""


def _regrets(cell: Cell) -> list[str]:
    shown = cell.regrets
    texts = [with_error(*pair) for pair in zip(shown.mean, shown.error, strict=True)]
    wins = [*cell.wins, *(False for _ in YARDSTICKS)]
    return [f"**{text}**" if win else text for text, win in zip(texts, wins, strict=True)]


def _differences(cell: Cell) -> list[str]:
    behind = cell.behind
    marks = np.where(behind.mean > 0, f" {WORSE}", f" {BETTER}")
    texts = [with_error(*pair, signed=True) for pair in zip(behind.mean, behind.error, strict=True)]
    rows = zip(texts, behind.significant, marks, strict=True)
    return [text + (str(mark) if apart else "") for text, apart, mark in rows][1:]


def _protocol(found: Findings) -> str:
    entered = {cell.problem for cell in found.cells}
    absent = [name for name in (*places(), *SCENARIOS) if name not in entered]
    without = f"Not entered here: {', '.join(dict.fromkeys(absent))}.\n\n" if absent else ""
    others = [name for name in METHODS if name not in found.cells[0].labels]
    left = f" Not entered here: {', '.join(others)}." if others else ""
    rows = [list(size.values()) for size in found.sizes]
    return f"""## Problems

{markdown_table(list(found.sizes[0]), rows)}

{without}- **sinusoids**: the paper's 20 sines. The number is the standard deviation of Gaussian
  noise in observed rewards, in units of that of the rewards. Regret is measured without noise.
- **spacecraft**: rows in time order, a new flight per seed. Learners observe readings with their
  noise; regret is measured against expected rewards. All budgets are deployed on the same
  {DEPLOYED} rows, those after the largest budget, so that a curve shows what was learnt and not
  where the satellite was.
- **digits, wine, breast_cancer, iris** are in their own units. Rows are drawn with replacement, so
  a row may be met several times, at most {VISITS} times on average; longer budgets are left out.
- **clicks** (0 or 1, about one in five) and **payments** (clicks that pay log-normal amounts) are
  those of `benchmarks/noisy_logs.py`: the noise is several times the signal.
- **doses**: 30 arms on a line, `benchmarks/dose_arms.py`. The learner knows their features.
- **Scenarios** of the Algorithm Selection Library: the seed names the fold to deploy on.
  Every training instance is met once, because running a solver again teaches nothing; longer
  budgets are left out.

Every seed is a new sample or split, which all methods share. Budgets are points of one exploration.
Data sets and scenarios exist once, so seeds are other splits of the same rows. Constants of the
library were chosen on some of these rows, which favours it a little.

## A method of your own

`--methods` takes names of methods, and explorers and methods of your own as `package.module:name`;
see [your own parts](extending.md). With an explorer `StillPossible` in a file `mine.py` in the
current folder,

```
python benchmarks/leaderboard/run.py --methods auto,mine:StillPossible --out out/mine
```

compares it with `auto`. Finished runs are kept in the folder `--out`, so methods, problems and
seeds can be added later. If the library's code or yours changes, they are run again. `--estimate`
runs one seed and extrapolates the time.{left}"""


def printed_cells(text: str, contest: Contest) -> list[Cell]:
    """Return the cells of an earlier page of the same methods, seeds and budgets, as printed."""
    if _repetitions(contest) not in text:
        raise ValueError(f"the page to keep must be {_repetitions(contest)}")
    labels = [*contest.entered(), *YARDSTICKS]
    cells = []
    for budget in contest.budgets:
        _, _, section = text.partition(f"### After {budget} steps\n")
        regrets, behind = (_rows(table) for table in _tables(section)[:2])
        if regrets.pop("problem") != labels:
            raise ValueError(f"the page to keep must compare {', '.join(labels)}, in this order")
        for problem, shown in regrets.items():
            wins = np.array([value.startswith("**") for value in shown[: -len(YARDSTICKS)]])
            gaps = _marked(["0 ± 0", *behind[problem]])
            cells.append(Cell(problem, budget, labels, _numbers(shown), gaps, wins))
    return cells


def _tables(text: str) -> list[str]:
    return re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)


def _rows(table: str) -> dict[str, list[str]]:
    heading, _, *rows = (line.strip("|").split("|") for line in table.splitlines())
    return {name.strip(): [cell.strip() for cell in rest] for name, *rest in (heading, *rows)}


def _numbers(shown: Sequence[str]) -> Means:
    plain = [re.sub(rf"[*{WORSE}{BETTER}]", "", text).replace("−", "-") for text in shown]
    mean, error = np.array([text.split("±") for text in plain], dtype=np.float64).T
    return Means(mean, error)


def _marked(shown: Sequence[str]) -> Means:
    """Return differences with errors, within their rounding, that agree with the printed marks."""
    found = _numbers(shown)
    marked = np.array([text.endswith((WORSE, BETTER)) for text in shown])
    limit = np.abs(found.mean) / ERRORS
    error = np.where(
        marked, np.minimum(found.error, limit * (1 - 1e-9)), np.maximum(found.error, limit)
    )
    return Means(found.mean, error)


def _listed(values: Sequence[Any]) -> str:
    words = [str(value) for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
