"""How far every explorer gets on the noise-free sinusoids, and how long a look-ahead takes."""

from __future__ import annotations

import argparse

import numpy as np
from timing import medians, row

import contextgap as cg
from contextgap.methods.explorers import EBTC, Elimination, KnowledgeGradient, MaxVariance, TopTwoTS
from contextgap.studies.experiments import run
from contextgap.studies.problems import Problem, Sinusoids

METHODS = {
    **{name: cg.METHODS[name] for name in ("gain-or-gap", "contextual-gap")},
    **{
        name: cg.Method(explorer=explorer, recommender=cg.HighestMean())
        for name, explorer in {
            "max-variance": MaxVariance(),
            "elimination": Elimination(),
            "top-two-ts": TopTwoTS(),
            "knowledge-gradient": KnowledgeGradient(),
            "knowledge-gradient, local": KnowledgeGradient(local=True),
            "eb-tc": EBTC(),
            "eb-tc with slack 0.1": EBTC(0.1),
            **{
                name: cg.METHODS[name].explorer
                for name in ("proportional-response", "planned-sampling")
            },
        }.items()
    },
}
BANDWIDTH, RIDGE = 0.0707, 1e-4  # with which the paper's synthetic figure is reproduced


def given(explore: Problem, exploit: Problem, method: cg.Method, seed: int) -> float:
    trace = run(
        explore,
        exploit,
        method=method,
        kernel=cg.Gaussian(BANDWIDTH),
        ridge=RIDGE,
        checkpoints=[len(explore)],
        seed=seed,
    )
    return float(trace.average_regret[-1])


def learnt(explore: Problem, exploit: Problem, method: cg.Method, seed: int) -> float:
    learner = cg.Learner(explore.n_arms, method=method, seed=seed)
    for context, heard in zip(explore.contexts, explore.observations, strict=True):
        arm = learner.ask(context)
        learner.tell(context, arm, heard[arm])
    picks = learner.freeze().recommend(exploit.contexts).astype(np.intp)
    return float(exploit.regret(picks).mean())


def regrets(seeds: range, names: list[str], settings_given: bool) -> None:
    print(f"average regret after 2000 steps, 20 noise-free sines, seeds {seeds[0]} to {seeds[-1]}:")
    print("mean ± its standard error (highest)")
    best = np.inf
    for title, way in {
        f"bandwidth {BANDWIDTH}, ridge {RIDGE:g}": given,
        **({} if settings_given else {"no setting: scales learnt from the rewards": learnt}),
    }.items():
        print(title)
        for name in names:
            method, ends = METHODS[name], []
            for seed in seeds:
                explore, exploit = Sinusoids().sample(3000, seed=seed).split(2000, 1000)
                ends.append(way(explore, exploit, method, seed))
            error = np.std(ends, ddof=1) / np.sqrt(len(ends))
            print(f"  {name:28} {np.mean(ends):.2e} ± {error:.0e} ({max(ends):.2e})", flush=True)
            best = min(best, float(np.mean(ends)))
    print(row("lowest average regret", best, "", "<= 1e-4", best <= 1e-4))


def ask_time(rounds: int) -> None:
    rng = np.random.default_rng(0)
    contexts = rng.uniform(0, 2 * np.pi, (2000, 1))
    arms = np.tile(np.arange(20), 100)
    rewards = np.sin((arms + 1) * contexts[:, 0])
    kernel = cg.Gaussian(0.0707)
    reference = rng.uniform(0, 2 * np.pi, (200, 1))
    for what, explorer in {
        "seen contexts": KnowledgeGradient(),
        "200 given contexts": KnowledgeGradient(references=reference),
    }.items():
        method = cg.Method(explorer=explorer, recommender=cg.HighestMean())
        learner = cg.Learner(20, kernel=kernel, ridge=1e-4, method=method, seed=0)
        learner.fit(contexts, arms, rewards)
        queries = iter(rng.uniform(0, 2 * np.pi, (100_000, 1)))

        def ask(learner: cg.Learner = learner, queries: object = queries) -> None:
            learner.ask(next(queries))
            learner.drop_pending()

        def step(learner: cg.Learner = learner, queries: object = queries) -> None:
            context = next(queries)
            arm = learner.ask(context)
            learner.tell(context, arm, float(np.sin((arm + 1) * context[0])))

        times = medians(rounds, ask=ask, step=step)
        milliseconds = times["ask"] * 1e3
        title = f"knowledge-gradient ask, 20 x 100, {what}"
        print(row(title, milliseconds, "ms", "<= 10", milliseconds <= 10))
        print(f"  with tell {times['step'] * 1e3:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated")
    parser.add_argument("--given", action="store_true", help="with the paper's settings only")
    options = parser.parse_args()
    if not options.given:
        ask_time(100)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    regrets(seeds, options.methods.split(","), options.given)


if __name__ == "__main__":
    main()
