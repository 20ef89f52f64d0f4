"""Our score card beside obp's own estimators, of the same policies on the same real log.

obp (Open Bandit Pipeline) pins old packages, so it runs in an environment of its own, and files go
between the two. The data are the sample of the Open Bandit Dataset in obp's wheel, its campaign for
women. Evaluated on the 10,000 rows with items drawn at random are a policy that was learnt from the
10,000 rows that Thompson sampling ("bts") logged, and the 46 policies that show one item always.

    python obp_card.py export obp.npz             # with obp: the logs
    python obp_card.py card   obp.npz cards.npz   # with contextgap: the policies and their cards
    python obp_card.py obp    obp.npz cards.npz   # with obp: its estimators, and both side by side
"""

import sys

import numpy as np

NAMES = ("action", "position", "reward", "pscore", "context")


def export(path):
    from obp.dataset import OpenBanditDataset

    arrays = {}
    for behaviour in ("bts", "random"):
        data = OpenBanditDataset(behavior_policy=behaviour, campaign="women")
        feedback = data.obtain_batch_bandit_feedback()
        arrays |= {f"{behaviour}_{name}": feedback[name] for name in (*NAMES, "action_context")}
    np.savez_compressed(path, n_actions=feedback["n_actions"], **arrays)


def logs(path):
    """Return the two logs as obp has them."""
    with np.load(path) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    for behaviour in ("bts", "random"):
        own = {name: found[f"{behaviour}_{name}"] for name in (*NAMES, "action_context")}
        own["context"] = own["context"].astype(float)
        yield {**own, "n_actions": int(found["n_actions"]), "n_rounds": len(own["reward"])}


def card(path, cards):
    import contextgap as cg

    bts, log = map(cg.io.read_obp, logs(path))
    policy, model = bts.fit(seed=0).freeze(), log.fit(seed=0).freeze()
    picks = [policy.recommend(log.contexts).astype(int)]
    picks += [np.full(len(log), arm) for arm in log.labels]
    found = []
    for each in picks:
        # The same as contextgap.sklearn.policy_value, with one model of rewards for all policies.
        own = model.scored(log.propensities, picks=each)
        found.append((own.value.value, own.value.error, own.weighted.value))
    np.savez_compressed(cards, picks=np.array(picks), found=np.array(found))


def obp(path, cards):
    from obp.ope import (
        DoublyRobust,
        OffPolicyEvaluation,
        RegressionModel,
        SelfNormalizedInverseProbabilityWeighting,
    )
    from sklearn.linear_model import LogisticRegression

    _, log = logs(path)
    arrays = np.load(cards)
    slots, place = int(log["position"].max()) + 1, np.arange(log["n_rounds"])
    model = RegressionModel(
        n_actions=log["n_actions"],
        len_list=slots,
        action_context=log["action_context"],
        base_model=LogisticRegression(max_iter=1000, C=0.1),
    )
    given = {name: log[name] for name in NAMES}
    rewards = model.fit_predict(**given, n_folds=3, random_state=0)
    evaluation = OffPolicyEvaluation(
        bandit_feedback=log,
        ope_estimators=[SelfNormalizedInverseProbabilityWeighting(), DoublyRobust()],
    )
    print("policy       ours (doubly robust)       obp dr                      obp snipw  ours")
    inside = [0, 0, 0]
    for number in [0, *(1 + np.argsort(-arrays["found"][1:, 0], kind="stable"))]:
        chosen, ours = arrays["picks"][number], arrays["found"][number]
        dist = np.zeros((log["n_rounds"], log["n_actions"], slots))
        dist[place, chosen] = 1.0  # an item per row; only that of the row's position counts
        kwargs = {"action_dist": dist, "estimated_rewards_by_reg_model": rewards}
        values = evaluation.estimate_policy_values(**kwargs)
        found = evaluation.estimate_intervals(**kwargs, n_bootstrap_samples=200, random_state=0)[
            "dr"
        ]
        low, high = found["95.0% CI (lower)"], found["95.0% CI (upper)"]
        value, error, weighted = ours
        inside[0] += low <= value <= high
        inside[1] += abs(values["dr"] - value) <= 1.96 * error
        inside[2] += bool(np.isclose(weighted, values["snipw"], rtol=1e-9, atol=1e-12))
        name = "learnt" if not number else f"always {number - 1}"
        print(
            f"{name:11} {value:8.5f} ± {error:.5f}   {values['dr']:8.5f} [{low:8.5f}, {high:8.5f}]"
            f"   {values['snipw']:.5f}   {weighted:.5f}"
        )
    count = len(arrays["found"])
    print(f"ours within obp's interval: {inside[0]} of {count}; obp's within ours: {inside[1]}")
    print(f"the same self-normalised estimate: {inside[2]} of {count}")


if __name__ == "__main__":
    {"export": export, "card": card, "obp": obp}[sys.argv[1]](*sys.argv[2:])
