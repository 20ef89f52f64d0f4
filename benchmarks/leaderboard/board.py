"""What is compared, on what; and the records of it, one per problem, method, seed and budget."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import contextgap
from contextgap.base import checks
from contextgap.methods.method import Method, read_method
from contextgap.studies.experiments.compare import YARDSTICKS, evaluate_defaults
from leaderboard.places import Place, settings_of

if TYPE_CHECKING:
    from pandas import DataFrame

# Some hours with all problems and ten seeds: --estimate says. Where arms share, the knowledge
# gradient takes most of it. Of the rest, max-variance is much like elimination; --methods names any
# of them, and your own.
USUAL = (
    "auto",
    "contextual-gap",
    "knowledge-gradient",
    "elimination",
    "top-two-ts",
    "uniform",
)
# Parts of the package that have no say in a learner's picks.
_NO_SAY = ("cli", "compression", "export", "plot", "report", "testing", "theory")


@dataclass(frozen=True)
class Contest:
    """What is compared.

    Parameters
    ----------
    problems
        Names of places; empty for all.
    methods
        Names from ``METHODS``, "auto", or your own as "package.module:name".
    budgets
        Numbers of exploration steps after which to deploy.
    seeds, first_seed
        How many repetitions, and the seed of the first. Constants of the library were chosen on
        seeds below 100.
    reference
        The method that all others are compared with.
    """

    problems: tuple[str, ...] = ()
    methods: tuple[str, ...] = USUAL
    budgets: tuple[int, ...] = (100, 300, 1000, 2000)
    seeds: int = 10
    first_seed: int = 300
    reference: str = "auto"

    def __post_init__(self) -> None:
        budgets = sorted({checks.whole("budgets", budget, least=1) for budget in self.budgets})
        if not budgets:
            raise ValueError("budgets must name at least one number of steps, got none")
        checks.whole("seeds", self.seeds, least=1)
        object.__setattr__(self, "budgets", tuple(budgets))

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    def entered(self) -> dict[str, Method]:
        """Return the methods by name, the reference first."""
        return {name: read_method(name) for name in (self.reference, *self.methods)}

    def places(self, known: Mapping[str, Place]) -> list[Place]:
        """Return the problems to compare on."""
        unknown = [name for name in self.problems if name not in known]
        if unknown:
            raise ValueError(f"problems must be among {', '.join(known)}, got {unknown[0]!r}")
        return [known[name] for name in self.problems or known]


def compare_at(place: Place, contest: Contest, **how: Any) -> DataFrame:
    """Return the records of one problem; ``how`` is for ``execute``.

    Budgets beyond the rows that a problem has to explore are left out.
    """
    rounds = [place.pair(contest.budgets[-1], seed) for seed in contest.numbers]
    most = min(len(explore) for explore, _ in rounds)
    reachable = [budget for budget in contest.budgets if budget <= most]
    if not reachable:
        raise ValueError(
            f"{place.name} has {most} rows to explore; give a budget of at most that, or leave it "
            "out of --problems"
        )
    told = settings_of(rounds[0][0])
    found = evaluate_defaults(
        rounds,
        methods=contest.entered(),
        checkpoints=reachable,
        yardsticks=YARDSTICKS,
        seeds=contest.numbers,
        **({"settings": told} if told else {}),
        **how,
    ).records
    found = found.rename(columns={"checkpoint": "budget"})
    found["seed"] = [contest.numbers[place] for place in found.pop("repetition")]
    found.insert(0, "problem", place.name)
    return found


def seconds_of_runs(records: DataFrame) -> DataFrame:
    """Return the seconds by problem, method and seed.

    Budgets of one run share its seconds. Where every budget is a run of its own, all count.
    """
    runs = records.drop_duplicates(["problem", "method", "seed", "seconds"])
    return runs.groupby(["problem", "method", "seed"], sort=False)["seconds"].sum().reset_index()


def sizes(place: Place, contest: Contest) -> dict[str, Any]:
    """Return what readers want to know about a problem, from its first repetition."""
    explore, deploy = place.pair(contest.budgets[-1], contest.first_seed)
    return {
        "problem": place.name,
        "arms": explore.n_arms,
        "numbers per context": explore.dimension,
        "rows explored": len(explore),
        "different ones": len({row.tobytes() for row in explore.contexts}),
        "rows deployed on": len(deploy),
        "explored; deployed on": place.rows,
    }


def code_digest() -> str:
    """Return a name for the code that decides what a learner picks; comments do not count.

    Results are kept by it, as the package's version does not change with every change.
    """
    root = Path(contextgap.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in _NO_SAY:
            digest.update(f"{name.as_posix()} {ast.dump(ast.parse(path.read_text()))}".encode())
    return digest.hexdigest()[:12]
