import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.models.dictionary import Dictionary, choose, sample

KERNELS = [cg.Gaussian(0.4), cg.Matern(0.6), 2.0 * cg.Gaussian(0.5) + 0.3 * cg.Linear()]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 150),
    most=st.integers(1, 60),
    kernel=st.sampled_from(KERNELS),
    tolerance=st.sampled_from([1e-3, 0.05]),
)
def test_points_end_at_the_tolerance_or_at_the_most(seed, count, most, kernel, tolerance):
    contexts = np.random.default_rng(seed).normal(size=(count, 2)).round(1)  # some are the same
    places = choose(kernel, contexts, most, tolerance)
    assert len(set(places.tolist())) == len(places) <= most
    dictionary = Dictionary.of(kernel, contexts[places])
    residual = dictionary.whiten(kernel, contexts).residual
    assert len(places) == most or residual.max() <= tolerance * (1 + 1e-6)
    # No point was within the tolerance when it was chosen: its pivot is what was left of it.
    assert (dictionary.factor.diagonal**2 > tolerance * (1 - 1e-6)).all()


def test_whitened_contexts_are_the_low_rank_kernel():
    rng, kernel = np.random.default_rng(0), KERNELS[2]
    points, contexts = rng.normal(size=(20, 2)), rng.normal(size=(30, 2))
    dictionary = Dictionary.of(kernel, points)
    features, residual = dictionary.whiten(kernel, contexts)
    gram = kernel(points, points) + 1e-10 * np.eye(20)
    low_rank = kernel(contexts, points) @ np.linalg.solve(gram, kernel(points, contexts))
    np.testing.assert_allclose(features.T @ features, low_rank, atol=1e-7)
    np.testing.assert_allclose(residual, kernel.diagonal(contexts) - low_rank.diagonal(), atol=1e-7)
    for i in (0, 7):
        one = dictionary.whiten(kernel, contexts[i])
        np.testing.assert_allclose(one.features, features[:, i], rtol=1e-8, atol=1e-12)
        assert one.residual == pytest.approx(residual[i], abs=1e-12)


def test_randomly_pivoted_points_are_better_than_uniform_ones():
    rng, kernel = np.random.default_rng(1), cg.Gaussian(0.3)
    # Most contexts are in one corner, as those of a campaign in one season are.
    contexts = np.vstack([rng.normal(0, 0.1, (1900, 2)), rng.uniform(-2, 2, (100, 2))])
    chosen = Dictionary.chosen(kernel, contexts, 60, 1e-4)
    uniform = Dictionary.of(kernel, contexts[rng.choice(2000, 60, replace=False)])
    means = [each.mean_residual(kernel, contexts)[0] for each in (chosen, uniform)]
    assert means[0] < 0.5 * means[1]


def test_singular_points_are_no_error():
    dictionary = Dictionary.of(cg.Gaussian(1.0), np.zeros((5, 2)))
    assert dictionary.whiten(cg.Gaussian(1.0), np.zeros(2)).residual < 1e-6


def test_samples_are_bounded_and_repeatable():
    contexts = np.arange(20_000.0)[:, None]
    assert len(sample(contexts)) == 8192
    assert np.array_equal(sample(contexts), sample(contexts.copy()))
    assert sample(contexts[:100]) is not None
    assert len(sample(contexts[:100])) == 100
