"""Checks that a component of your own does what the library will ask of it.

Each function runs one component through everything that learners, policies, files and studies do
with it, and raises ``AssertionError`` with what is wrong and what to do about it. They need numpy
and scipy only, and go into any test suite::

    def test_my_explorer():
        contextgap.testing.check_explorer(MyExplorer())
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from typing import Any, cast

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.components import Component, build
from contextgap.beliefs import PosteriorWidth, Width
from contextgap.kernels import Gaussian, Kernel
from contextgap.learner import Learner
from contextgap.learner.state import Pending, View
from contextgap.methods.explorers import Explorer, Uniform
from contextgap.methods.method import Method
from contextgap.methods.recommenders import HighestMean, Recommender
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import ModelEvidence
from contextgap.models import Posterior
from contextgap.policy import Policy
from contextgap.studies.experiments import run
from contextgap.studies.problems import Maker, Problem

__all__ = ["check_explorer", "check_kernel", "check_problem", "check_recommender", "check_width"]

_SETTINGS: dict[str, Any] = {"kernel": Gaussian(1.0), "ridge": 0.1, "seed": 0}
_FEW, _STATE = (1, 2, 5), "draw from moment.rng only, and keep nothing between calls"
_FUNCTION = "a recommendation must be a function of its context, the belief there and the seed"
_SIZES = (1e-3, 1.0, 30.0)  # of contexts that kernels are checked on
_ROWS, _ARMS = 6, 5  # of posteriors that widths are checked on
_ARRAYS = ("contexts", "rewards", "observations")  # of problems


def _expect(right: Any, message: str) -> None:
    if not right:
        raise AssertionError(message)


@contextmanager
def _doing(what: str) -> Iterator[None]:
    """Say what was being done when a component raises an error."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:  # somebody's component may raise anything
        raise AssertionError(f"{what} raised {type(error).__name__}: {error}") from error


def _check_kind(part: Any, kind: type, package: str, example: str) -> str:
    if isinstance(part, type):
        raise AssertionError(f"{part.__name__} is a class; check an object: {part.__name__}()")
    name = type(part).__name__
    _expect(
        isinstance(part, kind),
        f"{name} is no {kind.__name__}: derive it from the class that {example} derives from, "
        f"contextgap.{package}.{kind.__name__}",
    )
    return name


def _check_description(part: Component) -> None:
    """Check that a component goes into a file and out, into a set, and to another process."""
    name = type(part).__name__
    advice = "make it a frozen dataclass (@dataclass(frozen=True)) of plain values"
    with _doing(f"{name}.describe(), which files need; {advice}: it"):
        rebuilt = build(json.loads(json.dumps(part.describe(), allow_nan=False)))
    _expect(
        type(rebuilt) is type(part) and rebuilt == part,
        f"{name}, described and built again, is {rebuilt!r} instead of {part!r}: {advice}, "
        "in which lists become tuples",
    )
    with _doing(f"hash({name}), which studies need; {advice}: it"):
        _expect(
            hash(rebuilt) == hash(part), f"equal {name} objects have different hashes: {advice}"
        )
    _check_pickle(part, name, lambda copy: copy == part)


def _check_pickle(part: Any, name: str, same: Any) -> None:
    with _doing(
        f"pickling {name}, by which it is sent to worker processes; define its class at the top "
        "level of a module: it"
    ):
        copy = pickle.loads(pickle.dumps(part))
        _expect(same(copy), f"{name} is no longer the same after pickling")


def _points(rows: int, dimension: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(rows, dimension))


def _payoff(contexts: FloatArray, n_arms: int) -> FloatArray:
    return np.asarray(np.sin(contexts.sum(axis=1)[:, None] + 1.3 * np.arange(n_arms)))


def _taught(n_arms: int, dimension: int, rows: int, **settings: Any) -> Learner:
    learner = Learner(n_arms, **{**_SETTINGS, "points": None, **settings})
    contexts, arms = _points(rows, dimension), np.arange(rows) % n_arms
    if rows:
        learner.tell(contexts, arms, _payoff(contexts, n_arms)[np.arange(rows), arms])
    return learner


def _reloaded(thing: Any) -> Any:
    file = BytesIO()
    thing.save(file)
    return type(thing).load(file)


def _check_files(name: str, learner: Learner, contexts: FloatArray) -> Policy:
    """Check that a learner and its policy answer alike when loaded; return the policy."""
    policy = learner.freeze()
    for kind, thing in (("policy", policy), ("learner", learner)):
        with _doing(f"saving and loading a {kind} with {name}"):
            again = _reloaded(thing)
        same = np.array_equal(again.recommend(contexts), thing.recommend(contexts))
        if thing is policy:
            bound, expected = (each.certificate(contexts).bound for each in (again, policy))
            same = same and np.array_equal(bound, expected)
        _expect(
            same,
            f"a {kind} with {name} answers otherwise when loaded: all that {name} depends on must "
            "be in its fields",
        )
    return policy


def check_kernel(kernel: Kernel, *, dimensions: Sequence[int] = (1, 3)) -> None:
    """Check that a kernel can be used wherever the library takes one.

    It must be symmetric and positive semi-definite on random contexts of several sizes, its
    ``diagonal`` that of the matrix, and its values those of each pair alone. Dimensions that do not
    suit it must be refused by ``check_dimension`` with a ``ValueError``, and those are left out.
    Learners and policies with it must go through files.

    .. versionadded:: 0.2

    Parameters
    ----------
    kernel
        The kernel.
    dimensions
        Numbers per context to try; it must suit one of them at least.

    Examples
    --------
    >>> cg.testing.check_kernel(cg.Linear())
    """
    name = _check_kind(kernel, Kernel, "kernels", "Gaussian(1.0)")
    _check_description(kernel)
    suitable = [dimension for dimension in dimensions if _suits(name, kernel, dimension)]
    _expect(
        suitable,
        f"{name} suits contexts of none of {list(dimensions)} numbers; check_kernel(kernel, "
        "dimensions=[...]) tries others",
    )
    for dimension in suitable:
        _check_shapes(name, kernel, dimension)
        for seed, size in enumerate(_SIZES):
            _check_values(name, kernel, size * _points(25, dimension, seed))
        with _doing(f"learning with {name} from contexts of {dimension} numbers"):
            learner = _taught(3, dimension, 30, kernel=kernel)
        _check_files(name, learner, _points(20, dimension, seed=7))


def _suits(name: str, kernel: Kernel, dimension: int) -> bool:
    try:
        kernel.check_dimension(dimension)
    except ValueError:
        return False
    except Exception as error:
        raise AssertionError(
            f"{name}.check_dimension({dimension}) raised {type(error).__name__}: {error}; "
            "it must raise ValueError for what does not suit"
        ) from error
    return True


def _check_shapes(name: str, kernel: Kernel, dimension: int) -> None:
    left, right = _points(5, dimension, 1), _points(7, dimension, 2)
    for array in (left, right):
        array.flags.writeable = False
    refuse = f"(or have check_dimension({dimension}) raise ValueError)"
    for m, n in ((5, 7), (1, 7), (5, 1), (0, 7), (5, 0)):
        with _doing(f"{name} of {m} and {n} read-only contexts of {dimension} numbers {refuse}"):
            values: Any = kernel(left[:m], right[:n])
        _check_array(f"{name} of {m} and {n} contexts", values, (m, n))
    for m in (5, 1, 0):
        with _doing(f"{name}.diagonal of {m} read-only contexts of {dimension} numbers"):
            diagonal: Any = kernel.diagonal(left[:m])
        _check_array(f"{name}.diagonal of {m} contexts", diagonal, (m,))
        _expect(
            diagonal.flags.writeable,
            f"{name}.diagonal must return a new array that may be written to",
        )


def _check_array(what: str, values: Any, shape: tuple[int, ...]) -> None:
    _expect(isinstance(values, np.ndarray), f"{what} must be an array, got {type(values).__name__}")
    _expect(values.shape == shape, f"{what} must have shape {shape}, got {values.shape}")
    _expect(values.dtype == np.float64, f"{what} must be of dtype float64, got {values.dtype}")
    _expect(np.isfinite(values).all(), f"{what} must be finite, got {values}")


def _check_values(name: str, kernel: Kernel, contexts: FloatArray) -> None:
    gram = kernel(contexts, contexts)
    close = partial(np.allclose, rtol=1e-9, atol=1e-12 * float(np.abs(gram).max()))
    _expect(
        close(gram, gram.T),
        f"{name} is not symmetric: k(x, y) and k(y, x) differ by {np.abs(gram - gram.T).max():.3g}",
    )
    _expect(
        close(kernel.diagonal(contexts), np.diagonal(gram)),
        f"{name}.diagonal is not the diagonal of the matrix: it must return k(x, x) for every row",
    )
    lowest, *_, highest = np.linalg.eigvalsh((gram + gram.T) / 2)
    _expect(
        lowest >= -1e-9 * abs(highest),
        f"{name} is not positive semi-definite: a matrix of 25 random contexts has an eigenvalue "
        f"of {lowest:.3g}, the largest is {highest:.3g}; sums and products of kernels that are, "
        "are too",
    )
    alone = [[kernel(x[None], y[None])[0, 0] for y in contexts[:4]] for x in contexts[:6]]
    _expect(
        close(alone, gram[:6, :4]),
        f"{name} of two contexts depends on which others it is computed with: it must be a "
        "function of the two alone",
    )


def check_width(width: Width) -> None:
    """Check that a width can be used wherever the library takes one.

    Half widths must be finite and not negative, have the shape of the standard deviations, grow
    with them, and not depend on the other contexts. ``probability`` must be None or one. Policies
    with it, those that look back included, must go through files, and carry ``probability`` unless
    ``adaptive`` is False and picks depend on rewards.

    .. versionadded:: 0.2

    Examples
    --------
    >>> cg.testing.check_width(cg.PosteriorWidth(2.0))
    """
    name = _check_kind(width, Width, "widths", "PosteriorWidth()")
    _check_description(width)
    promised: Any = width.probability
    _expect(
        promised is None or (isinstance(promised, float) and 0 < promised < 1),
        f"{name}.probability must be a number between 0 and 1, or None where nothing is promised, "
        f"got {promised!r}",
    )
    for posterior in _posteriors():
        _check_half_widths(name, width, posterior)
    _check_alone(name, width)
    for method in ("contextual-gap", "contextual-gap-history", "uniform"):
        with _doing(f"exploring by {method} with {name}"):
            learner = _taught(3, 2, 30, width=width, method=method)
            learner.ask(_points(5, 2))
        learner.drop_pending()
        policy = _check_files(name, learner, _points(20, 2, seed=7))
        holds = learner.width.adaptive or not learner.method.adaptive
        carried = policy.certificate(_points(4, 2)).probability
        _expect(
            carried == (promised if holds else None),
            f"certificates of {method} must carry {name}.probability, {promised!r}, or None where "
            f"picks depend on rewards and {name}.adaptive is False; got {carried!r}",
        )


def _posteriors() -> list[Posterior]:
    rng = np.random.default_rng(0)
    one, several = rng.uniform(0.1, 2, _ARMS), rng.uniform(0.1, 2, (_ROWS, _ARMS))
    gains = rng.uniform(0, 3, _ARMS)
    states = np.linspace(0, 3, _ROWS)[:, None]
    return [
        Posterior(rng.normal(size=std.shape), std, gain, 0.1, _ARMS)
        for std, gain in (
            (one, gains),
            (several, gains),
            (several, states),
            (several, np.zeros(_ARMS)),
            (np.zeros(_ARMS), gains),
            (one[:1], gains[:1]),
        )
    ]


def _check_half_widths(name: str, width: Width, posterior: Posterior) -> None:
    std = posterior.std
    for array in posterior[:3]:
        array.flags.writeable = False
    with _doing(f"{name}.half_width of a read-only posterior of shape {std.shape}"):
        half: Any = width.half_width(posterior)
    _expect(
        isinstance(half, np.ndarray) and half.shape == std.shape,
        f"{name}.half_width must have the shape of posterior.std, {std.shape}, "
        f"got {np.shape(half)}",
    )
    _expect(np.isfinite(half).all(), f"{name}.half_width must be finite, got {half}")
    _expect(
        (half >= 0).all(),
        f"{name}.half_width must not be negative, got {half.min()}: it is upper − mean",
    )
    wider = width.half_width(posterior._replace(std=1.5 * std + 0.01))
    _expect(
        (wider >= half).all(),
        f"{name}.half_width must not shrink when posterior.std grows: recommendations are made "
        "from bounds on the standard deviations",
    )


def _check_alone(name: str, width: Width) -> None:
    table = _posteriors()[1]
    together = width.half_width(table)
    for row in range(_ROWS):
        one = table._replace(mean=table.mean[row], std=table.std[row])
        _expect(
            np.allclose(width.half_width(one), together[row], rtol=1e-12),
            f"{name}.half_width at one context depends on the others it is computed with",
        )


def check_explorer(explorer: Explorer, *, dimension: int = 2) -> None:
    """Check that an explorer can be used wherever the library takes one.

    It must pick one of 1, 2 and 5 arms at any time: before any reward, with and without a burn-in,
    in batches, from pools, with rewards late, arms added and removed, and at one context over and
    over. It must do the same with the same seed, in a learner that was saved and loaded, and in
    ``experiments.run``. It must leave what it is shown unchanged. Propensities, where it has any,
    must be probabilities of all arms that add up to 1.

    .. versionadded:: 0.2

    Parameters
    ----------
    explorer
        The explorer.
    dimension
        Numbers per context.

    Examples
    --------
    >>> cg.testing.check_explorer(cg.explorers.Uniform())
    """
    name = _check_kind(explorer, Explorer, "explorers", "Uniform()")
    _check_description(explorer)
    for n_arms in _FEW:
        _check_views(name, explorer, n_arms, dimension)
        for burn_in in (0, 1):
            first, again = (_session(name, explorer, n_arms, dimension, burn_in) for _ in range(2))
            _expect(
                first == again,
                f"{name} picked {first}, then {again}, from the same seed and rewards: {_STATE}",
            )
    _check_hardly_any_ridge(name, explorer, dimension)
    _check_going_on(name, explorer, dimension)
    _check_runs(name, explorer, dimension)


def _learner(explorer: Explorer, n_arms: int, **settings: Any) -> Learner:
    method = Method(explorer=explorer, recommender=HighestMean())
    return _taught(n_arms, 1, 0, method=method, **settings)


def _check_views(name: str, explorer: Explorer, n_arms: int, dimension: int) -> None:
    """Call the explorer itself: a learner would take a row of −1 for the last one."""
    contexts = _points(3 * n_arms, dimension)
    model = _taught(n_arms, dimension, len(contexts)).state.model
    rng, arms = np.random.default_rng(0), tuple(range(n_arms))
    view = View(model, Pending(), arms, PosteriorWidth(), rng, model.follow)
    moment, pool = view.moment(contexts[0] + 0.1), view.pool(contexts)
    before, pulls = _copies(moment.belief), list(moment.pulls)
    with _doing(f"{name}.pick with {n_arms} arms"):
        explorer.pick(moment)
        chances: Any = explorer.propensities(moment)
    _expect(
        chances is None
        or (np.shape(chances) == (n_arms,) and min(chances) >= 0 and abs(sum(chances) - 1) < 1e-9),
        f"{name}.propensities must be None or one probability for each of {n_arms} arms, which add "
        f"up to 1, got {chances!r}",
    )
    _expect(
        np.array_equal(before, _copies(moment.belief)) and pulls == moment.pulls,
        f"{name}.pick changed the belief or the pulls that it was shown: work on copies",
    )
    before = _copies(pool.belief)
    with _doing(f"{name}.choose from a pool of {len(pool)} contexts"):
        row: Any = explorer.choose(pool)
    _expect(
        isinstance(row, int | np.integer) and 0 <= row < len(pool),
        f"{name}.choose must return the row of a context, 0 to {len(pool) - 1}, got {row!r}",
    )
    _expect(
        np.array_equal(before, _copies(pool.belief)) and np.array_equal(pool.contexts, contexts),
        f"{name}.choose changed the pool that it was shown: work on copies",
    )


def _copies(belief: Any) -> FloatArray:
    return np.array([getattr(belief, field) for field in ("mean", "std", "half_width", "gap")])


def _session(name: str, explorer: Explorer, n_arms: int, dimension: int, burn_in: int) -> list[Any]:
    """Return all that an explorer picked in a session of every kind of asking."""
    learner = _learner(explorer, n_arms, burn_in=burn_in)
    contexts = _points(16, dimension, seed=1)
    rewards = _payoff(contexts, n_arms + 1)
    picks: list[Any] = []
    where = f"with {n_arms} arms and burn_in={burn_in}"
    with _doing(f"{name}, asked for a batch before any reward {where},"):
        early = learner.ask(contexts[:4]).tolist()
    for row, context in enumerate(contexts):
        with _doing(f"{name}, asked after {row} rewards {where},"):
            expected, arm = learner.decide(context).arm, learner.ask(context)
        _expect(
            expected == arm,
            f"{name} picked {arm} where learner.decide foretold {expected}: {_STATE}",
        )
        picks.append(arm)
        learner.tell(context, arm, float(rewards[row, arm]))
    learner.tell(contexts[:4][::-1], early[::-1], rewards[range(4), early][::-1])
    with _doing(f"{name}, asked to choose from a pool {where},"):
        chosen, arm = learner.ask(pool=contexts)
    picks += [*early, chosen.tolist(), arm]
    learner.drop_pending()
    learner.add_arm(n_arms)
    with _doing(f"{name}, asked after an arm was added to {n_arms},"):
        picks += learner.ask(contexts[:3]).tolist()
    learner.remove_arm(0)
    with _doing(f"{name}, asked after the first of {n_arms + 1} arms was removed,"):
        picks += learner.ask(contexts[:3]).tolist()
    return picks


def _check_hardly_any_ridge(name: str, explorer: Explorer, dimension: int) -> None:
    learner = _learner(explorer, 3, ridge=1e-10, burn_in=0)
    context = np.ones(dimension)
    with _doing(f"{name}, asked at the same context over and over with a ridge of 1e-10,"):
        for _ in range(30):
            arm = learner.ask(context)
            learner.tell(context, arm, float(arm))


def _check_going_on(name: str, explorer: Explorer, dimension: int) -> None:
    contexts = _points(24, dimension, seed=2)
    rewards = _payoff(contexts, 3)
    learner = _learner(explorer, 3)
    _explore(learner, contexts[:12], rewards)
    with _doing(f"saving and loading a learner with {name}"):
        loaded = _reloaded(learner)
    picks = [_explore(each, contexts[12:], rewards[12:]) for each in (learner, loaded)]
    _expect(
        picks[0] == picks[1],
        f"a learner with {name} goes on otherwise once saved and loaded: {_STATE}",
    )


def _check_runs(name: str, explorer: Explorer, dimension: int) -> None:
    explore, exploit = _problem(dimension)
    with _doing(f"experiments.run with {name}"):
        trace = run(explore, exploit, method=explorer, **_SETTINGS)
    picks = _explore(_learner(explorer, 3), explore.contexts, explore.rewards)
    _expect(
        trace.arms.tolist() == picks,
        f"{name} picks {trace.arms.tolist()} in experiments.run and {picks} in a learner that is "
        f"shown the same: {_STATE}",
    )


def _problem(dimension: int) -> tuple[Problem, ...]:
    contexts = _points(40, dimension, seed=4)
    return Problem(name="check", contexts=contexts, rewards=_payoff(contexts, 3)).split(30, 10)


def _explore(learner: Learner, contexts: FloatArray, rewards: FloatArray) -> list[Any]:
    picks = []
    for context, row in zip(contexts, rewards, strict=False):
        picks.append(learner.ask(context))
        learner.tell(context, picks[-1], float(row[picks[-1]]))
    return picks


def check_recommender(recommender: Recommender, *, dimension: int = 2) -> None:
    """Check that a recommender can be used wherever the library takes one.

    It must choose one of 1, 2 and 5 arms at every context, with the gap of each; the same in any
    order of the contexts, for a context alone, when asked twice, in a policy that was saved and
    loaded, and in ``experiments.run``.

    .. versionadded:: 0.2

    Parameters
    ----------
    recommender
        The recommender.
    dimension
        Numbers per context.

    Examples
    --------
    >>> cg.testing.check_recommender(cg.HighestMean())
    """
    name = _check_kind(recommender, Recommender, "recommenders", "SmallestGap()")
    _check_description(recommender)
    contexts = _points(12, dimension, seed=5)
    for n_arms in _FEW:
        for rows in (0, 4 * n_arms):
            _check_choices(name, recommender, n_arms, rows, contexts)
        _check_policy(name, recommender, n_arms, dimension, contexts)
    _check_deployment(name, recommender, dimension)


def _check_choices(
    name: str, recommender: Recommender, n_arms: int, rows: int, contexts: FloatArray
) -> None:
    """Call the recommender itself: a policy would take an arm of −1 for the last one."""
    model = _taught(n_arms, contexts.shape[1], rows).state.model
    predictor = model.predictor(range(n_arms))

    def choose(where: FloatArray) -> Choice:
        return recommender.choose(
            ModelEvidence(predictor, where, PosteriorWidth(), min(rows, n_arms), seed=0)
        )

    with _doing(f"{name}.choose at {len(contexts)} contexts with {n_arms} arms"):
        choice: Any = choose(contexts)
    _expect(
        isinstance(choice, Choice),
        f"{name}.choose must return a Choice(arm, gap), got {type(choice).__name__}",
    )
    arm, gap = np.asarray(choice.arm), np.asarray(choice.gap)
    _expect(
        arm.shape == (len(contexts),) and arm.dtype.kind in "iu",
        f"{name}.choose must return one whole number per context as arm, shape "
        f"({len(contexts)},), got {arm.dtype} of shape {arm.shape}",
    )
    _expect(
        (arm >= 0).all() and (arm < n_arms).all(),
        f"{name}.choose must return positions of arms, 0 to {n_arms - 1}, got {arm.tolist()}",
    )
    _expect(
        gap.shape == arm.shape and np.isfinite(gap).all(),
        f"{name}.choose must return one finite gap per context, got {gap}",
    )
    order = np.random.default_rng(0).permutation(len(contexts))
    _expect(
        np.array_equal(choose(contexts[order]).arm, arm[order]),
        f"{name} chooses otherwise when contexts come in another order: {_FUNCTION}",
    )
    alone = [int(choose(context[None]).arm[0]) for context in contexts]
    _expect(
        alone == arm.tolist(),
        f"{name} chooses {alone} for contexts one by one and {arm.tolist()} for all at once: "
        f"{_FUNCTION}",
    )


def _method(recommender: Recommender) -> Method:
    return Method(explorer=Uniform(), recommender=recommender)


def _check_policy(
    name: str, recommender: Recommender, n_arms: int, dimension: int, contexts: FloatArray
) -> None:
    # Enough rewards of two arms that rules which can do so decide from bounds on the widths.
    rows = 560 if n_arms == 2 else 4 * n_arms
    learner = _taught(n_arms, dimension, rows, method=_method(recommender))
    policy = _check_files(name, learner, contexts)
    once, twice = policy.recommend(contexts), policy.recommend(contexts)
    _expect(np.array_equal(once, twice), f"{name} chooses otherwise when asked twice: {_FUNCTION}")
    exact = [policy.decide(context).arm for context in contexts]
    _expect(
        exact == once.tolist(),
        f"Policy.recommend gives {once.tolist()} where {name}.choose gives {exact}: choose and "
        "choose_arms must choose alike",
    )


def _check_deployment(name: str, recommender: Recommender, dimension: int) -> None:
    explore, exploit = _problem(dimension)
    method = _method(recommender)
    with _doing(f"experiments.run with {name}"):
        trace = run(explore, exploit, method=method, checkpoints=[30], **_SETTINGS)
    learner = Learner(3, method=method, **_SETTINGS)
    _explore(learner, explore.contexts, explore.rewards)
    expected = exploit.regret(learner.recommend(exploit.contexts).astype(int)).mean()
    _expect(
        np.isclose(trace.average_regret[-1], expected),
        f"{name} recommends otherwise in experiments.run than in a learner that was told the same: "
        f"{_FUNCTION}",
    )


def check_problem(problem: Problem | Maker, *, rows: int = 12) -> None:
    """Check that a problem, or a maker of problems, can be used wherever the library takes one.

    Of a maker, samples must have the rows asked for and be the same for the same seed; each is
    then checked as a problem. A problem's arrays must fit together and be finite, no regret be
    negative and the best arm's be 0, ``take`` and ``split`` keep rows whole, and a run be possible.

    .. versionadded:: 0.2

    Parameters
    ----------
    problem
        The problem or the maker.
    rows
        How many rows to ask a maker for; at least 4.

    Examples
    --------
    >>> cg.testing.check_problem(cg.problems.Sinusoids(n_arms=3))
    """
    name = type(problem).__name__
    if isinstance(problem, Maker):
        sample = _sample(name, problem, rows)
    else:
        _expect(
            isinstance(problem, Problem),
            f"{name} is neither a Problem nor a Maker: make one by Problem(name=, contexts=, "
            "rewards=), or derive from contextgap.problems.Maker",
        )
        sample = problem
    _check_arrays(name, sample)
    _check_regret(name, sample)
    _check_take(name, sample)
    _check_split(name, sample)
    _check_pickle(sample, name, lambda copy: _same(copy, sample))
    parts = sample.split(0.5, 0.25)
    with _doing(f"experiments.run on {name}"):
        trace = run(*parts, method="uniform")
    _expect(
        (trace.average_regret >= 0).all() and np.isfinite(trace.worst_regret).all(),
        f"a run on {name} reports regrets {trace.average_regret} and {trace.worst_regret}",
    )


def _sample(name: str, maker: Maker, rows: int) -> Problem:
    with _doing(f"{name}.sample({rows}, seed=0)"):
        first, again = (maker.sample(rows, seed=0) for _ in range(2))
    _expect(
        isinstance(first, Problem),
        f"{name}.sample must return a Problem, got {type(first).__name__}",
    )
    _expect(len(first) == rows, f"{name}.sample({rows}) must have {rows} rows, got {len(first)}")
    _expect(
        _same(first, again),
        f"{name}.sample gives other data for the same seed: draw from "
        "np.random.default_rng(seed) only",
    )
    return first


def _same(left: Problem, right: Problem) -> bool:
    return left.arms == right.arms and all(
        np.array_equal(getattr(left, field), getattr(right, field)) for field in _ARRAYS
    )


def _check_arrays(name: str, problem: Problem) -> None:
    rows, arms, given = len(problem), problem.n_arms, cast(Any, problem.name)
    _expect(rows >= 4, f"{name} has {rows} rows; at least 4 are needed to explore and to evaluate")
    _expect(
        isinstance(given, str) and given,
        f"{name}.name must be a text that results are labelled with, got {given!r}",
    )
    for field, columns in zip(_ARRAYS, (problem.dimension, arms, arms), strict=True):
        _check_array(f"{name}.{field}", getattr(problem, field), (rows, columns))
    _expect(
        len(set(problem.arms)) == arms,
        f"{name}.arms must be {arms} different labels, got {problem.arms}",
    )


def _check_regret(name: str, problem: Problem) -> None:
    table = problem.regret_table
    _expect(
        table.shape == problem.rewards.shape and (table >= 0).all(),
        f"{name}.regret_table must have no negative entry: regret is the best reward minus the "
        f"arm's, got a least of {table.min()}",
    )
    best = problem.rewards.argmax(axis=1)
    _expect(
        not problem.regret(best).any(),
        f"{name}.regret of every row's best arm must be 0: both must come from `rewards`",
    )
    _expect(
        problem.ranks.shape == table.shape and (problem.ranks.min(axis=1) == 1).all(),
        f"{name}.ranks must be 1 for the best arm of every row",
    )


def _check_take(name: str, problem: Problem) -> None:
    chosen = np.arange(len(problem)) % 3 == 1
    for index in ([2, 0, 3], slice(1, 3), chosen):
        with _doing(f"{name}.take({index!r})"):
            part = problem.take(index)
        _expect(
            type(part) is type(problem)
            and part.arms == problem.arms
            and all(
                np.array_equal(getattr(part, field), getattr(problem, field)[index])
                for field in _ARRAYS
            ),
            f"{name}.take({index!r}) must return a {name} of these rows, in this order, with the "
            "same arms",
        )


def _check_split(name: str, problem: Problem) -> None:
    with _doing(f"{name}.split(0.5, 0.25)"):
        first, second = problem.split(0.5, 0.25)
    joined = np.concatenate([first.contexts, second.contexts])
    _expect(
        np.array_equal(joined, problem.contexts[: len(joined)]),
        f"{name}.split must return consecutive rows",
    )
    if not problem.ordered:
        once, again = (problem.split(0.5, seed=1)[0] for _ in range(2))
        _expect(_same(once, again), f"{name}.split gives other rows for the same seed")
