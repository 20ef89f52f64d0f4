"""Calls that once gave a wrong answer without a word."""

import io

import numpy as np
import pandas as pd
import pytest

import contextgap as cg


def taught(arms=("a", "b"), rows=60, seed=0, **settings):
    """A learner that was told from an array without names; the arm is best where x is high."""
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(size=(rows, 2))
    picked = rng.integers(len(arms), size=rows)
    rewards = np.where(picked == 0, contexts[:, 0], 1 - contexts[:, 0])
    settings = {"kernel": cg.Gaussian(0.3), "seed": 0, **settings}
    return cg.Learner(arms, **settings).fit(contexts, [arms[i] for i in picked], rewards)


def content(learner):
    file = io.BytesIO()
    learner.save(file)
    return file.getvalue()


class TestNames:
    """Contexts by name, where what was learnt has no names."""

    NAMED = (
        {"y": 0.1, "x": 0.9},
        pd.Series({"y": 0.1, "x": 0.9}),
        pd.DataFrame({"y": [0.1], "x": [0.9]}),
        [{"y": 0.1, "x": 0.9}],
    )

    @pytest.mark.parametrize("context", NAMED, ids=lambda x: type(x).__name__)
    def test_are_refused(self, context):
        for one in (taught(), taught().freeze()):
            with pytest.raises(ValueError, match=r"no names to match.*with_columns"):
                one.recommend(context)

    @pytest.mark.parametrize("context", NAMED, ids=lambda x: type(x).__name__)
    def test_are_matched_once_given(self, context, tmp_path):
        policy = taught().freeze()
        assert policy.recommend([0.9, 0.1]) == "a"
        named = policy.with_columns(["x", "y"])
        named.save(tmp_path / "p.cgap")
        before = taught(columns=["x", "y"])
        for one in (named, cg.Policy.load(tmp_path / "p.cgap"), before, before.freeze()):
            assert np.ravel(one.recommend(context)).tolist() == ["a"]
            assert one.recommend([0.9, 0.1]) == "a"
        assert policy.columns is None

    def test_numbers_of_columns_are_not_names(self):
        frame = pd.DataFrame(np.array([[0.9, 0.1], [0.1, 0.9]]))
        assert taught().freeze().recommend(frame).tolist() == ["a", "b"]

    def test_given_before_anything_was_told_survive_a_file(self, tmp_path):
        cg.Learner(["a", "b"], columns=["x", "y"]).save(tmp_path / "l.cgap")
        learner = cg.Learner.load(tmp_path / "l.cgap")
        with pytest.raises(ValueError, match=r"2 numbers each.*'x', 'y'.*got 3"):
            learner.ask([0.1, 0.2, 0.3])
        learner.tell({"y": 1.0, "x": 2.0}, "a", 0.5)
        assert list(learner.columns) == ["x", "y"]
        assert learner.recommend([2.0, 1.0]) == "a"

    def test_a_list_of_names_leaves_kinds_to_the_first_table(self):
        learner = cg.Learner(["a", "b"], columns=["mode", "x"])
        rows = pd.DataFrame({"x": [0.1, 0.2], "id": [7, 8], "mode": ["eco", "turbo"]})
        learner.tell(rows, ["a", "b"], [0.0, 1.0])
        assert dict(learner.columns) == {"mode": cg.Category(), "x": cg.Number()}

    def test_that_do_not_fit(self):
        policy = taught().freeze()
        with pytest.raises(ValueError, match=r"2 names.*got 3"):
            policy.with_columns(["x", "y", "z"])
        with pytest.raises(ValueError, match="names already: "):
            policy.with_columns(["x", "y"]).with_columns(["x", "y"])
        for wrong in ("xy", [], [1, 2], 3):
            with pytest.raises(TypeError, match="list of names"):
                cg.Learner(2, columns=wrong)
        with pytest.raises(ValueError, match="different names"):
            policy.with_columns(["x", "x"])


class TestPendingPicks:
    """What is reported rests on rewards told."""

    @pytest.mark.parametrize(
        "width", [cg.PosteriorWidth(2.0), cg.TheoremWidth(2.0, 0.1, 0.05)], ids=str
    )
    def test_leave_reported_intervals_alone(self, width):
        learner, new = taught(width=width, method="contextual-gap"), [3.0, 3.0]
        before = learner.decide(new)
        assert before.pending == 0
        assert before.pending_std is None
        for _ in range(41):  # odd, so that the two arms are not tied
            learner.ask(new)
        after = learner.decide(new)
        for name in ("mean", "std", "lower", "upper", "gap"):
            assert getattr(after, name).tobytes() == getattr(before, name).tobytes()
        assert (after.leader, after.challenger) == (before.leader, before.challenger)
        assert after.pending == 41
        assert after.pending_std.max() < 0.2 * before.std.min()
        assert "41 pending" in str(after)
        assert after.arm == learner.ask(new)

    def test_answered_by_a_context_that_lost_digits(self):
        learner = cg.Learner(3, kernel=cg.Gaussian(0.5), seed=1)
        contexts = np.random.default_rng(2).normal(size=(120, 2))
        arms = learner.ask(contexts)
        table = pd.read_csv(io.StringIO(pd.DataFrame(contexts).to_csv(float_format="%.4f")))
        with pytest.warns(UserWarning, match=r"120 of 120 contexts told .* only when rounded"):
            learner.tell(table.to_numpy()[:, 1:], arms, np.zeros(120))
        assert learner.pending == 0

    def test_answered_in_single_precision(self):
        learner = cg.Learner(2, kernel=cg.Gaussian(0.5))
        context = np.random.default_rng(3).normal(size=5)
        arm = learner.ask(context)
        with pytest.warns(UserWarning, match="1 of 1 contexts"):
            learner.tell(context.astype(np.float32), arm, 1.0)
        assert learner.pending == 0

    def test_elsewhere_stay_pending(self):
        learner = cg.Learner(2, kernel=cg.Gaussian(0.5))
        arm = learner.ask([0.4637, 1.0])
        learner.tell([0.5, 1.0], arm, 1.0)  # too few digits to be the same place, rounded
        learner.tell([0.4638, 1.0], arm, 1.0)
        assert learner.pending == 1


class TestFailedAsk:
    """A failed ask changes nothing."""

    @pytest.mark.parametrize("method", ["kernel-ts", "epsilon-greedy", "gain-or-gap"])
    def test_of_a_batch(self, monkeypatch, method):
        learner = taught(method=method)
        self.interrupt(learner, monkeypatch, at=5, call=lambda: learner.ask(np.eye(8, 2)))

    @pytest.mark.parametrize("burn_in", [1, 99])
    @pytest.mark.parametrize("method", ["kernel-ts", "gain-or-gap"])
    def test_from_a_pool(self, monkeypatch, method, burn_in):
        learner = taught(method=method, burn_in=burn_in)
        self.interrupt(learner, monkeypatch, at=1, call=lambda: learner.ask(pool=np.eye(8, 2)))

    @staticmethod
    def interrupt(learner, monkeypatch, at, call):
        """Interrupt a call after some picks were made; nothing may have changed."""
        before = content(learner)
        add, count = type(learner.state.pending).add, iter(range(at))

        def interrupted(*args):
            add(*args)
            if next(count) == at - 1:
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(type(learner.state.pending), "add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                call()
        assert content(learner) == before
        assert learner.pending == 0


class TestOnce:
    """Pairs of context and arm that are tried once."""

    @pytest.mark.parametrize("method", ["gain-or-gap", "uniform", "contextual-gap", "kernel-ts"])
    def test_no_pair_is_repeated_until_none_is_left(self, method):
        pool = np.linspace(0, 1, 12)[:, None]
        learner = cg.Learner(3, kernel=cg.Gaussian(0.2), method=method, burn_in=2, seed=0)
        learner.tell(pool[4], 1, 0.0)
        pairs = set()
        for step in range(35):
            row, arm = learner.ask(pool=pool, once=True, index=True)
            assert type(row) is int
            pairs.add((row, arm))
            if step % 2:  # the others stay pending
                learner.tell(pool[row], arm, float(np.sin(arm + pool[row, 0])))
        assert len(pairs) == 35
        assert (4, 1) not in pairs
        with pytest.raises(ValueError, match="every arm was tried at every context"):
            learner.ask(pool=pool, once=True)

    def test_among_the_eligible_arms(self):
        pool = np.linspace(0, 1, 5)[:, None]
        learner = cg.Learner(list("abc"), kernel=cg.Gaussian(0.2), seed=0)
        pairs = [learner.ask(pool=pool, arms=["a", "c"], once=True) for _ in range(10)]
        assert len({(float(x[0]), arm) for x, arm in pairs}) == 10
        assert {arm for _, arm in pairs} == {"a", "c"}

    def test_needs_a_pool(self):
        with pytest.raises(TypeError, match="give pool= too"):
            cg.Learner(2).ask([0.1], once=True)


class TestMessages:
    """Mistakes in calls are named together with what to call."""

    def test_arms_before_contexts(self):
        learner = taught()
        for call in (
            lambda: learner.tell("a", [0.1, 0.2], 0.3),
            lambda: learner.tell(["a", "b"], [[0.1, 0.2], [0.3, 0.4]], [0.3, 0.4]),
            lambda: learner.fit(["a", "b"], np.zeros((2, 2)), [0.3, 0.4]),
            lambda: cg.Learner(3).tell(2, [0.1, 0.2], 0.3),
        ):
            with pytest.raises(TypeError, match="the order is context, arm, reward"):
                call()
        numbers = cg.Learner(3)
        numbers.tell(1, 2, 0.5)  # contexts of one number may look like arms
        numbers.tell([[0], [1]], [1, 2], [0.5, 0.6])
        assert numbers.counts == {0: 0, 1: 1, 2: 2}

    def test_names_of_arguments_and_methods(self):
        learner = taught()
        with pytest.raises(TypeError, match=r"no argument 'context'; call ask\(context\)"):
            learner.ask(context=[0.1, 0.2])
        with pytest.raises(TypeError, match="no argument 'contxts'"):
            learner.ask(contxts=[0.1, 0.2])
        for name in ("explain", "certificate"):
            with pytest.raises(AttributeError, match=rf"learner.freeze\(\).{name}"):
                getattr(learner, name)
        assert not hasattr(learner, "nonsense")

    def test_text_rewards(self):
        for call in (
            lambda: taught().tell([0.1, 0.2], "a", "yes"),
            lambda: taught().fit([[0.1, 0.2]], ["a"], ["yes"]),
        ):
            with pytest.raises(TypeError, match=r"got 'yes'.*yes, no, true and false"):
                call()

    def test_fit_with_one_number_per_context(self):
        with pytest.raises(ValueError, match=r"x\[:, None\]"):
            cg.Learner(2).fit(np.arange(4.0), [0, 1, 0, 1], np.zeros(4))
