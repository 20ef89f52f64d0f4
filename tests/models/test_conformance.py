"""Every model passes through learner, policy, look-back, stopping, pools, files and exports.

Beside the models of the library there is an odd one, whose arms share what they learn and which
does not keep its history: what other rooms assume about models shows here.
"""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg.blas import dtpsv

import contextgap as cg
from contextgap.export import ExportError
from contextgap.export.c import CompiledPolicy
from contextgap.learner import state as learner_state
from contextgap.models import (
    MANY_PENDING,
    AgeingModel,
    Alike,
    BoundedModel,
    ExactModel,
    JointModel,
    KeepsHistory,
    TrackedModel,
    describe_model,
    exact,
    follower,
    new_model,
    refitted_model,
    restored_model,
)
from contextgap.models.dictionary import Dictionary
from tests.oracle_model import DenseHistoryModel, DenseModel

KERNEL, RIDGE, ARMS = 1.5 * cg.Gaussian((0.7, 1.1)) + 0.2 * cg.Linear(), 0.05, 3


class SharingModel(DenseModel):
    """Arms of which each knows a part of what the others learn."""

    kind = "test: sharing"
    shares = True

    def alike(self, one, two):
        return np.where(one[:, None] == two, 1.0, 0.5)

    def information_gain(self, arms):
        gram = self._noisy() / self.ridge
        return np.full(len(arms), np.linalg.slogdet(gram)[1] / 2)


class SharingHistoryModel(SharingModel, DenseHistoryModel):
    kind = "test: sharing with history"


class GivenPointsModel(BoundedModel):
    """The bounded model with inducing points wherever it is asked: it is exact there."""

    kind = "test: bounded"

    def __init__(self, kernel, ridge, n_arms, prior_mean=0.0, points=512):
        super().__init__(kernel, ridge, n_arms, prior_mean, points)
        if n_arms:
            self._use(Dictionary.of(kernel, np.vstack([data()[0], data(60, seed=3)[0], NEW])))
            self._next_choice = 10**9


class SteadyModel(AgeingModel):
    """Rewards that hardly age: what was said before the next reward still holds after it."""

    kind = "test: ageing"

    def __init__(self, kernel, ridge, n_arms, prior_mean=0.0, half_life=1e12):
        super().__init__(kernel, ridge, n_arms, prior_mean, half_life)


MODELS = [ExactModel, DenseModel, DenseHistoryModel, SharingModel, JointModel, GivenPointsModel]
MODELS += [SteadyModel]
every_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.kind)


def data(count=40, seed=0):
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1, 1, (count, 2))
    arms = rng.integers(ARMS, size=count)
    return contexts, arms, np.sin(2 * contexts[:, 0] + arms) + 0.1 * rng.normal(size=count)


def filled(kind, prior_mean=0.3, count=40):
    model = kind(KERNEL, RIDGE, ARMS, prior_mean)
    model.observe_many(*data(count))
    return model


def same(one, two, **tolerance):
    tolerances = {"rtol": 1e-7, "atol": 1e-9, **tolerance}
    for name in ("mean", "std", "information_gain"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), **tolerances)
    if one.covariance is not None or two.covariance is not None:
        np.testing.assert_allclose(one.covariance, two.covariance, **tolerances)


NEW = np.random.default_rng(9).uniform(-1.2, 1.2, (15, 2))


@every_model
class TestModel:
    @pytest.mark.parametrize("prior_mean", [0.0, 0.7, "auto"])
    def test_one_by_one_is_all_at_once(self, kind, prior_mean):
        model = kind(KERNEL, RIDGE, ARMS, prior_mean)
        for context, arm, reward in zip(*data(), strict=True):
            model.observe(context, int(arm), float(reward))
        same(
            model.posterior(NEW, range(ARMS)), filled(kind, prior_mean).posterior(NEW, range(ARMS))
        )
        table = model.posterior(NEW, [2, 0])
        for row, context in enumerate(NEW):
            one = model.posterior(context, [2, 0])
            np.testing.assert_allclose(one.mean, table.mean[row], rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(one.std, table.std[row], rtol=1e-7, atol=1e-9)

    def test_nothing_observed_is_the_prior(self, kind):
        found = kind(KERNEL, RIDGE, ARMS, 0.3).posterior(NEW, range(ARMS))
        np.testing.assert_allclose(found.mean, 0.3)
        np.testing.assert_allclose(found.std**2, np.tile(KERNEL.diagonal(NEW)[:, None], ARMS))

    def test_pending_picks_are_rewards_as_expected(self, kind):
        model, told = filled(kind), filled(kind)
        pending = {1: [NEW[0], NEW[1]], 2: [NEW[2]]}
        for arm, contexts in pending.items():
            for context in contexts:
                told.observe(context, arm, float(told.posterior(context, [arm]).mean[0]))
        for at in (NEW[3:], NEW[5]):
            found, expected = (
                model.posterior(at, range(ARMS), pending),
                told.posterior(at, range(ARMS)),
            )
            np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-7)
            np.testing.assert_allclose(found.std, expected.std, rtol=1e-7)
        same(model.posterior(NEW, range(ARMS)), filled(kind).posterior(NEW, range(ARMS)))

    def test_moves_are_how_far_rewards_move_means(self, kind):
        model = filled(kind)
        here, points = NEW[:1], NEW[1:]
        moves = model.moves(here, 1, points)
        before = model.posterior(points, range(ARMS)).mean
        at = model.posterior(here[0], [1])
        surprise = np.sqrt(at.std[0] ** 2 + RIDGE)  # one standard deviation of the reward
        model.observe(here[0], 1, float(at.mean[0] + surprise))
        moved = model.posterior(points, range(ARMS)).mean - before
        if moves.ndim == 2:
            moves = moves[..., None] * (np.arange(ARMS) == 1)
        np.testing.assert_allclose(moves[:, 0], moved, atol=1e-8)

    def test_followers_keep_up(self, kind):
        model = kind(KERNEL, RIDGE, ARMS, 0.3)
        follower, ahead = model.follow(NEW), model.follow()
        pending = {0: [NEW[3]]}
        for step, (context, arm, reward) in enumerate(zip(*data(), strict=True)):
            model.observe(context, int(arm), float(reward))
            if step % 7 == 3:
                same(follower.posterior([0, 2]), model.posterior(NEW, [0, 2]))
                reference = np.arange(0, step, 3)
                found = ahead.look_ahead(NEW[0], [0, 2], reference, pending)
                points = np.vstack([model.observed.contexts[reference], NEW[:1]])
                expected = model.posterior(points, [0, 2], pending).mean
                np.testing.assert_allclose(found.mean, expected, rtol=1e-7)
                moves = model.moves(NEW[:1], 2, points, pending)[:, 0]
                own = found.move[:, 1] if moves.ndim == 1 else found.move[:, 1, 1]
                np.testing.assert_allclose(
                    own, moves.T[-1].T if moves.ndim > 1 else moves, atol=1e-8
                )

    def test_followers_keep_up_with_picks_at_the_contexts_asked_about(self, kind, rng):
        model, pending = filled(kind), {arm: [] for arm in range(ARMS)}
        follower, reference = model.follow(), np.arange(0, 40, 3)
        for step in range(30):
            context, arm = rng.normal(size=2), int(rng.integers(ARMS))
            found = follower.look_ahead(context, [0, 2, 1], reference, pending)
            expected = model.follow().look_ahead(context, [0, 2, 1], reference, pending)
            np.testing.assert_allclose(found.mean, expected.mean, atol=1e-9)
            np.testing.assert_allclose(found.move, expected.move, atol=1e-9)
            if step % 3 == 0:  # told, as usual
                model.observe(context, arm, float(rng.normal()))
            elif step % 3 == 1:  # not yet told
                pending[arm] = [*pending[arm], context]
            else:  # in place of a pick that was taken back
                pending[arm] = [*pending[arm][1:], context]

    def test_a_pool_has_the_posterior_and_the_moves_of_its_contexts(self, kind):
        model, places, pending = filled(kind), np.array([0, 4, 2]), {1: [NEW[3]]}
        pooled = model.pooled(NEW, [2, 0], pending)
        same(pooled.posterior, model.posterior(NEW, [2, 0], pending))
        for reference in (places, NEW[places]):
            expected = model.posterior(NEW[places], [2, 0], pending).mean
            np.testing.assert_allclose(pooled.means(reference), expected, atol=1e-9)
            moves = model.moves(NEW, 0, NEW[places], pending)
            moves = moves if moves.ndim == 2 else moves[..., [2, 0]]
            np.testing.assert_allclose(pooled.moves(1, reference), moves, atol=1e-9)

    @pytest.mark.parametrize("most", [4, 128])
    def test_a_batch_counts_its_own_picks(self, kind, most, monkeypatch):
        monkeypatch.setattr(follower, "_MOST", most)
        monkeypatch.setattr(follower, "_NUMBERS", (most * ARMS) ** 2)
        model, pending = filled(kind), {1: [NEW[3]]}
        fresh = filled(kind)  # which has not counted any of the picks before
        picked = follower.Batch(model, NEW, range(ARMS), pending)
        for place, arm in enumerate(data(len(NEW), seed=5)[1].tolist()):
            arms = [2, 0] if place % 3 == 2 else range(ARMS)
            expected = fresh.posterior(NEW[place], arms, pending)
            same(picked.posterior(place, arms), expected)
            reference = (np.array([4, 9]), NEW[:5] + 0.1)[place > 9]
            if not model.shares and place > 5:
                ahead = picked.look_ahead(place, arms, reference)
                other = fresh.follow().look_ahead(NEW[place], arms, reference, pending)
                np.testing.assert_allclose(ahead.mean, other.mean, rtol=1e-7, atol=1e-9)
                np.testing.assert_allclose(ahead.move, other.move, rtol=1e-7, atol=1e-9)
            pending.setdefault(arm, []).append(NEW[place])
            picked.add(place, arm)

    def test_many_pending_picks_count_as_one_by_one(self, kind):
        model, pending = filled(kind), {arm: [] for arm in range(ARMS)}
        contexts, arms, _ = data(60, seed=3)
        for context, arm in zip(contexts, arms.tolist(), strict=True):
            pending[arm].append(context)
            one_by_one = model.posterior(NEW, range(ARMS), pending)
        assert min(map(len, pending.values())) > MANY_PENDING
        at_once = filled(kind)
        same(at_once.posterior(NEW, range(ARMS), pending), one_by_one)
        del pending[0][4], pending[2][0]
        same(
            at_once.posterior(NEW, range(ARMS), pending),
            filled(kind).posterior(NEW, range(ARMS), pending),
        )

    def test_rewinding_undoes(self, kind):
        model = filled(kind)
        before, mark = model.posterior(NEW, range(ARMS)), model.mark()
        model.observe(NEW[0], 1, 3.0)
        model.observe_many(NEW[1:4], np.array([0, 2, 2]), np.ones(3))
        model.rewind(mark)
        assert len(model) == 40
        same(model.posterior(NEW, range(ARMS)), before)
        model.observe(NEW[0], 1, 3.0)
        assert model.observed.places(1)[-1] == 40

    def test_snapshots_stay(self, kind):
        model = filled(kind)
        frozen, before = model.snapshot(), model.posterior(NEW, range(ARMS))
        model.add_arm()
        model.observe(NEW[0], ARMS, 1.0)
        same(frozen.posterior(NEW, range(ARMS)), before)

    def test_leaving_out_is_never_having_heard(self, kind):
        model, places = filled(kind), np.array([3, 17, 39])
        posterior, error = model.left_out(places, np.ones(3, dtype=int), range(ARMS))
        for row, place in enumerate(places):
            kept = np.delete(np.arange(40), place)
            without = kind(KERNEL, RIDGE, ARMS, 0.3)
            without.observe_many(*(values[kept] for values in data()))
            expected = without.posterior(data()[0][place], range(ARMS))
            np.testing.assert_allclose(posterior.mean[row], expected.mean, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(posterior.std[row], expected.std, rtol=1e-6)
            heard = data()[2][place] - expected.mean[data()[1][place]]
            assert error[row] == pytest.approx(heard, rel=1e-6)

    def test_sums_are_weighted_beliefs(self, kind):
        model, weights = filled(kind), np.random.default_rng(1).normal(size=(2, 15, ARMS))
        variance, moves = model.sums(NEW, range(ARMS), weights)
        alone = np.zeros((1, 15, ARMS))
        alone[0, 4, 1] = 1.0
        one, _ = model.sums(NEW, range(ARMS), alone)
        assert one[0] == pytest.approx(model.posterior(NEW[4], [1]).std[0] ** 2)
        assert (variance > 0).all()
        # A sum's mean is linear in the rewards.
        raised = kind(KERNEL, RIDGE, ARMS, 0.3)
        contexts, arms, rewards = data()
        raised.observe_many(contexts, arms, rewards + (np.arange(40) == 11))
        change = raised.posterior(NEW, range(ARMS)).mean - model.posterior(NEW, range(ARMS)).mean
        np.testing.assert_allclose(moves[:, 11], np.einsum("kij,ij->k", weights, change), atol=1e-8)

    def test_supports_are_the_posterior(self, kind):
        model = filled(kind)
        expected = model.posterior(NEW, [2, 0])
        for column, support in enumerate(model.supports([2, 0])):
            values = KERNEL(support.points, NEW)
            mean = model.prior() + support.weights @ values
            np.testing.assert_allclose(mean, expected.mean[:, column], rtol=1e-7)
            variance = KERNEL.diagonal(NEW)
            for sign, factor in support.factors:
                for row in range(len(NEW)):
                    v = dtpsv(len(values), factor, values[:, row].copy(), trans=1)
                    variance[row] -= sign * v @ v
            np.testing.assert_allclose(np.sqrt(variance), expected.std[:, column], rtol=1e-6)
            assert support.information_gain == pytest.approx(expected.information_gain[column])

    def test_predictors_answer_as_the_model_does(self, kind, monkeypatch):
        monkeypatch.setattr(exact, "_FEW", 0)
        model = filled(kind)
        predictor, posterior = model.predictor(range(ARMS)), model.posterior(NEW, range(ARMS))
        same(predictor.posterior(NEW), posterior)
        means, bounds = predictor.means(NEW), predictor.bounds(NEW)
        assert (means is None) == (kind not in (ExactModel, GivenPointsModel, SteadyModel))
        if means is not None:
            assert (np.abs(means[0] - posterior.mean).max(axis=1) <= means[1]).all()
        assert (bounds is None) == (kind not in (ExactModel, SteadyModel))
        if bounds is not None:
            assert (bounds.least <= posterior.std).all()
            assert (posterior.std <= bounds.most).all()

    def test_files_hold_it(self, kind):
        model = filled(kind)
        again = kind(KERNEL, RIDGE, ARMS, 0.3)
        again.restore({name: values.copy() for name, values in model.arrays().items()})
        same(again.posterior(NEW, range(ARMS)), model.posterior(NEW, range(ARMS)), rtol=1e-12)


@pytest.mark.parametrize("kind", [k for k in MODELS if not k.shares], ids=lambda kind: kind.kind)
def test_the_model_of_studies_is_every_model_whose_arms_are_independent(kind):
    contexts, arms, rewards = data()
    points = np.vstack([contexts, NEW])
    tracked = TrackedModel(KERNEL(contexts, points), KERNEL.diagonal(points), RIDGE, ARMS, 0.3)
    model = kind(KERNEL, RIDGE, ARMS, 0.3)
    for context, arm, reward in zip(contexts, arms.tolist(), rewards.tolist(), strict=True):
        same(tracked.posterior_now(), model.posterior(context, range(ARMS)))
        tracked.observe(arm, reward)
        model.observe(context, arm, reward)
    same(tracked.posterior_from(len(contexts)), model.posterior(NEW, range(ARMS)))


@pytest.mark.parametrize("alike", [None, Alike(0.5)])
@every_model
def test_refitting_keeps_what_was_observed_and_may_change_the_kind(kind, alike):
    other = refitted_model(filled(kind).observed, cg.Gaussian(0.4), 0.2, 0.0, alike)
    expected = (DenseModel if alike is None else SharingModel)(cg.Gaussian(0.4), 0.2, ARMS)
    expected.observe_many(*data())
    same(other.posterior(NEW, range(ARMS)), expected.posterior(NEW, range(ARMS)))


FEATURES = ((0.0, 1.0), (0.3, 1.5), (2.0, 0.0), (40.0, 3.0))


class FeaturesModel(SharingModel):
    """Arms that are as alike as their features: a Gaussian kernel of these, written out."""

    kind = "test: features"

    def alike(self, one, two):
        points = np.array(FEATURES) / (0.5, 2.0)
        apart = ((points[one][:, None] - points[two]) ** 2).sum(axis=-1)
        return 0.7 * np.exp(-apart / 2) + 0.3 * (one[:, None] == two)


def test_arms_with_features_are_the_dense_ones():
    alike = Alike(0.7, FEATURES[:3], (0.5, 2.0))
    joint, dense = new_model(KERNEL, RIDGE, 3, 0.3, alike), FeaturesModel(KERNEL, RIDGE, 3, 0.3)
    for model in (joint, dense):
        model.observe_many(*data())
    joint.add_arm(FEATURES[3])
    dense.add_arm()
    for model in (joint, dense):
        model.observe(NEW[0], 3, 1.0)
    same(joint.posterior(NEW, range(4)), dense.posterior(NEW, range(4)))
    np.testing.assert_allclose(
        joint.moves(NEW[:2], 1, NEW), dense.moves(NEW[:2], 1, NEW), atol=1e-9
    )
    for support, arm in zip(joint.supports(range(4)), range(4), strict=True):
        expected = joint.posterior(NEW, [arm])
        values = KERNEL(support.points, NEW)
        np.testing.assert_allclose(0.3 + support.weights @ values, expected.mean[:, 0], atol=1e-9)
    again = restored_model(describe_model(joint), joint.arrays(), KERNEL, RIDGE, 4, 0.3)
    same(again.posterior(NEW, range(4)), joint.posterior(NEW, range(4)), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("features", "bandwidths"),
    [([[1.0]] * 3, [1.0, 2.0]), ([[1.0]] * 2, [1.0]), ([[1.0]] * 3, [0.0]), ([["x"]] * 3, [1.0])],
)
def test_features_that_a_file_cannot_hold_are_refused(features, bandwidths):
    description = {
        "kind": "joint",
        "version": 1,
        "sharing": 0.5,
        "features": features,
        "bandwidths": bandwidths,
    }
    with pytest.raises((ValueError, TypeError), match=r"features|bandwidths"):
        restored_model(description, filled(JointModel).arrays(), KERNEL, RIDGE, ARMS, 0.3)


@pytest.mark.parametrize("sharing", [-3, 0, 1, 1.5, "x", None, [1]])
def test_a_correlation_that_a_file_cannot_hold_is_refused(sharing):
    description = {"kind": "joint", "version": 1, "sharing": sharing}
    with pytest.raises((ValueError, TypeError), match="sharing must be"):
        restored_model(description, filled(JointModel).arrays(), KERNEL, RIDGE, ARMS, 0.3)


@pytest.mark.parametrize("prior_mean", [0.4, "auto"])
def test_the_joint_model_is_the_dense_one_that_shares(prior_mean):
    joint, dense = (kind(KERNEL, RIDGE, ARMS, prior_mean) for kind in (JointModel, SharingModel))
    contexts, arms, rewards = data(60)
    for model in (joint, dense):
        model.observe_many(contexts[:20], arms[:20], rewards[:20])
    pending = {2: [NEW[0]], 0: [NEW[1], NEW[2]]}
    for place in range(20, 60):
        for model in (joint, dense):
            model.observe(contexts[place], int(arms[place]), float(rewards[place]))
        if place % 9 == 0:
            same(joint.posterior(NEW, range(ARMS)), dense.posterior(NEW, range(ARMS)))
            late = [model.posterior(NEW[4], [1, 2], pending) for model in (joint, dense)]
            np.testing.assert_allclose(late[0].std, late[1].std, rtol=1e-7)
            moves = [model.moves(NEW[:2], 1, NEW, pending) for model in (joint, dense)]
            np.testing.assert_allclose(*moves, atol=1e-9)


def test_the_joint_model_grows_over_chunks_and_arms():
    rng = np.random.default_rng(0)
    contexts, arms = rng.uniform(-1, 1, (1300, 2)), rng.integers(4, size=1300)
    rewards = np.sin(3 * contexts[:, 0] + arms)
    joint = JointModel(KERNEL, 0.1, 4, 0.0)
    joint.observe_many(contexts, arms, rewards)
    joint.add_arm()
    joint.observe(NEW[0], 4, 1.0)
    expected = SharingModel(KERNEL, 0.1, 5, 0.0)
    expected.observe_many(
        np.vstack([contexts, NEW[:1]]), np.append(arms, 4), np.append(rewards, 1.0)
    )
    same(joint.posterior(NEW, range(5)), expected.posterior(NEW, range(5)))


@pytest.mark.parametrize("ridge", [1e-8, 1e-4])
def test_the_joint_model_keeps_its_digits_where_the_ridge_is_small(ridge):
    contexts = np.random.default_rng(1).uniform(-1, 1, (80, 2))
    arms = np.arange(80) % ARMS
    joint, dense = (kind(cg.Gaussian(0.3), ridge, ARMS) for kind in (JointModel, SharingModel))
    for context, arm in zip(contexts, arms.tolist(), strict=True):
        joint.observe(context, arm, float(context[0]))
    dense.observe_many(contexts, arms, contexts[:, 0])
    one, two = (model.posterior(NEW, range(ARMS)) for model in (joint, dense))
    np.testing.assert_allclose(one.std, two.std, rtol=1e-5, atol=1e-7)


@pytest.fixture(params=MODELS, ids=lambda kind: kind.kind)
def kind(request, monkeypatch):
    """A kind of model that all new learners use."""
    use(monkeypatch, request.param)
    return request.param


def use(monkeypatch, kind):
    def refitted(log, kernel, ridge, prior_mean, *_):
        model = kind(kernel, ridge, log.n_arms, prior_mean)
        model.observe_many(log.contexts, log.arms, log.rewards)
        return model

    monkeypatch.setattr(learner_state, "new_model", lambda *settings: kind(*settings[:4]))
    monkeypatch.setattr(learner_state, "refitted_model", refitted)
    monkeypatch.setattr(learner_state, "settled_model", refitted)


def explored(method="contextual-gap", steps=25, **settings):
    learner = cg.Learner(
        ["a", "b", "c"], kernel=KERNEL, ridge=RIDGE, method=method, seed=0, **settings
    )
    for context in data(steps, seed=3)[0]:
        arm = learner.ask(context)
        learner.tell(context, arm, float(np.sin(2 * context[0] + "abc".index(arm))))
    return learner


@pytest.mark.usefixtures("kind")
class TestPackages:
    def test_learners_use_it(self, kind):
        assert type(explored().state.model) is kind

    @pytest.mark.parametrize("method", sorted(set(cg.METHODS) - {"contextual-gap-history"}))
    def test_every_method_explores_and_deploys(self, method):
        learner = explored(method)
        assert sum(learner.counts.values()) == 25
        assert set(learner.freeze().recommend(NEW)) <= {"a", "b", "c"}

    def test_the_look_back_works_or_refuses(self, kind):
        if issubclass(kind, KeepsHistory):
            policy = explored("contextual-gap-history").freeze()
            belief = policy.state.model.history(NEW, range(3), 3)
            assert belief.steps.shape == (23, 3)
            assert np.isfinite(policy.certificate(NEW).bound).all()
        else:
            with pytest.raises(TypeError, match="does not keep its history; deploy by SmallestGap"):
                explored("contextual-gap-history")

    def test_look_backs_are_the_dense_ones(self, kind, monkeypatch):
        if not issubclass(kind, KeepsHistory):
            pytest.skip("it keeps no history")
        policy = explored("contextual-gap-history").freeze()
        use(monkeypatch, SharingHistoryModel if kind.shares else DenseHistoryModel)
        expected = explored("contextual-gap-history").freeze()
        assert policy.recommend(NEW).tolist() == expected.recommend(NEW).tolist()
        bounds = [each.certificate(NEW).bound for each in (policy, expected)]
        np.testing.assert_allclose(*bounds, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("method", ["contextual-gap", "knowledge-gradient"])
    def test_batches_and_pools(self, method):
        learner = explored(method)
        learner.ask(NEW[:4])
        context, arm = learner.ask(pool=NEW)
        assert learner.pending == 5
        learner.tell(context, arm, 0.5)
        assert learner.pending == 4

    def test_stopping(self):
        learner = explored()
        rule = cg.StoppingRule(0.8, reference=NEW)
        for context in NEW:
            share = learner.settled(rule)
            bound = learner.freeze().certificate(NEW).bound
            assert share == pytest.approx((bound <= 0.8).mean())
            learner.tell(context, learner.ask(context), 0.1)

    def test_score_cards(self):
        card = explored(steps=40).score()
        assert np.isfinite([card.value.value, card.value.error, card.gain.error]).all()
        assert card.error < card.error_of_averages

    def test_scales_are_learnt(self, kind):
        learner = cg.Learner(3, seed=0).fit(*data(60))
        assert type(learner.state.model) is kind
        assert learner.tuning is not None
        assert learner.kernel != cg.Gaussian(1.0)

    def test_files(self, kind, tmp_path):
        learner = explored()
        learner.ask(NEW[:2])
        learner.save(tmp_path / "l.cgap")
        again = cg.Learner.load(tmp_path / "l.cgap")
        assert type(again.state.model) is kind
        assert again.ask(NEW).tolist() == learner.ask(NEW).tolist()
        policy = learner.freeze()
        policy.save(tmp_path / "p.cgap")
        loaded = cg.Policy.load(tmp_path / "p.cgap")
        assert loaded.recommend(NEW).tolist() == policy.recommend(NEW).tolist()
        bounds = [each.certificate(NEW).bound for each in (loaded, policy)]
        np.testing.assert_allclose(*bounds, rtol=1e-9)

    def test_compression(self):
        policy = explored(steps=60).freeze()
        small = policy.compress(points=10, contexts=np.vstack([NEW, data(100, 5)[0]]))
        assert max(small.counts.values()) <= 10
        assert small.compression.agreement > 0.85

    @pytest.mark.parametrize("rule", [cg.HighestMean(), cg.SmallestGap()], ids=str)
    def test_exports_decide_alike(self, rule, tmp_path):
        explorer = cg.METHODS["contextual-gap"].explorer
        policy = explored(cg.Method(explorer=explorer, recommender=rule), steps=40).freeze()
        expected = [policy.arms.index(arm) for arm in policy.recommend(NEW)]
        session = pytest.importorskip("onnxruntime").InferenceSession(
            policy.to_onnx(tmp_path / "p.onnx").path
        )
        (arms,) = session.run(["arm"], {"contexts": NEW})
        assert arms.tolist() == expected
        if shutil.which("cc"):
            code = CompiledPolicy(policy.to_c(tmp_path / "c").source.parent)
            assert code.recommend(NEW).tolist() == expected

    def test_exports_of_look_backs(self, kind, tmp_path):
        if not issubclass(kind, KeepsHistory) or kind.shares:
            state = explored().freeze().state
            rules = replace(state.rules, method=cg.METHODS["contextual-gap-history"])
            policy = cg.Policy(replace(state, rules=rules))
            with pytest.raises(ExportError, match="cannot be exported"):
                policy.to_onnx(tmp_path / "p.onnx")
            return
        policy = explored("contextual-gap-history").freeze()
        assert policy.to_onnx(tmp_path / "p.onnx")
