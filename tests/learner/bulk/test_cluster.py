"""Learning on a Dask cluster over TCP, one of whose workers is killed."""

import os
import signal

import numpy as np
import pytest

import contextgap as cg
from contextgap.learner import bulk
from tests.cli.test_policies import call
from tests.learner.bulk.test_learning import beliefs, learn, make, write

distributed = pytest.importorskip("distributed", reason="needs the extra dask")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp://",
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(bulk, "SAMPLE", 1500)


GIVEN = {"context": ["x"], "kernel": cg.Gaussian(0.5), "ridge": 0.1}  # nothing to tune


def check_same(policy, serial):
    new = make(100, seed=1)
    np.testing.assert_allclose(beliefs(policy, new), beliefs(serial, new), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(policy.recommend(new), serial.recommend(new))
    assert policy.counts == serial.counts
    assert policy.card.value.value == pytest.approx(serial.card.value.value, rel=1e-9)


class Killer:
    """Watches the second pass, and kills a worker when half of it is done."""

    def __init__(self, client):
        self.client, self.killed = client, None

    def __call__(self, stage):
        def update(done, total):
            if stage == "adding up" and 2 * done >= total and self.killed is None:
                self.killed = next(iter(self.client.run(os.getpid).values()))
                os.kill(self.killed, signal.SIGKILL)

        return update


def test_a_cluster_with_a_killed_worker_gives_the_serial_policy(client, few, tmp_path):
    pattern = write(make(), tmp_path, files=30)
    killer = Killer(client)
    policy = learn(pattern, executor=client, progress=killer, **GIVEN).policy
    assert killer.killed is not None
    check_same(policy, learn(pattern, **GIVEN).policy)
    client.wait_for_workers(2, timeout=30)
    assert killer.killed not in client.run(os.getpid).values()


def test_a_dask_frame_gives_the_same_here_and_there(client, few):
    frames = pytest.importorskip("dask.dataframe", reason="needs dask's DataFrames")
    table = make().assign(number=np.arange(6000))
    frame = frames.from_pandas(table, npartitions=11)
    frame = frame[(frame["number"] < 2000) | (frame["number"] > 3200)]  # a partition is empty
    assert 0 in frame.map_partitions(len).compute(scheduler="synchronous").tolist()
    check_same(learn(frame, executor=client, **GIVEN).policy, learn(frame, **GIVEN).policy)
    with pytest.raises(ValueError, match="the log has no rows"):
        learn(frame[frame["number"] < 0], executor=client, **GIVEN)


def test_what_goes_wrong_on_a_worker_is_said_here(client, few, tmp_path):
    table = make().astype(object)
    table.loc[4000, "x"] = "much"
    with pytest.raises(ValueError, match=r"log3\.csv, line 402, column 'x': a number is needed"):
        learn(write(table, tmp_path), executor=client)


def test_learn_takes_the_address_of_a_cluster(client, tmp_path):
    pattern = write(make(400), tmp_path)
    options = ["--arm", "arm", "--reward", "reward", "--points", "64"]
    address = client.scheduler.address
    call("learn", pattern, *options, "-o", tmp_path / "there.cgap", "--dask", address)
    call("learn", pattern, *options, "-o", tmp_path / "here.cgap")
    there, here = (cg.Policy.load(tmp_path / f"{name}.cgap") for name in ("there", "here"))
    check_same(there, here)
