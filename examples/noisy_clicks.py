"""Clicks are mostly noise: what the learner makes of a log, and how good it says it is."""

import numpy as np

import contextgap as cg

rng = np.random.default_rng(7)
age, spend, mobile = rng.normal(size=1500), rng.exponential(size=1500), rng.integers(2, size=1500)
contexts = np.column_stack([age, spend, mobile])
ads = ("discount", "novelty", "brand")
chance = np.column_stack([0.1 + 0.3 * (age > 0.5), 0.1 + 0.3 * mobile * (age < 0), 0 * age + 0.18])
shown = rng.integers(3, size=1500)
clicked = rng.uniform(size=1500) < chance[np.arange(1500), shown]

learner = cg.Learner(ads, seed=0).fit(contexts, [ads[ad] for ad in shown], clicked)
print(learner.tuning, end="\n\n")
print(learner.score(propensities=np.full(1500, 1 / 3)), end="\n\n")
deployed = [ads.index(ad) for ad in learner.recommend(contexts)]
print(f"true value {chance[np.arange(1500), deployed].mean():.3f}, always one ad", end=" ")
print(f"{chance.mean(axis=0).max():.3f}, always the right one {chance.max(axis=1).mean():.3f}")
