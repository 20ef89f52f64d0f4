"""Policies as scikit-learn estimators, and the value of any estimator that predicts arms.

A log is ``X``, the arm tried at each row, which takes the place of ``y``, and the metadata
``reward`` and ``propensity``. With ``sklearn.set_config(enable_metadata_routing=True)``,
``cross_validate``, ``GridSearchCV`` and pipelines hand them on::

    cross_validate(PolicyEstimator(), X, arm, params={"reward": reward, "propensity": propensity})
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray
from contextgap.kernels import Kernel
from contextgap.learner import Learner
from contextgap.learner.replayed import score_of_picks
from contextgap.methods import Method
from contextgap.models import POINTS
from contextgap.policy import Card, Policy

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
except ImportError:
    raise ImportError(
        "contextgap.sklearn needs scikit-learn 1.6; pip install 'contextgap[sklearn]' brings it"
    ) from None


_OWN = {"arms", "minimize", "fallback", "tolerance", "random_state"}  # not a learner's


class PolicyEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # they have no types
    """A policy learnt from a log, as a scikit-learn estimator.

    .. versionadded:: 0.3

    Parameters
    ----------
    arms
        The arms; by default those in the log, in order.
    method, kernel, ridge, width, prior_mean, sharing, features, columns, points
        As for ``Learner``.
    minimize
        Whether rewards are costs, to be kept low; ``score`` is minus the cost then.
    fallback, tolerance
        As for ``Learner.freeze``.
    random_state
        The learner's ``seed``.

    Attributes
    ----------
    policy_
        The policy.
    arms_
        Its arms, in the order of ``predict_reward``'s columns.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 40)
    >>> arm = np.array(["left", "right"] * 20)
    >>> estimator = PolicyEstimator().fit(x[:, None], arm, reward=np.where(arm == "left", -x, x))
    >>> estimator.predict([[-0.5], [0.5]])
    array(['left', 'right'], dtype='<U5')
    """

    # Asked for without being told to, so that users need no set_fit_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"reward": True, "propensity": True}
    # Pipelines hand on sample_weight=None to every score, and fail if it is not asked for.
    __metadata_request__score: ClassVar[dict[str, bool]] = {
        "reward": True,
        "propensity": True,
        "sample_weight": True,
    }

    def __init__(
        self,
        *,
        arms: Any = None,
        method: str | Method = "auto",
        kernel: Kernel | None = None,
        ridge: float | None = None,
        width: Any = None,
        prior_mean: float | str | None = None,
        sharing: float | None = None,
        features: Any = None,
        columns: Any = None,
        points: int | None = POINTS,
        minimize: bool = False,
        fallback: Hashable = None,
        tolerance: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.arms = arms
        self.method = method
        self.kernel = kernel
        self.ridge = ridge
        self.width = width
        self.prior_mean = prior_mean
        self.sharing = sharing
        self.features = features
        self.columns = columns
        self.points = points
        self.minimize = minimize
        self.fallback = fallback
        self.tolerance = tolerance
        self.random_state = random_state

    def fit(self, X: Any, arm: Any, reward: Any = None, propensity: Any = None) -> Self:
        """Learn a policy from logged trials.

        Parameters
        ----------
        X
            Contexts, rows by columns; DataFrames may have text, categories and dates.
        arm
            The arm tried at each row.
        reward
            What it gave; required.
        propensity
            The probability with which it was chosen, if it is known.

        Examples
        --------
        >>> estimator.fit(*log).arms_
        array(['left', 'right'], dtype='<U5')
        """
        contexts = self._checked(X, reset=True)
        labels, rewards = _read_log(contexts, arm, reward, propensity)
        self.arms_ = np.unique(labels) if self.arms is None else _as_labels(self.arms)
        given = self.get_params(deep=False)
        learner = Learner(
            self.arms_.tolist(),
            **{name: value for name, value in given.items() if name not in _OWN},
            reward="minimize" if self.minimize else "maximize",
            seed=self.random_state,
        )
        learner.fit(contexts, labels.tolist(), rewards, propensities=propensity)
        self.policy_: Policy = learner.freeze(fallback=self.fallback, tolerance=self.tolerance)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the arm to deploy at each row.

        Examples
        --------
        >>> estimator.predict([[0.5, 0.0], [-0.5, 0.0]])
        array(['right', 'left'], dtype='<U5')
        """
        check_is_fitted(self)
        found = self.policy_.recommend(self._checked(X))
        return found if self.arms_.dtype == object else np.array(found.tolist(), self.arms_.dtype)

    def predict_reward(self, X: Any) -> Any:
        """Return the expected reward of every arm at each row, rows by arms.

        Parameters
        ----------
        X
            Contexts. After ``set_output(transform="pandas")`` the answer is a DataFrame.

        Examples
        --------
        >>> estimator.predict_reward([[0.5, 0.0]]).round(1)
        array([[-0.5,  0.5]])
        """
        return self.transform(X)

    def transform(self, X: Any) -> FloatArray:
        """Return what ``predict_reward`` does, by the name that pipelines know.

        Examples
        --------
        >>> estimator.transform([[0.5, 0.0]]).round(1)
        array([[-0.5,  0.5]])
        """
        check_is_fitted(self)
        return self.policy_.means(self._checked(X)).copy()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the arms.

        Examples
        --------
        >>> estimator.get_feature_names_out()
        array(['left', 'right'], dtype=object)
        """
        del input_features
        check_is_fitted(self)
        return np.array([str(arm) for arm in self.arms_.tolist()], dtype=object)

    def score(self, X: Any, arm: Any, reward: Any = None, propensity: Any = None) -> float:
        """Return the estimated value of the policy at logged trials: see ``policy_value``.

        Parameters
        ----------
        X
            Contexts.
        arm
            The arm tried at each row, by whoever wrote the log.
        reward
            What it gave; required.
        propensity
            The probability with which it was chosen. The estimate is doubly robust with it.

        Examples
        --------
        >>> estimator.score(*(column[:12] for column in log)) > 0
        True
        """
        card = policy_value(self, X, arm, reward, propensity, minimize=self.minimize)
        return -card.value.value if self.minimize else card.value.value

    def _checked(self, X: Any, *, reset: bool = False) -> Any:
        """Return contexts as scikit-learn wants them checked; the learner reads named tables."""
        named = [isinstance(name, str) for name in getattr(X, "columns", ())]
        if named and all(named):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, ensure_min_samples=2 if reset else 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def policy_value(
    estimator: Any,
    X: Any,
    arm: Any,
    reward: Any,
    propensity: Any = None,
    *,
    minimize: bool = False,
    contexts: Any = None,
) -> Card:
    """Return what an estimator's predictions would earn as a policy, estimated from a log.

    The log must not be what the estimator was fitted to. A model of the rewards is learnt from it,
    and predicts every reward leave-one-out. With propensities the estimate is doubly robust:
    unbiased however wrong that model is.

    .. versionadded:: 0.3

    Parameters
    ----------
    estimator
        Anything with ``predict``, which returns an arm for each row: a ``PolicyEstimator``, a
        classifier, a pipeline, or a ``Policy``.
    X
        Contexts.
    arm
        The arm tried at each row, by whoever wrote the log.
    reward
        What it gave.
    propensity
        The probability with which it was chosen; the direct estimate is all there is without.
    minimize
        Whether rewards are costs.
    contexts
        What the model of the rewards reads, if that cannot be ``X``: documents, say, or a sparse
        matrix. A single column of zeros makes it predict the average reward of each arm.

    Returns
    -------
    card
        ``card.value`` is the estimate, with its error; print the card for the rest.

    See Also
    --------
    sklearn.PolicyEstimator.score : The value alone.

    Examples
    --------
    >>> from contextgap.sklearn import policy_value
    >>> card = policy_value(policy, *(column[:12] for column in log), propensity=[0.5] * 12)
    >>> card.estimator
    'doubly robust'
    """
    predict = getattr(estimator, "predict", None) or getattr(estimator, "recommend", None)
    if predict is None:
        raise TypeError(f"estimator must have predict, got {estimator!r}")
    labels, rewards = _read_log(X, arm, reward, propensity)
    picks = np.asarray(predict(X))
    check_consistent_length(labels, picks)
    where = X if contexts is None else contexts
    return score_of_picks(picks, where, labels, rewards, propensity, minimize=minimize)


def _read_log(X: Any, arm: Any, reward: Any, propensity: Any) -> tuple[NDArray[Any], FloatArray]:
    if arm is None:
        raise ValueError("requires y to be passed, but the target y is None: it is the arm tried")
    if reward is None:
        raise TypeError(
            "reward is missing: one number for each row, as fit(X, arm, reward=...); in searches "
            "and pipelines, sklearn.set_config(enable_metadata_routing=True) hands it on"
        )
    labels = _as_labels(arm)
    rewards = np.asarray(reward, dtype=np.float64)
    check_consistent_length(X, labels, rewards, propensity)
    return labels, rewards


def _as_labels(arms: Any) -> NDArray[Any]:
    listed = list(arms)
    if any(isinstance(arm, tuple) for arm in listed):
        return np.fromiter(listed, dtype=object, count=len(listed))
    labels = np.asarray(arms)
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
