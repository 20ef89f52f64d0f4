import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import norm, t

import contextgap as cg
from contextgap.models.tuning.criteria import heavy_tails
from contextgap.models.tuning.search import (
    LEVEL_SPREAD,
    LOOSE,
    TIGHT,
    Search,
    Terms,
    bandwidth_loss,
)


@pytest.mark.parametrize("prior", [LOOSE, TIGHT])
def test_priors_are_the_density_they_claim_to_be(prior):
    rng = np.random.default_rng(0)

    def density(bandwidths):
        level = bandwidths.mean()
        single = t.logpdf(bandwidths - level, prior.tail, scale=prior.spread).sum()
        return single + norm.logpdf(level, scale=LEVEL_SPREAD)

    one, other = rng.normal(size=(2, 5))
    loss = bandwidth_loss(one, prior)[0] - bandwidth_loss(other, prior)[0]
    assert loss == pytest.approx(density(other) - density(one))
    error = check_grad(
        lambda x: bandwidth_loss(x, prior)[0], lambda x: bandwidth_loss(x, prior)[1], one
    )
    assert error < 1e-5


def test_rewards_of_two_values_or_with_far_ones_are_met_with_a_tight_prior():
    rng = np.random.default_rng(1)
    contexts, terms = [rng.normal(size=(300, 2))], Terms.of(cg.Gaussian((1.0, 1.0)))

    def met(rewards):
        limits = heavy_tails([rewards])
        return Search(terms, contexts, [rewards], "evidence", None, limits).bandwidth_prior

    assert met(rng.normal(size=300)) is LOOSE
    assert met((rng.uniform(size=300) < 0.3).astype(float)) is TIGHT
    assert met(np.exp(2 * rng.normal(size=300))) is TIGHT
    assert met(np.full(300, 0.7)) is TIGHT


def test_a_few_columns_that_matter_are_found_among_many():
    """Twenty numbers of which two matter, and noise: others' bandwidths become far longer."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 20))
    y = np.sin(2 * x[:, 3]) + np.cos(2 * x[:, 11]) + 0.3 * rng.normal(size=200)
    learner = cg.Learner(1, seed=0).fit(x, [0] * 200, y)
    bandwidths = np.array(Terms.of(learner.kernel).bandwidths)
    assert set(np.argsort(bandwidths)[:2]) == {3, 11}
    others = np.delete(bandwidths, [3, 11])
    assert others.min() > 2 * bandwidths[[3, 11]].max()
