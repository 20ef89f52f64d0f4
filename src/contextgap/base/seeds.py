"""All randomness of a run comes from one seed."""

from __future__ import annotations

import numpy as np

from contextgap.base import checks


def random_sources(seed: int | None) -> tuple[np.random.Generator, int]:
    """Return the generator for exploration and the seed for policies frozen during it."""
    if seed is not None:
        seed = checks.whole("seed", seed, least=0)
    sequence = np.random.SeedSequence(seed)
    return np.random.default_rng(sequence), int(sequence.generate_state(1, np.uint64)[0])


def seed_after(policy_seed: int, observations: int) -> int:
    """Return the seed of a policy frozen after this many observations."""
    return (policy_seed + observations) % 2**64
