"""Pictures, against the numbers they show."""

from datetime import datetime

import numpy as np
import pandas
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import contextgap as cg
from contextgap.insight.plot import _colours as colours


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


def test_draws_what_was_learnt(typed_learner):
    ax = cg.plot.along(typed_learner, "load")
    assert [line.get_label() for line in ax.lines] == ["a", "b"]
    found = cg.insight.along(typed_learner, "load")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.mean[:, 0])
    assert len(cg.plot.along(typed_learner, "mode").containers) == 2
    ax = cg.plot.along(typed_learner, "when")
    assert ax.lines[0].get_xdata()[0].year == 2026
    bars = cg.plot.importance(typed_learner).patches
    assert max(bar.get_width() for bar in bars) > 20


def test_a_map_shows_arms_and_trials(typed_learner, tmp_path):
    ax = cg.plot.map(typed_learner, "load", "mode")
    found = cg.insight.area(typed_learner, "load", "mode")
    (mesh,) = ax.collections
    shown = np.asarray(mesh.get_array()).reshape(*found.best.shape, 3)
    for arm, colour in enumerate(colours(2)):
        pure, own = np.array(to_rgb(colour)), found.best == arm
        # Mixed with white, as much as there is doubt.
        white = ((shown[own] - pure) / (1 - pure)).mean(axis=-1)
        assert own.any()
        np.testing.assert_allclose(white, 0.8 * found.bound[own] / found.bound.max(), atol=1e-9)
    assert [text.get_text() for text in ax.get_yticklabels()] == list(found.ys)
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert 0 < len(dots) <= 60
    ax.figure.savefig(tmp_path / "map.png")


def test_progress_is_drawn_over_rewards(typed_learner):
    picks, settled, value = cg.plot.progress(typed_learner)
    found = cg.insight.progress(typed_learner)
    np.testing.assert_allclose(settled.lines[0].get_ydata(), 100 * found.settled)
    np.testing.assert_allclose(value.lines[0].get_ydata(), found.value)
    assert len(picks.collections) == 2


@pytest.fixture(scope="module")
def typed_learner():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "mode": rng.choice(["eco", "full"], 60),
            "load": rng.normal(size=60),
            "when": [datetime(2026, 1, 1 + int(day)) for day in rng.integers(0, 28, 60)],
        }
    )
    arms = rng.choice(["a", "b"], 60)
    rewards = ((arms == "a") == (frame["mode"] == "eco")) + 0.8 * rng.normal(size=60)
    return cg.Learner(["a", "b"], seed=0).fit(frame, arms, rewards)


@pytest.fixture(autouse=True)
def close():
    yield
    pyplot.close("all")


def test_what_cannot_be_drawn_is_said():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0))
    with pytest.raises(TypeError, match=r"learner\.decide\(context\)"):
        cg.plot.decision(learner)
    with pytest.raises(TypeError, match=r"policy\.explain\(context\)"):
        cg.plot.explanation(learner.decide([0.0]))


def test_draws_a_watch():
    rng = np.random.default_rng(0)
    contexts, arms = rng.uniform(-1, 1, (120, 2)), rng.choice(["hull", "panel"], 120)
    learner = cg.Learner(["hull", "panel"], kernel=cg.Gaussian(0.7))
    learner.fit(contexts, arms, np.where(arms == "hull", contexts[:, 0], 0.0))
    watch = learner.freeze().watch()
    watch.see(np.vstack([rng.uniform(-1, 1, (300, 2)), rng.uniform(1, 2, (100, 2))]))
    evidence, doubt, outside = cg.plot.watch(watch)
    line, level, alarm = evidence.lines
    np.testing.assert_array_equal(line.get_ydata(), watch.report().over_time["evidence"])
    assert level.get_ydata()[0] == pytest.approx(20)
    assert alarm.get_xdata()[0] == watch.alarm.row
    assert evidence.get_title().replace("\n", " ") == str(watch.alarm)
    assert len(doubt.lines) == len(outside.lines) + 4
    pyplot.close("all")
    with pytest.raises(TypeError, match="watch must be a Watch"):
        cg.plot.watch(learner)
