"""Rewards that drift: the regret of what is deployed with and without ageing.

Every learner explores for 400 rewards with the default method. In ``smooth`` worlds, three arms pay
random smooth functions of two numbers, with noise of deviation 0.3: these stay, drift (an
Ornstein-Uhlenbeck process with a half life of 100 rewards), or are replaced after 200 rewards. On
the magnetometer bench, ``swap`` exchanges two sensors after 200 rewards; ``sines`` are five arms of
one number. Rewards of both are in units of their standard deviation.

What is printed is the simple regret at the end of exploring, at new contexts, and its difference
from that of a learner with default settings, with standard errors over seeds. Constants were chosen
on random logs of other seeds; seeds 100 to 119 are reported.

    python benchmarks/drift.py [--seeds 20]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from contextgap.problems import MagnetometerBench, Maker, Sinusoids

import contextgap as cg

REWARDS, HALF_LIFE, FEATURES, NOISE, NEW = 400, 100, 8, 0.3, 500
LEARNERS = {
    "default": {},
    "half_life=100": {"half_life": 100},
    'half_life="auto"': {"half_life": "auto"},
    "forget(keep=200)": {},
}


class World(NamedTuple):
    """What is met while exploring, rewards of every arm included, and what counts in the end."""

    contexts: np.ndarray
    rewards: np.ndarray
    new: np.ndarray
    truth: np.ndarray


def smooth(kind: str, seed: int, arms: int = 3) -> World:
    rng = np.random.default_rng([seed, 1])
    frequencies, phases = 2 * rng.normal(size=(2, FEATURES)), rng.uniform(0, 6, FEATURES)
    weights = [rng.normal(size=(arms, FEATURES)) / 2]
    keep = 0.5 ** (1 / HALF_LIFE)
    for step in range(REWARDS):
        fresh = rng.normal(size=(arms, FEATURES)) / 2
        drifting = keep * weights[-1] + np.sqrt(1 - keep**2) * fresh
        jumping = fresh if step == REWARDS // 2 else weights[-1]
        weights.append({"stays": weights[0], "drifts": drifting, "jumps": jumping}[kind])
    contexts = rng.uniform(-1, 1, (REWARDS + NEW, 2))
    features = np.sin(contexts @ frequencies + phases)
    told, new = contexts[:REWARDS], contexts[REWARDS:]
    rewards = np.einsum("tf,taf->ta", features[:REWARDS], np.array(weights[:-1]))
    rewards += NOISE * rng.normal(size=rewards.shape)
    return World(told, rewards, new, features[REWARDS:] @ weights[-1].T)


def known(maker: Maker, seed: int, *, swap: bool = False) -> World:
    problem = maker.sample(REWARDS + NEW, seed=seed)
    rewards = problem.rewards / problem.rewards.std()
    if swap:
        rewards[REWARDS // 2 :, :2] = rewards[REWARDS // 2 :, 1::-1]
    contexts = problem.contexts
    return World(contexts[:REWARDS], rewards[:REWARDS], contexts[REWARDS:], rewards[REWARDS:])


BENCH, SINES = MagnetometerBench(), Sinusoids(n_arms=5, noise=NOISE)
WORLDS: dict[str, Callable[[int], World]] = {
    "smooth, stays": partial(smooth, "stays"),
    "bench, stays": partial(known, BENCH),
    "sines, stays": partial(known, SINES),
    "smooth, drifts": partial(smooth, "drifts"),
    "smooth, jumps": partial(smooth, "jumps"),
    "bench, swap": partial(known, BENCH, swap=True),
}


def regret(world: World, name: str, seed: int) -> float:
    learner = cg.Learner(world.rewards.shape[1], seed=seed, **LEARNERS[name])
    for context, rewards in zip(world.contexts, world.rewards, strict=True):
        arm = learner.ask(context)
        learner.tell(context, arm, rewards[arm])
    if name.startswith("forget"):
        learner.forget(keep=REWARDS // 2)
    deployed = learner.freeze().recommend(world.new).astype(int)
    own = world.truth[np.arange(len(deployed)), deployed]
    return float((world.truth.max(axis=1) - own).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=100)
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    print(f"{'world':14} {'learner':18}  regret      ±  difference      ±  CPU s")
    for kind, world in WORLDS.items():
        usual = None
        for name in LEARNERS:
            start = time.process_time()
            found = np.array([regret(world(seed), name, seed) for seed in seeds])
            seconds = (time.process_time() - start) / len(found)
            usual = found if usual is None else usual
            away, root = found - usual, np.sqrt(len(found))
            print(
                f"{kind:14} {name:18} {found.mean():7.4f} {found.std(ddof=1) / root:6.4f} "
                f"{away.mean():11.4f} {away.std(ddof=1) / root:6.4f} {seconds:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
