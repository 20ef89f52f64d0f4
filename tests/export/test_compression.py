"""Compressed policies decide almost alike, and reports say how nearly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.export import compression
from contextgap.export.c import Layout, write_c
from contextgap.export.c.text import Real
from contextgap.export.compression import (
    Decided,
    Equations,
    Selection,
    compress,
    make_candidates,
    normal_equations,
    read_sample,
    refitted,
    rom_bytes,
    targets,
    usual_margin,
)
from contextgap.kernels.base import Constant
from contextgap.methods.recommenders import (
    HighestMean,
    HighestUpper,
    PosteriorSample,
    SmallestGap,
    SmallestGapInHistory,
)
from tests.oracle_model import DenseModel

KERNELS = {
    "gaussian": cg.Gaussian(0.6),
    "per dimension": 0.7 * cg.Gaussian((0.5, 0.9)),
    "matern": cg.Matern((0.8, 1.1), 1.5),
    "with a constant": cg.Matern(0.7) + 0.5 * Constant(),
    "periodic": cg.Periodic(3.0, 1.1) + 0.2 * cg.Linear(),
}
RULES = {
    "mean": HighestMean(),
    "upper": HighestUpper(),
    "gap": SmallestGap(),
    "look-back": SmallestGapInHistory(),
}


def reward(x, arm):
    return np.sin(2 * x[..., 0] + 2 * arm) + 0.5 * np.cos(2 * x[..., 1] - arm)


def frozen(rule="gap", kernel="gaussian", *, arms=3, steps=150, labels=None, **given):
    chosen = {"kernel": KERNELS[kernel], "ridge": 0.02, "prior_mean": 0.2, "seed": 0, **given}
    method = cg.Method(explorer=cg.METHODS["uniform"].explorer, recommender=RULES[rule])
    learner = cg.Learner(labels or arms, method=method, **chosen)
    rng = np.random.default_rng(3)
    contexts, pulls = rng.uniform(-1, 1, (steps, 2)), rng.integers(arms, size=steps)
    noise = 0.1 * rng.standard_normal(steps)
    told = [learner.arms[arm] for arm in pulls]
    return learner.fit(contexts, told, reward(contexts, pulls) + noise).freeze()


def sample(count, seed=11):
    return np.random.default_rng(seed).uniform(-1, 1, (count, 2))


def same(one, other, contexts):
    return float(np.mean(one.recommend(contexts) == other.recommend(contexts)))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_agreement_reported_is_that_on_fresh_contexts(rule, kernel):
    policy = frozen(rule, kernel)
    small, report = compress(policy, points=8, contexts=sample(2000))
    assert max(small.counts.values()) <= 8
    assert tuple(small.counts.values()) == report.points
    assert report.agreement >= 0.9
    fresh = same(policy, small, sample(4000, seed=12))
    # 500 contexts were held out; four standard errors, and a little for agreements near 1.
    error = np.sqrt(fresh * (1 - fresh) * (1 / 500 + 1 / 4000))
    assert abs(fresh - report.agreement) <= 4 * error + 0.004


def test_the_report_is_what_the_two_policies_say():
    policy, contexts = frozen("gap"), sample(400)
    small, report = compress(policy, points=5, contexts=contexts)
    held_out = np.arange(400) % 4 == 3
    assert report.agreement == same(policy, small, contexts[held_out])
    assert report.agreement_fitted == same(policy, small, contexts[~held_out])
    lost, most = [], []
    for x in contexts[held_out]:
        old, new = policy.decide(x), small.decide(x)
        one, two = old.arms.index(old.arm), old.arms.index(new.arm)
        lost.append(old.mean[one] - old.mean[two])
        most.append(max(0, old.upper[one] - old.lower[two]) if one != two else 0.0)
    assert np.mean(most) > 0
    assert report.added_regret == pytest.approx(np.mean(lost))
    assert report.added_regret_bound == pytest.approx(np.mean(most))
    assert report.added_regret <= report.added_regret_bound
    assert report.bytes == rom_bytes(small)
    assert report.bytes_before == rom_bytes(policy)
    assert report.points_before == tuple(policy.counts.values())
    assert report.recommender == type(small.method.recommender).__name__
    assert f"{report.agreement:.2%}" in str(report)


@pytest.mark.parametrize("goal", [{"points": 200}, {"bytes": 10**7}])
def test_a_policy_small_enough_is_left_as_it_is(goal):
    policy = frozen()
    same_policy, report = compress(policy, **goal)
    assert same_policy is policy
    assert (report.agreement, report.added_regret, report.fitted) == (1.0, 0.0, "nothing")
    assert report.points == report.points_before
    assert report.bytes == report.bytes_before == report.curve[-1].bytes


@pytest.mark.parametrize("rule", ["mean", "gap", "look-back"])
def test_with_all_candidates_the_means_are_the_original_ones(rule):
    """Every point but one, then every point: the fit ends at the original's own weights."""
    policy, contexts = frozen(rule, "matern", steps=60), sample(400)
    fitting = Decided.of(policy, contexts)
    layout = Layout.of(policy, Real(float32=True))
    rng = np.random.default_rng(0)
    candidate = next(make_candidates(policy, fitting, layout, None, rng))
    assert candidate.selection.reach(60) == 60
    whole = candidate.policy(60)
    fresh = sample(1000, seed=5)
    if rule == "mean":  # the others' targets are moved where the deployed arm is not the highest
        mean = whole.state.model.posterior(fresh, (0, 1, 2)).mean
        expected = policy.state.model.posterior(fresh, (0, 1, 2)).mean
        np.testing.assert_allclose(mean, expected, atol=2e-4)
    assert same(policy, whole, fresh) > 0.985


@pytest.mark.parametrize("rule", RULES)
def test_a_compressed_policy_is_an_ordinary_one(rule, tmp_path):
    policy = frozen(rule, labels=["a", "b", "c"], width=cg.TheoremWidth(0.1, 3.0, 0.05))
    assert policy.probability == 0.95
    small, _ = compress(policy, points=6, contexts=sample(400))
    small.save(tmp_path / "small.cgap")
    loaded, contexts = cg.Policy.load(tmp_path / "small.cgap"), sample(50, seed=2)
    assert loaded.recommend(contexts).tolist() == small.recommend(contexts).tolist()
    decision = loaded.decide(contexts[0])
    assert decision.arm == loaded.recommend(contexts[0])
    assert np.isfinite(decision.upper).all()
    certificate = loaded.certificate(contexts)
    assert certificate.probability is None  # its rewards were never observed
    assert (certificate.bound >= 0).all()
    assert np.isfinite(certificate.bound).all()
    with pytest.raises(AttributeError, match="immutable"):
        small.ridge = 1.0


def test_names_of_columns_survive():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (80, 2)), columns=["u", "v"])
    learner = cg.Learner(["x", "y"], kernel=cg.Gaussian(0.7))
    arms = rng.choice(["x", "y"], 80)
    values = frame.to_numpy()
    policy = learner.fit(frame, arms, reward(values, (arms == "y").astype(int))).freeze()
    small, report = compress(policy, points=6, contexts=frame)
    assert small.columns == ("u", "v")
    other = frame[["v", "u"]]
    assert same(small, small, other) == 1.0
    assert report == compress(policy, points=6, contexts=values)[1]


@pytest.mark.parametrize("float32", [True, False])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kernel", ["gaussian", "per dimension", "matern", "periodic"])
def test_bytes_are_those_of_the_c_export(kernel, rule, float32, tmp_path):
    policy = frozen(rule, kernel, labels=["hull", "päd", (1, "x")], steps=70)
    export = write_c(policy, tmp_path / "whole", float32=float32, self_test=5)
    assert export.rom_bytes == rom_bytes(policy, float32=float32)
    goal = {"bytes": 1500 if float32 else 2800}
    small, report = compress(policy, **goal, contexts=sample(300), float32=float32)
    export = write_c(small, tmp_path / "small", float32=float32, self_test=5)
    assert export.rom_bytes == report.bytes <= goal["bytes"]


def test_bytes_include_the_unit_and_centre_of_a_linear_kernel(tmp_path):
    learner = cg.Learner(2, kernel=cg.Gaussian(0.6) + cg.Linear(unit=(0.5, 2.0), centre=0.3))
    policy = learner.fit([[0.0, 1.0], [1.0, 0.5]], [0, 1], [1.0, 0.5]).freeze()
    assert write_c(policy, tmp_path, float32=True).rom_bytes == rom_bytes(policy)


def test_as_many_points_as_the_bytes_allow():
    policy = frozen("mean")
    for budget in (700, 1000, 1500):
        small, report = compress(policy, bytes=budget, contexts=sample(300))
        per_point = 4 * 3  # two numbers of a context and a weight
        assert budget - per_point < report.bytes <= budget
        assert sum(small.counts.values()) == sum(report.points)


@pytest.mark.parametrize("rule", ["mean", "gap"])
def test_the_agreement_wanted_is_reached_with_few_points(rule):
    policy, contexts = frozen(rule), sample(800)
    sizes = []
    for wanted in (0.8, 0.95, 0.99):
        _, report = compress(policy, agreement=wanted, contexts=contexts)
        assert min(report.agreement, report.agreement_fitted) >= wanted
        sizes.append(sum(report.points))
    assert sizes == sorted(sizes)
    assert sizes[-1] < 0.6 * 150


def test_an_agreement_out_of_reach_gives_the_policy_itself(monkeypatch):
    policy, contexts = frozen(), sample(400)
    monkeypatch.setattr(compression, "_MOST", 5)  # as if 6000 points were too few
    small, report = compress(policy, agreement=0.5, contexts=contexts)
    assert 0 < sum(small.counts.values()) <= 5
    assert report.agreement >= 0.5
    same_policy, report = compress(policy, agreement=1.0, contexts=contexts)
    assert same_policy is policy
    assert (report.agreement, report.fitted) == (1.0, "nothing")


@pytest.mark.parametrize("rule", ["mean", "gap", "upper"])
def test_the_curve_rises(rule):
    _, report = compress(frozen(rule), points=20, contexts=sample(1200))
    points, size, agreement = (np.array(column) for column in zip(*report.curve, strict=True))
    assert (np.diff(points) > 0).all()
    assert (np.diff(size) > 0).all()
    assert agreement[-1] == 1.0
    assert size[-1] == report.bytes_before
    assert (np.diff(agreement) > -0.1).all()
    assert agreement[points >= sum(report.points) // 2].min() > agreement[:3].max()
    assert (sum(report.points), report.bytes, report.agreement) in report.curve


def test_everything_is_repeatable():
    policy = frozen("look-back")
    one, two, other = (compress(policy, points=6, seed=seed) for seed in (1, 1, 2))
    assert one[1] == two[1] != other[1]
    for a, b in zip(*(each[0].state.model.arrays().values() for each in (one, two)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_original_is_left_alone():
    policy = frozen()
    before = {name: values.copy() for name, values in policy.state.model.arrays().items()}
    compress(policy, points=4)
    for name, values in policy.state.model.arrays().items():
        np.testing.assert_array_equal(values, before[name])


@pytest.mark.parametrize("rule", RULES)
def test_one_arm(rule):
    small, report = compress(frozen(rule, arms=1), points=3)
    assert report.agreement == 1.0
    assert report.points <= (3,)
    assert small.recommend([0.0, 0.0]) == 0


def test_no_point_at_all_may_be_enough(tmp_path):
    small, report = compress(frozen(arms=1), agreement=1.0)
    assert report.points == (0,)
    small.save(tmp_path / "empty.cgap")
    loaded = cg.Policy.load(tmp_path / "empty.cgap")
    assert loaded.recommend(sample(3)).tolist() == [0, 0, 0]
    assert loaded.dimension == 2
    assert write_c(loaded, tmp_path / "c", float32=True).rom_bytes == report.bytes


@pytest.mark.parametrize("rule", RULES)
def test_an_arm_without_observations(rule):
    learner = cg.Learner(["a", "b", "new"], kernel=cg.Gaussian(0.6), method=cg.Method(
        explorer=cg.METHODS["uniform"].explorer, recommender=RULES[rule]))  # fmt: skip
    contexts, pulls = sample(100), np.arange(100) % 2
    learner.fit(contexts, np.array(["a", "b"])[pulls], 1 + reward(contexts, pulls))
    policy = learner.freeze()
    small, report = compress(policy, points=12, contexts=sample(800))
    assert report.points[2] == 0
    assert same(policy, small, sample(800, seed=4)) > 0.9


def test_an_arm_that_fits_and_one_that_does_not():
    learner = cg.Learner(2, kernel=cg.Gaussian(0.6), method="uniform")
    contexts = sample(100)
    pulls = (np.arange(100) % 25 == 0).astype(int)
    policy = learner.fit(contexts, pulls, reward(contexts, pulls)).freeze()
    small, report = compress(policy, points=10, contexts=sample(400))
    assert report.points_before == (96, 4)
    assert report.points[0] == 10
    assert report.points[1] <= 4
    assert same(policy, small, sample(800, seed=4)) > 0.95


def test_retired_arms_are_left_out():
    learner = cg.Learner(["a", "b", "c"], kernel=cg.Gaussian(0.6), method="uniform")
    contexts, pulls = sample(120), np.arange(120) % 3
    learner.fit(contexts, np.array(["a", "b", "c"])[pulls], reward(contexts, pulls))
    learner.remove_arm("b")
    policy = learner.freeze()
    small, report = compress(policy, points=8, contexts=sample(400))
    assert small.arms == ("a", "c")
    assert len(small.state.model) == sum(report.points) <= 16
    assert same(policy, small, sample(800, seed=4)) > 0.95


@pytest.mark.parametrize("ridge", [1e-12, 1e-6])
def test_contexts_observed_many_times_do_no_harm(ridge):
    learner = cg.Learner(2, kernel=cg.Gaussian(2.0), ridge=ridge, method="uniform")
    contexts = np.repeat(sample(15), 6, axis=0)
    pulls = np.arange(90) % 2
    policy = learner.fit(contexts, pulls, reward(contexts, pulls)).freeze()
    small, report = compress(policy, points=14, contexts=sample(400))
    assert np.isfinite(small.state.model.observed.rewards).all()
    assert report.agreement == same(policy, small, sample(400)[3::4])


@settings(max_examples=30, deadline=None)
@given(
    kernel=st.sampled_from(list(KERNELS)),
    ridge=st.sampled_from([1e-8, 1e-3, 0.1]),
    size=st.integers(1, 25),
    prior=st.sampled_from([0.0, -3.0]),
    seed=st.integers(0, 99),
)
def test_refitted_means_are_prior_plus_weights_times_kernel(kernel, ridge, size, prior, seed):
    policy = frozen("gap", kernel, steps=30, ridge=ridge, prior_mean=prior)
    rng = np.random.default_rng(seed)
    points, arm = rng.uniform(-1, 1, (size, 2)), rng.integers(3, size=size)
    weights = rng.standard_normal(size)
    made = refitted(policy, HighestMean(), points, arm, weights)
    contexts = sample(20, seed)
    mean = made.state.model.posterior(contexts, (0, 1, 2)).mean
    expected = np.full((20, 3), prior)
    for a in range(3):
        expected[:, a] += policy.kernel(contexts, points[arm == a]) @ weights[arm == a]
    np.testing.assert_allclose(mean, expected, atol=1e-6 * np.abs(weights).sum())
    if ridge >= 1e-3:  # and its rewards make the textbook's posterior the same
        dense = DenseModel(policy.kernel, ridge, 3, prior)
        dense.observe_many(
            made.state.model.observed.contexts,
            made.state.model.observed.arms,
            made.state.model.observed.rewards,
        )
        np.testing.assert_allclose(dense.posterior(contexts, range(3)).mean, expected, atol=1e-8)


def test_normal_equations_are_the_gradient_of_the_error():
    policy, rng = frozen(steps=40), np.random.default_rng(0)
    contexts = sample(30)
    wanted, deployed = rng.standard_normal((30, 3)), rng.integers(3, size=30)
    there, arm = rng.standard_normal((40, 3)), np.sort(rng.integers(3, size=40))
    places = sample(40, seed=2)
    found = normal_equations(policy.kernel, contexts, wanted, deployed, places, arm, there)
    tau, usual = 0.003, 2 * usual_margin(wanted)
    mu = 2e-3 * 30

    def error(weights):
        fits = [policy.kernel(contexts, places[arm == a]) @ weights[arm == a] for a in range(3)]
        e = np.column_stack(fits) - wanted
        total = tau * (e**2).sum()
        for x, d in enumerate(deployed):
            margin = wanted[x, d] - wanted[x]
            closeness = usual**2 / (usual**2 + margin**2)
            closeness[d] = 0
            total += (closeness * (e[x, d] - e[x]) ** 2).sum()
        form = (1 + tau) * np.eye(3) - 1 / 3
        gram = policy.kernel(places, places) * form[np.ix_(arm, arm)]
        inner = np.einsum("na,na->n", there, form[arm])
        return total + mu * (weights @ gram @ weights - 2 * inner @ weights)

    weights, step = rng.standard_normal(40), 1e-5
    slope = [
        (error(weights + step * u) - error(weights - step * u)) / (2 * step) for u in np.eye(40)
    ]
    np.testing.assert_allclose(2 * (found.matrix @ weights - found.rhs), slope, atol=1e-5)


def test_each_point_chosen_lowers_the_error_most():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((30, 20))
    matrix, rhs = root.T @ root, rng.standard_normal(20)
    arm = np.sort(rng.integers(3, size=20))
    contexts = np.arange(20.0)[:, None]
    selection = Selection(Equations(matrix, rhs, arm, contexts), most_per_arm=4)
    chosen, left = [], list(range(20))
    for size in range(1, 13):
        if selection.reach(size) < size:
            break

        def explained(more):
            places = [*chosen, more]
            return rhs[places] @ np.linalg.solve(matrix[np.ix_(places, places)], rhs[places])

        allowed = [i for i in left if (arm[chosen] == arm[i]).sum() < 4]
        best = max(allowed, key=explained)
        chosen.append(best)
        left.remove(best)
        points, arms, weights = selection.points(size)
        assert points[:, 0].tolist() == chosen
        assert arms.tolist() == arm[chosen].tolist()
        expected = np.linalg.solve(matrix[np.ix_(chosen, chosen)], rhs[chosen])
        np.testing.assert_allclose(weights, expected, rtol=1e-8, atol=1e-10)
    assert len(chosen) == 12


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), arms=st.integers(2, 5))
def test_targets_are_highest_at_the_arm_deployed_and_moved_least(seed, arms):
    rng = np.random.default_rng(seed)
    mean, arm = rng.standard_normal((6, arms)), rng.integers(arms, size=6)
    found = targets(Decided(np.zeros((6, 1)), arm, arm, mean, mean - 1, mean + 1), "mean")
    np.testing.assert_array_equal(found.argmax(axis=1), arm)
    right = mean.argmax(axis=1) == arm
    np.testing.assert_array_equal(found[right], mean[right])
    apart = 0.5 * usual_margin(mean)
    for before, after, a in zip(mean[~right], found[~right], arm[~right], strict=True):
        others = np.delete(after, a)
        assert after[a] - others.max() == pytest.approx(apart)

        # No level moves the means less, the distance apart aside.
        levels = after[a] - apart / 2 + np.array([0.0, -1e-3, 1e-3])
        raised = (levels - before[a]) ** 2
        lowered = (np.maximum(before[:, None] - levels, 0) ** 2).sum(axis=0)
        assert (raised + lowered).argmin() == 0


def test_reference_contexts_are_the_observed_ones_and_copies_near_them():
    policy = frozen(steps=60)
    fitted, held_out = read_sample(policy, None, np.random.default_rng(0))
    assert (len(fitted), len(held_out)) == (90, 30)
    observed = {tuple(row) for row in policy.state.model.observed.contexts}
    together = np.vstack([fitted, held_out])
    copies = np.array([row for row in together if tuple(row) not in observed])
    assert len(copies) >= 55  # the difference between a context and itself moves nothing
    assert np.abs(copies).max() <= 1.2  # contexts within ±1, moved by a tenth of at most 2


def test_many_reference_contexts_are_thinned():
    policy = frozen(steps=30)
    fitted, held_out = read_sample(policy, sample(9000), np.random.default_rng(0))
    assert (len(fitted), len(held_out)) == (4500, 2250)


def test_three_observations_are_enough():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), method="uniform")
    learner.tell([[0.0], [1.0], [0.5]], [0, 1, 0], [1.0, 1.0, 0.5])
    small, report = compress(learner.freeze(), points=1)
    assert max(report.points) == 1
    assert small.recommend([[0.0], [1.0]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({}, TypeError, "exactly one of points, bytes and agreement; got none"),
        ({"points": 3, "bytes": 900}, TypeError, "got points=3, bytes=900"),
        ({"points": 0}, ValueError, "points must be at least 1, got 0"),
        ({"points": 2.5}, TypeError, "points must be a whole number"),
        ({"bytes": -1}, ValueError, "bytes must be at least 1, got -1"),
        ({"bytes": 20}, ValueError, r"bytes must be at least \d+, which .* got 20"),
        ({"agreement": 0}, ValueError, "agreement must be positive, got 0"),
        ({"agreement": 99}, ValueError, "agreement must be a share, at most 1.* got 99"),
        (
            {"points": 3, "contexts": [0.0, 1.0]},
            ValueError,
            "table of at least 8.* got one context",
        ),
        ({"points": 3, "contexts": np.zeros((7, 2))}, ValueError, "at least 8 .* got 7"),
        ({"points": 3, "contexts": np.zeros((9, 3))}, ValueError, "must have 2 numbers each"),
        ({"points": 3, "float32": 1}, TypeError, "float32 must be True or False, got 1"),
        ({"points": 3, "seed": -1}, ValueError, "seed must be at least 0, got -1"),
    ],
)
def test_errors_say_what_would_be_right(given, error, match):
    with pytest.raises(error, match=match):
        compress(frozen(steps=20), **given)


def test_policies_that_cannot_be_compressed():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), method="kernel-ts")
    assert isinstance(learner.method.recommender, PosteriorSample)
    learner.tell([0.0], 0, 1.0)
    with pytest.raises(ValueError, match="PosteriorSample cannot be compressed; HighestMean"):
        compress(learner.freeze(), points=3)
    with pytest.raises(ValueError, match="no rewards"):
        compress(cg.Learner(2, kernel=cg.Gaussian(1.0)).freeze(fallback=0), points=3)
    with pytest.raises(TypeError, match="policy must be a Policy"):
        compress(learner, points=3)


def test_the_method_returns_an_ordinary_policy_with_its_report(tmp_path):
    x = np.linspace(-1, 1, 200)[:, None]
    learner = cg.Learner(2, kernel=cg.Gaussian(0.5), method="uniform")
    policy = learner.fit(x, [0, 1] * 100, np.sin(4 * x[:, 0]) * ([1, -1] * 100)).freeze()
    assert policy.compression is None
    small = policy.compress(points=5)
    assert small.compression.points == (5, 5)
    expected, _ = compress(policy, points=5)
    assert (small.recommend(x) == expected.recommend(x)).all()
    small.save(tmp_path / "small.cgap")
    assert (cg.Policy.load(tmp_path / "small.cgap").recommend(x) == small.recommend(x)).all()


def test_the_agreement_wanted_holds_at_all_contexts_given():
    rng = np.random.default_rng(4)
    contexts, arms = rng.normal(size=(120, 3)), rng.integers(3, size=120)
    rewards = np.sin(2 * contexts[:, 0] + arms) + contexts[:, 1] * contexts[:, 2]
    kernel = cg.Gaussian(1.5)
    learner = cg.Learner(3, kernel=kernel, ridge=0.05, method="uniform")
    policy = learner.fit(contexts, arms, rewards).freeze()
    for wanted in (0.9, 0.95, 0.99):
        small, report = compress(policy, agreement=wanted, contexts=contexts)
        assert same(policy, small, contexts) >= wanted
        assert min(report.agreement, report.agreement_fitted) >= wanted


@pytest.mark.parametrize("goal", [{"agreement": 0.95}, {"points": 12}])
def test_agreement_is_that_of_what_is_answered(goal):
    policy, rows = frozen("mean").with_fallback(2, tolerance=0.45), sample(400)
    smaller, report = compress(policy, contexts=rows, **goal)
    same = smaller.recommend(rows) == policy.recommend(rows)
    held_out = np.arange(400) % 4 == 3
    assert report.agreement == pytest.approx(same[held_out].mean())
    assert report.agreement_fitted == pytest.approx(same[~held_out].mean())
    assert same.mean() >= goal.get("agreement", 0.0)
    assert smaller.fallback == policy.fallback
    if "points" in goal:  # fewer points are less certain
        assert (smaller.status(rows) > 0).mean() > (policy.status(rows) > 0).mean() + 0.05
