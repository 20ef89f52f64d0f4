"""Kernels against their definitions, against scikit-learn, and against each other."""

from dataclasses import FrozenInstanceError, dataclass, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

import contextgap as cg
from contextgap.base import components as parts
from contextgap.kernels import Constant, Kernel, Product, Scaled, Sum, Warped
from contextgap.testing import check_kernel

D = 3
WIDTHS = (0.5, 1.3, 2.0)
PERIODS = (0.7, 1.5, 3.0)


@dataclass(frozen=True)
class Tent(Kernel):
    """A user's kernel: a product of tents, positive definite on the line."""

    reach: float
    shift: tuple[float, ...] = ()
    inner: Kernel | None = None

    def __call__(self, left, right):
        distance = np.abs(left[:, None, :] - right[None, :, :])
        return np.maximum(0, 1 - distance / self.reach).prod(axis=-1)

    def diagonal(self, contexts):
        return np.ones(len(contexts))


@dataclass(frozen=True)
class Table(Tent):
    """A user's kernel with nested plain values."""

    cells: tuple = ()


class Nameless(Kernel):
    """A user's kernel that is no dataclass, so nothing tells what it is made of."""

    def __call__(self, left, right):
        return np.ones((len(left), len(right)))

    def diagonal(self, contexts):
        return np.ones(len(contexts))


KERNELS = {
    "gaussian": cg.Gaussian(0.8),
    "gaussian per dimension": cg.Gaussian(WIDTHS),
    "matern 1/2": cg.Matern(0.8, smoothness=0.5),
    "matern 3/2": cg.Matern(0.8, smoothness=1.5),
    "matern 5/2": cg.Matern(0.8),
    "matern 1/2 per dimension": cg.Matern(WIDTHS, smoothness=0.5),
    "matern 3/2 per dimension": cg.Matern(WIDTHS, smoothness=1.5),
    "matern 5/2 per dimension": cg.Matern(WIDTHS),
    "linear": cg.Linear(),
    "trend": cg.Linear(unit=2.0, centre=0.3),
    "constant": Constant(),
    "polynomial": cg.Polynomial(3, 0.5),
    "polynomial without offset": cg.Polynomial(2, 0),
    "periodic": cg.Periodic(1.5, 0.9),
    "periodic per dimension": cg.Periodic(PERIODS, WIDTHS),
    "periodic mixed": cg.Periodic(PERIODS, 0.9),
    "sum": cg.Gaussian(0.8) + cg.Linear(),
    "product": cg.Gaussian(WIDTHS) * cg.Polynomial(2, 1.0),
    "scaled": 2.5 * cg.Matern(1.0),
    "nested": 0.5 * (cg.Gaussian(1.0) + cg.Periodic(1.0, 1.0) * cg.Linear()) * cg.Matern(2.0, 0.5),
    "sklearn": cg.SklearnKernel(2.0 * sk.RBF([0.5, 1.0, 2.0]) + sk.RationalQuadratic(1.0, 0.7)),
    "warped": Warped(cg.Gaussian(WIDTHS) + cg.Linear(), (0.1, -0.2, 0.0), (0.3, 0.0, 1.0)),
    "user's": Tent(2.0),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
any_kernel = st.sampled_from(list(KERNELS.values()))
few = settings(max_examples=25, deadline=None, derandomize=True)


def contexts(n, d=D, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@each_kernel
def test_every_kernel_conforms(kernel):
    check_kernel(kernel)


@each_kernel
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), scale=st.sampled_from([1e-3, 1, 30]))
@few
def test_symmetric_and_positive_semi_definite(kernel, seed, n, scale):
    x = scale * contexts(n, seed=seed)
    gram = kernel(x, x)
    assert np.allclose(gram, gram.T, rtol=1e-13, atol=0)
    eigenvalues = np.linalg.eigvalsh(gram)
    assert eigenvalues[0] >= -1e-9 * eigenvalues[-1]


SKLEARN = {
    "gaussian": (cg.Gaussian(0.8), sk.RBF(0.8), D),
    "gaussian per dimension": (cg.Gaussian(WIDTHS), sk.RBF(WIDTHS), D),
    **{
        f"matern {nu} {width}": (cg.Matern(width, nu), sk.Matern(width, nu=nu), D)
        for nu in (0.5, 1.5, 2.5)
        for width in (0.8, WIDTHS)
    },
    "linear": (cg.Linear(), sk.DotProduct(sigma_0=0), D),
    "constant": (3.0 * Constant(), sk.ConstantKernel(3.0), D),
    "degree 1": (cg.Polynomial(1, 0.49), sk.DotProduct(sigma_0=0.7), D),
    "degree 3": (cg.Polynomial(3, 0.49), sk.DotProduct(sigma_0=0.7) ** 3, D),
    "periodic": (cg.Periodic(1.7, 0.9), sk.ExpSineSquared(length_scale=0.9, periodicity=1.7), 1),
    "sum": (cg.Gaussian(0.8) + cg.Linear(), sk.RBF(0.8) + sk.DotProduct(0), D),
    "product": (cg.Gaussian(0.8) * cg.Matern(1.0), sk.RBF(0.8) * sk.Matern(1.0, nu=2.5), D),
    "scaled": (2.5 * cg.Gaussian(0.8), 2.5 * sk.RBF(0.8), D),
}


@pytest.mark.parametrize(("ours", "theirs", "d"), SKLEARN.values(), ids=SKLEARN.keys())
def test_agrees_with_scikit_learn(ours, theirs, d):
    left, right = contexts(30, d, seed=1), contexts(20, d, seed=2)
    np.testing.assert_allclose(ours(left, right), theirs(left, right), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.diagonal(left), theirs.diag(left), rtol=1e-12)
    adapted = cg.SklearnKernel(theirs)
    assert np.array_equal(adapted(left, right), theirs(left, right))
    assert np.array_equal(adapted.diagonal(left), theirs.diag(left))


@each_kernel
@pytest.mark.parametrize("rows", [5, 3000])
def test_the_highest_value_is_that_of_the_matrix(kernel, rows):
    left, right = contexts(20, seed=1), contexts(rows, seed=2)
    for one in (kernel, 0.3 * kernel + 2.0 * Constant(), kernel + cg.Linear()):
        highest = one(left, right).max(axis=0)
        np.testing.assert_allclose(one.highest(left, right), highest, rtol=1e-9, atol=1e-12)


def test_periodic_is_a_product_over_dimensions():
    left, right = contexts(8, seed=1), contexts(6, seed=2)
    product = np.ones((8, 6))
    for j, (period, width) in enumerate(zip(PERIODS, WIDTHS, strict=True)):
        theirs = sk.ExpSineSquared(length_scale=width, periodicity=period)
        product *= theirs(left[:, [j]], right[:, [j]])
    np.testing.assert_allclose(cg.Periodic(PERIODS, WIDTHS)(left, right), product, rtol=1e-12)


def test_periodic_repeats_after_its_period():
    left, right = contexts(8, seed=1), contexts(6, seed=2)
    kernel = cg.Periodic(PERIODS, 0.9)
    moved = right + np.array(PERIODS) * [1, -2, 5]
    np.testing.assert_allclose(kernel(left, moved), kernel(left, right), rtol=1e-11)


@pytest.mark.parametrize("kind", [cg.Gaussian, cg.Matern])
def test_one_bandwidth_means_the_same_in_every_dimension(kind):
    left, right = contexts(8, seed=1), contexts(6, seed=2)
    np.testing.assert_allclose(
        kind(0.7)(left, right), kind((0.7,) * D)(left, right), rtol=1e-13, atol=1e-129
    )


@pytest.mark.parametrize(
    "kernel",
    [cg.Gaussian(1.0), cg.Gaussian((1.0,)), *(cg.Matern(1.0, nu) for nu in (0.5, 1.5, 2.5))],
    ids=str,
)
@pytest.mark.parametrize("distance", [1e3, 1e100, 1e200, 1e308])
def test_far_apart_contexts_are_unrelated(kernel, distance):
    value = kernel(np.zeros((1, 1)), np.full((1, 1), distance))
    assert 0 <= value[0, 0] < 1e-100


@pytest.mark.parametrize("bandwidth", [1e-200, (1e-200,), 1e200, (1e200,)])
def test_bandwidths_of_extreme_size(bandwidth):
    x = np.array([[0.0], [1.0]])
    unrelated = np.size(bandwidth) and np.max(bandwidth) < 1
    expected = np.eye(2) if unrelated else np.ones((2, 2))
    np.testing.assert_allclose(cg.Gaussian(bandwidth)(x, x), expected, atol=1e-100)


@given(a=any_kernel, b=any_kernel, c=any_kernel, factor=st.floats(1e-3, 1e3))
@few
def test_algebra(a, b, c, factor):
    left, right = contexts(5, seed=1), contexts(4, seed=2)

    def same(one, other):
        np.testing.assert_allclose(one(left, right), other(left, right), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(one.diagonal(left), other.diagonal(left), rtol=1e-12)

    same(a + b, b + a)
    same(a * b, b * a)
    same((a + b) + c, a + (b + c))
    same((a * b) * c, a * (b * c))
    same(a * (b + c), a * b + a * c)
    same(factor * (a + b), factor * a + factor * b)
    same(factor * (a * b), (factor * a) * b)
    same(a + a, 2 * a)
    same(factor * a, a * factor)


def test_operators_build_the_named_combinations():
    a, b = cg.Gaussian(1.0), cg.Linear()
    assert a + b == Sum(a, b)
    assert a * b == Product(a, b)
    assert 3 * a == a * 3 == a * np.float64(3) == np.float64(3) * a == a * np.int64(3)
    assert 3 * a == Scaled(a, 3.0)


@pytest.mark.parametrize("other", ["2", None, [2.0]])
@pytest.mark.parametrize("operation", ["__add__", "__mul__", "__rmul__"])
def test_operators_leave_strangers_to_others(operation, other):
    assert getattr(cg.Gaussian(1.0), operation)(other) is NotImplemented


@each_kernel
def test_equality_and_hash(kernel):
    twin = parts.build(kernel.describe())
    assert twin is not kernel
    assert twin == kernel
    assert hash(twin) == hash(kernel)
    others = [other for other in KERNELS.values() if other is not kernel]
    assert kernel not in others
    assert kernel != kernel.describe()


def test_equal_however_the_bandwidth_was_written():
    spellings = [(1, 2), [1.0, 2.0], np.array([1, 2]), pd.Series([1, 2]), (np.float32(1), 2)]
    assert len({cg.Gaussian(bandwidth) for bandwidth in spellings}) == 1
    assert cg.Gaussian(1) == cg.Gaussian(np.float64(1)) == cg.Gaussian(np.array(1.0))


@each_kernel
def test_immutable(kernel):
    for name in [*vars(kernel), "new"]:
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(kernel, name, 1.0)
        if name != "new":
            with pytest.raises(FrozenInstanceError):
                delattr(kernel, name)


def test_keeps_no_tie_to_the_objects_it_was_made_from():
    widths = np.array([1.0, 2.0])
    ours = cg.Gaussian(widths)
    theirs = sk.RBF(1.0)
    adapted = cg.SklearnKernel(theirs)
    widths[0] = theirs.length_scale = 9.0
    assert ours.bandwidth == (1.0, 2.0)
    assert adapted == cg.SklearnKernel(sk.RBF(1.0))


@pytest.mark.parametrize(
    "kernel",
    [
        Tent(2.0, (1.0, 2.0)),
        Tent(1.5, inner=cg.Gaussian((1.0, 2.0)) + cg.Linear()),
        0.5 * Tent(2.0) + cg.Gaussian(1.0),
        Table(2.0, cells=((1, 2), (3, 4))),
        Table(2.0, cells=(cg.Gaussian(1.0), cg.Linear())),
        Table(2.0, cells=("a", None, True, ())),
    ],
    ids=str,
)
def test_users_kernels_round_trip(kernel):
    rebuilt = parts.build(kernel.describe())
    assert rebuilt == kernel
    assert hash(rebuilt) == hash(kernel)


def custom_sklearn_kernel():
    class Mine(sk.RBF):
        pass

    return Mine(1.0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Nameless, "Nameless cannot be described.*dataclass"),
        (lambda: Nameless() + cg.Linear(), "Nameless cannot be described"),
        (lambda: 2.0 * Nameless(), "Nameless cannot be described"),
        (lambda: Tent(1.0, shift=np.zeros(2)), r"Tent\.shift cannot be described.*ndarray"),
        (lambda: Tent(1.0, inner=lambda x: x), r"Tent\.inner cannot be described.*function"),
        (lambda: Table(1.0, cells=(1, np.zeros(2))), r"Table\.cells cannot be described.*ndarray"),
        (lambda: Table(1.0, cells=((object(),),)), r"Table\.cells cannot be described.*object"),
        (lambda: cg.SklearnKernel(custom_sklearn_kernel()), "Mine cannot be described"),
        (lambda: cg.SklearnKernel(sk.PairwiseKernel(metric=np.dot)), "setting cannot be described"),
    ],
)
def test_what_cannot_be_described_is_refused(make, says):
    with pytest.raises(TypeError, match=says):
        make().describe()


@pytest.mark.parametrize(
    ("description", "says"),
    [
        ({"type": "Gaussien", "bandwidth": 1.0}, "unknown component 'Gaussien'.*import the module"),
        ({"bandwidth": 1.0}, "unknown component None"),
        ({"type": ["Gaussian"], "bandwidth": 1.0}, "unknown component"),
        ({"type": "Gaussian", "bandwidth": -1.0}, "bandwidth must be positive"),
        ({"type": "SklearnKernel", "kernel": {"class": "Hyperparameter"}}, "no kernel 'Hyperpara"),
        ({"type": "SklearnKernel", "kernel": {"class": "os"}}, "no kernel 'os'"),
    ],
)
def test_descriptions_of_nothing_are_refused(description, says):
    with pytest.raises(ValueError, match=says):
        parts.build(description)


@pytest.mark.parametrize(
    ("kernel", "argument"),
    [
        (cg.Gaussian((1.0, 2.0)), "bandwidth"),
        (cg.Matern((1.0, 2.0)), "bandwidth"),
        (cg.Periodic((1.0, 2.0), 1.0), "period"),
        (cg.Periodic(1.0, (1.0, 2.0)), "bandwidth"),
        (cg.Linear() + cg.Gaussian((1.0, 2.0)), "bandwidth"),
        (cg.Gaussian((1.0, 2.0)) * cg.Linear(), "bandwidth"),
        (2 * cg.Gaussian((1.0, 2.0)), "bandwidth"),
        (cg.SklearnKernel(sk.RBF([1.0, 2.0])), "kernel"),
        (2 * cg.SklearnKernel(sk.DotProduct() + sk.Matern([1.0, 2.0])), "kernel"),
    ],
    ids=str,
)
def test_wrong_dimension_is_named(kernel, argument):
    kernel.check_dimension(2)
    with pytest.raises(ValueError, match=rf"(?i){argument}.*2.*3"):
        kernel.check_dimension(3)


class TestFromContexts:
    """``Gaussian.from_contexts``."""

    @given(
        seed=st.integers(0, 2**32 - 1),
        scale=st.lists(st.floats(1e-6, 1e6), min_size=D, max_size=D),
        shift=st.lists(st.floats(-10, 10), min_size=D, max_size=D),
        spread=st.floats(0.2, 5),
    )
    @few
    def test_units_and_origin_do_not_matter(self, seed, scale, shift, spread):
        x = contexts(20, seed=seed)
        moved = (x + shift) * scale
        gram = cg.Gaussian.from_contexts(x, spread)(x, x)
        np.testing.assert_allclose(
            cg.Gaussian.from_contexts(moved, spread)(moved, moved), gram, rtol=1e-9, atol=1e-14
        )

    @given(
        seed=st.integers(0, 2**32 - 1),
        n=st.integers(2, 30),
        d=st.integers(1, 5),
        spread=st.floats(0.2, 5),
    )
    @few
    def test_typical_correlation(self, seed, n, d, spread):
        # The mean of (x − y)² over all pairs of a sample is twice its variance.
        x = contexts(n, d, seed=seed)
        gram = cg.Gaussian.from_contexts(x, spread)(x, x)
        assert np.exp(np.log(gram).mean()) == pytest.approx(np.exp(-1 / spread**2), rel=1e-9)

    def test_bandwidths_are_the_documented_formula(self):
        x = contexts(50)
        expected = 0.5 * np.sqrt(D) * x.std(axis=0)
        np.testing.assert_allclose(cg.Gaussian.from_contexts(x, 0.5).bandwidth, expected)
        assert cg.Gaussian.from_contexts(x) == cg.Gaussian.from_contexts(x, spread=1.0)

    @pytest.mark.parametrize("value", [0.0, 0.1, -3.3e12, 1e-300])
    def test_constant_column_counts_as_unit_deviation(self, value):
        x = contexts(37)
        x[:, 1] = value
        bandwidth = cg.Gaussian.from_contexts(x, 2.0).bandwidth
        assert bandwidth[1] == pytest.approx(2 * np.sqrt(D))
        assert bandwidth[0] == pytest.approx(2 * np.sqrt(D) * x[:, 0].std())

    @pytest.mark.parametrize("scale", [1e-100, 1e100])
    def test_extreme_units(self, scale):
        x = contexts(10)
        bandwidth = np.array(cg.Gaussian.from_contexts(x * scale).bandwidth)
        np.testing.assert_allclose(bandwidth / scale, cg.Gaussian.from_contexts(x).bandwidth)

    def test_data_frames_and_lists(self):
        x = contexts(10)
        frame = pd.DataFrame(x, columns=list("abc"))
        expected = cg.Gaussian.from_contexts(x)
        assert cg.Gaussian.from_contexts(frame) == expected
        assert cg.Gaussian.from_contexts(x.tolist()) == expected
        assert cg.Gaussian.from_contexts(frame.astype({"a": object})) == expected

    @pytest.mark.parametrize(
        ("sample", "error", "says"),
        [
            ([[1.0, 2.0]], ValueError, "sample.*at least 2 contexts, got 1"),
            (np.empty((0, 2)), ValueError, "sample.*at least 2 contexts, got 0"),
            ([1.0, 2.0, 3.0], ValueError, "sample"),
            ([[1.0], [np.nan]], ValueError, "sample must be finite, got nan in row 1, column 0"),
            ([["a"], ["b"]], TypeError, "sample must be numbers"),
            (np.zeros((2, 2, 2)), ValueError, r"sample must be .*2-D, got shape \(2, 2, 2\)"),
        ],
    )
    def test_bad_samples(self, sample, error, says):
        with pytest.raises(error, match=says):
            cg.Gaussian.from_contexts(sample)

    @pytest.mark.parametrize("spread", [0, -1, np.nan, np.inf])
    def test_bad_spread(self, spread):
        with pytest.raises(ValueError, match="spread must be"):
            cg.Gaussian.from_contexts(contexts(5), spread)


def test_replace_checks_again():
    assert replace(cg.Gaussian(1.0), bandwidth=2) == cg.Gaussian(2.0)
    with pytest.raises(ValueError, match="bandwidth must be positive"):
        replace(cg.Gaussian(1.0), bandwidth=0)


@pytest.mark.parametrize("dimension", [1, 3, 20])
@pytest.mark.parametrize("each", [False, True], ids=["one", "many"])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_many_contexts_give_the_same_values_by_a_matrix_product(
    dimension, each, shift, monkeypatch
):
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(n, dimension)) + shift for n in (150, 160))
    left[:40] = right[:40]  # the same contexts are at distance 0
    kernel = cg.Gaussian(tuple(np.linspace(1.0, 9.0, dimension)) if each else 1.0)
    fast = kernel(left, right)
    assert kernel._exponent_by_product(left, right) is not None
    monkeypatch.setattr("contextgap.kernels.stationary._MANY", 10**9)
    assert kernel._exponent_by_product(left, right) is None
    # Far from zero, dividing by bandwidths rounds by some 1e-16 of the shift.
    np.testing.assert_allclose(fast, kernel(left, right), rtol=0, atol=1e-13 + 1e-15 * shift)
    assert fast.max() <= 1.0


@pytest.mark.parametrize(("dimension", "far"), [(1, 20.0), (20, 1e5)])
def test_contexts_far_from_their_centre_take_the_exact_way(dimension, far):
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(150, dimension))
    assert cg.Gaussian(1.0)._exponent_by_product(contexts, contexts) is not None
    contexts[0] += far
    assert cg.Gaussian(1.0)._exponent_by_product(contexts, contexts) is None
