"""Several processes on one campaign, and processes that are killed."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import contextgap as cg

from .conftest import ARMS, reward
from .oracle import check, events, to_bytes

WORKER = textwrap.dedent(
    """
    import sys
    import numpy as np
    import contextgap as cg

    database, name, who, times = sys.argv[1:]
    campaign = cg.Campaign.open(database, name)
    rng = np.random.default_rng(int(who))
    for step in range(int(times)):
        context = rng.uniform(-1, 1, size=2)
        trial = campaign.ask(context, key=f"{who} asks {step}")
        print("asked", trial.id, flush=True)
        value = float(context @ (1.0, -0.5)) * (trial.arm == "hull")
        campaign.tell(trial, value, key=f"{who} tells {step}")
        print("told", trial.id, value, flush=True)
    """
)


def start(place, who, times):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, place.database, place.name, str(who), str(times)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def check_picks(campaign, kernel):
    """The picks are those of a single learner that is asked and told in the same order."""
    learner = cg.Learner(ARMS, kernel=kernel, seed=0)
    picks = {}
    for event in events(campaign):
        if event.kind == "ask":
            context, (label,) = event.request["contexts"]["row"], event.result["arms"]
            assert learner.ask(context) == label
            picks[event.result["trials"][0]] = context, label
        elif event.kind == "tell":
            request = event.request
            learner.tell(*picks[request["trial"]], request["reward"])
    assert to_bytes(campaign.learner()) == to_bytes(learner)


def test_processes_share_a_campaign(place):
    campaign = place.create()
    workers = [start(place, who, 20) for who in range(3)]
    for worker in workers:
        _, complaint = worker.communicate(timeout=120)
        assert worker.returncode == 0, complaint
    trials = campaign.find_trials()
    assert [trial.id for trial in trials] == list(range(1, 61))
    assert {trial.state for trial in trials} == {"told"}
    check_picks(campaign, cg.Gaussian(0.5))
    check(campaign)


def test_a_killed_process_loses_nothing_that_was_acknowledged(place):
    campaign, kills = place.create(), 2
    asked, told = set(), {}
    for number in range(kills):
        worker = start(place, number, 10_000)
        assert worker.stdout.readline()  # it has begun
        time.sleep(0.05 + 0.03 * number)
        worker.send_signal(signal.SIGKILL)
        out, _ = worker.communicate(timeout=60)
        for line in out.splitlines():
            words = line.split()
            if len(words) == 2 and words[0] == "asked":
                asked.add(int(words[1]))
            elif len(words) == 3:
                told[int(words[1])] = float(words[2])
    trials = {trial.id: trial for trial in campaign.find_trials()}
    assert asked <= set(trials)
    assert told.items() <= {number: trial.reward for number, trial in trials.items()}.items()
    assert len(trials) <= len(asked) + 2 * kills  # at most what was under way
    check(campaign)
    trial = campaign.ask([0.0, 0.0])  # no lock was left behind
    campaign.tell(trial, reward([0.0, 0.0], trial.arm))


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own(place):
    campaign = place.create()
    campaign.ask([0.0, 0.0])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            campaign.ask([0.5, 0.5])
            status = 0
        finally:
            os._exit(status)
    campaign.ask([1.0, 1.0])
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert len(campaign.find_trials("open")) == 3
    check(campaign)
