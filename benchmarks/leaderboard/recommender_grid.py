"""What each rule to deploy by does to each rule to explore by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from contextgap.experiments.reproduce import Workshop
from contextgap.experiments.tasks import execute
from contextgap.explorers import Explorer
from contextgap.methods import METHODS, Method
from contextgap.problems.extras import study_import
from contextgap.recommenders import (
    HighestMean,
    HighestUpper,
    PosteriorSample,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)
from leaderboard.board import round_task, tune_cells
from leaderboard.contest import Contest, cells_of

if TYPE_CHECKING:
    from pandas import DataFrame

RECOMMENDERS: Mapping[str, Recommender] = MappingProxyType(
    {
        "smallest gap": SmallestGap(),
        "smallest gap in history": SmallestGapInHistory(),
        "highest mean": HighestMean(),
        "highest upper": HighestUpper(),
        "posterior sample": PosteriorSample(),
    }
)
PLACES = (("sinusoids", 0.0), ("sinusoids", 0.5), ("spacecraft", 0.0))


def recommender_grid(contest: Contest, workshop: Workshop) -> DataFrame:
    """Deploy after every method's exploration by every recommender, at the largest budget.

    Every explorer is tuned with ``HighestMean``, and keeps its settings whatever the recommender:
    exploration does not depend on the rule to deploy by, so that a row of the grid is one
    exploration seen by five rules. Places whose problem is not in the contest are left out.
    """
    pandas = study_import("pandas")
    explorers: dict[str, Explorer] = {}
    for name in contest.methods:  # of methods that explore alike, the first names the explorer
        if METHODS[name].explorer not in explorers.values():
            explorers[name] = METHODS[name].explorer
    tuned = {
        label: Method(explorer=explorer, recommender=HighestMean())
        for label, explorer in explorers.items()
    }
    cells = tuple(
        cell
        for problem, noise in PLACES
        if problem in contest.problems
        for cell in cells_of(problem, (noise,), contest)
    )
    names = ["problem", "noise", "explorer", "recommender", "seed"]
    if not cells:
        return pandas.DataFrame(columns=[*names, "average_regret"])
    tunings = tune_cells(cells, tuned, contest, workshop, "tuning explorers")
    places = [
        (i, explorer, recommender, seed)
        for i in range(len(cells))
        for explorer in explorers
        for recommender in RECOMMENDERS
        for seed in range(contest.seeds)
    ]
    tasks = [
        round_task(
            cells[i],
            Method(explorer=explorers[explorer], recommender=RECOMMENDERS[recommender]),
            tunings[i][explorer],
            (contest.steps,),
            seed,
        )
        for i, explorer, recommender, seed in places
    ]
    results = execute(tasks, **workshop.how("deploying by every recommender"))
    rows = [
        (cells[i].problem, cells[i].noise, *rest, result["average_regret"][-1])
        for (i, *rest), result in zip(places, results, strict=True)
    ]
    return pandas.DataFrame(rows, columns=[*names, "average_regret"])
