"""Learn 20 sinusoids by ask and tell, freeze a policy, compare with two baselines, draw a figure.

Run it with ``make demo``.
"""

import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import contextgap as cg

ARMS, STEPS, CHECK_EVERY = 20, 2000, 100
METHODS = {"contextual-gap": "#0072B2", "kernel-ucb": "#D55E00", "uniform": "#7f7f7f"}


def rewards(contexts: np.ndarray) -> np.ndarray:
    """Arm a pays sin(a·x), a = 1..20: the paper's synthetic problem."""
    return np.sin(contexts * np.arange(1, ARMS + 1))


def explore(method: str, contexts: np.ndarray, held_out: np.ndarray) -> tuple[cg.Policy, list]:
    learner = cg.Learner(
        range(1, ARMS + 1), kernel=cg.Gaussian(0.0707), ridge=1e-4, method=method, seed=0
    )
    curve = []
    for step, context in enumerate(contexts, start=1):
        arm = learner.ask(context)
        learner.tell(context, arm, np.sin(arm * context[0]))
        if step % CHECK_EVERY == 0:
            curve.append((step, *regret(learner.recommend(held_out), held_out)))
            progress(f"{method}: {step}/{STEPS} steps, average regret {curve[-1][1]:.4f}")
    return learner.freeze(), curve


def regret(arms: np.ndarray, contexts: np.ndarray) -> tuple[float, float]:
    """Average and worst simple regret."""
    table = rewards(contexts)
    missed = table.max(axis=1) - table[np.arange(len(arms)), arms.astype(int) - 1]
    return float(missed.mean()), float(missed.max())


def progress(text: str) -> None:
    if sys.stdout.isatty():
        print(f"\r{text:<70}", end="", flush=True)


def draw(curves: dict[str, list], decision: cg.Decision, path: Path) -> None:
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for method, curve in curves.items():
        steps, average, _ = np.array(curve).T
        left.semilogy(steps, average, color=METHODS[method], lw=2)
        left.annotate(f" {method}", (steps[-1], average[-1]), color=METHODS[method], va="center")
    left.set_xlim(0, STEPS * 1.35)
    left.set_xlabel("exploration steps")
    left.set_ylabel("average simple regret")
    left.set_title("What the deployed rule misses", fontsize=10)
    left.spines[["top", "right"]].set_visible(False)
    cg.plot.decision(decision, right)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    rng = np.random.default_rng(0)
    contexts = rng.uniform(0, 2 * np.pi, (STEPS, 1))
    held_out = rng.uniform(0, 2 * np.pi, (1000, 1))
    print(f"20 arms, {STEPS} exploration steps, 1000 contexts to deploy on without feedback")
    curves, policies = {}, {}
    for method in METHODS:
        start = time.perf_counter()
        policies[method], curves[method] = explore(method, contexts, held_out)
        progress("")
        progress(f"{method}: done in {time.perf_counter() - start:.1f} s\n")
    print(f"\n{'method':16} {'average regret':>16} {'worst regret':>16}")
    for method, policy in policies.items():
        average, worst = regret(policy.recommend(held_out), held_out)
        print(f"{method:16} {average:16.5f} {worst:16.5f}")
    context = held_out[0]
    print(f"\nat x = {context[0]:.3f} the frozen policy trusts arm", end=" ")
    print(f"{policies['contextual-gap'].decide(context).arm}")
    path = Path("out") / "demo.png"
    draw(curves, policies["contextual-gap"].decide(context), path)
    print(f"figure: {path}")


if __name__ == "__main__":
    main()
