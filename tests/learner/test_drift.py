"""Rewards that drift: half lives, forgetting, and learning on from a policy."""

import numpy as np
import pytest

import contextgap as cg
from contextgap import Campaign
from contextgap.models import AgeingModel, BoundedModel

KERNEL = cg.Gaussian(0.5)
GRID = np.linspace(-1, 1, 25)[:, None]


def log(count=150, seed=0, jump=None):
    """Three arms, whose functions are others from observation ``jump`` on."""
    rng = np.random.default_rng(seed)
    x, arms = rng.uniform(-1, 1, count), rng.integers(3, size=count)
    late = np.zeros(count) if jump is None else 2.0 * (np.arange(count) >= jump)
    return x[:, None], arms, np.sin(3 * x + 2 * arms + late) + 0.2 * rng.normal(size=count)


def told(learner, count=150, **settings):
    for context, arm, reward in zip(*log(count, **settings), strict=True):
        learner.tell(context, int(arm), float(reward))
    return learner


def assert_same(one, two, rtol=1e-8):
    found, expected = one.beliefs(GRID), two.beliefs(GRID)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(found.std, expected.std, rtol=rtol, atol=1e-9)


def goes_on_alike(one, two, steps=30):
    rng = np.random.default_rng(5)
    for context in rng.uniform(-1, 1, (steps, 1)):
        arm = one.ask(context)
        assert two.ask(context) == arm
        for each in (one, two):
            each.tell(context, arm, float(np.sin(context[0] + arm)))
    np.testing.assert_array_equal(one.means(GRID), two.means(GRID))


def test_single_rewards_and_logs_say_the_same():
    one = told(cg.Learner(3, kernel=KERNEL, half_life=40, seed=0))
    assert_same(one, cg.Learner(3, kernel=KERNEL, half_life=40, seed=0).fit(*log()))


def test_what_is_old_says_less():
    aged = cg.Learner(3, kernel=KERNEL, half_life=40).fit(*log()).beliefs(GRID)
    exact = cg.Learner(3, kernel=KERNEL).fit(*log()).beliefs(GRID)
    assert (aged.std > exact.std).all()


@pytest.mark.parametrize("half_life", [30.0, "auto"])
@pytest.mark.parametrize("count", [37, 150])
def test_files_hold_it_and_go_on_bit_by_bit(half_life, count, tmp_path):
    learner = told(cg.Learner(3, half_life=half_life, seed=0), count, jump=80)
    learner.ask([0.3])  # is pending
    learner.save(tmp_path / "l.cgap")
    other = cg.Learner.load(tmp_path / "l.cgap")
    assert other.state.half_life == half_life
    goes_on_alike(learner, other)
    policy = learner.freeze()
    policy.save(tmp_path / "p.cgap")
    loaded = cg.Policy.load(tmp_path / "p.cgap")
    np.testing.assert_array_equal(loaded.recommend(GRID), policy.recommend(GRID))
    assert policy.card is not None


def test_a_policy_answers_as_of_when_it_was_frozen():
    learner = told(cg.Learner(3, kernel=KERNEL, half_life=20, seed=0))
    policy = learner.freeze()
    before = policy.beliefs(GRID)
    learner.tell(GRID, [0] * len(GRID), np.zeros(len(GRID)))
    np.testing.assert_array_equal(policy.beliefs(GRID).std, before.std)
    later = learner.beliefs(GRID)
    assert (later.std[:, 1] > before.std[:, 1]).all()  # of an arm that was not tried since


@pytest.mark.parametrize("method", ["contextual-gap", "contextual-gap-history"])
def test_stopping_rules_see_the_certificates_of_the_policy(method):
    learner = cg.Learner(3, kernel=KERNEL, half_life=30, method=method, seed=0)
    rule = cg.StoppingRule(0.4, reference=GRID)
    for context, arm, reward in zip(*log(60), strict=True):
        learner.tell(context, int(arm), float(reward))
        settled = learner.settled(rule)  # after every reward, so that much could be kept of it
    bounds = learner.freeze().certificate(GRID).bound
    assert 0 < settled < 1
    assert settled == np.mean(bounds <= 0.4)


def test_nothing_is_guaranteed_about_rewards_that_drift():
    width = cg.TheoremWidth(norm=1.0, noise=0.1, failure_probability=0.1)
    settings = {"kernel": KERNEL, "width": width, "method": "uniform"}
    probabilities = [
        cg.Learner(3, half_life=h, **settings).fit(*log()).freeze().certificate(GRID).probability
        for h in (None, 40.0)
    ]
    assert probabilities[0] is not None
    assert probabilities[1] is None


def test_the_half_life_is_learnt_where_rewards_jump_and_only_there():
    found = [cg.Learner(3, half_life="auto", seed=0).fit(*log(seed=seed)) for seed in range(6)]
    assert all(each.tuning.chosen != "ageing" for each in found)
    for seed in range(3):
        learner = cg.Learner(3, half_life="auto", seed=0).fit(*log(seed=seed, jump=80))
        assert learner.tuning.chosen == "ageing"
        assert isinstance(learner.state.model, AgeingModel)
        assert f"{learner.state.model.alike.half_life:.0f} rewards" in learner.tuning.reason


def test_nothing_changes_without_a_half_life():
    plain, auto = (cg.Learner(3, seed=0, half_life=h).fit(*log()) for h in (None, "auto"))
    assert "ageing" not in {each.name for each in plain.tuning.candidates}
    np.testing.assert_array_equal(plain.means(GRID), auto.means(GRID))


def test_noise_censored_rewards_and_costs_age_too():
    contexts, arms, rewards = log()
    learner = cg.Learner(3, kernel=KERNEL, half_life=40, reward="minimize")
    learner.fit(
        contexts, arms, rewards, noise=np.where(rewards > 0.9, 0, 0.1), censored=rewards > 0.9
    )
    assert len(learner.state.model.observed.censored)
    assert learner.freeze().recommend(GRID).shape == (25,)
    learned = cg.Learner(3, half_life=40).fit(contexts, arms, rewards, censored=rewards > 0.9)
    assert isinstance(learned.state.model, AgeingModel)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"half_life": 0}, "half_life"),
        ({"half_life": -3.0}, "half_life"),
        ({"half_life": "soon"}, "half_life .*'soon'"),
        ({"half_life": True}, "half_life"),
        ({"half_life": 50, "kernel": KERNEL, "sharing": 0.5}, "half_life must be left out"),
        ({"half_life": 50, "features": [[0.0], [1.0], [2.0]]}, "half_life must be left out"),
        ({"half_life": "auto", "kernel": KERNEL}, "leave the kernel out"),
    ],
)
def test_wrong_half_lives_are_refused(settings, match):
    with pytest.raises((ValueError, TypeError), match=match):
        cg.Learner(3, **settings)


@pytest.mark.parametrize("half_life", [None, 40.0])
@pytest.mark.parametrize("how", [{"before": 110}, {"keep": 40}])
def test_what_was_forgotten_was_never_told(half_life, how):
    settings = {"kernel": KERNEL, "half_life": half_life, "prior_mean": "auto", "seed": 0}
    learner, fresh = (cg.Learner(3, **settings) for _ in range(2))
    learner.fit(*log()).forget(**how)
    fresh.fit(*(each[110:] for each in log()))
    assert_same(learner, fresh)
    assert learner.counts == fresh.counts
    goes_on_alike(learner, fresh)


def test_forgetting_keeps_what_was_noted_with_the_rest():
    contexts, arms, rewards = log(60)
    learner = cg.Learner(3, kernel=KERNEL)
    learner.tell(
        contexts[:30], arms[:30], rewards[:30], eligible=[[a, (a + 1) % 3] for a in arms[:30]]
    )
    learner.tell(contexts[30:], arms[30:], rewards[30:], noise=np.full(30, 0.2))
    mask = learner.state.model.observed.eligible(np.arange(60))
    learner.forget(before=20)
    observed = learner.state.model.observed
    np.testing.assert_array_equal(observed.eligible(np.arange(40)), mask[20:])
    np.testing.assert_allclose(observed.noise, [0.0] * 10 + [0.04] * 30)


def test_forgetting_is_atomic_and_checked(monkeypatch):
    learner = cg.Learner(3, kernel=KERNEL).fit(*log())
    before, state = learner.means(GRID), learner.state
    for wrong in ({}, {"before": 1, "keep": 1}):
        with pytest.raises(TypeError, match="one of before= and keep="):
            learner.forget(**wrong)
    for wrong in ({"before": 150}, {"before": -1}, {"keep": 0}, {"keep": 2.5}):
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            learner.forget(**wrong)
    learner.forget(before=0)
    learner.forget(keep=1000)
    assert learner.state is state
    monkeypatch.setattr(cg.Gaussian, "__call__", None)
    with pytest.raises(TypeError):
        learner.forget(keep=10)
    monkeypatch.undo()
    assert learner.state is state
    np.testing.assert_array_equal(learner.means(GRID), before)


def test_forgetting_keeps_hyperparameters_until_more_rewards_come():
    learner = cg.Learner(3, seed=0).fit(*log())
    kernel, tuned = learner.kernel, learner.tuning
    learner.forget(keep=40)
    assert learner.kernel == kernel
    told(learner, 30)
    assert learner.tuning is not tuned  # with 1.4 times the 40 that were left


def test_forgetting_returns_from_inducing_points():
    learner = cg.Learner(1, kernel=KERNEL, points=10).fit(
        GRID.repeat(4, axis=0), [0] * 100, [0] * 100
    )
    assert isinstance(learner.state.model, BoundedModel)
    learner.forget(keep=4)
    assert len(learner.state.model) == 4


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": KERNEL},
        {"kernel": KERNEL, "half_life": 40.0},
        {"kernel": KERNEL, "sharing": 0.5},
        {},
        {"half_life": 40.0, "reward": "minimize"},
    ],
)
def test_a_policy_is_learnt_on_from(settings, tmp_path):
    learner = cg.Learner(3, seed=0, **settings).fit(*log())
    learner.freeze().save(tmp_path / "p.cgap")
    policy = cg.Policy.load(tmp_path / "p.cgap")
    later = cg.Learner.resume(policy, seed=1)
    assert_same(later, policy)
    assert later.counts == policy.counts
    assert later.state.half_life == learner.state.half_life
    assert later.state.next_tune == (None if "kernel" in settings else 210)
    later.save(tmp_path / "l.cgap")
    goes_on_alike(later, cg.Learner.load(tmp_path / "l.cgap"))
    assert len(policy.state.model) == 150


def test_tables_are_read_on_as_before(tmp_path):
    rows = [{"load": i / 10, "mode": "ab"[i % 2]} for i in range(30)]
    learner = cg.Learner(["x", "y"], seed=0)
    learner.fit(rows, ["x", "y", "y"] * 10, [0.1 * (i % 7) for i in range(30)])
    learner.freeze(fallback="x").save(tmp_path / "p.cgap")
    later = cg.Learner.resume(cg.Policy.load(tmp_path / "p.cgap"))
    later.tell({"load": 0.5, "mode": "c"}, "x", 0.4)
    assert later.counts == {"x": 11, "y": 20}
    assert list(later.columns) == ["load", "mode"]


def test_a_resumed_learner_explores_as_the_first_would_have():
    one = cg.Learner(3, kernel=KERNEL, method="contextual-gap").fit(*log())
    two = cg.Learner.resume(one.freeze())
    for context in GRID:
        assert one.ask(context) == two.ask(context)


def test_a_sample_of_a_long_log_is_learnt_on_from(tmp_path):
    contexts, arms, rewards = log(9000)
    learner = cg.Learner(3, kernel=KERNEL, points=40).fit(contexts, arms, rewards)
    learner.freeze().save(tmp_path / "p.cgap")
    policy = cg.Policy.load(tmp_path / "p.cgap")
    later = cg.Learner.resume(policy, points=40)
    assert 8192 <= len(later.state.model) < 9000
    assert sum(later.counts.values()) == len(later.state.model)
    np.testing.assert_allclose(later.means(GRID), policy.means(GRID), atol=0.05)
    later.tell([0.1], 0, 0.3)


def test_what_cannot_be_resumed_is_refused(tmp_path):
    policy = cg.Learner(3, kernel=KERNEL).fit(*log()).freeze()
    policy.compress(points=30).save(tmp_path / "small.cgap")
    for small in (policy.compress(points=30), cg.Policy.load(tmp_path / "small.cgap")):
        with pytest.raises(ValueError, match="compressed"):
            cg.Learner.resume(small)
    with pytest.raises(TypeError, match="policy"):
        cg.Learner.resume("p.cgap")
    with pytest.raises(ValueError, match="retune"):
        cg.Learner.resume(policy, retune="often")
    described = cg.Learner(3, kernel=KERNEL, features=[[0.0], [1.0], [2.0]]).fit(*log()).freeze()
    with pytest.raises(ValueError, match="features"):
        cg.Learner.resume(described, retune="growing")
    assert cg.Learner.resume(described).state.next_tune is None


def test_campaigns_replay_what_they_learnt(tmp_path):
    address = tmp_path / "campaign.db"
    campaign = Campaign.create(address, "drift", [0, 1, 2], half_life="auto", seed=0)
    contexts, arms, rewards = log(jump=80)
    campaign.tell(contexts=contexts, arms=arms.tolist(), reward=rewards)
    with Campaign.open(address, "drift") as again:
        np.testing.assert_array_equal(again.recommend(GRID), campaign.recommend(GRID))
