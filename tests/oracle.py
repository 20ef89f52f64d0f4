"""A learner made of textbook parts: dense solves, refits at every step; obviously right."""

from __future__ import annotations

import numpy as np

from contextgap.beliefs import Belief
from contextgap.methods.explorers import Moment, least_pulled
from contextgap.methods.recommenders.history import Choice
from tests.methods.explorers import dense
from tests.oracle_model import DenseModel


def choice_of(policy, contexts):
    """What a policy's rule chooses, arms and gaps, without any shortcut."""
    choices = [choice for _, choice, _ in policy.chooser.decisions(contexts)]
    arms = np.concatenate([choice.arm for choice in choices])
    return Choice(arms, np.concatenate([choice.gap for choice in choices]))


class DenseLearner:
    """What a ``Learner`` should do, from the dense model."""

    def __init__(self, n_arms, kernel, ridge, method, width, burn_in=1, prior_mean=0.0):
        self.settings = (kernel, ridge, n_arms, prior_mean)
        self.model = DenseModel(*self.settings)
        self.n_arms, self.method, self.width, self.burn_in = n_arms, method, width, burn_in
        self.told = []

    def belief(self, contexts, model=None):
        model = self.model if model is None else model
        return Belief(model.posterior(np.atleast_2d(contexts), range(self.n_arms)), self.width)

    def moment(self, context):
        table = self.belief(context)
        one = Belief.__new__(Belief)
        one.__dict__ = {
            name: None if values is None else values[0] for name, values in vars(table).items()
        }
        pulls = np.bincount([arm for _, arm, _ in self.told], minlength=self.n_arms)
        _, ridge, *_ = self.settings
        return Moment(
            believe=lambda: one,
            pulls=pulls.tolist(),
            step=len(self.told) + 1,
            rng=np.random.default_rng(0),
            seen=len(self.told),
            look_ahead=lambda places: self.look_ahead(context, places),
            ridge=ridge,
        )

    def look_ahead(self, context, places):
        seen = np.array([x for x, _, _ in self.told]).reshape(-1, len(context))[places]
        kernel, ridge, n_arms, _ = self.settings
        prior = self.model.prior()
        return dense.look_ahead(kernel, ridge, prior, self.told, [], n_arms, context, seen)

    def ask(self, context):
        moment = self.moment(context)
        if min(moment.pulls) < self.burn_in:
            return least_pulled(moment)
        return self.method.explorer.pick(moment)

    def tell(self, context, arm, reward):
        self.told.append((context, arm, reward))
        self.model.observe(context, arm, reward)

    def look_back(self, contexts, last=None):
        """Algorithm 1's recommendation: refit at every step, keep the smallest gap."""
        first = min(self.burn_in * self.n_arms, len(self.told))
        if last is not None:
            first = max(first, len(self.told) + 1 - last)
        model = DenseModel(*self.settings)
        smallest = np.full(len(contexts), np.inf)
        leader = np.zeros(len(contexts), dtype=int)
        for step in range(len(self.told) + 1):
            if step >= first:
                belief = self.belief(contexts, model)
                gap = belief.gap.min(axis=-1)
                leader = np.where(gap < smallest, belief.leader, leader)
                smallest = np.minimum(gap, smallest)
            if step < len(self.told):
                model.observe(*self.told[step])
        return leader, smallest
