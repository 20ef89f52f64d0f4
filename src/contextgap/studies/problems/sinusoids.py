"""The paper's synthetic problem: sines of rising frequency."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.studies.problems.problem import Maker, Problem

_ROWS = 3000  # 2000 to explore and 1000 to evaluate on, as in the paper


@dataclass(frozen=True)
class Sinusoids(Maker):
    """Contexts x ~ U[0, 2π]; arm a pays sin(a·x), a = 1..n_arms.

    Parameters
    ----------
    n_arms
        Number of arms; the paper has 20.
    noise
        Standard deviation of Gaussian noise in the observations. Regret is measured without.
    first
        The first arm's a: 1 in the paper's text, 0 in its authors' code, where arms are 0..19.

    Examples
    --------
    >>> Sinusoids(n_arms=3).sample(100, seed=0)
    Problem('sinusoids-3': 100 rows, 1 number per context, 3 arms (1, 2, 3))
    """

    n_arms: int = 20
    _: KW_ONLY
    noise: float = 0.0
    first: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_arms", checks.whole("n_arms", self.n_arms, least=1))
        noise = checks.at_least("noise", self.noise, 0, "a standard deviation")
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "first", checks.whole("first", self.first, least=0))

    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return ``n`` independent rows.

        Parameters
        ----------
        n
            Number of rows; None for 3000.
        seed
            Fixes contexts and noise; the contexts are the same with and without noise.
        """
        size = _ROWS if n is None else checks.whole("n", n, least=1)
        rng = np.random.default_rng(seed)
        contexts = rng.uniform(0, 2 * math.pi, (size, 1))
        frequencies = np.arange(self.first, self.first + self.n_arms)
        problem = Problem(
            name=self._name(),
            contexts=contexts,
            rewards=np.sin(contexts * frequencies),
            arms=tuple(frequencies.tolist()),
            columns=("x",),
        )
        return problem.with_noise(self.noise, rng)

    def _name(self) -> str:
        """Only the paper's problem has the plain name, so that others are not mistaken for it."""
        if (self.n_arms, self.noise, self.first) == (20, 0.0, 1):
            return "sinusoids"
        start = "" if self.first == 1 else f"-from-{self.first}"
        noise = f"-noise-{self.noise:g}" if self.noise else ""
        return f"sinusoids-{self.n_arms}{start}{noise}"
