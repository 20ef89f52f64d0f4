"""Explorers that draw: their propensities against definitions, counts and score cards."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import contextgap as cg
from contextgap.methods.explorers import PlannedSampling, ProportionalResponse, Uniform
from contextgap.models import Observations
from tests.methods.explorers.test_eb_tc import moment_of

KERNEL = cg.Gaussian(0.5)
DRAWING = [ProportionalResponse(), PlannedSampling()]


def reward(context, arm):
    return float(np.sin(3 * context[0] + 2 * arm))


def explored(explorer, rows=60, **settings):
    settings = {"kernel": KERNEL, "ridge": 0.05, "seed": 3, **settings}
    learner, chances = cg.Learner(3, method=explorer, **settings), []
    for context in np.random.default_rng(0).uniform(size=(rows, 2)):
        decision, arm = learner.decide(context), learner.ask(context)
        assert decision.arm == arm
        chances.append(decision.propensity)
        learner.tell(context, arm, reward(context, arm))
    return learner, chances


def sets_at(mean, std, risks):
    """The arms that may be the best at each risk, by definition."""
    best = int(mean.argmax())
    better = norm.cdf((mean - mean[best]) / np.hypot(std, std[best]))
    return (better >= np.reshape(risks, (-1, 1))) | (np.arange(len(mean)) == best)


def risk_adjustment(mean, std, omega):
    """The largest η up to √ω with at most (1 - 1/2)·A/η arms in the set at risk (1/2)/η, or 1."""
    etas = np.linspace(1, np.sqrt(omega), 100_001)
    small_enough = sets_at(mean, std, 0.5 / etas).sum(axis=1) <= 0.5 * len(mean) / etas
    return etas[small_enough].max(initial=1.0)


@pytest.mark.parametrize("emphasis", [1.0, None, 40.0])
def test_proportional_response_is_the_integral_over_risks(rng, emphasis):
    risks, adjusted = (np.arange(200_000) + 0.5) / 200_000, 0
    for n_arms in (2, 3, 8, 8, 12, 12):
        mean, std = rng.normal(size=n_arms), rng.uniform(0.2, 1, n_arms)
        eta = risk_adjustment(mean, std, n_arms if emphasis is None else emphasis)
        adjusted += eta > 1
        sets = sets_at(mean, std, np.minimum(risks, 0.5) / eta)
        expected = (sets / sets.sum(axis=1, keepdims=True)).mean(axis=0)
        found = ProportionalResponse(emphasis).propensities(moment_of(mean, std))
        np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (adjusted > 2) == (emphasis != 1.0)


def test_proportional_response_where_nothing_or_everything_is_known():
    rule = ProportionalResponse()
    np.testing.assert_allclose(rule.propensities(moment_of([0] * 4, [1] * 4)), 0.25)
    np.testing.assert_allclose(rule.propensities(moment_of([0, 2, 1], [0] * 3)), [0, 1, 0])
    np.testing.assert_allclose(rule.propensities(moment_of([2, 2, 1], [0] * 3)), [0.5, 0.5, 0])


@pytest.mark.parametrize("trials", [None, 5])
def test_planned_sampling_follows_planner_and_sampler(rng, trials):
    """Against the algorithm with a new posterior for every step of the plan."""
    references, here = rng.uniform(size=(20, 2)), rng.uniform(size=2)
    ridge = 0.05 if trials is None else 0.05 * 20 / trials
    plan, votes = [], np.zeros(3)
    for step in range(21):
        model = cg.Learner(3, kernel=KERNEL, ridge=ridge, burn_in=0)
        for context, arm in plan:
            model.tell(context, arm, 0.0)
        widest = model.decide(here).std
        votes += (widest >= widest.max() - 1e-9) / (widest >= widest.max() - 1e-9).sum()
        if step < 20:
            plan.append((references[step], int(model.decide(references[step]).std.argmax())))
    rule = PlannedSampling(references=references, trials=trials)
    learner = cg.Learner(3, kernel=KERNEL, ridge=0.05, method=rule, burn_in=0, seed=0)
    decision = learner.decide(here)
    assert decision.propensity == pytest.approx(votes[decision.arm] / 21)


def test_a_planned_sheet_does_not_depend_on_rewards(rng):
    contexts = rng.uniform(size=(40, 2))
    rule = PlannedSampling(references=contexts)
    width = cg.TheoremWidth(0.2, 1.0, 0.1, contexts=10)
    made = {"kernel": KERNEL, "ridge": 0.04, "method": rule, "width": width, "seed": 0}
    learner, other = cg.Learner(3, **made), cg.Learner(3, **made)
    sheet = learner.ask(contexts)
    picks = []
    for context in contexts:
        picks.append(other.ask(context))
        other.tell(context, picks[-1], rng.normal())
    assert picks == sheet.tolist()
    learner.tell(contexts, sheet, [reward(x, a) for x, a in zip(contexts, sheet, strict=True)])
    assert learner.freeze().probability == pytest.approx(0.9)
    assert isinstance(learner.width, cg.NonadaptiveWidth)


def test_references_are_matched_by_name(rng):
    table = pd.DataFrame(rng.uniform(size=(10, 2)), columns=["p", "q"])
    picks = []
    for references in (table, table[["q", "p"]]):
        rule = PlannedSampling(references=references)
        learner = cg.Learner(3, kernel=cg.Gaussian([0.1, 2.0]), method=rule, burn_in=0, seed=0)
        picks.append([learner.decide(row).propensity for _, row in table.iterrows()])
    assert picks[0] == picks[1]


@pytest.mark.parametrize("explorer", [*DRAWING, Uniform(random=True)], ids=str)
def test_arms_are_drawn_as_often_as_their_propensities_say(explorer):
    learner, _ = explored(explorer)
    learner.drop_pending()
    context, counts, chances = np.array([0.4, 0.6]), np.zeros(3), np.zeros(3)
    for _ in range(300):
        decision = learner.decide(context)
        counts[decision.arm] += 1
        chances[decision.arm] = decision.propensity
        learner._rng.integers(2, size=3)  # decide itself changes nothing
    assert (np.abs(counts / 300 - chances) < 0.1).all()
    assert chances[counts > 0].sum() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("explorer", DRAWING, ids=str)
def test_the_first_picks_are_drawn_too(explorer):
    learner, chances = explored(explorer, rows=12, burn_in=4)
    assert chances == [pytest.approx(1 / 3)] * 12
    assert learner.decide([0.1, 0.2]).reason == explorer.reason


@pytest.mark.parametrize("explorer", DRAWING, ids=str)
def test_logged_propensities_make_the_card_doubly_robust(explorer, tmp_path):
    learner, chances = explored(explorer)
    expected = learner.score(chances)
    assert expected.estimator == "doubly robust"
    assert learner.score() == expected == learner.freeze().card
    learner.save(tmp_path / "l.cgap")
    loaded = cg.Learner.load(tmp_path / "l.cgap")
    assert loaded.score() == expected
    learner.freeze().save(tmp_path / "p.cgap")
    assert cg.Policy.load(tmp_path / "p.cgap").card == expected
    loaded.tell([0.5, 0.5], 0, 1.0)  # nobody knows how it was picked
    assert loaded.score().estimator == "direct"
    assert loaded.score([*chances, 0.5]).estimator == "doubly robust"


def test_propensities_stay_with_their_rewards_however_late_they_come(tmp_path):
    learner, _ = explored(ProportionalResponse(), rows=30)
    contexts = np.random.default_rng(5).uniform(size=(6, 2))
    asked, chances = [], []
    for context in contexts:
        chances.append(learner.decide(context).propensity)
        asked.append(learner.ask(context))
    learner.save(tmp_path / "l.cgap")
    for found in (learner, cg.Learner.load(tmp_path / "l.cgap")):
        order = [3, 0, 5, 1, 4, 2]
        found.tell(contexts[order], [asked[i] for i in order], np.arange(6.0))
        logged = found.state.model.observed.propensities
        np.testing.assert_array_equal(logged[-6:], [chances[i] for i in order])
        found.tune()
        np.testing.assert_array_equal(found.state.model.observed.propensities, logged)


def test_learnt_hyperparameters_and_all_rows_have_propensities():
    """With default settings nothing is picked without being drawn."""
    learner = cg.Learner(3, method="proportional-response", seed=0)
    for context in np.random.default_rng(0).uniform(size=(30, 2)):
        arm = learner.ask(context)
        learner.tell(context, arm, reward(context, arm))
    assert learner.score().estimator == "doubly robust"


def test_picks_made_elsewhere_may_have_propensities(tmp_path):
    learner = cg.Learner(2, kernel=KERNEL)
    learner.add_pending([[0.0], [1.0]], [0, 1], propensities=[0.5, 0.25])
    learner.add_pending([2.0], 1, propensities=0.75)
    learner.tell([[2.0], [0.0], [1.0]], [1, 0, 1], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(learner.state.model.observed.propensities, [0.75, 0.5, 0.25])
    for bad, message in ((0.0, "above 0"), (1.5, "at most 1"), ([0.5, 0.5], "one entry per")):
        with pytest.raises(ValueError, match=message):
            learner.add_pending([3.0], 0, propensities=bad)
    assert learner.pending == 0


def test_a_file_with_impossible_propensities_is_refused():
    learner, _ = explored(ProportionalResponse(), rows=20)
    model = learner.state.model
    arrays = model.arrays()
    for bad in (np.full(20, 2.0), np.zeros(20), np.full(21, 0.5), np.ones(20, dtype=int)):
        with pytest.raises(ValueError, match="propensit"):
            type(model)(KERNEL, 0.05, 3).restore({**arrays, "propensities": bad})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProportionalResponse(0.5), "emphasis must be"),
        (lambda: PlannedSampling(trials=0), "trials must be"),
        (lambda: PlannedSampling(most=0), "most must be"),
        (lambda: PlannedSampling(references=[1.0, 2.0]), "references must be a table"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_thinned_log_keeps_the_propensities_of_its_rows(rng):
    log = Observations(2)
    log.extend(rng.uniform(size=(50, 1)), np.arange(50) % 2, np.arange(50.0))
    chances = rng.uniform(0.1, 1, 50)
    log.note_propensities(0, chances.tolist())
    thin = log.thinned(20)
    assert 20 <= len(thin) < 50
    np.testing.assert_array_equal(thin.propensities, chances[thin.rewards.astype(int)])
    log.truncate(30)
    np.testing.assert_array_equal(log.propensities, chances[:30])
    log.append(np.zeros(1), 0, 1.0)
    assert log.propensities is None


def test_draws_do_not_follow_contexts_that_were_simulated_with_the_same_seed():
    """A learner whose numbers are those of the contexts would try one arm per part of the space."""
    contexts = np.random.default_rng(7).uniform(size=(400, 1))
    learner = cg.Learner(2, kernel=KERNEL, method="proportional-response", burn_in=200, seed=7)
    arms = np.array([learner.ask(context) for context in contexts])
    assert abs(arms[contexts[:, 0] < 0.5].mean() - arms[contexts[:, 0] >= 0.5].mean()) < 0.2
