"""Arms that are not always there: a learner among some arms is one whose others were removed."""

import copy
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg

ARMS = ("a", "b", "c", "d")
KERNEL = cg.Gaussian(0.6)
SUBSETS = [("a", "c"), ("b", "c", "d"), ("d",)]
QUERIES = np.linspace(-1.2, 1.2, 25)[:, None]


def pay(x, arm):
    return float(np.sin((ARMS.index(arm) + 1) * 2 * x[0]))


def taught(method="contextual-gap", steps=30, **changes):
    how = {"kernel": KERNEL, "ridge": 0.05, "seed": 0, **changes}
    learner = cg.Learner(ARMS, method=method, **how)
    for x in np.random.default_rng(1).uniform(-1, 1, (steps, 1)):
        arm = learner.ask(x)
        learner.tell(x, arm, pay(x, arm))
    return learner


def without_others(learner, arms):
    smaller = copy.deepcopy(learner)
    for arm in set(ARMS) - set(arms):
        smaller.remove_arm(arm)
    return smaller


def saved(learner, folder):
    """Return what a learner's file holds; the file itself has the time in it."""
    learner.save(folder / "l.cgap")
    with zipfile.ZipFile(folder / "l.cgap") as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.mark.parametrize("sharing", [0, 0.6])
@pytest.mark.parametrize("method", list(cg.METHODS))
def test_asking_among_some_arms_is_asking_a_learner_that_has_no_others(method, sharing):
    learner = taught(method, sharing=sharing)
    for arms in SUBSETS:
        one, other = copy.deepcopy(learner), without_others(learner, arms)
        for x in QUERIES[::3]:
            wanted = other.decide(x)
            decision = one.decide(x, arms=set(arms))
            assert (decision.arm, decision.arms) == (wanted.arm, wanted.arms)
            np.testing.assert_allclose(decision.gap, wanted.gap, atol=1e-12)
            assert one.ask(x, arms=arms) == other.ask(x)


@pytest.mark.parametrize("sharing", [0, 0.6])
@pytest.mark.parametrize("method", [each for each in cg.METHODS if each != "kernel-ts"])
def test_recommending_among_some_arms_is_a_policy_that_has_no_others(method, sharing):
    learner = taught(method, sharing=sharing)
    for arms in SUBSETS:
        wanted = without_others(learner, arms).freeze()
        assert learner.recommend(QUERIES, arms=arms).tolist() == wanted.recommend(QUERIES).tolist()
        assert learner.rank(QUERIES[3], arms=arms) == wanted.rank(QUERIES[3])


def test_a_batch_respects_the_mask_of_every_row():
    rng = np.random.default_rng(3)
    mask = rng.random((25, 4)) < 0.5
    mask[~mask.any(axis=1), 0] = True
    batch, one_by_one = taught("kernel-ts"), taught("kernel-ts")
    picks = batch.ask(QUERIES, arms=mask)
    for x, own, pick in zip(QUERIES, mask, picks, strict=True):
        eligible = [arm for arm, may in zip(ARMS, own, strict=True) if may]
        assert pick in eligible
        assert one_by_one.ask(x, arms=eligible) == pick
    labels = [[arm for arm, may in zip(ARMS, own, strict=True) if may] for own in mask]
    assert taught("kernel-ts").ask(QUERIES, arms=labels).tolist() == picks.tolist()


def test_every_eligible_arm_gets_its_burn_in():
    learner = cg.Learner(ARMS, kernel=KERNEL, burn_in=2, seed=0)
    picks = []
    for x in QUERIES[:4]:
        assert learner.decide(x, arms=["d", "b"]).reason == "burn-in"
        picks.append(learner.ask(x, arms=["d", "b"]))
    assert picks == ["b", "d", "b", "d"]
    assert learner.decide(QUERIES[5], arms=["b", "d"]).reason != "burn-in"
    assert learner.ask(QUERIES[6]) == "a"


@pytest.mark.parametrize("method", ["contextual-gap", "knowledge-gradient", "uniform"])
@pytest.mark.parametrize("sharing", [0, 0.6])
def test_a_pool_with_some_arms(method, sharing):
    learner = taught(method, sharing=sharing)
    other = without_others(learner, ("a", "d"))
    for _ in range(4):
        context, arm = learner.ask(pool=QUERIES, arms=("d", "a"))
        wanted, which = other.ask(pool=QUERIES)
        assert (context.tolist(), arm) == (wanted.tolist(), which)
    assert learner.state.pending.asked[ARMS.index(arm)][-1].eligible == (0, 3)
    with pytest.raises(ValueError, match=r"arms must be among .*, got \['a'\]"):
        learner.ask(pool=QUERIES, arms=[["a"]] * 25)


def sets_of(learner):
    log = learner.state.model.observed
    mask = log.eligible(np.arange(len(log)))
    return ["".join(arm for arm, may in zip(ARMS, row, strict=True) if may) for row in mask]


def test_a_reward_remembers_among_which_arms_its_pick_was_made():
    learner = cg.Learner(ARMS, kernel=KERNEL, seed=0)
    first, second = learner.ask([0.1], arms=["a", "b"]), learner.ask([0.2])
    late = learner.ask([[0.3], [0.4]], arms=[["c"], ["d", "b"]])
    learner.tell([0.2], second, 1.0)
    learner.tell([[0.4], [0.3]], late[::-1], [1.0, 2.0])
    learner.tell([0.1], first, 1.0)
    learner.tell([0.1], first, 1.0)  # nobody asked for this one
    learner.tell([0.5], "c", 1.0, eligible=["b", "c"])
    assert sets_of(learner) == ["abcd", "bd", "c", "ab", "abcd", "bc"]
    assert learner.pending == 0


def test_what_is_told_wins_over_what_was_asked():
    learner = cg.Learner(ARMS, kernel=KERNEL, seed=0)
    arm = learner.ask([0.1], arms=["a", "b"])
    learner.tell([0.1], arm, 1.0, eligible=["a", "b", "c"])
    assert sets_of(learner) == ["abc"]


def test_logged_data_may_say_what_was_eligible():
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 1]], dtype=bool)
    for eligible in (mask, [["a", "b"], ["b", "c", "d"]]):
        learner = cg.Learner(ARMS, kernel=KERNEL)
        learner.fit([[0.0], [1.0]], ["b", "c"], [1.0, 2.0], eligible=eligible)
        assert sets_of(learner) == ["ab", "bcd"]
    for eligible in (["b", "c"], mask[1] & mask.any(axis=0)):
        learner = cg.Learner(ARMS, kernel=KERNEL)
        learner.fit([[0.0], [1.0]], ["b", "c"], [1.0, 2.0], eligible=eligible)
        assert len(set(sets_of(learner))) == 1


def test_removed_arms_may_have_been_eligible_and_new_ones_were_not():
    learner = taught(steps=0)
    learner.tell([0.0], "b", 1.0, eligible=["b", "c"])
    learner.remove_arm("a")
    learner.tell([0.1], "a", 1.0, eligible=["d", "a"])
    learner.tell([0.1], "d", 1.0, eligible=np.array([False, True, True]))  # of b, c and d
    learner.add_arm("e")
    learner.tell([0.2], "e", 1.0, eligible=["e"])
    log = learner.state.model.observed
    wanted = ["01100", "10010", "00110", "00001"]
    found = log.eligible(np.arange(4)).astype(int)
    assert ["".join(map(str, row)) for row in found.tolist()] == wanted


def test_tuning_and_interrupts_keep_the_log_in_step(monkeypatch):
    learner = cg.Learner(ARMS, seed=0)
    for x in np.random.default_rng(1).uniform(-1, 1, (45, 1)):
        among = ARMS[: 2 + int(len(learner.state.model) % 3)]
        arm = learner.ask(x, arms=among)
        learner.tell(x, arm, pay(x, arm))
    assert learner.tuning is not None
    wanted = ["".join(ARMS[: 2 + step % 3]) for step in range(45)]
    assert sets_of(learner) == wanted

    def broken(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(cg.Learner, "_result", staticmethod(broken))
    with pytest.raises(KeyboardInterrupt):
        learner.tell(np.zeros((200, 1)), ["a"] * 200, np.zeros(200), eligible=["a", "d"])
    assert sets_of(learner) == wanted


@pytest.mark.parametrize("sharing", [0, 0.6])
@pytest.mark.parametrize("method", ["contextual-gap", "kernel-ts", "knowledge-gradient"])
def test_a_loaded_learner_goes_on_as_the_saved_one(method, sharing, tmp_path):
    learner = taught(method, sharing=sharing)
    learner.ask(QUERIES[:3], arms=[["a", "b"], ["c"], ["b", "d"]])
    learner.tell(QUERIES[4], "a", 0.3, eligible=["a", "c"])
    learner.save(tmp_path / "l.cgap")
    again = cg.Learner.load(tmp_path / "l.cgap")
    for step, x in enumerate(QUERIES):
        among = ARMS[step % 3 : step % 3 + 2]
        arms = [each.ask(x, arms=among) for each in (learner, again)]
        assert arms[0] == arms[1]
        for each in (learner, again):
            each.tell(x, arms[0], pay(x, arms[0]))
    assert sets_of(learner) == sets_of(again)
    assert learner.score() == again.score()
    assert saved(learner, tmp_path) == saved(again, tmp_path)


def test_files_without_masks_are_as_before(tmp_path):
    learner = taught()
    learner.ask([0.3])
    members = saved(learner, tmp_path)
    assert not any("eligible" in name for name in members)
    assert b'"version": 1' in members["header.json"]
    assert b"eligible" not in members["header.json"]
    learner.ask([0.3], arms=["a"])  # which older releases would pass over
    assert b'"version": 2' in saved(learner, tmp_path)["header.json"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda it: it.ask([0.1], arms=[]), ValueError, "at least one arm"),
        (lambda it: it.ask([0.1], arms=["z"]), ValueError, "arms must be among"),
        (lambda it: it.ask([0.1], arms=["b"]), ValueError, r"among \['a', 'c', 'd'\], got 'b'"),
        (lambda it: it.ask([0.1], arms="a"), TypeError, "arms must be labels"),
        (lambda it: it.ask(QUERIES, arms=[["a"]] * 3), ValueError, "each of 25 contexts, got 3"),
        (lambda it: it.ask(pool=QUERIES, arms=["z"]), ValueError, "arms must be among"),
        (lambda it: it.decide([0.1], arms=["z"]), ValueError, "arms must be among"),
        (lambda it: it.recommend([0.1], arms=["z"]), ValueError, "arms must be among"),
        (lambda it: it.rank([0.1], arms=["z"]), ValueError, "arms must be among"),
        (lambda it: it.rank(QUERIES), ValueError, "rank orders the arms at one context"),
        (
            lambda it: it.tell([0.1], "a", 1.0, eligible=["c", "d"]),
            ValueError,
            r"eligible must hold the arm that was tried, 'a', got \['c', 'd'\]",
        ),
        (
            lambda it: it.fit(QUERIES[:2], ["a", "b"], [1, 2], eligible=["a"]),
            ValueError,
            r"eligible must hold the arm that was tried, 'b' at row 1, got \['a'\]",
        ),
        (
            lambda it: it.tell([0.1], "a", 1.0, eligible=["z"]),
            ValueError,
            r"eligible must be among \['a', 'c', 'd', 'b'\], got 'z'",
        ),
        (
            lambda it: it.fit(QUERIES[:2], ["a", "a"], [1, 2], eligible=np.ones((2, 4), bool)),
            ValueError,
            r"eligible must be a mask of shape \(3,\) or \(2, 3\), got shape \(2, 4\)",
        ),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(call, error, message, tmp_path):
    learner = taught()
    learner.remove_arm("b")
    learner.ask([0.7], arms=["a", "c"])
    before = saved(learner, tmp_path)
    with pytest.raises(error, match=message):
        call(learner)
    assert saved(learner, tmp_path) == before


DEPLOYS_HIGHEST_MEAN = taught("uniform").freeze()


@settings(max_examples=40, deadline=None)
@given(
    small=st.sets(st.sampled_from(ARMS), min_size=1),
    more=st.sets(st.sampled_from(ARMS)),
    x=st.floats(-2, 2),
)
def test_more_eligible_arms_never_have_a_lower_highest_mean(small, more, x):
    few = DEPLOYS_HIGHEST_MEAN.rank([x], arms=small)
    many = DEPLOYS_HIGHEST_MEAN.rank([x], arms=small | more)
    assert {each.arm for each in few} == small
    assert many[0].mean >= few[0].mean
    if many[0].arm in small:
        assert few[0].arm == many[0].arm
        assert few[0].bound <= many[0].bound
