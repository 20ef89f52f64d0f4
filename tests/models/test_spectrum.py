"""Leading eigenvectors, and doing without them where they are not found."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError, eigh

import contextgap as cg
from contextgap.models import spectrum


def test_fewer_eigenvalues_than_asked_for_are_done_without(monkeypatch):
    rng = np.random.default_rng(0)
    contexts = np.eye(6)[rng.integers(6, size=1200)] + 1e-3 * rng.normal(size=(1200, 6))
    learner = cg.Learner(3, kernel=cg.Gaussian(0.7), ridge=0.1, width=cg.PosteriorWidth(2.0))
    learner.fit(contexts, rng.integers(3, size=1200), rng.normal(size=1200))
    query = contexts[rng.integers(1200, size=3000)] + 0.1 * rng.normal(size=(3000, 6))
    expected = learner.freeze()._choose(query).arm

    def fewer(matrix, subset_by_index):
        values, vectors = eigh(matrix, subset_by_index=subset_by_index)
        return values[3:], vectors[:, 3:]

    monkeypatch.setattr(spectrum, "eigh", fewer)
    with pytest.raises(LinAlgError, match="eigenvalues were found"):
        spectrum.leading_spectrum(np.eye(300), 0.1)
    policy = learner.freeze()
    for _ in range(3):
        np.testing.assert_array_equal(policy.recommend(query), expected)
