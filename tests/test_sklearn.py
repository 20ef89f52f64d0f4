"""Policies as scikit-learn estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import contextgap as cg
from contextgap.sklearn import PolicyEstimator, policy_value

ARMS = np.array(["a", "b", "c"])


def logged(rows, seed=0):
    """A log with known propensities: b is best where x > 0, c below; ``a`` gives 0.3 anywhere."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, 2))
    chances = np.where(x[:, :1] > 0, [[0.5, 0.2, 0.3]], [[0.2, 0.5, 0.3]])
    picks = (rng.random(rows)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    means = np.column_stack([np.full(rows, 0.3), x[:, 0], -x[:, 0]])
    reward = means[np.arange(rows), picks] + 0.1 * rng.normal(size=rows)
    return x, ARMS[picks], reward, chances[np.arange(rows), picks], means


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class Checked(PolicyEstimator):
    """Takes the targets of scikit-learn's checks, which know no rewards, as three arms."""

    def fit(self, X, y, reward=None, propensity=None):  # noqa: N803
        if y is None:
            return super().fit(X, y)
        codes = np.unique(np.asarray(y), return_inverse=True)[1].ravel()
        return super().fit(X, codes % 3, reward=codes.astype(float))

    def score(self, X, y, reward=None, propensity=None):  # noqa: N803
        return super().score(X, y, np.asarray(y, dtype=float))


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass():
    found = check_estimator(Checked(), on_fail=None, on_skip=None)
    assert {each["check_name"] for each in found if each["status"] == "failed"} == set()
    assert {each["check_name"] for each in found if each["status"] == "skipped"} <= {
        "check_array_api_input"  # it needs SCIPY_ARRAY_API
    }
    assert len(found) > 40


def test_it_predicts_what_the_policy_recommends():
    x, arm, reward, propensity, means = logged(150)
    estimator = PolicyEstimator(random_state=1).fit(x, arm, reward, propensity)
    policy = cg.Learner(ARMS.tolist(), seed=1).fit(x, arm, reward).freeze()
    assert estimator.predict(x).tolist() == policy.recommend(x).tolist()
    np.testing.assert_array_equal(estimator.predict_reward(x), policy.means(x))
    chosen = np.searchsorted(ARMS, estimator.predict(x))
    assert (means.max(axis=1) - means[np.arange(150), chosen]).mean() < 0.05
    assert estimator.policy_.card.estimator == "doubly robust"  # propensities are taken along
    assert policy.card.estimator == "direct"
    assert estimator.n_features_in_ == 2


def test_clones_copies_and_parameters():
    x, arm, reward, _, _ = logged(60)
    estimator = PolicyEstimator(kernel=cg.Gaussian(0.5), ridge=0.1).fit(x, arm, reward)
    assert clone(estimator).get_params() == estimator.get_params()
    with pytest.raises(NotFittedError):
        clone(estimator).predict(x)
    assert clone(estimator).set_params(ridge=0.5).ridge == 0.5
    loaded = pickle.loads(pickle.dumps(estimator))
    assert loaded.predict(x).tolist() == estimator.predict(x).tolist()


def test_searches_and_cross_validation_route_rewards():
    x, arm, reward, propensity, _ = logged(120)
    log = {"reward": reward, "propensity": propensity}
    grid = {"ridge": [0.01, 1e4]}
    search = GridSearchCV(PolicyEstimator(kernel=cg.Gaussian(0.5)), grid, cv=3)
    search.fit(x, arm, **log)
    good, useless = search.cv_results_["mean_test_score"]
    assert good > useless
    assert search.best_params_ == {"ridge": 0.01}
    assert search.predict(x).shape == (120,)
    scores = cross_val_score(PolicyEstimator(), x, arm, params=log, cv=3)
    found = cross_validate(PolicyEstimator(), x, arm, params=log, cv=3)
    np.testing.assert_array_equal(found["test_score"], scores)


def test_pipelines_and_column_transformers():
    x, arm, reward, propensity, _ = logged(120)
    table = pd.DataFrame({"x": x[:, 0], "y": x[:, 1], "side": np.where(x[:, 1] > 0, "l", "r")})
    columns = ColumnTransformer(
        [("number", StandardScaler(), ["x", "y"]), ("text", OneHotEncoder(), ["side"])]
    )
    pipeline = make_pipeline(columns, PolicyEstimator())
    pipeline.fit(table, arm, reward=reward, propensity=propensity)
    raw = PolicyEstimator().fit(table, arm, reward)  # text columns are read as they are
    assert raw.feature_names_in_.tolist() == ["x", "y", "side"]
    for each in (pipeline, raw):
        assert (each.predict(table) == np.where(x[:, 0] > 0.3, "b", "a"))[x[:, 0] > 0.4].all()
    value = pipeline.score(table, arm, reward=reward, propensity=propensity)
    card = policy_value(pipeline, table, arm, reward, propensity)  # with a model of raw columns
    assert value == pytest.approx(card.value.value, abs=0.5 * card.value.error)
    with pytest.raises(ValueError, match="feature names"):
        raw.predict(table[["x", "y"]])


def test_output_may_be_a_frame():
    x, arm, reward, _, _ = logged(60)
    table = pd.DataFrame(x, columns=["u", "v"], index=range(100, 160))
    estimator = PolicyEstimator().fit(table, arm, reward).set_output(transform="pandas")
    frame = estimator.predict_reward(table)
    assert frame.columns.tolist() == ["a", "b", "c"]
    assert frame.index.equals(table.index)
    np.testing.assert_array_equal(frame.to_numpy(), estimator.policy_.means(table))


@pytest.mark.parametrize("arms", [[0, 1, 2], [0.5, 1.5, 2.5], [("a", 1), ("b", 2), ("c", 3)]])
def test_arms_of_any_kind(arms):
    x, arm, reward, _, _ = logged(60)
    labels = [arms["abc".index(each)] for each in arm]
    predicted = PolicyEstimator(arms=arms).fit(x, labels, reward).predict(x)
    plain = PolicyEstimator().fit(x, arm, reward).predict(x)
    assert predicted.tolist() == [arms["abc".index(each)] for each in plain]


def test_costs_are_scored_with_the_sign_of_scores():
    x, arm, reward, propensity, _ = logged(100)
    rewards = PolicyEstimator().fit(x, arm, reward).score(x, arm, reward, propensity)
    costs = PolicyEstimator(minimize=True).fit(x, arm, -reward).score(x, arm, -reward, propensity)
    assert costs == pytest.approx(rewards, rel=1e-6)


def test_any_estimator_has_a_value():
    """The weighted estimate is computed by hand, and the truth is known."""
    x, arm, reward, propensity, means = logged(400, seed=1)
    classifier = LogisticRegression().fit(x, np.where(x[:, 0] > 0, "b", "c"))
    picked = classifier.predict(x)
    card = policy_value(classifier, x, arm, reward, propensity)
    weights = (picked == arm) / propensity
    assert card.weighted.value == pytest.approx(weights @ reward / weights.sum())
    truth = means[np.arange(400), np.searchsorted(ARMS, picked)].mean()
    assert abs(card.value.value - truth) < 3 * card.value.error
    assert card.value.error < 0.05
    policy = cg.Learner(ARMS.tolist(), seed=0).fit(x, arm, reward).freeze()
    found = policy_value(policy, x, arm, reward, propensity)
    assert found.value.value > card.value.value  # a pays more near 0


class FunctionPolicy:
    def __init__(self, predict):
        self.predict = predict


class First(StandardScaler):
    def fit(self, X, y=None):  # noqa: N803
        return self

    def transform(self, X):  # noqa: N803
        return X[:, :1]


def test_values_are_within_their_intervals_as_often_as_they_say():
    held = []
    for seed in range(40):
        x, arm, reward, propensity, _ = logged(100, seed + 100)
        rule = LogisticRegression().fit([[-1.0], [1.0]], ["c", "b"])
        card = policy_value(make_pipeline(First(), rule), x, arm, reward, propensity)
        truth = 0.5  # the average of |x|
        low, high = card.value.interval
        held.append(low <= truth <= high)
    assert sum(held) >= 34  # of 40 at 95 %, fewer in 1 of 1000 tests


def test_an_arm_that_was_never_logged_is_said():
    x, arm, reward, propensity, _ = logged(100)
    kept = arm != "c"
    card = policy_value(
        cg.Learner(ARMS.tolist(), seed=0).fit(x, arm, reward).freeze(),
        x[kept],
        arm[kept],
        reward[kept],
        propensity[kept],
    )
    assert any("'c' was never tried" in warning for warning in card.warnings)
    always = FunctionPolicy(lambda rows: np.full(len(rows), "c"))
    (found,) = (
        each
        for each in policy_value(always, x[kept], arm[kept], reward[kept]).warnings
        if "never tried" in each
    )
    assert "chosen at 100 % of the contexts" in found


def test_estimators_of_documents_have_a_value():
    """The model of rewards reads other contexts: none, where all it can know are averages."""
    rng = np.random.default_rng(0)
    topic, arm = rng.integers(2, size=300), rng.integers(2, size=300)
    texts = [f"{'cat dog' if each else 'car bus'} word{rng.integers(50)}" for each in topic]
    classifier = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, topic)
    log = (texts, arm, (arm == topic).astype(float), np.full(300, 0.5))
    card = policy_value(classifier, *log, contexts=np.zeros((300, 1)))
    assert card.weighted.value == 1.0
    assert abs(card.value.value - 1.0) < 3 * card.value.error < 0.3
    with pytest.raises(TypeError, match="contexts must be numbers, got 'ca"):
        policy_value(classifier, *log)


def test_what_is_wrong_is_said():
    x, arm, reward, _, _ = logged(20)
    with pytest.raises(TypeError, match="estimator must have predict, got 'tree'"):
        policy_value("tree", x, arm, reward)
    with pytest.raises(TypeError, match=r"reward is missing.*enable_metadata_routing"):
        PolicyEstimator().fit(x, arm)
    with pytest.raises(ValueError, match="the target y is None"):
        PolicyEstimator().fit(x, None, reward)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PolicyEstimator().fit(x, arm, reward[:-1])
    with pytest.raises(ValueError, match="propensities must be above 0"):
        PolicyEstimator().fit(x, arm, reward, np.zeros(20))
