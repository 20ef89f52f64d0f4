"""Arms that share what they learn: learnt correlations, features, and bounds on differences."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import contextgap as cg
from contextgap.base.files import FileFormatError
from contextgap.learner.arguments import read_features
from contextgap.models import JointModel


def together(correlation, seed=0, rows=240, arms=4, noise=0.3):
    """Rewards of arms that are alike: sums of a common and an own smooth function."""
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1, 1, (rows, 2))
    root = np.linalg.cholesky(cg.Gaussian(0.5)(contexts, contexts) + 1e-9 * np.eye(rows))
    common, *own = (root @ rng.normal(size=(rows, arms + 1))).T
    truth = np.sqrt(correlation) * common[:, None] + np.sqrt(1 - correlation) * np.array(own).T
    picks = rng.integers(arms, size=rows)
    heard = truth[np.arange(rows), picks] + noise * rng.normal(size=rows)
    return contexts, picks, heard, truth


def test_a_correlation_needs_a_kernel_or_is_learnt():
    for wrong in (-0.1, 1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="sharing must be"):
            cg.Learner(2, kernel=cg.Gaussian(1.0), sharing=wrong)
    with pytest.raises(ValueError, match="sharing is learnt where no kernel is given, got"):
        cg.Learner(2, sharing=0.5)


def test_arms_that_share_teach_each_other(tmp_path):
    alone, shared = (
        cg.Learner(["a", "b"], kernel=cg.Gaussian(1.0), ridge=0.05, sharing=sharing, seed=0)
        for sharing in (0.0, 0.8)
    )
    for learner in (alone, shared):
        learner.fit([[0.0], [0.1], [0.2]], ["a"] * 3, [2.0, 2.1, 1.9])
    assert alone.decide([0.1]).mean[1] == 0
    assert shared.decide([0.1]).mean[1] > 1
    assert shared.decide([0.1]).std[1] < alone.decide([0.1]).std[1]
    shared.add_arm("c")
    assert shared.decide([0.1]).mean[2] == pytest.approx(shared.decide([0.1]).mean[1])
    shared.save(tmp_path / "l.cgap")
    again = cg.Learner.load(tmp_path / "l.cgap")
    np.testing.assert_array_equal(again.decide([0.5]).mean, shared.decide([0.5]).mean)


def test_a_correlation_is_learnt_where_there_is_one():
    found = []
    for seed in range(3):
        contexts, picks, heard, truth = together(0.8, seed)
        shared, alone = cg.Learner(4), cg.Learner(4, sharing=0)
        missed = []
        for learner in (shared, alone):
            learner.fit(contexts, picks, heard)
            chosen = learner.recommend(contexts).astype(int)
            missed.append((truth.max(axis=1) - truth[np.arange(len(truth)), chosen]).mean())
        assert shared.tuning.chosen == "shared"
        assert "correlation" in str(shared.tuning)
        assert isinstance(shared.state.model, JointModel)
        assert not isinstance(alone.state.model, JointModel)
        assert "shared" not in [each.name for each in alone.tuning.candidates]
        found.append(missed)
        assert shared.state.model.alike.sharing == pytest.approx(0.8, abs=0.3)
    shared, alone = np.mean(found, axis=0)
    assert shared < alone


def test_no_correlation_is_learnt_where_there_is_none():
    for seed in range(3):
        learner = cg.Learner(4).fit(*together(0.0, seed)[:3])
        assert learner.tuning.chosen != "shared"
        assert not isinstance(learner.state.model, JointModel)


def test_a_learner_may_go_joint_and_come_back(tmp_path):
    """The kind of model follows the rewards at every tuning; nothing told is lost."""
    contexts, picks, heard, _ = together(0.9, rows=160)
    learner = cg.Learner(4, seed=0).fit(contexts, picks, heard)
    assert learner.tuning.chosen == "shared"
    learner.save(tmp_path / "joint.cgap")
    again = cg.Learner.load(tmp_path / "joint.cgap")
    more = together(0.0, seed=5, rows=640)[:3]
    for each in (learner, again):
        each.fit(*more)
        assert each.tuning.chosen != "shared"
        assert sum(each.counts.values()) == 800
    np.testing.assert_array_equal(again.decide([0.2, 0.1]).mean, learner.decide([0.2, 0.1]).mean)


def test_a_given_kernel_keeps_its_kind_and_learns_the_correlation():
    contexts, picks, heard, _ = together(0.8)
    learner = cg.Learner(4, kernel=cg.Gaussian(0.5), ridge=0.1, sharing=0.3)
    learner.fit(contexts, picks, heard).tune()
    assert learner.state.model.alike.sharing == pytest.approx(0.8, abs=0.3)
    alone = cg.Learner(4, kernel=cg.Gaussian(0.5), ridge=0.1).fit(contexts, picks, heard).tune()
    assert not isinstance(alone.state.model, JointModel)


DOSES = np.linspace(0, 1, 12)


def doses(seed, rows, noise=0.2):
    """The best dose depends on the context; rewards are smooth in both."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(rows, 2))
    best = 0.5 + 0.3 * np.tanh(contexts[:, 0])
    truth = np.exp(-0.5 * ((DOSES - best[:, None]) / 0.15) ** 2)
    return contexts, truth, truth + noise * rng.normal(size=truth.shape)


def explored_doses(seed, steps, **settings):
    contexts, truth, heard = doses(seed, steps + 400)
    learner = cg.Learner(len(DOSES), seed=seed, **settings)
    for row in range(steps):
        arm = learner.ask(contexts[row])
        learner.tell(contexts[row], arm, heard[row, arm])
    chosen = learner.recommend(contexts[steps:]).astype(int)
    left = truth[steps:]
    return learner, (left.max(axis=1) - left[np.arange(len(left)), chosen]).mean()


@pytest.mark.slow
def test_arms_with_features_learn_faster():
    missed = []
    for seed in (0, 1):
        described, with_features = explored_doses(seed, 120, features=DOSES[:, None])
        _, without = explored_doses(seed, 120, sharing=0)
        missed.append([with_features, without])
        assert described.tuning.chosen == "shared"
        assert min(described.counts.values()) >= 1
    with_features, without = np.mean(missed, axis=0)
    assert with_features < 0.8 * without


def test_a_new_arm_starts_from_what_its_neighbours_taught(tmp_path):
    learner, _ = explored_doses(3, 120, features=DOSES[:, None])
    learner.add_arm("new", features=[0.5 * (DOSES[4] + DOSES[5])])
    learner.add_arm("far", features=[50.0])
    here = learner.decide(doses(3, 1)[0][0])
    between = here.mean[[4, 5]]
    assert here.mean[-2] == pytest.approx(between.mean(), abs=0.1 + np.ptp(between))
    assert here.std[-1] > 1.2 * here.std[-2]
    assert here.mean[-1] == pytest.approx(learner.prior_mean, abs=1e-6)
    learner.save(tmp_path / "doses.cgap")
    again = cg.Learner.load(tmp_path / "doses.cgap")
    context = doses(4, 1)[0][0]
    assert again.ask(context) == learner.ask(context)
    again.tell(context, "new", 1.0)
    learner.tell(context, "new", 1.0)
    for each in (again, learner):
        each.tune()
    np.testing.assert_array_equal(again.decide(context).mean, learner.decide(context).mean)


def test_features_come_as_mappings_frames_rows_or_numbers():
    rows = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    frame = pd.DataFrame({"dose": [3.0, 1.0], "heat": [4.0, 2.0]}, index=["b", "a"])
    given = [
        cg.Learner(["a", "b"], features=x).state.features.rows
        for x in (rows, frame, [[1, 2], [3, 4]])
    ]
    for each in given:
        np.testing.assert_array_equal(each, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(cg.Learner(2, features=[5, 6]).state.features.rows, [[5], [6]])


def test_features_may_be_categories_and_missing(tmp_path):
    drugs = {
        "a": {"drug": "x", "dose": 1.0, "coated": True},
        "b": {"drug": "x", "dose": 2.0, "coated": False},
        "c": {"drug": "y", "dose": None, "coated": True},
    }
    frame = pd.DataFrame(drugs).T
    learner = cg.Learner(["a", "b", "c"], features=drugs, kernel=cg.Gaussian(1.0))
    by_frame = cg.Learner(["a", "b", "c"], features=frame, kernel=cg.Gaussian(1.0))
    np.testing.assert_array_equal(learner.state.features.rows, by_frame.state.features.rows)
    alike = learner.state.model.alike
    # dose, where it is missing, drug, coated
    one_column_per_level = np.array(
        [[1.0, 0, 1, 0, 1, 0], [2.0, 0, 1, 0, 0, 1], [1.5, 1, 0, 1, 1, 0]]
    ) * np.sqrt([1, 1, 0.5, 0.5, 0.5, 0.5])
    widths = np.repeat(alike.bandwidths, [1, 1, 2, 2])
    np.testing.assert_allclose(
        alike.similar, cg.Gaussian(widths)(one_column_per_level, one_column_per_level)
    )
    learner.tell([[0.0]] * 3, ["a", "b", "c"], [1.0, 2.0, 3.0])
    learner.save(tmp_path / "l.cgap")
    again = cg.Learner.load(tmp_path / "l.cgap")
    for each in (learner, again):
        each.add_arm("d", features={"drug": "z", "dose": 1.0, "coated": None or False})
        each.add_arm("e", features={"drug": "z", "dose": 1.0, "coated": False})
        assert each.state.model.alike.similar[3, 4] == 1
        with pytest.raises(TypeError, match="features must have a number in column 'dose'"):
            each.add_arm("f", features={"drug": "z", "dose": "much", "coated": False})
    np.testing.assert_array_equal(again.decide([0.0]).mean, learner.decide([0.0]).mean)


def test_categories_of_arms_are_learnt_from():
    rng = np.random.default_rng(0)
    arms = [f"arm {place}" for place in range(12)]
    material = ["steel", "wood", "glass"]
    features = {arm: [material[place % 3]] for place, arm in enumerate(arms)}
    contexts = rng.uniform(-1, 1, size=(150, 1))
    tried = rng.integers(12, size=150)
    rewards = np.sin(2 * contexts[:, 0] + 2 * (tried % 3)) + 0.05 * rng.normal(size=150)
    described = cg.Learner(arms, features=features)
    described.fit(contexts, [arms[place] for place in tried], rewards)
    assert described.tuning.chosen == "shared"
    fresh = np.linspace(-1, 1, 50)[:, None]
    best = np.sin(2 * fresh + 2 * np.arange(3)).argmax(axis=1)
    found = [arms.index(arm) % 3 for arm in described.recommend(fresh)]
    assert np.mean(found == best) > 0.9


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"a": [1.0]}, "'b' has none"),
        ({"a": [1.0], "b": [2.0], "c": [3.0]}, "'c' is not an arm"),
        ({"a": [1.0], "b": [2.0, 3.0]}, "equally many"),
        ({"a": [1.0], "b": [float("inf")]}, "finite"),
        ({"a": ["x"], "b": [1.0]}, "number"),
        ({"a": {"x": 1.0}, "b": {"y": 1.0}}, "features lack 'x'"),
        ({"a": [1.0], "b": [[]]}, "features must be"),
        ({"a": [1e300], "b": [1.0]}, r"features must be at most 1e\+100 in size"),
        ([[1.0]], "a row for each of 2 arms"),
        ("ab", "must map every arm"),
        (3, "must map every arm"),
        ({"a": [], "b": []}, "at least one number"),
    ],
)
def test_wrong_features_are_refused(features, message):
    with pytest.raises((ValueError, TypeError), match=message):
        cg.Learner(["a", "b"], features=features)


def test_features_belong_to_all_arms_or_to_none():
    plain, described = cg.Learner(2), cg.Learner(2, features=[[0.0, 1.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="all arms or for none"):
        plain.add_arm("new", features=[1.0])
    with pytest.raises(ValueError, match="all arms or for none"):
        described.add_arm("new")
    with pytest.raises(ValueError, match="must be 2 numbers"):
        described.add_arm("new", features=[1.0])
    assert described.arms == plain.arms == (0, 1)
    with pytest.raises(ValueError, match="sharing must be above 0"):
        cg.Learner(2, features=[[0.0], [1.0]], sharing=0)


def shared_learner(method="contextual-gap", width=None):
    learner = cg.Learner(
        4, kernel=cg.Gaussian(0.5), ridge=0.05, sharing=0.7, method=method, width=width, seed=0
    )
    contexts, _, _, truth = together(0.7, rows=40)
    for row, context in enumerate(contexts):
        arm = learner.ask(context)
        learner.tell(context, arm, truth[row, arm])
    return learner, contexts


def test_gaps_bound_differences():
    learner, _ = shared_learner(width=cg.PosteriorWidth(1.5))
    context = np.array([0.1, -0.2])
    posterior = learner.state.model.posterior(context, range(4))
    decision = learner.decide(context)
    for a in range(4):
        leads = []
        for b in set(range(4)) - {a}:
            signs = np.zeros(4)
            signs[b], signs[a] = 1, -1
            std = np.sqrt(signs @ posterior.covariance @ signs)
            leads.append(posterior.mean[b] - posterior.mean[a] + 1.5 * std)
        assert decision.gap[a] == pytest.approx(max(leads))
        assert (
            decision.gap[a]
            < decision.upper[[b for b in range(4) if b != a]].max() - (decision.lower[a])
        )
    rival = int(decision.challenger)
    leads = decision.mean - decision.mean[decision.leader]
    assert rival != decision.leader
    assert leads[rival] <= decision.gap[decision.leader]


def test_the_more_informative_of_leader_and_challenger_is_tried():
    """A reward of the arm picked leaves less variance of the difference than one of the other."""
    learner, contexts = shared_learner()
    for context in contexts[:10] + 0.05:
        decision = learner.decide(context)
        pair = (decision.leader, decision.challenger)
        left = {}
        for arm in pair:
            waiting = {arm: [context]}
            covariance = learner.state.model.posterior(context, range(4), waiting).covariance
            chosen = covariance[np.ix_(pair, pair)]
            left[arm] = chosen[0, 0] + chosen[1, 1] - 2 * chosen[0, 1]
        assert left[decision.arm] == pytest.approx(min(left.values()), rel=1e-9)


def test_the_look_back_compares_gaps_of_all_steps():
    learner, contexts = shared_learner("contextual-gap-history")
    points = contexts[:7] + 0.03
    best, chosen = np.full(7, np.inf), np.zeros(7, dtype=int)
    log = learner.state.model.observed
    for step in range(4, len(learner.state.model) + 1):
        fresh = cg.Learner(4, kernel=learner.kernel, ridge=0.05, sharing=0.7)
        fresh.fit(log.contexts[:step], log.arms[:step].tolist(), log.rewards[:step])
        for row, point in enumerate(points):
            gap = fresh.decide(point).gap
            if gap.min() < best[row]:
                best[row], chosen[row] = gap.min(), gap.argmin()
    np.testing.assert_array_equal(learner.recommend(points), chosen)
    np.testing.assert_allclose(learner.freeze().certificate(points).bound, np.maximum(best, 0))
    rule = cg.StoppingRule(0.1, reference=points)
    assert learner.settled(rule) == pytest.approx((np.maximum(best, 0) <= 0.1).mean())


def test_random_draws_have_the_covariances_of_the_arms(rng):
    learner, _ = shared_learner(width=cg.PosteriorWidth(2.0))
    moment = learner._view(learner.state.schema, learner.state.pending).moment(np.array([0.9, 0.9]))
    draws = moment.belief.draws(rng, 40000)
    np.testing.assert_allclose(draws.mean(axis=0), moment.belief.mean, atol=0.05)
    expected = 4 * moment.belief.covariance
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.03 * expected.max())


def test_an_arm_that_another_beats_for_certain_is_implausible():
    """Arms that move together can be told apart although their intervals overlap widely."""
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), ridge=1e-4, sharing=0.999)
    learner.fit([[0.0], [0.0]], [0, 1], [1.0, 0.5])
    belief = (
        learner._view(learner.state.schema, learner.state.pending).moment(np.array([1.5])).belief
    )
    assert belief.lower[0] < belief.upper[1]
    assert belief.plausible.tolist() == [True, False]
    assert belief.gap[0] < 0 < belief.gap[1]


def test_bounds_on_differences_keep_their_promise(rng):
    """Functions of known norm in the joint kernel's space; any interval at any step may fail."""
    kernel, ridge, correlation, norm, noise, failure = cg.Gaussian(0.4), 0.5, 0.6, 2.0, 0.3, 0.1
    alike = np.where(np.eye(3) > 0, 1.0, correlation)
    width = cg.TheoremWidth(noise, norm, failure, tight=True)
    points = rng.uniform(size=(15, 1))
    failed, runs = 0, 60
    for _ in range(runs):
        centres, whose = rng.uniform(size=(9, 1)), rng.integers(3, size=9)
        weights = rng.normal(size=9)
        gram = kernel(centres, centres) * alike[np.ix_(whose, whose)]
        weights *= norm / np.sqrt(weights @ gram @ weights)
        truth = np.stack(
            [kernel(points, centres) @ (weights * alike[arm, whose]) for arm in range(3)], axis=1
        )
        learner = cg.Learner(
            3, kernel=kernel, ridge=ridge, sharing=correlation, width=width, seed=0
        )
        ever = False
        for step in range(30):
            row = int(rng.integers(len(points)))
            arm = learner.ask(points[row])
            learner.tell(points[row], arm, truth[row, arm] + noise * rng.normal())
            if step % 3 == 0:
                policy = learner.freeze()
                assert policy.probability == 0.9
                chosen = policy.recommend(points).astype(int)
                regret = truth.max(axis=1) - truth[np.arange(len(points)), chosen]
                ever |= bool((regret > policy.certificate(points).bound + 1e-9).any())
        failed += ever
    assert failed <= failure * runs


def test_a_file_whose_features_disagree_is_refused(tmp_path):
    learner = cg.Learner(3, kernel=cg.Gaussian(1.0), features=[[0.0], [1.0], [2.0]])
    learner.tell([0.5], 1, 1.0)
    learner.state.features.rows[0] = 9.0
    learner.save(tmp_path / "l.cgap")
    with pytest.raises(FileFormatError, match="features of the arms are not those"):
        cg.Learner.load(tmp_path / "l.cgap")


def test_features_may_be_a_table_in_the_order_of_the_arms():
    rows = {"dose": [1.0, 2.0, 4.0], "drug": ["x", "y", "x"]}
    indexed = pd.DataFrame(rows, index=["a", "b", "c"])
    wanted = read_features(indexed, ["a", "b", "c"])
    for table in (pd.DataFrame(rows), pl.DataFrame(rows)):
        found = read_features(table, ["a", "b", "c"])
        np.testing.assert_array_equal(found.rows, wanted.rows)
        assert found.names == wanted.names
    shuffled = read_features(pd.DataFrame(rows, index=[2, 1, 0]), [0, 1, 2])
    assert shuffled.rows[:, 0].tolist() == [4.0, 2.0, 1.0]


def test_names_of_features_survive_saving(tmp_path):
    rows = {"a": {"1": 5.0, "0": 1.0}, "b": {"1": 10.0, "0": 2.0}}
    saved = cg.Learner(["a", "b"], features=rows)
    saved.save(tmp_path / "learner.cgap")
    loaded = cg.Learner.load(tmp_path / "learner.cgap")
    for learner in (saved, loaded):
        learner.add_arm("c", features={"1": 20.0, "0": 3.0})
        assert learner.state.features.rows[-1].tolist() == [20.0, 3.0]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_features_that_names_the_arms_says_whose_rows_they_are(frame):
    table = frame({"arm": ["high", "low", "middle"], "dose": [20.0, 5.0, 10.0]})
    learner = cg.Learner(["low", "middle", "high"], features=table)
    assert learner.state.features.rows.tolist() == [[5.0], [10.0], [20.0]]
    assert learner.state.features.names == ("dose",)
    numbered = frame({"arm": ["20", "10"], "dose": [20.0, 5.0]})
    assert cg.Learner([10, 20], features=numbered).state.features.rows.tolist() == [[5.0], [20.0]]
