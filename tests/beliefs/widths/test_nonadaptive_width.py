"""The width for picks that do not depend on rewards: its proof as identities, and counts."""

import math

import numpy as np
import pytest

import contextgap as cg
from contextgap.beliefs import NonadaptiveWidth, TheoremWidth
from contextgap.export.rule import decision_rule
from contextgap.models import Posterior
from contextgap.policy.state import Rules

KERNEL, NOISE, NORM, FAILURE = cg.Gaussian(0.4), 0.2, 1.5, 0.1
CONTEXTS = np.random.default_rng(0).uniform(size=(40, 2))
POINTS = np.random.default_rng(1).uniform(size=(25, 2))


def learner(method="uniform", width=None, **settings):
    width = width or NonadaptiveWidth(NOISE, NORM, FAILURE, len(POINTS))
    settings = {"kernel": KERNEL, "ridge": NOISE**2, "seed": 0, **settings}
    return cg.Learner(3, method=method, width=width, **settings)


def told(method="uniform", width=None, **settings):
    found = learner(method, width, **settings)
    for context in CONTEXTS:
        arm = found.ask(context)
        found.tell(context, arm, float(np.sin(3 * context[0] + arm)))
    return found


@pytest.mark.parametrize("ridge", [NOISE**2, 0.3])
def test_the_error_is_bounded_as_the_proof_says(rng, ridge):
    """Bias b and weights w by explicit solves: b² + ridge·‖w‖² = std², and the error is below."""
    gram = KERNEL(CONTEXTS, CONTEXTS) + ridge * np.eye(len(CONTEXTS))
    cross = KERNEL(CONTEXTS, POINTS)
    weights = np.linalg.solve(gram, cross)
    bias = 1 - 2 * (weights * cross).sum(axis=0)
    bias += np.einsum("ip,ij,jp->p", weights, KERNEL(CONTEXTS, CONTEXTS), weights)
    size = np.square(weights).sum(axis=0)
    model = cg.Learner(1, kernel=KERNEL, ridge=ridge)
    model.fit(CONTEXTS, [0] * len(CONTEXTS), rng.normal(size=len(CONTEXTS)))
    posterior = model.freeze().state.model.posterior(POINTS, [0])
    np.testing.assert_allclose(bias + ridge * size, posterior.std[:, 0] ** 2, atol=1e-12)
    spread = math.sqrt(2 * math.log(2 * 1 * len(POINTS) / FAILURE))
    error = NORM * np.sqrt(bias) + NOISE * spread * np.sqrt(size)
    wide, tight = (
        NonadaptiveWidth(NOISE, NORM, FAILURE, len(POINTS), flag).half_width(posterior)[:, 0]
        for flag in (False, True)
    )
    np.testing.assert_allclose(
        wide, (NORM + NOISE / math.sqrt(ridge) * spread) * posterior.std[:, 0], rtol=1e-12
    )
    assert (error <= tight).all()
    assert (tight < wide).all()
    assert (tight >= wide / math.sqrt(2) - 1e-12).all()


@pytest.mark.parametrize("tight", [False, True])
def test_runs_fail_at_most_as_often_as_promised(rng, tight):
    """Picks fixed beforehand, 3000 draws of the noise; a run fails if any arm does anywhere."""
    arms, runs = np.arange(len(CONTEXTS)) % 2, 3000
    width = NonadaptiveWidth(NOISE, NORM, 0.2, len(POINTS), tight)
    failed = np.zeros(runs, dtype=bool)
    for arm in range(2):
        own = CONTEXTS[arms == arm]
        centres, parts = rng.uniform(size=(8, 2)), rng.normal(size=8)
        parts *= NORM / np.sqrt(parts @ KERNEL(centres, centres) @ parts)
        truth, there = KERNEL(own, centres) @ parts, KERNEL(POINTS, centres) @ parts
        weights = np.linalg.solve(
            KERNEL(own, own) + NOISE**2 * np.eye(len(own)), KERNEL(own, POINTS)
        )
        std = np.sqrt(1 - (weights * KERNEL(own, POINTS)).sum(axis=0))
        half = width.half_width(Posterior(np.zeros(len(std)), std, np.zeros(len(std)), NOISE**2, 2))
        mean = (truth + NOISE * rng.standard_normal((runs, len(own)))) @ weights
        failed |= (np.abs(mean - there) > half).any(axis=1)
    assert failed.mean() <= 0.2
    assert (np.abs(mean - there) > half / 4).any(axis=1).mean() > 0.2  # the check can fail


def test_is_narrower_than_the_theorem_once_the_information_gain_exceeds_the_log_of_contexts():
    std = np.ones(2)
    for gain, narrower in ((math.log(2 * 50) - 0.01, False), (math.log(2 * 50) + 0.01, True)):
        posterior = Posterior(std, std, np.full(2, gain), 0.1, 2)
        for tight in (False, True):
            own = NonadaptiveWidth(NOISE, NORM, FAILURE, 50, tight).half_width(posterior)
            theorem = TheoremWidth(NOISE, NORM, FAILURE, tight).half_width(posterior)
            assert ((own < theorem) == narrower).all()


@pytest.mark.parametrize("method", ["uniform", "max-variance"])
def test_is_chosen_where_picks_do_not_depend_on_rewards(method, tmp_path):
    width = TheoremWidth(NOISE, NORM, FAILURE, tight=True, contexts=25)
    found = told(method, width)
    assert found.width == NonadaptiveWidth(NOISE, NORM, FAILURE, 25, tight=True)
    policy = found.freeze()
    assert policy.probability == pytest.approx(0.9)
    policy.save(tmp_path / "p.cgap")
    loaded = cg.Policy.load(tmp_path / "p.cgap")
    assert loaded.width == found.width
    assert loaded.probability == policy.probability
    np.testing.assert_array_equal(
        loaded.certificate(POINTS).bound, policy.certificate(POINTS).bound
    )


def test_studies_choose_it_too():
    problem = cg.problems.Sinusoids(n_arms=3).sample(60, seed=0)
    explore, exploit = problem.split(40, 20)
    rule = cg.Method(explorer=cg.explorers.Uniform(), recommender=cg.HighestUpper())
    many = 10**9
    theorem, own = TheoremWidth(0.1, 0.1, 0.1, contexts=many), NonadaptiveWidth(0.1, 0.1, 0.1, many)
    traces = [
        cg.experiments.run(explore, exploit, method=rule, width=width, checkpoints=5)
        for width in (theorem, own, TheoremWidth(0.1, 0.1, 0.1))
    ]
    regrets = [trace.average_regret.tolist() for trace in traces]
    assert regrets[0] == regrets[1]
    assert regrets[0] != regrets[2]


def test_elsewhere_the_theorem_stays():
    width = TheoremWidth(NOISE, NORM, FAILURE, contexts=25)
    looks_back = cg.Method(explorer=cg.explorers.Uniform(), recommender=cg.SmallestGapInHistory())
    for method in ("contextual-gap", "epsilon-greedy", "auto", looks_back):
        assert learner(method, width).width == width
    assert learner("uniform", TheoremWidth(NOISE, NORM, FAILURE)).width.adaptive


@pytest.mark.parametrize(
    "void",
    [
        {"method": "contextual-gap"},
        {
            "method": cg.Method(
                explorer=cg.explorers.Uniform(), recommender=cg.SmallestGapInHistory()
            )
        },
        {"prior_mean": "auto"},
    ],
    ids=["picks depend on rewards", "all steps count", "the prior mean follows the rewards"],
)
def test_no_promise_where_it_does_not_apply(void):
    assert told().freeze().probability == pytest.approx(0.9)
    assert told(**void).freeze().probability is None


def test_no_promise_at_more_contexts_than_were_counted():
    policy = told().freeze()
    assert policy.certificate(POINTS).probability == pytest.approx(0.9)
    assert policy.certificate(CONTEXTS).probability is None


def test_no_promise_once_hyperparameters_are_learnt():
    assert told("max-variance").tune().freeze().probability is None


def test_where_arms_share_every_difference_has_its_interval(rng):
    """The bound on a difference, against one computed from the joint kernel matrix."""
    found = learner(sharing=0.6)
    arms = np.arange(len(CONTEXTS)) % 3
    found.fit(CONTEXTS, arms.tolist(), rng.normal(size=len(CONTEXTS)).tolist())
    decision = found.freeze().decide(POINTS[0])
    alike = np.where(np.eye(3, dtype=bool), 1.0, 0.6)
    gram = KERNEL(CONTEXTS, CONTEXTS) * alike[np.ix_(arms, arms)] + NOISE**2 * np.eye(len(arms))
    cross = KERNEL(CONTEXTS, POINTS[:1]) * alike[arms]
    covariance = alike - cross.T @ np.linalg.solve(gram, cross)
    variance = covariance.diagonal()
    apart = np.sqrt(variance[:, None] + variance - 2 * covariance)
    reach = NORM + math.sqrt(2 * math.log(2 * 6 * len(POINTS) / FAILURE))
    leads = decision.mean - decision.mean[:, None] + reach * apart
    leads[np.eye(3, dtype=bool)] = -np.inf
    np.testing.assert_allclose(decision.gap, leads.max(axis=1), rtol=1e-9)
    assert decision_rule(found.freeze()).shared.reach == pytest.approx(reach)


def test_exports_have_its_reach():
    policy = told("max-variance").freeze()
    reach = NORM + math.sqrt(2 * math.log(2 * 3 * len(POINTS) / FAILURE))
    rule = decision_rule(policy)
    assert rule.probability is None  # it may answer at more contexts than the width covers
    for arm in rule.arms:
        np.testing.assert_allclose(arm.reach, reach, rtol=1e-12)


def test_files_written_before_there_was_a_number_of_contexts_stay_the_same():
    rules = learner("contextual-gap", TheoremWidth(NOISE, NORM, FAILURE)).state.rules
    described = rules.describe()
    assert "contexts" not in described["width"]
    assert Rules.restored(described).width == rules.width
    counted = learner("contextual-gap", TheoremWidth(NOISE, NORM, FAILURE, contexts=7)).state.rules
    assert Rules.restored(counted.describe()).width.contexts == 7


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"noise": -0.1}, ValueError, "noise must be a standard deviation of at least 0, got -0.1"),
        ({"norm": 0.0}, ValueError, "norm must be positive, got 0.0"),
        ({"failure_probability": 1.0}, ValueError, "failure_probability must be below 1, got 1.0"),
        ({"contexts": 0}, ValueError, "contexts must be .* got 0"),
        ({"contexts": 2.5}, TypeError, "contexts must be"),
        ({"tight": 1}, TypeError, "tight must be True or False, got 1"),
    ],
)
def test_bad_arguments_are_named(changes, error, message):
    good = {"noise": 0.1, "norm": 1.0, "failure_probability": 0.1, "contexts": 10}
    with pytest.raises(error, match=message):
        NonadaptiveWidth(**{**good, **changes})
