"""Reference points of a joint model, followed from reward to reward.

u_a = M_a·k_a at a point gets one entry per reward, and no entry changes later. So a point once
followed costs O(n) per reward instead of O(n²).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models.answers import LookAhead
from contextgap.models.base import NOTHING_PENDING, Pending, PlainFollower

if TYPE_CHECKING:
    from contextgap.models.joint import JointModel


class JointFollower(PlainFollower):
    """What a joint model says about points, with look-aheads whose references are followed."""

    model: JointModel

    def __init__(self, model: JointModel, points: FloatArray | None = None) -> None:
        super().__init__(model, points)
        self._keys: list[bytes] = []
        self._contexts = np.empty((0, 0))
        self._rows = 0
        self._parts = np.empty((0, 0, 0))  # (arms, rows with some to spare, references)

    def look_ahead(
        self,
        context: FloatArray,
        arms: Sequence[int],
        reference: IntArray | FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> LookAhead:
        """Return what trying arms would teach about reference points and the context itself."""
        model, here = self.model, context[None]
        given = model.observed.contexts[reference] if reference.dtype.kind == "i" else reference
        model.assume(NOTHING_PENDING)
        self._follow(np.asarray(given).reshape(-1, len(context)))
        model.assume(pending)
        followed, known = self._parts[:, : self._rows], len(model)
        if model.rows > known:  # of picks still to come, which may come otherwise
            late = model.parts(self._contexts, first=known)
            followed = np.concatenate([followed, late], axis=1)
        at_context = model.mixed(model.parts(here), arms)
        solved = np.concatenate([model.mixed(followed, arms), at_context], axis=2)
        tried = at_context[:, :, 0]
        points = np.vstack([self._contexts, here])
        covariance = model.kernel(points, here)[:, :, None] * model.among(arms)
        covariance -= np.einsum("bnr,an->rab", solved, tried, optimize=True)
        own = covariance[-1].diagonal()
        move = covariance / model.pivots(here, own)[:, None]
        weights = model.weights()
        mean = model.prior() + np.einsum("n,bnr->rb", weights, solved[:, :known])
        return LookAhead(mean, move)

    def _follow(self, contexts: FloatArray) -> None:
        """Have exactly these points followed, up to the last reward."""
        keys = [row.tobytes() for row in contexts]
        model, rows = self.model, len(self.model)
        if len(self._parts) != model.n_arms or self._rows > rows:
            self._keys, self._rows, self._parts = [], 0, np.empty((model.n_arms, 0, 0))
        if keys != self._keys:
            self._exchange(keys, contexts)
        self._contexts = contexts
        if self._parts.shape[1] < rows:
            grown = np.empty((model.n_arms, 2 * rows, len(keys)))
            grown[:, : self._rows] = self._parts[:, : self._rows]
            self._parts = grown
        if self._rows < rows:
            self._parts[:, self._rows : rows] = model.parts(contexts, first=self._rows)
        self._rows = rows

    def _exchange(self, keys: list[bytes], contexts: FloatArray) -> None:
        """Follow other points; those followed before keep what was computed."""
        places = {key: place for place, key in enumerate(self._keys)}
        kept = [i for i, key in enumerate(keys) if key in places]
        new = [i for i, key in enumerate(keys) if key not in places]
        parts = np.empty((self.model.n_arms, max(self._rows, self._parts.shape[1]), len(keys)))
        if self._rows:
            old = [places[keys[i]] for i in kept]
            parts[:, : self._rows, kept] = self._parts[:, : self._rows, old]
            parts[:, : self._rows, new] = self.model.parts(contexts[new])[:, : self._rows]
        self._parts, self._keys = parts, keys
