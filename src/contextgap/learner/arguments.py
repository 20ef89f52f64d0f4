"""What users tell a learner: rewards, features of arms and costs, which it predicts.

Told costs are predicted in logarithms, those of each arm apart: log(cost/known cost), or log(cost)
where none is known, is a mean plus a kernel regression with the learner's own kernel, scaled to
k(x, x) = 1. Its regularisation is the one of ``_RATIOS`` with the lowest leave-one-out error, the
last of which leaves the mean alone. Exponentials are typical costs: geometric means.

The time T of a run is believed to be normal with mean μ and variance v = s² + ridge, s² being the
variance of its expectation f, and positive. A run that ends at t ≤ c leaves f with the mean
μ + (t − μ)·s²/v; of one that is cut off at c it is known that T > c, and the mean is the average of
those. So the gain

    E[lowest mean now − lowest mean then]

of a cutoff c, the other arms' means being fixed, is an average over quantiles of T. An arm that
seems slower than the best other one need run only until it is known not to be faster: a longer
cutoff has the same gain and takes more time. The cutoff is the one of C, C/2, C/4, ... with the
highest gain per expected time E[min(T, c)]; none is shorter than half the shortest run so far that
was not cut off. Where no cutoff gains anything, it is the shortest of at least twice the lowest
mean, which tells whether an arm is about as fast as the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.checks import Label, Mask, finite_vector, groups, read_eligible
from contextgap.beliefs import Belief
from contextgap.kernels import Kernel
from contextgap.methods.recommenders import Recommender, SmallestGapInHistory
from contextgap.models import Eligible, Features, Model, Observations, refitted_model
from contextgap.policy.policy import Policy
from contextgap.tables.columns import TableSchema
from contextgap.tables.contexts import Encoded
from contextgap.tables.table import Table

if TYPE_CHECKING:
    from contextgap.learner.state import LearnerState

_NONE: FloatArray = np.empty(0)
_LARGEST = 1e100
_LARGEST_REWARD = 1e45  # a kernel's factor may be learnt, and is then about a reward squared
_ORDINARY = 1e4  # below it, kernels of a reasonable degree stay far from the largest


def read_points(points: Any, recommender: Recommender) -> int | None:
    if points is not None:
        checks.whole("points", points, least=2)
    # Inducing points keep no history, and a look-back needs every step.
    return None if isinstance(recommender, SmallestGapInHistory) else points


def read_outcomes(
    count: int, arms: Any, rewards: Any, place_of: Callable[[Any], int]
) -> tuple[IntArray, FloatArray]:
    if hasattr(arms, "to_list"):  # a pandas or polars Series
        arms = arms.to_list()
    scalar_array = isinstance(arms, np.ndarray) and arms.ndim == 0
    if scalar_array or isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray):
        raise TypeError(f"arms must be a sequence of labels, one per context, got {arms!r}")
    values = checks.finite_vector("rewards", rewards, checks.reward)
    checks.same_length(contexts=count, arms=len(arms), rewards=len(values))
    return np.array([place_of(arm) for arm in arms], dtype=np.intp), values


def read_told_eligible(
    eligible: Any,
    labels: Sequence[Label],
    active: Sequence[int],
    tried: Sequence[int] | IntArray,
    *,
    single: bool,
) -> list[Eligible] | None:
    """Return the indices of the arms eligible at each context told; None if unknown."""
    order = [*active, *(i for i in range(len(labels)) if i not in active)]
    named = [labels[i] for i in order]
    mask = read_eligible(
        eligible,
        named[: len(active)],
        len(tried),
        single=single,
        called="eligible",
        retired=named[len(active) :],
    )
    if mask is None:
        return None
    sets: list[Eligible] = [None] * len(tried)
    for rows, columns in groups(mask):
        own = tuple(sorted(order[column] for column in columns))
        for row in rows.tolist():
            if tried[row] not in own:
                where = "" if single else f" at row {row}"
                raise ValueError(
                    f"eligible must hold the arm that was tried, {labels[tried[row]]!r}{where}, "
                    f"got {[labels[i] for i in own]}"
                )
            sets[row] = own
    return sets


def check_sizes(kernel: Kernel, contexts: FloatArray, rewards: FloatArray = _NONE) -> None:
    """Refuse numbers that would overflow, here or later in a sum of squares."""
    # A sum of squares bounds every entry, and takes one pass.
    if np.vdot(rewards, rewards) + np.vdot(contexts, contexts) <= _ORDINARY**2:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        prior_variance = kernel.diagonal(contexts)
    limits = (("rewards", rewards, _LARGEST_REWARD), ("contexts", contexts, _LARGEST))
    for name, values, most in limits:
        if not (np.abs(values) <= most).all():
            worst = values.flat[np.abs(values).argmax()]
            raise ValueError(f"{name} must be at most {most:g} in size, got {worst:g}")
    if not (prior_variance <= _LARGEST).all():
        raise ValueError(
            "contexts must be smaller, or scaled: the kernel's value k(x, x) must be at most "
            f"{_LARGEST:g}, got {prior_variance.max():g}"
        )


class Told(NamedTuple):
    arms: IntArray
    rewards: FloatArray
    noise: FloatArray  # variances besides the ridge
    censored: Mask  # of rewards that are at most what was told
    eligible: list[Eligible] | None
    costs: FloatArray  # NaN where none was told


def read_censored(censored: Any, count: int, *, single: bool) -> Mask:
    if censored is None:
        return np.zeros(count, dtype=bool)
    if isinstance(censored, bool | np.bool_):
        return np.full(count, bool(censored))
    if hasattr(censored, "to_numpy"):
        censored = censored.to_numpy()
    hint = "True or False" + ("" if single else ", or one of them per context")
    if single or isinstance(censored, str) or not isinstance(censored, Sequence | np.ndarray):
        raise TypeError(f"censored must be {hint}, got {censored!r}")
    checks.same_length(contexts=count, censored=len(censored))
    for row, each in enumerate(censored):
        if not isinstance(each, bool | np.bool_):
            raise TypeError(f"censored must be {hint}, got {each!r} at row {row}")
    return np.array(censored, dtype=bool)


def read_noise(noise: Any, censored: Mask, count: int, *, single: bool) -> FloatArray:
    if noise is None:
        return np.zeros(count)
    if single or not hasattr(noise, "__len__"):
        given = np.full(count, checks.at_least("noise", noise, 0.0, "a standard error"))
    else:
        given = checks.finite_vector("noise", noise)
        checks.same_length(contexts=count, noise=len(given))
        if given.min(initial=0.0) < 0:
            raise ValueError(f"noise must be standard errors of at least 0, got {given.min():g}")
    if given.max(initial=0.0) > _LARGEST_REWARD:
        raise ValueError(f"noise must be at most {_LARGEST_REWARD:g}, got {given.max():g}")
    if (given[censored] > 0).any():
        raise ValueError("noise must be 0, or left out, where a reward is censored")
    return given


def read_chances(propensities: Any, count: int) -> list[float | None]:
    """Return the probability with which each of some picks was made; None where it is unknown."""
    if propensities is None:
        return [None] * count
    given = propensities if isinstance(propensities, Sequence | np.ndarray) else [propensities]
    checks.same_length(contexts=count, propensities=len(given))
    for each in given:
        if each is not None and not 0 < checks.real("propensities", each, "above 0") <= 1:
            raise ValueError(f"propensities must be above 0 and at most 1, got {each!r}")
    return [None if each is None else float(each) for each in given]


_HINT = 'features must map every arm to its numbers, such as {"A": [1.0, 0.2], "B": [2.0, 0.1]}'


@dataclass(frozen=True, eq=False)
class ArmFeatures:
    """Features of arms, a row for each; ``table`` is how categories become numbers, if any."""

    names: tuple[str, ...]
    table: TableSchema | None
    rows: FloatArray

    @classmethod
    def of(cls, cells: Sequence[Sequence[Any]], names: Sequence[str]) -> Self:
        columns = [list(column) for column in zip(*cells, strict=True)]
        table = TableSchema.inferred(names, columns)
        if table is None:
            rows = np.array([finite_vector("features", row) for row in cells])
        else:
            rows, table = table.encode(columns, learning=True)
        check_size(rows)
        return cls(tuple(names), table, rows)

    @property
    def numbers(self) -> Features:
        return Features(self.rows, 0 if self.table is None else self.table.layout.categories)

    def with_arm(self, features: Any) -> Self:
        cells = _cells(features, self.names)
        if len(cells) != len(self.names):
            raise ValueError(
                f"features must be {len(self.names)} numbers, as for the other arms, "
                f"got {len(cells)}"
            )
        if self.table is None:
            row = finite_vector("features", cells)
            check_size(row)
            return replace(self, rows=np.vstack([self.rows, row]))
        try:
            row, table = self.table.encode_row(cells, learning=True)
        except (TypeError, ValueError) as error:
            raise type(error)(f"features {error}") from None
        return replace(self, rows=np.vstack([self.rows, row]), table=table)

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {"features": self.rows.tolist()}
        if self.table is None:
            described["feature_names"] = list(self.names)
        else:
            described["feature_columns"] = self.table.describe()
        return described

    @classmethod
    def restored(cls, header: Mapping[str, Any], labels: Sequence[Label]) -> ArmFeatures | None:
        found = read_features(header.get("features"), labels)
        if found is not None and "feature_names" in header:
            names = header["feature_names"]
            if [type(name) for name in names] != [str] * len(found.names):
                raise ValueError("the features of the arms are not as many as their names")
            found = replace(found, names=tuple(names))
        if found is not None and "feature_columns" in header:
            table = TableSchema.restored(header["feature_columns"])
            found = replace(found, table=table, names=table.columns)
            if table.dimension != found.rows.shape[1]:
                raise ValueError("the features of the arms are not what their columns say")
        return found


def read_features(features: Any, labels: Sequence[Label]) -> ArmFeatures | None:
    """Return one row per arm, from a mapping, a DataFrame or rows in their order; None for None."""
    if features is None:
        return None
    names: list[str] | None = None
    if isinstance(features, Table):
        rows = list(zip(*features.by_column, strict=True))
        names = None if features.names is None else list(features.names)
        names, features = (None, rows) if names is None else _by_arm(names, rows, labels)
    elif hasattr(features, "rows") and hasattr(features, "columns"):  # polars has no index
        names, features = _by_arm(list(features.columns), features.rows(), labels)
    elif hasattr(features, "index") and hasattr(features, "to_numpy"):
        if not features.index.is_unique:
            raise ValueError("features must have one row for each arm, got an arm twice")
        if not hasattr(features, "columns"):
            features = features.to_frame("0")
        names = [str(name) for name in features.columns]
        rows = features.astype(object).to_numpy().tolist()
        numbered = features.index.tolist() == list(range(len(rows)))
        if numbered and not set(labels) & set(features.index):
            names, features = _by_arm(names, rows, labels)
        else:
            features = dict(zip(features.index, rows, strict=True))
    if isinstance(features, Mapping):
        missing = [label for label in labels if label not in features]
        if missing or len(features) > len(labels):
            wrong = (
                f"{missing[0]!r} has none"
                if missing
                else f"{next(iter(set(features) - set(labels)))!r} is not an arm"
            )
            raise ValueError(f"{_HINT}; {wrong}")
        features = [features[label] for label in labels]
    if isinstance(features, str) or not isinstance(features, Sequence | np.ndarray):
        raise TypeError(f"{_HINT}, got {type(features).__name__}")
    if len(features) != len(labels):
        raise ValueError(f"features must have a row for each of {len(labels)} arms")
    first = features[0]
    if isinstance(first, Mapping) or hasattr(first, "to_dict"):
        names = [str(name) for name in dict(first)]
    cells = [_cells(row, names) for row in features]
    if len({len(row) for row in cells}) != 1:
        raise ValueError("features must be equally many for all arms")
    try:
        return ArmFeatures.of(cells, names or [str(place) for place in range(len(cells[0]))])
    except (TypeError, ValueError) as error:
        text = str(error)
        raise type(error)(text if text.startswith("features") else f"features {text}") from None


def _by_arm(names: list[str], rows: list[Any], labels: Sequence[Label]) -> tuple[list[str], Any]:
    """Return names and rows of a table, by arm if a column holds the arms, which is no feature."""
    arms = {str(label): label for label in labels}
    for place, name in enumerate(names):
        column = [row[place] for row in rows]
        texts = all(isinstance(cell, str) for cell in column)
        if texts and set(column) == set(arms) and len(column) == len(arms) == len(labels):
            others = [[*row[:place], *row[place + 1 :]] for row in rows]
            features = {arms[cell]: row for cell, row in zip(column, others, strict=True)}
            return [other for other in names if other != name], features
    return names, rows


def _cells(features: Any, names: Sequence[str] | None) -> list[Any]:
    """Return the features of one arm; a number or a word alone counts as a row of one."""
    if hasattr(features, "index") and hasattr(features, "to_dict"):  # a Series
        features = {str(name): value for name, value in features.to_dict().items()}
    if isinstance(features, Mapping):
        lacking = [name for name in names or () if name not in features]
        if lacking:
            raise ValueError(f"features lack {lacking[0]!r} in {dict(features)}")
        return [features[name] for name in names or features]
    if isinstance(features, str) or np.ndim(features) == 0:
        return [features]
    cells = features.tolist() if isinstance(features, np.ndarray) else list(features)
    if not cells:
        raise ValueError("features must be at least one number for each arm")
    return cells


def check_size(rows: FloatArray) -> None:
    if (np.abs(rows) > _LARGEST).any():
        raise ValueError(
            f"features must be at most {_LARGEST:g} in size, got {np.abs(rows).max():g}"
        )


_RATIOS = (0.01, 0.1, 1.0, 1e9)  # of noise to signal
_MOST = 128  # costs of an arm that the regression rests on, evenly spread
_GROWTH = 1.1  # of an arm's costs between two regressions, once there are more than _FEW
_FEW = 32
_SAMPLE = 100  # contexts at which regret is expected
_FLAT = 0.1  # powers of spending below which regret does not seem to fall
_DIGITS = 9  # of logarithms: costs that are the same must not differ by rounding


def read_known_costs(costs: Any, labels: Sequence[Label]) -> tuple[float, ...] | None:
    if costs is None:
        return None
    if not isinstance(costs, Mapping):
        raise TypeError(f"costs must map arms to costs, such as {{'a': 1, 'b': 5}}, got {costs!r}")
    if unknown := [arm for arm in costs if arm not in labels]:
        raise ValueError(f"costs must be about arms among {list(labels)}, got {unknown[0]!r}")
    for label in labels:
        if label not in costs:
            raise ValueError(f"costs must have a cost for every arm; {label!r} has none")
    return tuple(read_cost("costs", costs[label]) for label in labels)


def read_cost(called: str, cost: Any) -> float:
    value = checks.positive(called, cost, "what a trial costs")
    if value > _LARGEST_REWARD:
        raise ValueError(f"{called} must be at most {_LARGEST_REWARD:g}, got {value:g}")
    return value


def read_told_costs(cost: Any, count: int, *, single: bool, called: str = "cost") -> FloatArray:
    """Return what trials at so many contexts cost, NaN where that was not told."""
    if cost is None:
        return np.full(count, np.nan)
    if single or not hasattr(cost, "__len__"):
        return np.full(count, read_cost(called, cost))
    given = checks.finite_vector(called, cost)
    checks.same_length(contexts=count, **{called: len(given)})
    for extreme in (given.min(), given.max()) if count else ():
        read_cost(called, float(extreme))
    return given


def spending(log: Observations, known: Sequence[float] | None) -> FloatArray:
    """Return what each trial cost: as told, else as known, else 1."""
    usual = np.ones(len(log)) if known is None else np.array(known)[log.arms]
    return np.where(np.isnan(log.costs), usual, log.costs)


class _Fit(NamedTuple):
    contexts: FloatArray
    mean: float
    weights: FloatArray  # of the kernel's values


class CostModel:
    """Predicts costs from those told so far; a log that grows is read anew from time to time.

    What it predicts depends on the log and the kernel alone.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._fits: dict[int, tuple[int, _Fit]] = {}

    def typical(
        self, contexts: FloatArray, arms: Sequence[int], known: Sequence[float] | None
    ) -> FloatArray | None:
        """Return typical costs, contexts by arms; None if nothing is known or told about any."""
        log = self.model.observed
        if not log.has_costs and known is None:
            return None
        prior = np.zeros(log.n_arms) if known is None else np.log(known)
        logs = np.tile(prior[list(arms)], (len(contexts), 1))
        if log.has_costs:
            told = ~np.isnan(log.costs)
            for column, arm in enumerate(arms):
                logs[:, column] += self._predicted(contexts, arm, log, told, prior)
        return np.exp(np.round(logs, _DIGITS))

    def _predicted(
        self, contexts: FloatArray, arm: int, log: Observations, told: Any, prior: FloatArray
    ) -> FloatArray | float:
        places = log.places(arm)[told[log.places(arm)]]
        if not len(places):
            return _mean_log(log, np.flatnonzero(told), prior)
        count = len(places)
        if count > _FEW:
            steps = math.floor(math.log(count / _FEW) / math.log(_GROWTH) + 1e-9)
            count = min(count, math.floor(_FEW * _GROWTH**steps + 1e-9))
        if self._fits.get(arm, (0, None))[0] != count:
            before = np.flatnonzero(told[: places[count - 1] + 1])
            usual = _mean_log(log, before, prior)
            used = evenly(places[:count], _MOST)
            logs = np.log(log.costs[used]) - prior[arm]
            mean = (logs.sum() + usual) / (len(logs) + 1)
            weights = _weights(_unit(self.model.kernel, *[log.contexts[used]] * 2), logs - mean)
            self._fits[arm] = count, _Fit(log.contexts[used], mean, weights)
        fit = self._fits[arm][1]
        return fit.mean + _unit(self.model.kernel, contexts, fit.contexts) @ fit.weights


def _mean_log(log: Observations, places: IntArray, prior: FloatArray) -> float:
    return float((np.log(log.costs[places]) - prior[log.arms[places]]).mean())


def _unit(kernel: Kernel, one: FloatArray, two: FloatArray) -> FloatArray:
    scale = [np.sqrt(np.maximum(kernel.diagonal(each), 1e-300)) for each in (one, two)]
    return np.asarray(kernel(one, two) / scale[0][:, None] / scale[1])


def _weights(kernel: FloatArray, values: FloatArray) -> FloatArray:
    """Return the regression's weights that predict each value best from the others."""
    eigenvalues, vectors = np.linalg.eigh(kernel)
    turned, found = vectors.T @ values, []
    for ratio in _RATIOS:
        inverse = 1 / (np.maximum(eigenvalues, 0.0) + ratio)
        weights = vectors @ (inverse * turned)
        left_out = weights / (np.square(vectors) @ inverse)
        found.append((float(np.square(left_out).sum()), weights))
    # Of equals the smoothest.
    return np.asarray(min(reversed(found), key=lambda each: each[0])[1])


def cost_of_a_tenth(state: LearnerState) -> float | None:
    """Return about what it costs to have a tenth less regret; None where that is unknown.

    It extrapolates from half of what was spent to all, as a power of what is spent.
    """
    log, model = state.model.observed, state.model
    paid = np.cumsum(spending(log, state.costs))
    half = int(np.searchsorted(paid, paid[-1] / 2)) + 1 if len(paid) >= _FEW else len(paid)
    if half >= len(paid):
        return None
    earlier = log.snapshot()
    earlier.truncate(half)
    known, alike = (model.kernel, model.ridge, model.prior_mean), getattr(model, "alike", None)
    then = replace(state, model=refitted_model(earlier, *known, alike, state.points))
    contexts = Encoded(log.contexts[evenly(np.arange(len(log)), _SAMPLE)], state.schema)
    regret = [
        float(Policy(each.policy()).expected_regret(contexts).mean()) for each in (then, state)
    ]
    if not 0 < regret[1] < math.inf:
        return None
    power = math.log(regret[0] / regret[1]) / math.log(paid[-1] / paid[half - 1])
    return None if power < _FLAT else float(paid[-1] * (0.9 ** (-1 / power) - 1))


_HALVINGS = 12  # of the longest cutoff
_QUANTILES = 200
_ENOUGH = 2.0  # times the lowest mean, where nothing is to be gained
_FIRST = 7  # halvings, for the very first run


class Pick(NamedTuple):
    """An arm to try, and how long to let it run.

    Parameters
    ----------
    arm
        The label of the arm.
    cutoff
        When to stop the run; tell it as ``censored`` then.
    """

    arm: Label
    cutoff: float


class Cutoffs(NamedTuple):
    """The cutoff of each arm, and how long its run is expected to take."""

    cutoffs: FloatArray
    expected: FloatArray


def best_cutoffs(belief: Belief, ridge: float, most: float, least: float = 0.0) -> Cutoffs:
    """Return cutoffs for all arms at one context, where rewards are minus times."""
    from scipy.special import ndtr, ndtri

    grid = most * 0.5 ** np.arange(_HALVINGS, -1.0, -1.0)
    grid = grid[grid >= min(least, most)]
    mean, variance = -belief.mean, np.square(belief.std)
    v = variance + ridge
    above = ndtr(mean / np.sqrt(v))[:, None]  # the probability of times that there can be
    z = -ndtri(above * (np.arange(_QUANTILES) + 0.5) / _QUANTILES)[:, ::-1]
    times = mean[:, None] + np.sqrt(v)[:, None] * z  # arms by quantiles
    then = mean[:, None] + (variance / np.sqrt(v))[:, None] * z
    cut = times[:, None] > grid[:, None]  # arms by cutoffs by quantiles
    expected = np.minimum(times[:, None], grid[:, None]).mean(axis=-1)
    given = np.where(cut, then[:, None], 0.0).sum(axis=-1) / np.maximum(cut.sum(axis=-1), 1)
    found = np.where(cut, given[..., None], then[:, None])
    others = np.array([np.delete(mean, arm).min(initial=np.inf) for arm in range(len(mean))])
    now = np.minimum(then.mean(axis=-1), others)[:, None]
    gain = now - np.minimum(found, others[:, None, None]).mean(axis=-1)
    places = (gain / expected).argmax(axis=1)  # of equals the shortest
    enough = min(int(np.searchsorted(grid, _ENOUGH * mean.min())), len(grid) - 1)
    places[gain.max(axis=1) <= 1e-9 * np.sqrt(v)] = enough
    return Cutoffs(grid[places], np.take_along_axis(expected, places[:, None], axis=1)[:, 0])


def first_cutoff(longest: float, most: float) -> float:
    """Return the cutoff of a run before there are beliefs: twice the longest time told so far."""
    return min(most, 2 * longest) if longest > 0 else most * 0.5**_FIRST
