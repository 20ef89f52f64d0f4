"""EB-TCε against its definition, spelt out."""

import math

import numpy as np
import pytest

import contextgap as cg
from contextgap.beliefs import Belief
from contextgap.methods.explorers import EBTC, Moment
from contextgap.models import Posterior


def moment_of(mean, std, covariance=None, ridge=0.1):
    mean, std = np.array(mean, dtype=float), np.array(std, dtype=float)
    posterior = Posterior(mean, std, np.zeros(len(mean)), ridge, len(mean), covariance)
    belief = Belief(posterior, cg.PosteriorWidth())
    return Moment(lambda: belief, [1] * len(mean), 9, np.random.default_rng(0), ridge=ridge)


@pytest.mark.parametrize("slack", [0.0, 0.3])
def test_tries_the_wider_of_the_best_mean_and_the_arm_with_the_least_evidence(rng, slack):
    for _ in range(200):
        mean, std = rng.normal(size=5), rng.uniform(0.1, 2, 5)
        best = max(range(5), key=lambda a: mean[a])
        cost = {
            a: (mean[best] - mean[a] + slack) / math.sqrt(std[a] ** 2 + std[best] ** 2)
            for a in range(5)
            if a != best
        }
        rival = min(cost, key=cost.get)
        expected = best if std[best] > std[rival] else rival
        assert EBTC(slack).pick(moment_of(mean, std)) == expected


def test_where_arms_share_differences_count(rng):
    """The best mean and a rival that is almost the same arm: their difference is known."""
    root = np.array([[1.0, 0, 0], [0.999, 0.04, 0], [0, 0, 1.0]])
    covariance = root @ root.T
    mean = [1.0, 0.9, 0.2]
    moment = moment_of(mean, np.sqrt(covariance.diagonal()), covariance)
    assert EBTC().pick(moment) in (0, 2)
    apart = moment_of(mean, np.sqrt(covariance.diagonal()))
    assert EBTC().pick(apart) in (0, 1)


def test_certainty_leaves_the_smallest_lead():
    assert EBTC().pick(moment_of([3.0, 1.0, 2.0], [0.0, 0.0, 0.0])) in (0, 2)
    assert EBTC().pick(moment_of([3.0], [1.0])) == 0


@pytest.mark.parametrize("slack", [-1, np.nan, "wide"])
def test_bad_slack(slack):
    with pytest.raises((TypeError, ValueError), match="slack must be"):
        EBTC(slack)
