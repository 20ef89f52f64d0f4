"""The client does what ``cg.Campaign`` does: same methods, same answers, same errors."""

import inspect
import itertools
import math
import re
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.team import client
from contextgap.team.campaign import ConflictError, NotFoundError
from tests.team.campaign.oracle import to_bytes
from tests.team.service.conftest import ARMS

PUBLIC = [name for name in dir(cg.Campaign) if not name.startswith("_")]
TIME = re.compile(r"told at \S+;")
_names = itertools.count()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_method_is_there_with_the_same_parameters(name):
    here, there = getattr(cg.Campaign, name), getattr(client.Campaign, name)
    if isinstance(here, property):
        assert isinstance(there, property)
        return
    own = ("database", "url", "token", "patience", "by")  # a token says who it is
    wanted, found = (
        [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]
        for method in (here, there)
    )
    assert [each for each in found if each[0] not in own] == [
        each for each in wanted if each[0] not in own
    ]


def test_the_client_has_no_method_of_its_own():
    assert [name for name in dir(client.Campaign) if not name.startswith("_")] == PUBLIC


@pytest.fixture
def both(service):
    """Make the same campaign here and over HTTP."""

    def make(arms=ARMS, **settings):
        name = f"both / {next(_names)}"
        settings = {"kernel": cg.Gaussian(0.5), "seed": 0} | settings
        here = cg.Campaign.create(service.database, f"{name} here", arms, **settings)
        there = client.Campaign.create(service.url, f"{name} there", arms, **settings)
        return here, there

    return make


def plain(found):
    """What can be compared: names and times differ."""
    if isinstance(found, list | tuple):
        return [plain(each) for each in found]
    if isinstance(found, cg.campaign.Trial):
        values = {**vars(found), "asked": found.asked is None, "told": found.told is None}
        values["until"] = None if found.until is None else (found.until - found.asked).days
        return repr(values)
    if isinstance(found, cg.campaign.CampaignStatus):
        return {**vars(found), "name": "", "log": ""}
    if isinstance(found, cg.campaign.FrozenPolicy):
        return repr((found.name, found.event, found.recalled))
    if isinstance(found, cg.Policy):
        return repr((found.counts, found.kernel, found.card.value, found.arms))
    if isinstance(found, cg.Learner):
        return to_bytes(found)
    if isinstance(found, pd.DataFrame):
        return found.drop(columns=["asked", "until", "told"]).to_csv(), list(map(str, found.dtypes))
    if isinstance(found, np.ndarray):
        return found.tolist(), str(found.dtype)
    return repr(found)


def test_the_same_scenario_gives_the_same_answers(both, rng):
    pool = rng.uniform(-1, 1, size=(20, 2))
    goal = cg.StoppingRule(0.5, reference=pool)
    here, there = both(goal=goal, lease=timedelta(days=3))

    def same(call):
        mine, other = call(here), call(there)
        assert type(mine) is type(other)
        assert plain(mine) == plain(other)
        return mine

    same(lambda c: c.arms)
    same(lambda c: (c.goal.tolerance, c.goal.share, c.goal.reference.tolist()))
    for context in pool[:6]:
        trial = same(lambda c, x=context: c.ask(x))
        same(lambda c, t=trial, x=context: c.tell(t, float(x[0])))
    batch = same(lambda c: c.ask(pool[6:9], arms=["hull", "boom"], lease=math.inf))
    same(lambda c: c.tell([trial.id for trial in batch], [1.0, 2.0, 3.0]))
    same(lambda c: c.ask(pool=pool, lease=90_000))
    same(lambda c: c.ask(pool=pool, once=True))
    same(lambda c: c.cancel(10))
    same(lambda c: c.tell(10, 0.5))  # tried all the same
    same(lambda c: c.tell(contexts=pool[:2], arms=["hull", "panel"], reward=[True, 0.25]))
    same(lambda c: c.tell(contexts=[0.5, 0.5], arms="boom", reward=1, eligible=["boom", "hull"]))
    same(lambda c: c.ask(pool[1], arms=np.array([True, False, True])))
    same(lambda c: c.ask(pool[:2], arms=[["hull"], {"panel"}]))
    same(lambda c: c.freeze("first / flight", fallback="hull", tolerance=5.0))
    same(lambda c: c.retract(2, "unplugged"))
    same(lambda c: c.correct(2, 0.75, "no, it was not"))
    same(lambda c: c.policies())
    same(lambda c: c.policy("first / flight"))
    assert to_bytes(there.rebuild("first / flight")) == to_bytes(there.policy("first / flight"))
    same(lambda c: c.add_arm("tail"))
    same(lambda c: c.remove_arm("panel"))
    same(lambda c: c.tune("loo"))
    same(lambda c: c.arms)
    same(lambda c: c.recommend(pool))
    same(lambda c: c.recommend(pool[0], arms=["hull", "tail"]))
    same(lambda c: c.status())
    same(lambda c: c.status(fresh=False))
    same(lambda c: c.trials())
    same(lambda c: c.find_trials("told", after=3, most=4))
    same(lambda c: c.trials(["open", "cancelled"]))
    same(lambda c: c.trial(7))
    same(lambda c: c.learner())


def test_tables_dates_gaps_and_labels_of_all_kinds(both):
    table = pd.DataFrame(
        {
            "mode": ["eco", None, "sport"],
            "speed": [1.5, 2.0, None],
            "day": pd.date_range("2024-05-01", periods=3),
            "level": pd.Categorical([1, 2, 1]),
        }
    )
    arms = [("a", 1), "b", 3]
    features = {("a", 1): [0.0, "x"], "b": [1.0, "y"], 3: [None, "y"]}
    columns = {"mode": cg.Category(missing=True), "speed": cg.Number(missing=True), "day": "date"}
    columns["level"] = "category"
    how = {"kernel": None, "columns": columns, "features": features, "reward": "minimize"}
    here, there = both(arms, **how)
    calls = [
        lambda c: c.ask(table),
        lambda c: c.ask(table.iloc[0].to_dict(), arms=[("a", 1), 3]),
        lambda c: c.ask(table[:2], arms=[[("a", 1)], ("b", 3)]),
        lambda c: c.tell(contexts=table, arms=[("a", 1), "b", 3], reward=[1.0, 2.0, 3.0]),
        lambda c: c.tell(
            contexts={"mode": None, "speed": 1, "day": datetime(2024, 5, 3, 12), "level": 2},
            arms=("a", 1),
            reward=0.5,
        ),
        lambda c: c.recommend(table),
        lambda c: c.add_arm("d", [2.0, "z"]),
        lambda c: c.arms,
        lambda c: c.trials(),
        lambda c: c.learner(),
    ]
    for call in calls:
        assert plain(call(here)) == plain(call(there))


def test_errors_are_those_of_a_campaign(both):
    here, there = both()
    for campaign in (here, there):
        campaign.tell(campaign.ask([0.0, 0.0], key="k"), 1.0)
    calls = [
        lambda c: c.ask([0.0, 0.0, 0.0]),
        lambda c: c.ask([0.0, math.inf]),
        lambda c: c.ask(),
        lambda c: c.ask([0.0, 1.0], key="k"),
        lambda c: c.ask([0.0, 1.0], arms=["wing"]),
        lambda c: c.ask([0.0, 1.0], lease=-1),
        lambda c: c.tell(1, 2.0),
        lambda c: c.tell(99, 2.0),
        lambda c: c.tell(1, "much"),
        lambda c: c.tell(contexts=[0.0, 0.0], arms="wing", reward=1.0),
        lambda c: c.cancel(1),
        lambda c: c.retract(1, ""),
        lambda c: c.trial(99),
        lambda c: c.trials("gone"),
        lambda c: c.freeze("p"),
        lambda c: c.policy("p"),
        lambda c: c.tune("magic"),
        lambda c: c.add_arm("hull"),
        lambda c: c.remove_arm("wing"),
        lambda c: c.recommend([0.0]),
    ]
    for call in calls:
        with pytest.raises(Exception) as mine:  # noqa: PT011  # whatever it is, and the same
            call(here)
        with pytest.raises(type(mine.value)) as other:
            call(there)
        assert TIME.sub("", str(other.value)) == TIME.sub("", str(mine.value))
        assert isinstance(mine.value, TypeError | ValueError)


def test_errors_of_names(service):
    with pytest.raises(NotFoundError, match="there is no campaign 'none'"):
        client.Campaign.open(service.url, "none")
    client.Campaign.create(service.url, "mine", ARMS, key="k")
    again = client.Campaign.create(service.url, "mine", ARMS, key="k")  # the same request
    assert again.arms == tuple(ARMS)
    with pytest.raises(ConflictError, match="there is a campaign 'mine' already"):
        client.Campaign.create(service.url, "mine", ARMS)
    with pytest.raises(ConflictError, match="key 'k' was used before"):
        client.Campaign.create(service.url, "mine", ["a", "b"], key="k")
    assert "mine" in client.Campaign.names(service.url)
    assert repr(again) == f"Campaign('mine', '{service.url}')"


def test_a_service_that_cannot_be_reached_is_said_so():
    with pytest.raises(ConnectionError, match=r"cannot reach http://127\.0\.0\.1:1"):
        client.Campaign.open("http://127.0.0.1:1", "mine", patience=0.2)


def test_noise_and_censoring_go_over_the_wire(both):
    rows = np.random.default_rng(0).uniform(size=(6, 2))
    found = []
    for campaign in both():
        for row, context in enumerate(rows):
            campaign.tell(campaign.ask(context), 0.1 * row, censored=row == 2)
        told = {"contexts": rows, "arms": [ARMS[0]] * 6, "reward": np.arange(6.0)}
        campaign.tell(**told, noise=[0.1] * 6)
        campaign.tell(contexts=rows[0], arms=ARMS[1], reward=1.0, noise=0.5)
        found.append(campaign.recommend(rows).tolist())
        with pytest.raises(TypeError, match="censored"):
            campaign.tell(contexts=rows[0], arms=ARMS[1], reward=1.0, censored="no")
    assert found[0] == found[1]


def test_costs_go_over_the_wire(both):
    rows = np.random.default_rng(0).uniform(size=(6, 2))
    found = []
    for campaign in both():
        for row, context in enumerate(rows):
            campaign.tell(campaign.ask(context), 0.1 * row, cost=1.5)
        told = {"contexts": rows, "arms": [ARMS[0]] * 6, "reward": np.arange(6.0)}
        campaign.tell(**told, cost=np.arange(1.0, 7.0))
        score = campaign.status(fresh=True).score
        found.append((score.spent, score.next_tenth))
        with pytest.raises(ValueError, match="cost"):
            campaign.tell(contexts=rows[0], arms=ARMS[1], reward=1.0, cost=-1.0)
        with pytest.raises(ValueError, match="cost must be given for all arms or for none"):
            campaign.add_arm("wing", cost=2)
    assert found[0] == found[1]
    assert found[0][0] == 30.0
