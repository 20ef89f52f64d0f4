"""The picture of a decision."""

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure

import contextgap as cg


def decided(arms):
    learner = cg.Learner(arms, kernel=cg.Gaussian(1.0), seed=0)
    rng = np.random.default_rng(0)
    for x in rng.normal(size=(12, 1)):
        learner.tell(x, learner.ask(x), float(rng.normal()))
    return learner.decide([0.3])


def test_draws_every_interval_and_marks_the_pick():
    decision = decided(["hull", "panel", "boom"])
    ax = cg.plot.decision(decision)
    intervals = [bars.get_children()[0].get_data() for bars in ax.containers]
    assert len(intervals) == 3
    for place, bars in enumerate(ax.containers):
        low, high = bars.lines[2][0].get_segments()[0][:, 1]
        np.testing.assert_allclose([low, high], [decision.lower[place], decision.upper[place]])
    (span,) = ax.patches
    middle = span.get_x() + span.get_width() / 2
    assert round(middle) == decision.arms.index(decision.arm)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0].startswith("leader")
    assert labels[-1] == "pick"


def test_draws_on_given_axes_and_with_many_arms(tmp_path):
    figure = Figure()
    ax = figure.add_subplot()
    assert cg.plot.decision(decided([f"a long name {i}" for i in range(20)]), ax) is ax
    figure.savefig(tmp_path / "decision.png")
    assert (tmp_path / "decision.png").stat().st_size > 5000


def test_notebooks_show_it():
    pyplot.close("all")
    ax = cg.plot.decision(decided(["hull", "panel"]))
    assert [pyplot.figure(number) for number in pyplot.get_fignums()] == [ax.figure]
    pyplot.close("all")


def test_draws_what_adds_to_a_difference():
    rng = np.random.default_rng(0)
    contexts, arms = rng.uniform(-1, 1, (40, 2)), rng.choice(["hull", "panel"], 40)
    learner = cg.Learner(["hull", "panel"], kernel=cg.Gaussian(0.7))
    learner.fit(contexts, arms, np.where(arms == "hull", contexts[:, 0], 0.0))
    found = learner.freeze().explain([0.5, 0.5], most=3)
    ax = cg.plot.explanation(found)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths[:3], [each.part for each in found.trials])
    np.testing.assert_allclose(sum(widths[:4]), found.difference)
    assert sorted(widths[4:]) == sorted(found.columns.values())
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[3] == "37 other trials"
    assert {"column 0", "column 1"} == set(names[4:])
    figure = Figure()
    given = figure.add_subplot()
    assert cg.plot.explanation(found, given) is given
