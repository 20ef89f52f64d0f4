"""A live loop in which rewards come late, out of order, and sometimes not at all."""

import numpy as np

import contextgap as cg

ARMS = ("left", "right")


def main() -> None:
    rng = np.random.default_rng(0)
    learner = cg.Learner(ARMS, kernel=cg.Gaussian(0.5), ridge=0.05, seed=0)
    running: list[tuple[float, float, str]] = []  # (when it ends, context, arm)
    for now in range(200):
        context = float(rng.uniform(-1, 1))
        arm = learner.ask([context])  # picks still running count as made
        running.append((now + rng.exponential(10), context, arm))
        for job in sorted(job for job in running if job[0] <= now):
            running.remove(job)
            if rng.random() < 0.9:  # one experiment in ten is lost
                _, x, tried = job
                learner.tell([x], tried, (x if tried == "right" else -x) + 0.1 * rng.normal())
    print(f"rewards told: {sum(learner.counts.values())}, still open or lost: {learner.pending}")
    learner.drop_pending()
    policy = learner.freeze()
    for x in (-0.9, -0.3, 0.3, 0.9):
        print(f"at {x:4} deploy {policy.recommend([x])!r}")


if __name__ == "__main__":
    main()
