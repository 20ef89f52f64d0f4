"""Eigenvalue floor and effective dimension, assumed or estimated."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.studies.theory import Spectrum, spectrum


def test_finds_the_eigenvalues_of_a_linear_kernel(rng):
    deviations = np.array([1.0, 0.7, 0.4])
    contexts = np.hstack([rng.normal(size=(400, 3)) * deviations, np.zeros((400, 2))])
    found = spectrum(contexts, cg.Linear(), share=0.999)
    assert found.effective_dimension == 3
    assert found.eigenvalue_floor == pytest.approx(0.16, rel=0.25)
    assert found.kernel_bound == (contexts**2).sum(axis=1).max()


def test_a_larger_share_takes_more_dimensions_and_a_lower_floor(rng):
    contexts = rng.uniform(size=(300, 2))
    found = [spectrum(contexts, cg.Gaussian(0.3), share=share) for share in (0.5, 0.9, 0.99)]
    sizes = [each.effective_dimension for each in found]
    floors = [each.eigenvalue_floor for each in found]
    assert sizes == sorted(set(sizes))
    assert floors == sorted(set(floors), reverse=True)


def test_contexts_that_are_all_the_same_have_one_dimension():
    found = spectrum(np.ones((20, 2)), cg.Gaussian(0.3))
    assert found.effective_dimension == 1
    assert found.eigenvalue_floor == pytest.approx(1.0)


def test_bad_arguments_are_named(rng):
    contexts = rng.uniform(size=(10, 2))
    with pytest.raises(ValueError, match=r"at most kernel_bound / effective_dimension = 0\.1"):
        Spectrum(0.2, 10)
    with pytest.raises(ValueError, match="eigenvalue_floor must be positive"):
        Spectrum(0.0, 1)
    with pytest.raises(TypeError, match="effective_dimension must be a whole number"):
        Spectrum(0.1, 2.5)
    with pytest.raises(ValueError, match=r"share must be below 1, got 1\.0"):
        spectrum(contexts, cg.Linear(), share=1.0)
    with pytest.raises(ValueError, match="at least 2 rows, got 1"):
        spectrum(contexts[:1], cg.Linear())
    with pytest.raises(ValueError, match="kernel value of 0"):
        spectrum(np.zeros((5, 2)), cg.Linear())
    with pytest.raises(TypeError, match="kernel must be a Kernel"):
        spectrum(contexts, cg.Linear)
