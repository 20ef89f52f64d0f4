"""Gaps, leaders and challengers, and the paper's two three-arm cases (section 4.3)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextgap as cg
from contextgap.beliefs import Belief, Decision, leader_and_challenger
from contextgap.methods.explorers import ContextualGap, KernelUCB, Moment
from contextgap.models import Posterior

intervals = st.lists(st.tuples(st.floats(-10, 10), st.floats(0, 5)), min_size=1, max_size=7).map(
    np.array
)


def belief(mean, half):
    mean, half = np.asarray(mean, dtype=float), np.asarray(half, dtype=float)
    return Belief(
        Posterior(mean, half, np.zeros_like(mean), 1.0, mean.shape[-1]), cg.PosteriorWidth(1.0)
    )


def from_bounds(lower, upper):
    lower, upper = np.array(lower), np.array(upper)
    return belief((lower + upper) / 2, (upper - lower) / 2)


def pick(explorer, beliefs):
    arms = len(beliefs.mean)
    moment = Moment(lambda: beliefs, np.ones(arms, dtype=int), arms + 1, np.random.default_rng(0))
    return explorer.pick(moment)


def test_case_1_of_the_paper():
    case = from_bounds([2.0, 5.0, 1.0], [8.0, 7.0, 4.0])
    np.testing.assert_allclose(case.gap, [5, 3, 7])
    assert (case.leader, case.challenger) == (1, 0)
    assert pick(ContextualGap(), case) == 0
    assert pick(KernelUCB(), case) == 0


def test_case_2_of_the_paper():
    case = from_bounds([4.0, 1.0, 4.0], [8.0, 7.0, 5.0])
    np.testing.assert_allclose(case.gap, [3, 7, 4])
    assert (case.leader, case.challenger) == (0, 1)
    assert pick(ContextualGap(), case) == 1
    assert pick(KernelUCB(), case) == 0


@given(intervals)
def test_gaps_by_their_definition(rows):
    found = belief(rows[:, 0], rows[:, 1])
    for arm in range(len(rows)):
        others = [found.upper[i] for i in range(len(rows)) if i != arm]
        expected = max(others) - found.lower[arm] if others else 0.0
        assert found.gap[arm] == pytest.approx(expected, abs=1e-12)
    rest = [i for i in range(len(rows)) if i != found.leader]
    assert found.leader == np.argmin(found.gap)
    if rest:
        assert found.challenger == max(rest, key=lambda i: (found.upper[i], -i))


@given(intervals)
def test_the_tried_arm_is_wider_than_the_smallest_gap(rows):
    """Corollary: B_J ≤ s_a for the arm a that Contextual-Gap pulls."""
    found = belief(rows[:, 0], rows[:, 1])
    arm = pick(ContextualGap(), found)
    assert found.gap.min() <= 2 * found.half_width[arm] + 1e-9


@given(st.lists(intervals.filter(lambda rows: len(rows) == 4), min_size=1, max_size=5))
def test_many_contexts_are_many_single_ones(tables):
    stacked = np.array(tables)
    many = belief(stacked[..., 0], stacked[..., 1])
    for row, table in enumerate(tables):
        one = belief(table[:, 0], table[:, 1])
        np.testing.assert_array_equal(many.gap[row], one.gap)
        assert many.leader[row] == one.leader
        assert many.challenger[row] == one.challenger


def test_ties_go_to_the_lowest_index():
    tied = belief([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    assert (tied.leader, tied.challenger) == (0, 1)
    assert pick(ContextualGap(), tied) == 0
    assert pick(KernelUCB(), tied) == 0


def test_a_decision_reads_as_a_table():
    case = from_bounds([2.0, 5.0, 1.0], [8.0, 7.0, 4.0])
    text = str(Decision.of(case, ("hull", "panel", "boom"), 0, "the wider one"))
    lines = text.splitlines()
    assert lines[0] == "hull: the wider one"
    assert lines[2].startswith("> hull")
    assert lines[2].endswith("challenger")
    assert lines[3].endswith("leader")
    assert max(map(len, lines)) <= 80


def test_a_decision_cannot_be_altered():
    decided = Decision.of(belief([1.0, 2.0], [1.0, 1.0]), ("a", "b"), 0, "")
    with pytest.raises(ValueError, match="read-only"):
        decided.mean[0] = 3
    with pytest.raises(AttributeError):
        decided.arm = "b"


@given(
    st.lists(
        st.tuples(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), st.sampled_from([0.0, 0.5, 1.5])),
        min_size=1,
        max_size=6,
    )
    | intervals
)
def test_leader_and_challenger_in_plain_python_are_those_of_a_belief(table):
    ours = belief(*np.array(table).T)
    expected = int(ours.leader), int(ours.challenger)
    assert leader_and_challenger(ours.lower, ours.upper) == expected
