"""Writes the logs in this folder by the tools that they are of: see README.md."""

import ast
import gzip
import json
import sys
import tarfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
USERS, TIMES = ["Tom", "Anna"], ["morning", "afternoon"]
ACTIONS = ["politics", "sports", "music", "food"]


def cost(user, time, action):
    likes = {("Tom", "morning"): "politics", ("Tom", "afternoon"): "music"}
    likes |= {("Anna", "morning"): "sports", ("Anna", "afternoon"): "food"}
    return -1.0 if likes[user, time] == action else 0.0


def adf(rng, rounds=60):
    """Vowpal Wabbit's own tutorial: it learns while it logs, and its predictions are drawn from.

    Text and dsjson are written here, as the tutorial does, since Vowpal Wabbit has no logger.
    """
    from vowpalwabbit import pyvw

    learner = pyvw.Workspace("--cb_explore_adf -q UA --quiet --epsilon 0.2 --random_seed 5")
    text, events = [], []
    for _ in range(rounds):
        user, time = str(rng.choice(USERS)), str(rng.choice(TIMES))
        shared = f"shared |User user={user} time_of_day={time}"
        lines = [f"|Action article={action}" for action in ACTIONS]
        chances = np.array(learner.predict("\n".join([shared, *lines])))
        taken = rng.choice(len(ACTIONS), p=chances / chances.sum())
        price = cost(user, time, ACTIONS[taken])
        lines[taken] = f"0:{price}:{chances[taken]} {lines[taken]}"
        learner.learn("\n".join([shared, *lines]))
        text.append("\n".join([shared, *lines]))
        events.append(
            {
                "_label_cost": price,
                "_label_probability": float(chances[taken]),
                "_label_Action": int(taken) + 1,
                "_labelIndex": int(taken),
                "a": [int(i) + 1 for i in np.argsort(-chances, kind="stable")],
                "c": {
                    "User": {"user": user, "time_of_day": time},
                    "_multi": [{"Action": {"article": action}} for action in ACTIONS],
                },
                "p": sorted(map(float, chances), reverse=True),
            }
        )
    learner.finish()
    (HERE / "adf.vw").write_text("\n\n".join(text) + "\n")
    with gzip.open(HERE / "log.dsjson.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def cb(rng, rounds=60):
    """Lines that Vowpal Wabbit's DFtoVW makes of a DataFrame."""
    import pandas
    from vowpalwabbit.dftovw import ContextualbanditLabel, DFtoVW, Feature, Namespace

    chances = np.array([0.2, 0.3, 0.5])
    action = rng.choice(3, rounds, p=chances)
    hour, load = rng.integers(0, 24, rounds), rng.random(rounds).round(3)
    costs = np.abs(load - action / 2).round(3)
    table = pandas.DataFrame(
        {
            "action": action + 1,
            "cost": costs,
            "chance": chances[action],
            "hour": hour,
            "load": load,
            "mode": rng.choice(["eco", "fast"], rounds),
        }
    )
    lines = DFtoVW(
        table,
        label=ContextualbanditLabel("action", "cost", "chance"),
        namespaces=[
            Namespace([Feature("hour"), Feature("load")], name="state"),
            Namespace([Feature("mode")]),
        ],
    ).convert_df()
    (HERE / "cb.vw").write_text("\n".join(lines) + "\n")


def obp():
    """Rows of the sample of real logged data in obp's wheel: its campaign for men, three slots."""
    from obp.dataset import OpenBanditDataset

    feedback = OpenBanditDataset(
        behavior_policy="random", campaign="men"
    ).obtain_batch_bandit_feedback()
    part = {
        name: np.asarray(feedback[name])[:1500]
        for name in ("action", "position", "reward", "pscore", "context")
    }
    part["context"] = part["context"].astype(np.int8)
    part["action_context"] = feedback["action_context"]
    np.savez_compressed(HERE / "obp_men.npz", n_actions=feedback["n_actions"], **part)


def service(sdist):
    """Ten events of a Decision Service, which the tests of vowpal-wabbit-next hold as text."""
    with tarfile.open(sdist) as archive:
        inside = sdist.name.removesuffix(".tar.gz")
        test = archive.extractfile(f"{inside}/tests/test_dsjson_format_reader.py").read()
        (HERE / "service.LICENSE").write_bytes(archive.extractfile(f"{inside}/LICENSE").read())
    texts = [each.value for each in ast.walk(ast.parse(test)) if isinstance(each, ast.Constant)]
    (log,) = (each for each in texts if str(each).count("_original_label_cost") > 1)
    (HERE / "service.dsjson").write_text(log.strip() + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if name.endswith(".tar.gz"):
            service(Path(name))
        else:
            given = () if name == "obp" else (np.random.default_rng(0),)
            {"adf": adf, "cb": cb, "obp": obp}[name](*given)
