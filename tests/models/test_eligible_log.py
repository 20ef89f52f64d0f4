"""The log of eligible arms: in step with the observations, in memory and in files."""

import numpy as np
import pytest

from contextgap.models import Observations
from contextgap.models.observations import EligibleLog


def observed(count=6, n_arms=3):
    log = Observations(n_arms)
    log.extend(np.zeros((count, 1)), np.arange(count) % n_arms, np.zeros(count))
    return log


def sets(log):
    mask = log.eligible(np.arange(len(log)))
    return [tuple(np.flatnonzero(row).tolist()) for row in mask]


ALL = (0, 1, 2)


def test_observations_without_a_word_had_every_arm():
    log = observed()
    assert not log.has_eligible
    assert sets(log) == [ALL] * 6
    log.note_eligible(0, [None] * 6)
    assert not log.has_eligible


def test_sets_stand_where_they_were_noted():
    log = observed()
    log.note_eligible(2, [(1, 2), None])
    log.note_eligible(5, [(0, 2)])
    assert sets(log) == [ALL, ALL, (1, 2), ALL, ALL, (0, 2)]
    assert log.eligible(np.array([5, 2])).tolist() == [[True, False, True], [False, True, True]]


def test_a_new_arm_was_not_eligible_where_others_were_named():
    log = observed()
    log.note_eligible(5, [(0, 2)])
    log.add_arm()
    assert sets(log)[4:] == [(0, 1, 2, 3), (0, 2)]


def test_what_is_undone_is_forgotten():
    log = observed()
    log.note_eligible(4, [(1,), (2,)])
    kept = log.snapshot()
    log.truncate(5)
    log.append(np.zeros(1), 0, 0.0)
    assert sets(log) == [ALL] * 4 + [(1,), ALL]
    log.truncate(2)
    assert sets(Observations.restored(log.arrays(), 3)) == [ALL] * 2
    assert sets(kept) == [ALL] * 4 + [(1,), (2,)]


def test_files_hold_each_set_once():
    log = observed(60)
    log.note_eligible(0, [(0, 2), (1,), (0, 1, 2)] * 20)
    arrays = log.arrays()
    assert arrays["eligible"].shape == (3, 3)
    assert sets(Observations.restored(arrays, 3)) == sets(log)
    assert set(observed().arrays()) == {"contexts", "rewards", "sequence"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eligible": np.ones((1, 2), dtype=bool)}, "do not match the arms"),
        ({"eligible": np.ones((1, 3))}, "do not match the arms"),
        ({"eligible": np.ones((2, 3), dtype=bool)}, "there twice"),
        ({"eligible": np.array([[False, True, True]])}, "where it was not eligible"),
        ({"eligible_sequence": np.zeros(7, dtype=int)}, "does not match the observations"),
        ({"eligible_sequence": np.zeros(3)}, "does not match the observations"),
        ({"eligible_sequence": np.zeros((2, 2), dtype=int)}, "does not match the observations"),
        ({"eligible_sequence": np.array([1])}, "names a set that does not exist"),
        ({"eligible_sequence": np.array([-2])}, "names a set that does not exist"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, message):
    log = observed()
    log.note_eligible(0, [(0, 1, 2)] * 6)
    with pytest.raises(ValueError, match=message):
        EligibleLog.restored({**log.arrays(), **changes}, log.arms, 3)


def test_a_file_with_sets_but_no_sequence_or_the_reverse_is_refused():
    log = observed()
    log.note_eligible(0, [(0, 1, 2)])
    for name in ("eligible", "eligible_sequence"):
        arrays = log.arrays()
        del arrays[name]
        with pytest.raises(ValueError, match="eligible arms are not complete"):
            Observations.restored(arrays, 3)
