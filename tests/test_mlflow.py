"""Policies in MLflow, with a local file store."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import contextgap as cg

pytest.importorskip("mlflow", reason="MLflow is not installed")

from contextgap.mlflow import load_policy, log_policy, mlflow  # it needs MLflow

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow uses what pandas deprecates


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # which later versions ask for
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.set_registry_uri((tmp_path / "runs").as_uri())
    yield
    mlflow.set_tracking_uri(None)
    mlflow.set_registry_uri(None)


def log(rows=80):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=rows), "mode": rng.choice(["eco", "fast"], rows)})
    arm = rng.choice(["a", "b"], rows)
    return table, arm, np.where(arm == "a", table["x"], -table["x"])


def test_a_policy_comes_back(store):
    table, arm, reward = log()
    learner = cg.Learner(["a", "b"], seed=0)
    policy = learner.fit(table, arm, reward, propensities=np.full(80, 0.5)).freeze()
    with mlflow.start_run() as run:
        info = log_policy(policy, registered_model_name="sensors")
    files = mlflow.artifacts.download_artifacts(info.model_uri)
    assert not list(Path(files).rglob("*.pkl"))  # nothing is pickled
    loaded = load_policy(info.model_uri)
    np.testing.assert_array_equal(loaded.means(table), policy.means(table))
    assert loaded.provenance == policy.provenance
    assert load_policy("models:/sensors/1").card == policy.card
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics["card_value"] == policy.card.value.value
    assert metrics["card_weighted_error"] == policy.card.weighted.error
    assert info.metadata["data"] == policy.provenance.data
    assert [column.name for column in info.signature.inputs] == ["x", "mode"]
    assert [column.name for column in info.signature.outputs] == ["arm", "status", "regret_bound"]


def test_the_model_answers_as_the_policy(store):
    table, arm, reward = log()
    policy = cg.Learner(["a", "b"], seed=0).fit(table, arm, reward).freeze(fallback="a")
    with mlflow.start_run():
        info = log_policy(policy, input_example=table.head(2))
    model = mlflow.pyfunc.load_model(info.model_uri)
    new = pd.DataFrame({"x": [-1.0, 1.0, 99.0], "mode": ["eco", "fast", "eco"]}, index=[7, 8, 9])
    answers = model.predict(new)
    assert answers["arm"].tolist() == policy.recommend(new).tolist() == ["b", "a", "a"]
    assert answers["status"].tolist() == ["recommended", "recommended", "outside"]
    np.testing.assert_array_equal(answers["regret_bound"], policy.certificate(new).bound)
    assert answers.index.tolist() == [7, 8, 9]


def test_whole_numbers_truths_and_dates_are_taken_as_in_the_example(store):
    table, arm, reward = log()
    table["count"], table["on"] = np.arange(80) % 4, np.arange(80) % 3 == 0
    table["when"] = pd.date_range("2026-01-01", periods=80, freq="7h")
    policy = cg.Learner(["a", "b"], seed=0).fit(table, arm, reward).freeze()
    with mlflow.start_run():
        info = log_policy(policy, input_example=table.head(3))
    model = mlflow.pyfunc.load_model(info.model_uri)
    assert model.predict(table)["arm"].tolist() == policy.recommend(table).tolist()


def test_columns_without_names(store):
    table, arm, reward = log()
    policy = cg.Learner(["a", "b"], seed=0).fit(table[["x"]].to_numpy(), arm, reward).freeze()
    with mlflow.start_run():
        info = log_policy(policy)
    answers = mlflow.pyfunc.load_model(info.model_uri).predict(np.array([[-1.0], [1.0]]))
    assert answers["arm"].tolist() == ["b", "a"]


def test_other_models_are_refused(store):
    class Other(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return model_input

    with mlflow.start_run():
        info = mlflow.pyfunc.log_model(name="other", python_model=Other(), pip_requirements=[])
    with pytest.raises(TypeError, match="holds a Other, and no policy"):
        load_policy(info.model_uri)
    with pytest.raises(TypeError, match="policy must be a Policy"):
        log_policy("policy.cgap")
