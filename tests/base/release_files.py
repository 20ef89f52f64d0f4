"""Files of a release, with what it answered, for all later releases to be compared with.

``python tests/base/release_files.py 0_3`` writes those of the present version, once: files that a
release wrote are never made anew.
"""

import json
import sys
from pathlib import Path

import numpy as np

import contextgap as cg

DATA = Path(__file__).parent / "data"
NUMBERS = np.random.default_rng(20).uniform(-1.2, 1.2, (12, 2)).round(3).tolist()
ROWS = [
    {"soil": "clay", "hour": 3, "day": "2025-03-02", "depth": 1.5},
    {"soil": "loam", "hour": 23, "day": "2025-04-30", "depth": None},
    {"soil": None, "hour": 12, "day": "2025-03-15", "depth": 0.2},
    {"soil": "peat", "hour": 7, "day": "2025-05-01", "depth": 2.9},
    {"soil": "clay", "hour": 18, "day": "2027-01-01", "depth": 40.0},
    {"soil": "loam", "hour": 0, "day": "2025-03-20", "depth": 1.0},
]


def policy_answers(policy, contexts):
    """Return what a policy says at some contexts, as plain values."""
    bounds = policy.certificate(contexts)
    beliefs = [policy.decide(each) for each in contexts]
    return {
        "arms": [str(arm) for arm in policy.recommend(contexts)],
        "status": [str(each) for each in policy.status(contexts)],
        "bound": bounds.bound.tolist(),
        "probability": bounds.probability,
        "expected_regret": policy.expected_regret(contexts).tolist(),
        "mean": [each.mean.tolist() for each in beliefs],
        "upper": [each.upper.tolist() for each in beliefs],
        "counts": {str(arm): count for arm, count in policy.counts.items()},
        "card": policy.card.describe(),
    }


def learner_answers(learner, contexts):
    """Return what a learner says now, picks next, and believes after one more reward."""
    said = {"pending": learner.pending, **policy_answers(learner.freeze(), contexts)}
    said["picks"] = [str(learner.ask(each)) for each in contexts]
    learner.tell(contexts[0], learner.arms[0], 0.3)
    said["after"] = learner.decide(contexts[1]).mean.tolist()
    return said


def _numbers(learner, rows):
    rng = np.random.default_rng(2)
    contexts = rng.uniform(-1, 1, (rows, 2)).round(3)
    places = rng.integers(len(learner.arms), size=rows)
    rewards = np.sin(2 * contexts[:, 0] + 2 * places) + 0.1 * rng.normal(size=rows)
    return learner.fit(contexts, [learner.arms[place] for place in places], rewards.round(3))


def _shared():
    doses = {"low": [1.0], "middle": [2.0], "high": [4.0]}
    settings = {"kernel": cg.Gaussian(0.7), "ridge": 0.02, "sharing": 0.6}
    return _numbers(cg.Learner(list(doses), features=doses, seed=1, **settings), 30)


def _bounded():
    return _numbers(cg.Learner(2, kernel=cg.Gaussian(0.7), ridge=0.02, points=10, seed=2), 45)


def _typed():
    rng = np.random.default_rng(3)
    soils, depths = rng.choice(["clay", "loam", None], 60), rng.uniform(0, 3, 60).round(1)
    rows = [
        {
            "soil": soil,
            "hour": int(rng.integers(24)),
            "day": f"2025-{rng.integers(3, 6):02}-{rng.integers(1, 29):02}",
            "depth": None if rng.uniform() < 0.2 else float(depth),
        }
        for soil, depth in zip(soils, depths, strict=True)
    ]
    columns = {"soil": cg.Category(missing=True), "hour": cg.Cyclic(24), "day": "date"}
    columns |= {"depth": cg.Number(missing=True)}
    arms = ["sow", "wait", "leave"]
    learner = cg.Learner(arms, columns=cg.Columns(columns), reward="minimize", seed=3)
    tried = rng.choice(arms, 60)
    costs = [
        (2.0 if row["soil"] == "clay" else 1.0) * (arm == "sow")
        + 0.1 * abs(row["hour"] - 12) * (arm == "wait")
        + 0.8 * (arm == "leave")
        + 0.1 * rng.normal()
        for row, arm in zip(rows, tried, strict=True)
    ]
    could = [sorted({arm, "leave"}) if place % 7 == 0 else arms for place, arm in enumerate(tried)]
    return learner.fit(rows, tried, np.round(costs, 3), eligible=could)


def _costly():
    """Known and observed costs, a cutoff, censored times and known noise."""
    rng, contexts = np.random.default_rng(4), np.array(NUMBERS * 3)
    arms = np.resize(["slow", "quick"], len(contexts))
    times = np.where(arms == "slow", 3 + contexts[:, 0], 4 - 2 * contexts[:, 1])
    return cg.Learner(
        ["slow", "quick"],
        kernel=cg.Gaussian(0.7),
        ridge=0.02,
        reward="minimize",
        costs={"slow": 5, "quick": 1},
        cutoff=5.0,
        seed=4,
    ).fit(
        contexts + 0.01 * rng.normal(size=contexts.shape).round(2),
        arms,
        np.minimum(times, 5.0).round(3),
        censored=times > 5.0,
        noise=np.where(times > 5.0, 0.0, 0.3),
        costs=times.round(1),
    )


def _ageing():
    return _numbers(cg.Learner(2, kernel=cg.Gaussian(0.7), ridge=0.02, half_life=20, seed=5), 30)


def _waiting(learner, contexts):
    for place, context in enumerate(contexts[:3]):
        learner.ask(context, arms=None if place else learner.arms[:2])
    return learner


CASES = {
    "policy_shared": lambda: (_shared().freeze(), NUMBERS),
    "policy_bounded": lambda: (_bounded().freeze(), NUMBERS),
    "policy_typed": lambda: (_typed().freeze(), ROWS),
    "policy_fallback": lambda: (_typed().freeze(fallback="leave", tolerance=0.5), ROWS),
    "policy_costly": lambda: (_costly().freeze(), NUMBERS),
    "policy_ageing": lambda: (_ageing().freeze(), NUMBERS),
    "learner_shared": lambda: (_waiting(_shared(), NUMBERS), NUMBERS),
    "learner_bounded": lambda: (_waiting(_bounded(), NUMBERS), NUMBERS),
    "learner_typed": lambda: (_waiting(_typed(), ROWS), ROWS),
    "learner_costly": lambda: (_waiting(_costly(), NUMBERS), NUMBERS),
    "learner_ageing": lambda: (_waiting(_ageing(), NUMBERS), NUMBERS),
}


def write(folder):
    """Write files and answers into a folder that must not be there yet."""
    folder.mkdir(parents=True)
    answers = {}
    for name, make in CASES.items():
        thing, contexts = make()
        if isinstance(thing, cg.Policy):
            _ = thing.card  # so that the file has it
            thing.save(folder / f"{name}.cgap")
            said = policy_answers(thing, contexts)
        else:
            thing.save(folder / f"{name}.cgap")
            said = learner_answers(thing, contexts)
        answers[name] = {"contexts": contexts, **said}
    text = json.dumps({"version": cg.__version__, "files": answers}, indent=1)
    (folder / "answers.json").write_text(text + "\n")


if __name__ == "__main__":
    write(DATA / f"release_{sys.argv[1]}")
