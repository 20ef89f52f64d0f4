"""Learners go over from exact posteriors to support points, and everything goes on working."""

import shutil
import time

import numpy as np
import pytest

import contextgap as cg
from contextgap.export.c import CompiledPolicy
from contextgap.learner import learner as learner_room
from contextgap.methods.explorers import KnowledgeGradient
from contextgap.models import BoundedModel, ExactModel, Follower, Posterior

KERNEL, RIDGE = cg.Gaussian(0.4), 0.05
NEW = np.random.default_rng(9).uniform(-1, 1, (200, 2))


def data(count, seed=0):
    rng = np.random.default_rng(seed)
    contexts, arms = rng.uniform(-1, 1, (count, 2)), rng.integers(3, size=count)
    return contexts, arms, np.sin(3 * contexts[:, 0] + arms) + 0.2 * rng.normal(size=count)


def learner(points=30, method="contextual-gap", **settings):
    return cg.Learner(
        3, kernel=KERNEL, ridge=RIDGE, method=method, points=points, seed=0, **settings
    )


def bounded(count=400, points=30, **settings):
    found = learner(points, **settings).fit(*data(count))
    assert type(found.state.model) is BoundedModel
    return found


def explore(subject, contexts):
    for context in contexts:
        arm = subject.ask(context)
        subject.tell(context, arm, float(np.sin(3 * context[0] + arm)))


def test_it_happens_at_twice_the_points_and_moves_decisions_no_further_than_the_model():
    subject, exact = learner(), learner(points=None)
    contexts, arms, rewards = data(300)
    arms[:] = np.arange(300) % 3
    rough = cg.Gaussian(0.1)  # 30 points are far from enough
    subject, exact = (
        cg.Learner(3, kernel=rough, ridge=RIDGE, points=points, seed=0) for points in (30, None)
    )
    for step, told in enumerate(zip(contexts, arms.tolist(), rewards.tolist(), strict=True)):
        kind = type(subject.state.model)
        assert kind is (ExactModel if step <= 3 * 59 else BoundedModel)
        subject.tell(*told)
        exact.tell(*told)
    assert type(exact.state.model) is ExactModel
    model = BoundedModel(rough, RIDGE, 3, 0.0, points=30)
    model.observe_many(contexts[:178], arms[:178], rewards[:178])
    for context, arm, reward in zip(
        contexts[178:], arms[178:].tolist(), rewards[178:].tolist(), strict=True
    ):
        model.observe(context, arm, reward)
    one, two = model.posterior(NEW, range(3)), subject.state.model.posterior(NEW, range(3))
    np.testing.assert_allclose(one.mean, two.mean, atol=1e-9)
    np.testing.assert_allclose(one.std, two.std, rtol=1e-9)


def test_it_happens_earlier_where_few_points_explain_everything():
    smooth = cg.Learner(3, kernel=cg.Gaussian(2.0), ridge=RIDGE, points=100, seed=0)
    exact = cg.Learner(3, kernel=cg.Gaussian(2.0), ridge=RIDGE, points=None, seed=0)
    contexts, arms, rewards = data(3 * 50)
    arms = np.arange(150) % 3
    kinds = []
    for told in zip(contexts, arms.tolist(), rewards.tolist(), strict=True):
        smooth.tell(*told)
        exact.tell(*told)
        kinds.append(type(smooth.state.model))
    assert kinds.index(BoundedModel) == 3 * 49  # the first arm's 50th reward
    one, two = (each.state.model.posterior(NEW, range(3)) for each in (smooth, exact))
    assert np.abs(one.mean - two.mean).max() < 0.2 * two.std.min()
    assert smooth.recommend(NEW).tolist() == exact.recommend(NEW).tolist()


@pytest.mark.parametrize("points", [0, 1, 2.5, "many", -3, True])
def test_points_must_be_a_number_of_points(points):
    with pytest.raises((ValueError, TypeError), match="points must be"):
        learner(points)


def test_bulk_loads_are_bounded_at_once(monkeypatch):
    def refuse(*_):
        raise AssertionError("an exact model of so many rows was begun")

    monkeypatch.setattr(ExactModel, "observe_many", refuse)
    assert len(bounded(5000).state.model.dictionary) == 30
    with pytest.raises(AssertionError):
        learner(None).fit(*data(5000))


def test_scales_are_learnt_before_anything_is_loaded(monkeypatch):
    loads = []
    whiten = BoundedModel.whiten
    monkeypatch.setattr(
        BoundedModel,
        "whiten",
        lambda self, contexts: (loads.append(len(contexts)), whiten(self, contexts))[1],
    )
    subject = cg.Learner(3, seed=0, points=100, sharing=0).fit(*data(700))
    assert type(subject.state.model) is BoundedModel
    assert subject.tuning is not None
    assert sum(loads) < 2 * 700 + 100
    mean = subject.freeze().recommend(NEW)
    assert np.mean(mean == np.argmax(np.sin(3 * NEW[:, :1] + np.arange(3)), axis=1)) > 0.9


def test_learning_scales_anew_keeps_it_bounded():
    subject = bounded()
    subject.tune()
    assert type(subject.state.model) is BoundedModel
    assert len(subject.state.model) == 400
    assert subject.kernel != KERNEL


def test_a_single_reward_does_not_tune_on_a_very_long_log(monkeypatch):
    monkeypatch.setattr(learner_room, "MOST_REPLAYED", 50)
    subject = cg.Learner(3, points=20, sharing=0, seed=0)
    contexts, arms, rewards = data(100)
    subject.fit(contexts[:30], arms[:30], rewards[:30])
    found = subject.tuning
    for told in zip(contexts[30:], arms[30:].tolist(), rewards[30:].tolist(), strict=True):
        subject.tell(*told)
    assert subject.tuning is not found  # at 40
    again = subject.tuning
    explore(subject, NEW[:20])
    assert subject.tuning is again  # not at 80


def test_a_look_back_stays_exact_and_says_why_it_must():
    subject = learner(30, "contextual-gap-history").fit(*data(400))
    assert type(subject.state.model) is ExactModel
    policy = bounded().freeze()
    rules = policy.state.rules
    vars(policy)["chooser"] = type(policy.chooser)(
        policy.state.model,
        policy.state.active,
        (0, 1, 2),
        type(rules)(cg.METHODS["contextual-gap-history"], rules.width, 1),
        0,
    )
    with pytest.raises(TypeError, match=r"deploy by SmallestGap, or learn with points=None"):
        policy.recommend(NEW)


def test_arms_that_share_stay_exact():
    subject = cg.Learner(3, kernel=KERNEL, sharing=0.5, points=10, seed=0).fit(*data(100))
    assert subject.state.model.kind == "joint"


@pytest.mark.parametrize("method", sorted(set(cg.METHODS) - {"contextual-gap-history"}))
def test_files_continue_to_the_last_bit(method, tmp_path):
    subject = learner(30, method, prior_mean="auto").fit(*data(200))
    explore(subject, NEW[:30])
    subject.ask(NEW[30:33])
    subject.save(tmp_path / "l.cgap")
    again = cg.Learner.load(tmp_path / "l.cgap")
    for each in (subject, again):
        explore(each, NEW[40:120])
    one, two = (each.state.model.posterior(NEW, range(3)) for each in (subject, again))
    for name in ("mean", "std", "information_gain"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert subject.ask(NEW[:10]).tolist() == again.ask(NEW[:10]).tolist()


def test_an_exact_learner_of_a_file_hands_over_as_the_saved_one(tmp_path):
    subject = learner(20).fit(*data(60))
    subject.save(tmp_path / "l.cgap")
    again = cg.Learner.load(tmp_path / "l.cgap")
    for each in (subject, again):
        explore(each, NEW)
        assert type(each.state.model) is BoundedModel
    one, two = (each.state.model.posterior(NEW, range(3)) for each in (subject, again))
    assert np.array_equal(one.mean, two.mean)
    assert np.array_equal(one.std, two.std)


def test_policies_in_files_are_small_and_decide_the_same(tmp_path):
    subject = bounded(20_000, 30)
    policy = subject.freeze()
    policy.save(tmp_path / "p.cgap")
    assert (tmp_path / "p.cgap").stat().st_size < 600_000
    loaded = cg.Policy.load(tmp_path / "p.cgap")
    assert loaded.counts == policy.counts == subject.counts
    assert loaded.recommend(NEW).tolist() == policy.recommend(NEW).tolist()
    assert np.array_equal(loaded.certificate(NEW).bound, policy.certificate(NEW).bound)
    assert loaded.card == policy.card
    assert loaded.card.rewards == 20_000
    assert repr(loaded) == repr(policy)
    safe = [each.with_fallback(0) for each in (loaded, policy)]
    far = np.vstack([NEW, 1.05 * NEW, 5.0 * NEW])
    assert safe[0].status(far).tolist() == safe[1].status(far).tolist()
    loaded.save(tmp_path / "again.cgap")
    assert cg.Policy.load(tmp_path / "again.cgap").counts == policy.counts


def test_interrupted_calls_change_nothing(monkeypatch):
    subject = learner(20).fit(*data(75))
    assert type(subject.state.model) is ExactModel
    arm = max(subject.counts, key=subject.counts.get)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(BoundedModel, "take_over", stop)
    told = 39 - subject.counts[arm]  # one more makes twice as many as points
    for context in NEW[:told]:
        subject.tell(context, arm, 0.5)
    before = subject.state.model
    with pytest.raises(KeyboardInterrupt):
        subject.tell(NEW[told], arm, 0.5)
    assert subject.state.model is before
    assert subject.counts[arm] == 39
    monkeypatch.undo()
    subject.tell(NEW[told], arm, 0.5)
    assert type(subject.state.model) is BoundedModel


def test_followed_references_stopping_and_pools():
    subject = bounded(300, method="knowledge-gradient")
    rule = cg.StoppingRule(0.8, reference=NEW[:50])
    for context in NEW[:90]:
        share = subject.settled(rule)
        assert share == pytest.approx((subject.freeze().certificate(NEW[:50]).bound <= 0.8).mean())
        decided = subject.decide(context).arm
        plain = cg.METHODS["knowledge-gradient"].explorer.pick(
            _moment_without_a_follower(subject, context)
        )
        assert decided == plain
        subject.tell(context, decided, float(np.sin(3 * context[0] + decided)))
    context, arm = subject.ask(pool=NEW)
    subject.tell(context, arm, 0.0)


def _moment_without_a_follower(subject, context):
    view = subject._view(subject.state.schema, subject.state.pending)
    view.follower = lambda: Follower(subject.state.model)
    return view.moment(context)


def test_freezing_with_more_points_comes_closer_to_exact():
    exact = learner(None).fit(*data(600)).state.model.posterior(NEW, range(3))
    subject = bounded(600, points=20)
    errors = {}
    for points in (None, 20, 200):
        policy = subject.freeze(points=points)
        mean = policy.state.model.posterior(NEW, range(3)).mean
        errors[points] = np.abs(mean - exact.mean).max()
    assert errors[20] == errors[None]
    assert errors[200] < 0.2 * errors[None]
    assert len(subject.state.model.dictionary) == 20
    with pytest.raises(ValueError, match="points must be"):
        subject.freeze(points=0)
    small = learner(None).fit(*data(50))
    assert small.freeze(points=200).recommend(NEW).tolist() == small.recommend(NEW).tolist()


def test_certificates_are_heuristic_and_use_the_upper_end_of_the_gain():
    width = cg.TheoremWidth(noise=0.2, norm=3.0, failure_probability=0.1)
    exact, subject = (
        learner(points, width=width).fit(*data(300)).freeze() for points in (None, 20)
    )
    assert exact.probability == 0.9
    assert subject.probability is None
    gains = [each.state.model.information_gain(range(3)) for each in (exact, subject)]
    assert (gains[0] <= gains[1]).all()
    posterior = subject.state.model.posterior(NEW, range(3))
    wider = width.half_width(posterior)
    least = np.array([subject.state.model.arm(arm).gain_bracket[0] for arm in range(3)])
    narrower = width.half_width(Posterior(*posterior[:2], least, RIDGE, 3))
    assert (wider > narrower).all()


@pytest.mark.parametrize("rule", [cg.HighestMean(), cg.SmallestGap(), cg.HighestUpper()], ids=str)
@pytest.mark.parametrize("float32", [False, True])
def test_exports_decide_alike(rule, float32, tmp_path):
    method = cg.Method(explorer=cg.METHODS["contextual-gap"].explorer, recommender=rule)
    subject = bounded(300, 25, method=method)
    explore(subject, NEW[:37])  # some rows are not folded in
    policy = subject.freeze()
    expected = np.array([policy.arms.index(arm) for arm in policy.recommend(NEW)])
    onnx = policy.to_onnx(tmp_path / "p.onnx", float32=float32, explain=True)
    session = pytest.importorskip("onnxruntime").InferenceSession(onnx.path)
    given = {"contexts": NEW.astype(np.float32 if float32 else np.float64)}
    arms, std, certificate = session.run(["arm", "std", "certificate"], given)
    tolerance = {"rtol": 1e-3, "atol": 2e-3} if float32 else {"rtol": 1e-7, "atol": 1e-9}
    assert (arms == expected).mean() >= (0.98 if float32 else 1.0)
    posterior = policy.state.model.posterior(NEW, range(3))
    np.testing.assert_allclose(std, posterior.std, **tolerance)
    if not float32:
        np.testing.assert_allclose(certificate, policy.certificate(NEW).bound, atol=1e-8)
    if shutil.which("cc"):
        export = policy.to_c(tmp_path / "c", float32=float32, certificates=True)
        code = CompiledPolicy(export.source.parent)
        assert (code.recommend(NEW) == expected).mean() >= (0.98 if float32 else 1.0)


def test_compression_of_support_points():
    policy = bounded(500, 40).freeze()
    small = policy.compress(points=10)
    assert max(small.counts.values()) <= 10
    assert small.compression.agreement > 0.9
    assert small.compression.points_before == (40, 40, 40)


def test_asking_never_pauses():
    subject = cg.Learner(3, kernel=cg.Gaussian(0.3), ridge=RIDGE, points=40, seed=0)
    pauses = []
    for context in np.random.default_rng(0).uniform(-1, 1, (1500, 2)):
        start = time.thread_time()
        arm = subject.ask(context)
        pauses.append(time.thread_time() - start)
        subject.tell(context, arm, float(np.sin(3 * context[0] + arm)))
    assert type(subject.state.model) is BoundedModel
    assert np.quantile(pauses, 0.99) < 0.05


def test_a_look_ahead_without_references():
    local = cg.Method(explorer=KnowledgeGradient(local=True), recommender=cg.HighestMean())
    subject = bounded(300, method=local)
    explore(subject, NEW[:80])
    assert sum(subject.counts.values()) == 380
    view = subject._view(subject.state.schema, subject.state.pending)
    ahead = view.moment(NEW[0]).look_ahead(np.empty(0, dtype=np.intp))
    posterior = subject.state.model.posterior(NEW[0], range(3))
    np.testing.assert_allclose(ahead.mean[0], posterior.mean, rtol=1e-12)
    moves = [subject.state.model.moves(NEW[:1], arm, NEW[:1])[0, 0] for arm in range(3)]
    np.testing.assert_allclose(ahead.move[0], moves, rtol=1e-9)
