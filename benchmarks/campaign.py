"""Campaigns: how long opening takes, how many trials per second, and many processes at once.

    python benchmarks/campaign.py                                  # a SQLite file
    python benchmarks/campaign.py --database postgresql://...      # a server
    python benchmarks/campaign.py --trials 10000 --processes 4 --times 500

Every process asks and tells on the same campaign; afterwards all trials must be distinct and the
picks those of a single learner that is asked and told in the order of the log.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from timing import row

import contextgap as cg

ARMS = ("hull", "panel", "boom")
WORKER = """
import sys, numpy as np, contextgap as cg
database, name, who, times = sys.argv[1:]
campaign, rng = cg.Campaign.open(database, name), np.random.default_rng(int(who))
for _ in range(int(times)):
    context = rng.uniform(-1, 1, size=2)
    trial = campaign.ask(context)
    campaign.tell(trial, float(context[0] * (trial.arm == "hull") + 0.1 * rng.normal()))
"""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--database")
    options.add_argument("--trials", type=int, default=10_000)
    options.add_argument("--processes", type=int, default=4)
    options.add_argument("--times", type=int, default=500)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = chosen.database or f"sqlite:///{Path(folder) / 'bench.db'}"
        print(f"{'':58} {'measured':>9}    target")
        together(database, chosen.processes, chosen.times)
        per_second(database, "")
        if chosen.database is None:
            per_second(f"{database}?synchronous=normal", ", not synchronous")
        opening(database, chosen.trials)


def create(database: str, what: str) -> cg.Campaign:
    name = f"{what} {time.time_ns()}"
    return cg.Campaign.create(database, name, ARMS, kernel=cg.Gaussian(0.5), seed=0)


def together(database: str, processes: int, times: int) -> None:
    """Several processes on one campaign."""
    campaign = create(database, "together")
    start = time.perf_counter()
    command = [sys.executable, "-c", WORKER, database, campaign.name]
    workers = [subprocess.Popen([*command, str(who), str(times)]) for who in range(processes)]
    failed = sum(worker.wait() != 0 for worker in workers)
    spent = time.perf_counter() - start
    trials = campaign.find_trials("told")
    distinct = len({trial.id for trial in trials})
    print(row(f"{processes} processes x {times}: trials", distinct, "", "all", not failed))
    print(row("  pairs of ask and tell per second", distinct / spent, "/s", "", True))
    different = unlike(campaign)
    print(row("  picks unlike a single learner's", different, "", "0", not different))


def unlike(campaign: cg.Campaign) -> int:
    """How many picks differ from those of a single learner; one more if its file does."""
    store, learner = campaign._session.store, cg.Learner(ARMS, kernel=cg.Gaussian(0.5), seed=0)
    picks, different = {}, 0
    with store.reading() as connection:
        for event in store.events(connection):
            if event.kind == "ask":
                context, (label,) = event.request["contexts"]["row"], event.result["arms"]
                different += learner.ask(context) != label
                picks[event.result["trials"][0]] = context, label
            elif event.kind == "tell":
                learner.tell(*picks[event.request["trial"]], event.request["reward"])
    return different + (saved(learner) != saved(campaign.learner()))


def saved(learner: cg.Learner) -> bytes:
    file = io.BytesIO()
    learner.save(file)
    return file.getvalue()


def per_second(database: str, how: str) -> None:
    """One process, three arms of 300 points."""
    campaign, rng = create(database, "per second"), np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(900, 2))
    campaign.tell(contexts=points, arms=np.repeat(ARMS, 300), reward=rng.normal(size=900))
    contexts = rng.uniform(-1, 1, size=(220, 2))
    for place, context in enumerate(contexts):
        if place == 20:
            start = time.perf_counter()
        campaign.tell(campaign.ask(context), float(context[0]))
    rate = 200 / (time.perf_counter() - start)
    print(
        row(
            f"pairs of ask and tell per second, 3 x 300 points{how}",
            rate,
            "/s",
            ">= 150",
            rate >= 150,
        )
    )


def opening(database: str, trials: int) -> None:
    """Open a campaign of many trials, each asked for and told."""
    campaign, rng = create(database, "opening"), np.random.default_rng(0)
    name = campaign.name
    start = time.perf_counter()
    for context in rng.uniform(-1, 1, size=(trials, 2)):
        trial = campaign.ask(context)
        campaign.tell(trial, float(context[0] * (trial.arm == "hull") + 0.1 * rng.normal()))
    print(row(f"asking and telling {trials} trials", time.perf_counter() - start, "s", "", True))
    measure_opening(database, name, "as after a kill")
    campaign.close()
    measure_opening(database, name, "after a close")
    store = campaign._session.store
    with store.reading() as connection:
        newest = store.files(connection, "snapshot")[-1]
        size = store.read_file(connection, "snapshot", newest).seek(0, io.SEEK_END) / 1e6
    print(row("  the snapshot", size, "MB", "", True))


def measure_opening(database: str, name: str, when: str) -> None:
    """Open a campaign five times; the seconds of work are less than those on the clock."""
    clock, work = [], []
    for _ in range(5):
        start, busy = time.perf_counter(), time.process_time()
        again = cg.Campaign.open(database, name)
        clock.append(time.perf_counter() - start)
        work.append(time.process_time() - busy)
        count = len(again.find_trials("told"))
    best = median(clock)
    print(row(f"opening {count} trials {when}, median of 5", best, "s", "< 1", best < 1))
    print(row("  of which work", median(work), "s", "", True))


if __name__ == "__main__":
    main()
