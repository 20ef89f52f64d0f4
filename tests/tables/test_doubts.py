"""Columns that are probably not context are named in a warning, others are not."""

import warnings

import numpy as np
import pandas
import pytest

import contextgap as cg
from contextgap.tables.contexts import warn_of_doubts

RNG = np.random.default_rng(5)
COUNT = 60
REWARDS = RNG.integers(2, size=COUNT).astype(float)
HARMLESS = {
    "x": RNG.normal(size=COUNT),
    "country": RNG.choice(["DE", "FR"], size=COUNT),
    "day": pandas.date_range("2024-01-01", periods=COUNT, freq="h"),
    "written": [f"2024-01-{1 + place % 28:02}T{place:02}" for place in range(24)]
    + ["2024-02-01"] * 36,
}


def told(**columns):
    table = pandas.DataFrame({**HARMLESS, **columns})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel = cg.Gaussian.from_contexts(table)  # so that nothing is tuned
        cg.Learner(2, kernel=kernel).fit(table, np.arange(COUNT) % 2, REWARDS)
    return [str(each.message) for each in caught], {each.filename for each in caught}


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ([f"user {place}" for place in range(COUNT)], "as an id has"),
        (np.arange(COUNT) + 17, "numbers the rows"),
        (np.full(COUNT, 3.0), "same value in every row"),
        (["DE"] * COUNT, "same value in every row"),
        (3 * REWARDS - 1, "predicts the reward perfectly"),
        (np.where(REWARDS == 1, "won", "lost"), "predicts the reward perfectly"),
        (REWARDS + 0.01 * RNG.normal(size=COUNT), "orders 100 % of pairs of rows"),
    ],
)
def test_what_is_doubtful_is_named(column, text):
    messages, files = told(odd=column)
    assert len(messages) == 1
    assert "'odd'" in messages[0]
    assert text in messages[0]
    assert files == {__file__}


def test_what_is_usual_is_not():
    assert told() == ([], set())
    assert told(noisy=REWARDS + RNG.normal(size=COUNT)) == ([], set())


ARMS = RNG.integers(3, size=400)
X = RNG.uniform(size=400)
COSTS = X * np.array([1.0, 1.2, 1.5])[ARMS]


def doubts(column, rewards, arms=ARMS):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_doubts(pandas.DataFrame({"odd": column}), ["odd"], rewards, arms)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    "column",
    [
        np.where(COSTS > 0.5, "dear", "cheap"),
        COSTS > 0.9,
        np.array(list("abcde"))[np.digitize(COSTS, [0.2, 0.4, 0.6, 0.8])],
        np.log(1 + COSTS),
        -np.round(COSTS, 1),
    ],
)
def test_what_was_computed_from_the_reward_is_named_with_what_was_measured(column):
    (message,) = doubts(column, COSTS)
    assert "orders 100 % of pairs of rows as the reward of all arms does" in message


def test_a_verdict_with_few_mistakes_is_named():
    verdict = COSTS > 0.5
    near = np.argsort(abs(COSTS - 0.5))[:8]
    verdict[near[::2]] ^= True
    (message,) = doubts(verdict, COSTS)
    assert 99.5 <= float(message.split("orders ")[1].split(" %")[0]) < 100
    wrong = RNG.choice(400, 20)
    verdict[wrong] ^= True
    assert doubts(verdict, COSTS) == []


def test_a_context_that_decides_much_is_not_doubted():
    assert doubts(X, COSTS) == []  # without noise, but arms differ
    assert doubts(X, X, np.zeros(400, dtype=int)) == [
        "the column 'odd' predicts the reward "
        "perfectly, as an outcome does that is not known beforehand; leave it out if it is not "
        "context"
    ]
    assert doubts(X, np.sin(X), np.zeros(400, dtype=int)) == []  # one arm tells nothing
    express = RNG.integers(2, size=400)
    assert doubts(express, 10 * express + COSTS) == []
    country = RNG.integers(4, size=400)
    assert doubts(np.array(list("abcd"))[country], 10 * country + COSTS) == []
    table = RNG.normal(size=(4, 3))
    assert doubts(np.array(list("abcd"))[country], table[country, ARMS]) == []


CLICKED = RNG.uniform(size=400) < np.array([0.1, 0.2, 0.3])[ARMS]
DWELL = RNG.exponential(30, size=400)


@pytest.mark.parametrize(
    "column",
    [
        np.where(CLICKED, DWELL, np.nan),
        np.where(CLICKED, np.nan, DWELL),
        [f"thanks {place}" if clicked else None for place, clicked in enumerate(CLICKED)],
    ],
)
def test_a_column_that_is_filled_by_the_outcome_is_named(column):
    (message,) = doubts(column, CLICKED.astype(float))
    assert (
        "'odd' has missing values, and where they are predicts the reward perfectly, as an"
        in message
    )


def test_a_column_that_is_filled_above_a_threshold_is_named():
    (message,) = doubts(np.where(COSTS > 0.5, DWELL, np.nan), COSTS)
    assert "has missing values, and where they are orders 100 % of pairs of rows" in message


def test_gaps_that_are_known_beforehand_are_not_doubted():
    clicked = CLICKED.astype(float)
    assert doubts(np.where(RNG.uniform(size=400) < 0.5, DWELL, np.nan), clicked) == []
    new = RNG.uniform(size=400) < 0.4  # customers, who never click and have no history
    assert doubts(np.where(new, np.nan, DWELL), np.where(new, 0.0, clicked)) == []
    assert doubts(np.where(new, np.nan, DWELL), 10 * new + COSTS) == []
    assert doubts(np.where(X > 0.5, DWELL, np.nan), COSTS) == []  # a sensor with a range
    once = np.arange(400) == 7  # one gap and one success may meet by chance
    assert doubts(np.where(once, np.nan, DWELL), once.astype(float)) == []


@pytest.mark.parametrize(
    "column",
    [
        ARMS,
        np.array([0.5, 0.5, 7.0])[ARMS],
        np.array(["red", "green", "blue"])[ARMS],
        np.array([None, "green", "blue"])[ARMS],
    ],
)
def test_a_copy_of_the_arm_is_named(column):
    (message,) = doubts(column, COSTS)
    assert "'odd' is the same wherever an arm was tried, as a copy of the arm is" in message
    (message,) = doubts(column, np.array([1.0, 2.0, 3.0])[ARMS])  # rewards that are the arm's
    assert "a copy of the arm" in message


def test_a_context_by_which_arms_were_preferred_is_no_copy():
    assert doubts(np.where(RNG.uniform(size=400) < 0.98, ARMS, 0), COSTS) == []
    assert doubts(ARMS == 0, COSTS, np.zeros(400, dtype=int)) == []  # one arm has no copy
    rare = np.repeat([0, 1], [396, 4])
    assert doubts(rare, COSTS, rare) == []  # few rows may be alike by chance


@pytest.mark.parametrize("name", ["digits", "wine", "breast_cancer", "iris"])
def test_clean_classes_are_not_doubted(name):
    problem = cg.problems.Classification(name).sample(140, seed=0)
    arms = RNG.integers(len(problem.arms), size=140)
    rewards = problem.rewards[np.arange(140), arms]
    for column in problem.contexts.T:
        assert not any("orders" in each for each in doubts(column, rewards, arms))


def test_chance_is_not_doubted():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rewards, arms = rng.normal(size=30), rng.integers(2, size=30)
        assert doubts(rng.uniform(size=30) < 0.2, rewards, arms) == []
        assert doubts(rng.normal(size=30), rewards, arms) == []
        gaps = np.where(rng.uniform(size=30) < rng.uniform(), np.nan, rng.normal(size=30))
        if not np.isnan(gaps).all():
            assert doubts(gaps, rewards, arms) == []
            assert doubts(gaps, (rewards > 0).astype(float), arms) == []


def test_nothing_changes_where_a_warning_is_an_error():
    learner = cg.Learner(2)
    table = pandas.DataFrame({"x": np.zeros(COUNT)})
    with pytest.raises(UserWarning, match="same value"):
        learner.fit(table, np.arange(COUNT) % 2, REWARDS)
    assert learner.columns is None
    assert "0 observations" in repr(learner)


def test_numbers_as_text_are_named_unless_they_were_called_a_category():
    numbers = [f"{x:.2f}".replace(".", ",") for x in RNG.uniform(size=COUNT)]
    messages, _ = told(odd=numbers)
    assert "the column 'odd' holds numbers as text" in messages[-1]
    assert told(dose=RNG.choice(["5 mg", "10 mg"], size=COUNT)) == ([], set())
    table = pandas.DataFrame({"dose": RNG.choice(["5", "10", "20"], size=COUNT)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = cg.Learner(2, columns={"dose": cg.Category()}, retune="never")
        learner.fit(table, np.arange(COUNT) % 2, REWARDS)


def test_placeholders_far_beyond_all_values_are_named():
    load = RNG.normal(size=COUNT)
    load[[3, 8]] = -9999
    messages, _ = told(load=load)
    assert messages == [
        "the column 'load' has values far beyond all others, 2 of them, such as -9999; make them "
        "missing (NaN) if they stand for missing ones"
    ]


def test_code_without_a_name_is_warned_as_well():
    table = pandas.DataFrame({**HARMLESS, "odd": np.arange(COUNT)})
    known = {"learner": cg.Learner(2, kernel=cg.Gaussian.from_contexts(table)), "table": table}
    known |= {"arms": np.arange(COUNT) % 2, "rewards": REWARDS}
    with pytest.warns(UserWarning, match="numbers the rows"):
        exec("learner.fit(table, arms, rewards)", known)


@pytest.mark.parametrize("slip", ["soon", "2024-02-30", "01/05/2024"])
def test_dates_that_are_not_read_as_dates_are_named(slip):
    days = [f"2024-01-{1 + place % 28:02}" for place in range(COUNT - 1)]
    messages, _ = told(odd=[*days, slip])
    assert len(messages) == 1
    assert f"holds dates as text, but also {slip!r}" in messages[0]
    assert told(odd=[*days, ""]) == ([], set())


def test_dates_as_others_write_them_are_named():
    messages, _ = told(odd=[f"{1 + place % 12:02}/07/2024" for place in range(COUNT)])
    assert ["holds dates as text" in message for message in messages] == [True]


def test_numbers_that_are_one_float_are_one_value():
    messages, _ = told(odd=2**60 + np.arange(COUNT) % 7)
    assert ["same value in every row" in message for message in messages] == [True]


def told_array(values, arms=2, **how):
    """Return what is warned of when a log with one column of numbers is told, at once or singly."""
    contexts = np.column_stack([values, RNG.normal(size=len(values))])
    labels = np.arange(len(values)) % arms
    learner = cg.Learner(arms, kernel=cg.Gaussian(1.0), **how)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(contexts, labels, RNG.normal(size=len(values)))
    return [str(each.message) for each in caught], learner


def test_values_far_beyond_all_others_are_named_in_arrays():
    usual = RNG.normal(size=COUNT)
    assert told_array(usual)[0] == []
    far = usual.copy()
    far[7] = 1e50
    assert told_array(far)[0] == [
        "column 0 has values far beyond all others, 1 of them, such as 1e+50; leave out their rows "
        "if they stand for missing ones"
    ]


def test_a_single_context_far_beyond_all_others_is_named():
    for learner in (told_array(RNG.normal(size=COUNT))[1], cg.Learner(2, kernel=cg.Gaussian(1.0))):
        for _ in range(COUNT):
            learner.tell(RNG.normal(size=2), 0, 0.5)
        with pytest.warns(UserWarning, match=r"^column 1 has values far beyond .* such as 1e\+50;"):
            learner.tell([0.0, 1e50], 1, 0.5)
        learner.tell([3.0, -4.0], 1, 0.5)
        table = np.array([[0.0, 0.0], [-1e9, 0.0]])
        with pytest.warns(UserWarning, match="column 0 has values far beyond"):
            learner.tell(table, [0, 1], [0.5, 0.5])


def test_first_contexts_are_judged_when_there_are_enough():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0))
    for number in range(30):
        learner.tell([RNG.normal() if number != 4 else 1e50], 0, 0.5)
    with pytest.warns(UserWarning, match="column 0 has values far beyond all others, 1 of them"):
        learner.tell([0.0], 0, 0.5)
    learner.tell([0.0], 0, 0.5)


def test_single_rows_of_a_table_are_named_by_column_and_categories_are_not():
    table = pandas.DataFrame(
        {"x": RNG.normal(size=COUNT), "country": ["DE", "DE", "FR", "FR"] * (COUNT // 4)}
    )
    learner = cg.Learner(2, retune="never").fit(table, np.arange(COUNT) % 2, REWARDS)
    learner.tell({"x": 0.5, "country": "IT"}, 0, 1.0)
    with pytest.warns(
        UserWarning, match=r"^the column 'x' has values far .*make them missing \(NaN\)"
    ):
        learner.tell({"x": -1e6, "country": "IT"}, 0, 1.0)


def test_contexts_that_drift_or_grow_are_not_doubted():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0))
    for number in range(300):
        learner.tell([number, np.exp(RNG.normal()), number % 50 == 49], number % 2, 0.5)


def test_one_arm_only_is_named():
    contexts = RNG.normal(size=(COUNT, 1))
    with pytest.warns(
        UserWarning, match="all 60 rows tried the arm 'a': nothing is known of other"
    ):
        cg.Learner(["a", "b"], kernel=cg.Gaussian(1.0)).fit(contexts, ["a"] * COUNT, REWARDS)
    cg.Learner(["a"], kernel=cg.Gaussian(1.0)).fit(contexts, ["a"] * COUNT, REWARDS)


@pytest.mark.parametrize("other", ["Oil", "oil ", "o il"])
def test_an_arm_that_is_another_by_case_or_spaces_is_named(other):
    contexts, arms = RNG.normal(size=(COUNT, 1)), ["oil", "gas"] * (COUNT // 2)
    labels = ["oil", "gas", other, "Gas oil"]
    cg.Learner(labels, kernel=cg.Gaussian(1.0)).fit(contexts, arms, REWARDS)
    arms[5] = other
    with pytest.warns(UserWarning, match=f"the arm '{other}' was tried once, and 'oil' 30 times"):
        cg.Learner(labels, kernel=cg.Gaussian(1.0)).fit(contexts, arms, REWARDS)


CHANCES = np.array([0.2, 0.3, 0.5])
LOGGED = np.random.default_rng(3).choice(3, size=400, p=CHANCES)


def named_doubts(name, column, arms=LOGGED):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_doubts(pandas.DataFrame({name: column}), [name], COSTS, arms)
    return [str(each.message) for each in caught]


def test_a_propensity_left_in_as_context_is_named():
    exact = CHANCES[LOGGED]
    for name in ("propensity", "p", "Prob", "action_prob", "pscore"):
        (message,) = named_doubts(name, exact)
        assert (
            f"the column {name!r} seems to hold the probabilities with which arms were" in message
        )
        assert "--propensity" in message
    (message,) = named_doubts("propensity", np.clip(exact + 0.1 * X, 0, 1))  # by context, too
    assert "seems to hold the probabilities" in message


def test_other_probabilities_are_no_propensities():
    for name, column in (
        ("probability", X),  # of rain: its inverse does not average to the number of arms
        ("score", 1 + 9 * X),
        ("prob", np.where(X > 0.5, "high", "low")),
        ("rain", 0.2 + 0.5 * X),
        ("propensity", 3 * X - 1),
    ):
        assert named_doubts(name, column) == []
