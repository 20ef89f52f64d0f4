"""A campaign of several days: two benches, a lost trial, a typo found after a policy was frozen."""

import numpy as np

import contextgap as cg

ARMS = ("hull", "panel", "boom")


def measured(context: dict[str, object], arm: str, rng: np.random.Generator) -> float:
    heat = float(str(context["temperature"])) / 40
    level = {"hull": heat, "panel": 1 - heat, "boom": 0.4 + 0.3 * (context["mode"] == "eco")}
    return level[arm] + 0.05 * rng.normal()


def main() -> None:
    rng = np.random.default_rng(0)
    cg.Campaign.create("bench.db", "sensors", ARMS, seed=0)
    benches = [cg.Campaign.open("bench.db", "sensors") for _ in range(2)]  # processes, usually
    for day in range(30):
        bench = benches[day % 2]
        context = {"temperature": rng.uniform(0, 40), "mode": str(rng.choice(["eco", "sport"]))}
        trial = bench.ask(context, key=f"day {day}")
        again = bench.ask(context, key=f"day {day}")  # the answer got lost: ask once more
        assert again == trial
        if day == 12:
            bench.cancel(trial)  # somebody tripped over the cable
            continue
        reward = measured(context, trial.arm, rng)
        benches[0].tell(trial.id, 100 * reward if day == 17 else reward)  # a comma got lost

    campaign = cg.Campaign.open("bench.db", "sensors")
    campaign.freeze("first flight")
    (wrong,) = campaign.find_trials("told")[16:17]
    recall = campaign.correct(wrong, wrong.reward / 100, "a comma got lost")
    for policy in recall.policies:
        print(f"{policy.policy!r} would change {policy.changed} of {policy.contexts} decisions")
    policy = campaign.freeze("second flight")
    print(campaign.status())
    same = campaign.rebuild("second flight").card == policy.card
    print(f"rebuilt from the log: {'the same' if same else 'another'} card, {policy.card.log}")


if __name__ == "__main__":
    main()
