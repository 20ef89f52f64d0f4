"""Learners of tables as they are: categories, gaps, cycles and dates."""

from collections import Counter

import numpy as np
import pandas
import pytest

import contextgap as cg
from contextgap.kernels import Constant
from contextgap.kernels.categories import Spread

LEVELS = {"country": 4, "device": 3}


def log(count, seed, gaps=0.1):
    """A log of two arms; which is better depends on the country, the hour, and on gaps in x."""
    rng = np.random.default_rng(seed)
    country, device = (rng.integers(n, size=count) for n in LEVELS.values())
    hour, x = rng.uniform(0, 24, count), rng.normal(size=count)
    missing = rng.random(count) < gaps
    better = np.where(country % 2 == 0, 1.0, -1.0) * np.cos(2 * np.pi * hour / 24) + missing
    rewards = np.column_stack([better, -better]) + 0.1 * rng.normal(size=(count, 2))
    table = pandas.DataFrame(
        {
            "country": [f"c{each}" for each in country],
            "device": [f"d{each}" for each in device],
            "hour": hour,
            "x": np.where(missing, np.nan, x),
        }
    )
    return table, rewards, np.column_stack([better, -better])


COLUMNS = cg.Columns(
    country="category", device="category", hour=cg.Cyclic(24), x=cg.Number(missing=True)
)


def fitted(count=300, seed=0, **settings):
    table, rewards, _ = log(count, seed)
    arms = np.random.default_rng(seed).integers(2, size=count)
    learner = cg.Learner(["a", "b"], columns=COLUMNS, seed=0, **settings)
    return learner.fit(table, np.array(["a", "b"])[arms], rewards[np.arange(count), arms])


def regret(rule, seed=9):
    table, _, expected = log(1000, seed)
    places = (rule.recommend(table) == "b").astype(int)
    return float((expected.max(axis=1) - expected[np.arange(1000), places]).mean())


def test_a_log_is_learnt_from_as_it_is():
    learner = fitted()
    table, _, expected = log(1000, 9)
    single = expected.max(axis=1).mean() - expected.mean(axis=0).max()
    assert regret(learner) < 0.1 * single
    assert list(learner.columns) == list(table.columns)
    assert learner.columns["hour"] == cg.Cyclic(24)
    policy = learner.freeze()
    assert policy.kinds == learner.columns
    assert policy.columns == tuple(table.columns)


def test_a_loop_meets_levels_one_by_one():
    table, rewards, _ = log(240, 1)
    learner = cg.Learner(["a", "b"], columns=COLUMNS, seed=1)
    for place in range(len(table)):
        row = table.iloc[place].to_dict()
        arm = learner.ask(row)
        learner.tell(row, arm, rewards[place, "ab".index(arm)])
    _, _, expected = log(1000, 9)
    assert regret(learner) < 0.1 * (expected.max(axis=1).mean() - expected.mean(axis=0).max())


def test_the_posterior_is_that_of_columns_of_levels():
    table, rewards, _ = log(80, 2)
    typed = cg.Learner(
        2,
        kernel=cg.Gaussian.from_contexts(table) + 0.5 * Constant(),
        ridge=0.1,
        columns=cg.Columns(
            dict.fromkeys(LEVELS, "category"), hour="number", x=cg.Number(missing=True)
        ),
    )
    assert typed.kernel.left.categories == 2
    arms = np.arange(80) % 2
    typed.fit(table, arms, rewards[np.arange(80), arms])
    spread = Spread.of([typed._read(table).rows], typed.state.schema.layout)
    plain = cg.Learner(2, kernel=spread.of_columns(typed.kernel), ridge=0.1)
    plain.fit(spread.columns(typed._read(table).rows), arms, rewards[np.arange(80), arms])
    fresh, _, _ = log(30, 3)
    rows = spread.columns(typed._read(fresh).rows)
    for place in range(30):
        left, right = typed.decide(fresh.iloc[place]), plain.decide(rows[place])
        np.testing.assert_allclose(left.mean, right.mean, atol=1e-10)
        np.testing.assert_allclose(left.std, right.std, atol=1e-10)


def test_widths_grow_at_levels_never_met():
    learner = fitted()
    table, _, _ = log(200, 4, gaps=0.0)
    policy = learner.freeze()
    usual = np.mean([policy.decide(row).std for _, row in table.iterrows()])
    unseen = [policy.decide({**row, "country": "never"}).std for _, row in table.iterrows()]
    assert np.min(unseen) > usual
    both = [policy.decide({**table.iloc[0], "country": name}) for name in ("never", "nor this")]
    np.testing.assert_array_equal(both[0].mean, both[1].mean)


@pytest.mark.parametrize("told", [0, 1, 60])
def test_files_keep_columns_and_the_learner_goes_on_as_it_would(tmp_path, told):
    table, rewards, _ = log(90, 5)
    learner = cg.Learner(["a", "b"], columns=COLUMNS, seed=3)
    for place in range(told):
        row = table.iloc[place].to_dict()
        learner.tell(row, "ab"[place % 2], rewards[place, place % 2])
    learner.save(tmp_path / "l.cgap")
    again = cg.Learner.load(tmp_path / "l.cgap")
    assert again.columns == learner.columns
    for place in range(told, 90):
        row = table.iloc[place].to_dict()
        arm = learner.ask(row)
        assert again.ask(row) == arm
        for each in (learner, again):
            each.tell(row, arm, rewards[place, "ab".index(arm)])
    learner.freeze().save(tmp_path / "p.cgap")
    policy = cg.Policy.load(tmp_path / "p.cgap")
    np.testing.assert_array_equal(policy.recommend(table), learner.recommend(table))
    assert policy.kinds == learner.columns


def test_compressed_policies_know_the_columns():
    policy = fitted().freeze()
    table, _, _ = log(300, 6)
    smaller = policy.compress(points=40, contexts=table)
    assert smaller.kinds == policy.kinds
    assert np.mean(smaller.recommend(table) == policy.recommend(table)) > 0.9
    assert smaller.recommend({**table.iloc[0], "country": "never"}) in ("a", "b")


def test_stopping_rules_take_tables():
    table, rewards, _ = log(120, 7)
    rule = cg.StoppingRule(0.5, reference=table)
    learner = cg.Learner(["a", "b"], columns=COLUMNS, seed=0)
    settled = []
    for place in range(120):
        row = table.iloc[place].to_dict()
        learner.tell(row, "ab"[place % 2], rewards[place, place % 2])
        if place in (40, 119):
            settled.append(learner.settled(rule))
            assert learner.settled(cg.StoppingRule(0.5, reference=table)) == settled[-1]
    assert settled[-1] > 0.5


def test_a_kernel_that_takes_codes_for_numbers_is_refused():
    learner = cg.Learner(["a", "b"], columns=COLUMNS, kernel=cg.Gaussian(1.0) + cg.Linear())
    with pytest.raises(
        ValueError, match="kernel must see the last 2 numbers of a context as codes"
    ):
        learner.ask(log(1, 0)[0])


def test_a_pool_of_rows_gives_back_a_row_as_it_is():
    learner = fitted(60)
    table, _, _ = log(20, 8)
    row, arm = learner.ask(pool=table)
    assert arm in ("a", "b")
    assert row["country"].startswith("c")
    learner.tell(row, arm, 1.0)


def test_levels_never_met_are_outside_what_was_seen():
    policy = fitted().freeze(fallback="a")
    table, _, _ = log(50, 4, gaps=0.0)
    row = table.iloc[0].to_dict()
    assert policy.status(row) == 0
    for name in LEVELS:
        strange = {**row, name: "never"}
        assert policy.status(strange) == 2
        assert policy.recommend(strange) == "a"
        assert policy.decide(strange).reason == f"fallback: outside what was seen: {name!r}"


def test_levels_asked_about_but_never_told_are_outside_what_was_seen(tmp_path):
    learner = fitted(60, kernel=cg.Gaussian(1.0, categories=2))
    row = log(1, 4, gaps=0.0)[0].iloc[0].to_dict()
    strange = [{**row, "country": name} for name in ("asked", "told", "asked too")]
    arms = [learner.ask(each) for each in strange]
    learner.save(tmp_path / "l.cgap")
    for each in (learner, cg.Learner.load(tmp_path / "l.cgap")):
        each.tell(strange[1], arms[1], 1.0)
        assert each.pending == 2
        policy = each.freeze(fallback="a")
        assert policy.status(pandas.DataFrame(strange)).tolist() == [2, 0, 2]
        for level in ("asked", "told", "asked too"):
            assert (level in policy.state.schema.table.codings[0].levels) == (level == "told")
        each.tell(strange[0], arms[0], 1.0)
        each.tell(strange[2], arms[2], 1.0)
        assert each.pending == 0
        assert not each.freeze(fallback="a").status(pandas.DataFrame(strange)).any()


@pytest.mark.parametrize("sharing", [0.0, 0.5])
def test_levels_that_were_asked_about_first_change_no_belief(sharing):
    rng = np.random.default_rng(0)
    names = rng.permutation([f"level {place}" for place in range(12)])
    settings = {"columns": {"x": "category"}, "ridge": 0.1, "sharing": sharing, "seed": 0}
    kernel = cg.Gaussian(0.8, categories=1)
    curious, plain = (cg.Learner(2, kernel=kernel, **settings) for _ in range(2))
    waiting = Counter()
    for place in rng.permutation(len(names)):
        for name in rng.choice(names, size=2):
            waiting[name, curious.ask({"x": name})] += 1
        told = {"x": names[place]}
        waiting -= Counter([(names[place], place % 2)])
        for each in (curious, plain):
            each.tell(told, place % 2, float(place))
        believed = [each.freeze().decide(told) for each in (curious, plain)]
        np.testing.assert_allclose(believed[0].mean, believed[1].mean, atol=1e-12)
        np.testing.assert_allclose(believed[0].std, believed[1].std, atol=1e-12)
    for (level, arm), count in waiting.items():  # at the levels they were picked at
        curious.tell(pandas.DataFrame({"x": [level] * count}), [arm] * count, [0.0] * count)
    assert curious.pending == 0


def test_arms_may_be_eligible_at_rows_of_tables():
    learner = fitted()
    table, _, _ = log(40, 4)
    mask = np.random.default_rng(0).random((40, 2)) < 0.5
    mask[~mask.any(axis=1)] = True
    found = learner.recommend(table, arms=mask)
    assert all(mask[place, "ab".index(arm)] for place, arm in enumerate(found))


def test_an_irrelevant_category_fades_with_more_rewards():
    def bandwidths(count):
        rng = np.random.default_rng(count)
        table = pandas.DataFrame({name: rng.integers(n, size=count) for name, n in LEVELS.items()})
        arms = rng.integers(2, size=count)
        rewards = np.where((table["country"] % 2 == 0) == arms, 1.0, 0.0)
        rewards += 0.5 * rng.normal(size=count)
        kernel = cg.Gaussian.from_contexts(table.astype("category"))
        learner = cg.Learner(
            2, kernel=kernel, columns=dict.fromkeys(LEVELS, "category"), retune="doubling"
        ).fit(table, arms, rewards)
        return learner.kernel.kernel.bandwidth

    few, many = bandwidths(60), bandwidths(1000)
    assert many[1] > 2 * many[0]
    assert many[1] / many[0] > few[1] / few[0]


def test_an_agreement_counts_the_fallback():
    policy = fitted(120).freeze(fallback="a", tolerance=0.3)
    table, _, _ = log(400, 6)
    smaller = policy.compress(points=20, contexts=table)
    same = np.mean(smaller.recommend(table) == policy.recommend(table))
    assert smaller.compression.agreement == pytest.approx(same, abs=0.1)


REFERENCES = {
    "table": lambda table: table[table.columns[::-1]].assign(surplus="s"),
    "rows by name": lambda table: table[::-1].to_dict("records"),
    "rows of cells": lambda table: table.to_numpy(dtype=object).tolist(),
}


@pytest.mark.parametrize("written", REFERENCES)
def test_references_are_read_as_contexts_are(written, tmp_path):
    """They are the contexts met so far, which the knowledge gradient uses of its own accord."""
    table, rewards, _ = log(40, 0)
    table["when"] = pandas.date_range("2024-01-01", periods=40, tz="UTC")
    columns = {**COLUMNS, "when": "date"}
    given = cg.explorers.KnowledgeGradient(references=REFERENCES[written](table[:30]))
    if written == "table":
        given = cg.explorers.KnowledgeGradient(references=given.references, columns=given.columns)
    settings = {"kernel": cg.Gaussian(1.0, categories=2), "ridge": 0.1, "seed": 0}
    picks = []
    for method in (cg.explorers.KnowledgeGradient(), given):
        learner = cg.Learner(["a", "b"], columns=columns, method=method, **settings)
        learner.fit(table[:30], ["a", "b"] * 15, rewards[:30, 0])
        learner.save(tmp_path / "l.cgap")
        learner = cg.Learner.load(tmp_path / "l.cgap")
        gains = []
        for place in range(30, 40):
            row = {**table.iloc[place].to_dict(), "country": f"new {place}"}
            intake = learner._read(row)
            moment = learner._view(intake.schema, learner.state.pending).moment(intake.rows[0])
            gains.append(learner.method.explorer.gain(moment))
        picks.append((np.array(gains), learner.ask(pool=table[30:])[1]))
    # Its own references are the contexts met and the current one; the given ones are the former.
    assert picks[0][1] in ("a", "b")
    here = picks[0][0] * 31 - picks[1][0] * 30
    assert (here >= -1e-12).all()
    local = cg.explorers.KnowledgeGradient(local=True)
    np.testing.assert_allclose(here[-1], local.gain(moment), rtol=1e-6, atol=1e-9)


def test_references_that_do_not_fit_are_named():
    def asked(references):
        explorer = cg.explorers.KnowledgeGradient(references=references)
        learner = cg.Learner(2, columns=COLUMNS, method=explorer, burn_in=0)
        return learner.ask(log(1, 0)[0])

    table, _, _ = log(20, 0)
    with pytest.raises(ValueError, match="references lack the column 'hour'"):
        asked(table.drop(columns="hour"))
    with pytest.raises(ValueError, match="references must have 4 cells each"):
        asked(np.zeros((3, 6)))
    with pytest.raises(TypeError, match="must have a number in column 'hour', got 'noon'"):
        asked([["c0", "d0", "noon", 1.0]])


@pytest.mark.parametrize("written", REFERENCES)
def test_stopping_rules_take_what_learners_take(written):
    table, rewards, _ = log(60, 7)
    learner = cg.Learner(["a", "b"], columns=COLUMNS, seed=0)
    learner.fit(table, ["a", "b"] * 30, rewards[:, 0])
    rule = cg.StoppingRule(0.5, reference=REFERENCES[written](table))
    wanted = (learner.freeze().certificate(table).bound <= 0.5).mean()
    assert learner.settled(rule) == pytest.approx(wanted)


def test_a_reference_of_numbers_is_matched_by_name():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"hour": rng.uniform(0, 24, 60), "x": rng.normal(size=60)})
    columns = {"x": "number", "hour": cg.Cyclic(24)}
    learner = cg.Learner(2, columns=columns, kernel=cg.Gaussian(1.0), seed=0)
    learner.fit(table, [0, 1] * 30, rng.normal(size=60))
    bound = learner.freeze().certificate(table).bound
    rule = cg.StoppingRule(0.1, reference=table)
    assert 0 < learner.settled(rule) < 1
    assert learner.settled(rule) == pytest.approx((bound <= 0.1).mean())


def test_models_of_tables_are_compared_on_the_same_evidence():
    """Rewards that are mostly noise cannot make any model hundreds of nats better than another."""
    rng = np.random.default_rng(3)
    table = pandas.DataFrame({"a": rng.choice(["x", "y"], 600), "b": rng.choice(["u", "v"], 600)})
    rewards = 0.1 * (table["a"] == "x") + rng.normal(size=600)
    tuning = cg.Learner(2).fit(table, rng.integers(2, size=600), rewards).tuning
    searched = [each for each in tuning.candidates if each.name != "cautious"]
    assert all(abs(candidate.advantage) < 20 for candidate in searched)


@pytest.mark.parametrize("how", [{"kernel": cg.Gaussian(1.0), "ridge": 0.1}, {}])
def test_gaps_that_come_before_the_first_number_are_as_if_it_had_been_known(how):
    kinds = cg.Columns(t=cg.Number(missing=True), when=cg.Date(("week",), missing=True), v="number")
    gap, number = {"t": None, "when": None, "v": 1.0}, {"t": 900.0, "when": "2024-05-03", "v": 2.0}
    learners = [cg.Learner(["x", "y"], columns=kinds, seed=0, **how) for _ in range(2)]
    first, knowing = learners
    knowing.add_pending(number, "y")
    knowing.cancel(number, "y")
    for learner in learners:
        learner.add_pending(gap, "y")
        for reward in (5.0, 4.0, 5.0):
            learner.tell(gap, "x", reward)
        learner.tell(number, "y", 1.0)
    assert first.recommend(gap) == knowing.recommend(gap) == "x"
    rows = [learner.state.model.observed.contexts for learner in learners]
    np.testing.assert_array_equal(*rows)
    assert rows[0][0, 0] == 900.0
    bounds = [learner.freeze().certificate(gap).bound for learner in learners]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)
    for learner in learners:
        learner.cancel(gap, "y")
        assert learner.pending == 0
