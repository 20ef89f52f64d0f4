"""What both models say about reference contexts, against dense solves."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.methods.explorers.base import spread_over
from contextgap.models import ExactModel, TrackedModel
from tests.methods.explorers import dense

KERNEL, RIDGE, ARMS = cg.Gaussian(0.8), 0.05, 3


def check(found, expected):
    np.testing.assert_allclose(found[0], expected.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[1], expected.move, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("prior", [0.0, 1.5])
@pytest.mark.parametrize("most", [1, 8, 500])
def test_the_exact_model_with_picks_still_open(prior, most, rng):
    model, told = ExactModel(KERNEL, RIDGE, ARMS, prior), []
    follower = model.follow()
    waiting = {arm: [] for arm in range(ARMS)}
    for step, context in enumerate(rng.normal(size=(90, 2))):
        places = spread_over(len(told), most)
        seen = np.array([x for x, _, _ in told]).reshape(-1, 2)[places]
        late = [(x, arm) for arm, contexts in waiting.items() for x in contexts]
        expected = dense.look_ahead(KERNEL, RIDGE, prior, told, late, ARMS, context, seen)
        if step % 3 != 1:  # now and then much happens between two questions
            check(follower.look_ahead(context, range(ARMS), places, waiting), expected)
        arm = int(rng.integers(ARMS))
        if step % 4 == 2:
            waiting[arm].append(context)
        else:
            told.append((context, arm, float(rng.normal())))
            model.observe(*told[-1])
            del waiting[arm][:1]  # as if it had been asked for
        if step == 50:
            waiting[1] = []


def test_the_exact_model_with_references_that_change_at_will(rng):
    model, told = ExactModel(KERNEL, RIDGE, ARMS), []
    contexts, given = rng.normal(size=(60, 2)), rng.normal(size=(9, 2))
    for context in contexts[:40]:
        told.append((context, int(rng.integers(ARMS)), float(rng.normal())))
        model.observe(*told[-1])
    follower = model.follow()
    for places in ([3, 9], [9, 3], [], [1, 2, 9], [0, 1, 2, 9], [39, 5]):
        seen = contexts[np.array(places, dtype=int)]
        expected = dense.look_ahead(KERNEL, RIDGE, 0.0, told, [], ARMS, contexts[41], seen)
        check(follower.look_ahead(contexts[41], range(ARMS), np.array(places, int)), expected)
        expected = dense.look_ahead(KERNEL, RIDGE, 0.0, told, [], ARMS, contexts[41], given)
        check(follower.look_ahead(contexts[41], range(ARMS), given), expected)


def test_arms_come_and_go_and_data_arrive_in_bulk(rng):
    model, contexts = ExactModel(KERNEL, RIDGE, 2), rng.normal(size=(50, 2))
    told = [(x, int(rng.integers(2)), float(rng.normal())) for x in contexts]
    places, follower = np.arange(0, 10), model.follow()
    for first in (0, 20, 35):
        batch = told[first : first + 15]
        x, arms, rewards = (np.array(column) for column in zip(*batch, strict=True))
        model.observe_many(x, arms, rewards)
        follower.look_ahead(contexts[49], [0, 1], places)
    model.add_arm()
    model.observe(contexts[3], 2, 1.0)
    done = [*told[:15], *told[20:50], (contexts[3], 2, 1.0)]
    expected = dense.look_ahead(KERNEL, RIDGE, 0.0, done, [], 3, contexts[49], contexts[:10])
    found = follower.look_ahead(contexts[49], [0, 2], places)
    check(found, type(expected)(expected.mean[:, [0, 2]], expected.move[:, [0, 2]]))


@pytest.mark.parametrize("prior", [0.0, 1.5])
@pytest.mark.parametrize("most", [1, 8, 500])
@pytest.mark.parametrize("every", [1, 5])
def test_the_tracked_model(prior, most, every, rng):
    points, told, steps = rng.normal(size=(100, 2)), [], 80
    given = KERNEL(points[:steps], points[steps:])
    diagonal = KERNEL.diagonal(points)
    model = TrackedModel(KERNEL(points[:steps], points), diagonal, RIDGE, ARMS, prior, window=9)
    for step in range(steps):
        if step % every == 0:
            here, places = points[step], spread_over(step, most)
            expected = dense.look_ahead(KERNEL, RIDGE, prior, told, [], ARMS, here, points[places])
            check(model.look_ahead(places), expected)
        if step % 20 == 5:
            expected = dense.look_ahead(
                KERNEL, RIDGE, prior, told, [], ARMS, points[step], points[steps:]
            )
            check(model.look_ahead(given), expected)
            check(model.look_ahead(given), expected)
        told.append((points[step], int(rng.integers(ARMS)), float(rng.normal())))
        model.observe(*told[-1][1:])


def test_a_reward_told_after_looking_ahead_with_picks_open(rng):
    one, other = (ExactModel(KERNEL, RIDGE, 2) for _ in range(2))
    follower = one.follow()
    for context in rng.normal(size=(10, 2)):
        follower.look_ahead(context, [0, 1], np.arange(len(one)), {0: [context + 1]})
        for model in (one, other):
            model.observe(context, 0, 0.5)
    query = rng.normal(size=2)
    np.testing.assert_allclose(
        one.posterior(query, [0, 1]).mean, other.posterior(query, [0, 1]).mean, rtol=1e-10
    )
