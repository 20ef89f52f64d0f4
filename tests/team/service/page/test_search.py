"""The table of trials, beside a loop over all trials."""

import json

import pytest

from contextgap.team.campaign.wire import trial_json
from contextgap.team.service.page import search
from tests.team.service.page.conftest import COLUMNS, draw

ARMS = ("hüll", "100 %", 'quo"te\\', "a_b")


def found(standing, **wanted) -> list[int]:
    """The numbers of all pages, one after another."""
    numbers, before = [], None
    while True:
        with standing.store.reading() as connection:
            page = search.find_trials(standing.store, connection, before=before, **wanted)
        numbers += [trial["id"] for trial in page["trials"]]
        before = page["next"]
        if before is None:
            return numbers


@pytest.fixture
def explored(place, standings, rng):
    campaign = place.create(ARMS, columns=COLUMNS, kernel=None)
    for _ in range(24):
        context = draw(rng)
        campaign.tell(contexts=context, arms=str(rng.choice(ARMS)), reward=0.5)
    campaign.ask(draw(rng))
    campaign.retract(3, "the Sensor fell off; 50 %")
    campaign.correct(5, 1.0, "größer")
    yield campaign, standings(place.database).of(place.name)
    campaign.close()


TEXTS = ["hüll", "ECO", "%", "_", '"', "\\", "sensor", "größer", "no such text", "50 %"]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_found_in_arms_contexts_and_reasons(explored, text):
    campaign, standing = explored
    expected = []
    for trial in reversed(campaign.find_trials()):
        said = trial_json(trial)
        parts = (json.dumps(said["context"]), json.dumps(trial.arm)[1:-1])
        written = json.dumps(text)[1:-1].lower()
        inside = any(written in part.lower() for part in parts)
        if inside or text.lower() in (trial.why or "").lower():
            expected.append(trial.id)
    # Braces and quotes around cells are found too, which does no harm.
    assert set(expected) <= set(found(standing, text=text))
    if text not in ('"',):
        assert found(standing, text=text) == expected


def test_states_and_arms_are_filtered_by_the_server(explored):
    campaign, standing = explored
    for states in (["open"], ["told", "retracted"], []):
        expected = [t.id for t in campaign.find_trials(states or None)]
        assert found(standing, states=states) == expected[::-1]
    for arm in ARMS:
        expected = [t.id for t in campaign.find_trials() if t.arm == arm]
        assert found(standing, arm=json.dumps(arm)) == expected[::-1]


def test_pages_hold_every_trial_once(explored, monkeypatch):
    campaign, standing = explored
    monkeypatch.setattr(search, "PAGE", 6)
    assert found(standing) == [t.id for t in campaign.find_trials()][::-1]


def test_unknown_states_are_refused(explored):
    _, standing = explored
    with pytest.raises(ValueError, match="state must be one of"):
        found(standing, states=["gone"])
