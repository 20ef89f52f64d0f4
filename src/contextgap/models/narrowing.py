"""Exact means at once, standard deviations as far as they are needed.

A mean costs one product with weights that are kept; a standard deviation costs the forward
substitution. But std² = k(x, x) − v·v falls with every row of v, so after some rows there is an
upper bound; and n observations cannot tell more about f(x) than n observations at x itself would,
which is a lower one. A decision that is the same anywhere between the two needs no more rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contextgap.arrays import FloatArray, IntArray
from contextgap.models.arm import Arm
from contextgap.models.exact import ExactModel
from contextgap.models.factor import ROWS

# Rounding in a mean, in units of the sum of its terms' sizes.
_ROUNDING = 1e-13


class NarrowingPosterior:
    """Means, and bounds on standard deviations that get closer panel by panel.

    Parameters
    ----------
    model
        The posterior.
    contexts
        Shape (m, d).
    arms
        Which arms.
    """

    def __init__(self, model: ExactModel, contexts: FloatArray, arms: Sequence[int]) -> None:
        self._states = [model.arm(arm) for arm in arms]
        prior, prior_variance = model.prior(), model.kernel.diagonal(contexts)
        shape = (len(contexts), len(arms))
        self.mean = np.full(shape, prior)
        self.slack = np.zeros(len(contexts))
        self._most = np.repeat(prior_variance[:, None], len(arms), axis=1)
        counts = np.array([len(state) for state in self._states])
        with np.errstate(divide="ignore"):  # no prior variance, no variance
            self._least = 1.0 / (1.0 / self._most + counts / model.ridge)
        self._values = [
            np.ascontiguousarray(model.kernel(model.contexts[state.places.view], contexts))
            if len(state)
            else np.empty((0, len(contexts)))
            for state in self._states
        ]
        # |k(x, y)|² ≤ k(x, x)·k(y, y) bounds the terms of a mean, whose rounding could decide.
        largest = float(model.kernel.diagonal(model.contexts).max(initial=0.0))
        reach = np.sqrt(prior_variance * largest)
        for column, (state, values) in enumerate(zip(self._states, self._values, strict=True)):
            weights = state.dual(prior)
            self.mean[:, column] += weights @ values
            size = abs(prior) + np.abs(weights).sum() * reach
            np.maximum(self.slack, _ROUNDING * size, out=self.slack)
        self._panel = 0
        self._open = np.arange(len(contexts))
        self._solved: list[list[FloatArray]] = [[] for _ in arms]  # panels of v, by arm

    @property
    def panels_done(self) -> int:
        """How many panels were taken in."""
        return self._panel

    @property
    def panels_left(self) -> bool:
        """Whether standard deviations can still be told more closely."""
        return any(self._panel * ROWS < len(state) for state in self._states)

    @property
    def least(self) -> FloatArray:
        """Lower bounds of the standard deviations; the values themselves when nothing is left."""
        if not self.panels_left:
            return self.most
        return np.sqrt(np.minimum(self._least, np.maximum(self._most, 0.0)))

    @property
    def most(self) -> FloatArray:
        """Upper bounds of the standard deviations."""
        return np.sqrt(np.maximum(self._most, 0.0))

    def keep(self, which: IntArray) -> None:
        """Go on with some of the contexts only."""
        self.mean, self.slack = self.mean[which], self.slack[which]
        self._most, self._least = self._most[which], self._least[which]
        self._open = self._open[which]
        self._solved = [[v[:, which] for v in solved] for solved in self._solved]

    def narrow(self) -> None:
        """Take in the next panel of every arm's factor; all of them for a single context."""
        if len(self._open) == 1:
            self.finish()
            return
        first = self._panel * ROWS
        for column, (state, values) in enumerate(zip(self._states, self._values, strict=True)):
            if first < len(state):
                v = values[first : first + ROWS].take(self._open, axis=1)
                state.factor.solve_panel(self._panel, v, self._solved[column])
                self._solved[column].append(v)
                self._most[:, column] -= np.einsum("ij,ij->j", v, v)
        self._panel += 1

    def finish(self) -> None:
        """Take in all panels that are left."""
        first = self._panel * ROWS
        for column, (state, values) in enumerate(zip(self._states, self._values, strict=True)):
            if first < len(state):
                v = self._finished(state, values, self._solved[column])
                self._most[:, column] -= np.einsum("ij,ij->j", v, v)
        self._panel = -(-max(len(state) for state in self._states) // ROWS)

    def _finished(self, state: Arm, values: FloatArray, solved: Sequence[FloatArray]) -> FloatArray:
        """The rows of v that were not solved yet."""
        first = self._panel * ROWS
        v = values.take(self._open, axis=1)
        if v.shape[1] == 1 and not first:  # packed triangles do for a vector, without unpacking
            state.factor.solve(v[:, 0])
            return v
        if first:
            v[:first] = np.concatenate(solved)
        for panel in range(self._panel, -(-len(v) // ROWS)):
            start = panel * ROWS
            state.factor.solve_panel(panel, v[start : start + ROWS], [v[:start]] if start else [])
        return v[first:]
