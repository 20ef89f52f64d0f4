from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from contextgap.base.components import lazy


class Thing:
    def __init__(self, meet=None):
        self.meet, self.computed = meet, 0

    @lazy
    def value(self):
        """What it is worth."""
        if self.meet is not None:
            self.meet.wait(timeout=20)
        self.computed += 1
        return object()


def test_a_value_is_computed_once():
    thing = Thing()
    assert thing.value is thing.value
    assert thing.computed == 1
    assert Thing.value.__doc__ == "What it is worth."


def test_threads_compute_values_of_different_objects_at_once():
    meet = Barrier(2)
    with ThreadPoolExecutor(2) as pool:  # with a lock, the second would never come to the barrier
        values = list(pool.map(lambda thing: thing.value, [Thing(meet), Thing(meet)]))
    assert values[0] is not values[1]
