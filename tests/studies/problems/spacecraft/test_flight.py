from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contextgap.studies.problems.spacecraft import Flight

FACTS = ("time", "sunlit", "dipole_latitude", "known", "orbit_phase", "orbit_number")


def test_facts_survive_take(flight):
    for index in (slice(3, 9), [5, 1, 1], np.arange(len(flight)) % 7 == 0, flight.known):
        part = flight.take(index)
        assert isinstance(part, Flight)
        np.testing.assert_array_equal(part.contexts, flight.contexts[index])
        np.testing.assert_array_equal(part.rewards, flight.rewards[index])
        for fact in FACTS:
            np.testing.assert_array_equal(getattr(part, fact), getattr(flight, fact)[index])


def test_facts_survive_split_and_noise(flight):
    first, second = flight.split(0.25, 0.75)
    assert isinstance(second, Flight)
    np.testing.assert_array_equal(np.concatenate([first.time, second.time]), flight.time)
    noisy = flight.with_noise(0.1, seed=0)
    np.testing.assert_array_equal(noisy.known, flight.known)
    rows = noisy.take([4, 2])
    np.testing.assert_array_equal(rows.observations, noisy.observations[[4, 2]])
    np.testing.assert_array_equal(flight.take([4, 2]).observations, flight.observations[[4, 2]])
    quiet = flight.with_noise(0).take([4, 2])
    assert quiet.observations is quiet.rewards


def test_facts_are_read_only_and_typed(flight):
    for fact in FACTS:
        values = getattr(flight, fact)
        assert values.shape == (len(flight),)
        assert not values.flags.writeable
    assert flight.known.dtype == bool
    assert flight.orbit_number.dtype == np.intp


def test_wrong_facts_and_rows_are_named(flight):
    with pytest.raises(ValueError, match=r"time must have an entry for each of 1200 rows"):
        replace(flight, time=flight.time[:5])
    with pytest.raises(IndexError, match="row numbers below 1200"):
        flight.take([1200])
    with pytest.raises(ValueError, match="at least one of 1200 rows"):
        flight.take(np.zeros(1200, dtype=bool))


def test_repr(flight):
    assert repr(flight).startswith("Flight('spacecraft': 1200 rows, 27 numbers per context, 3 arms")
