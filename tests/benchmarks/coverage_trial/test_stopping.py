"""The stopping rule on problems that meet the theorem's assumptions."""

from coverage_trial.stopping import stopping_trial


def test_stopping_keeps_its_promise_and_saves_steps():
    table = stopping_trial(tolerance=1.0, budget=400, runs=4, failure_probability=0.1)
    assert table["seed"].tolist() == list(range(4))
    assert table["stopped"].all()
    assert (table["steps"] < 400).all()
    assert table["kept"].mean() >= 0.9
    assert (table["within"] >= 0.95).all()


def test_an_exploration_too_short_to_certify_says_so():
    table = stopping_trial(tolerance=0.01, budget=20, runs=2)
    assert not table["stopped"].any()
    assert (table["steps"] == 20).all()


def test_the_mean_certificate_is_low_enough_earlier():
    each, mean = (
        stopping_trial(tolerance=1.0, budget=400, runs=3, average=a) for a in (False, True)
    )
    assert mean["stopped"].all()
    assert mean["kept"].all()
    assert (mean["steps"] < each["steps"]).all()
