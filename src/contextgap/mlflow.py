"""Policies in MLflow's registry, as pyfunc models; needs the extra ``mlflow``."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import contextgap
from contextgap.base import checks
from contextgap.policy import Policy, Status

try:
    import pandas

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow warns of its own type hints when it is loaded
        import mlflow
        from mlflow.models import infer_signature
        from mlflow.pyfunc import PythonModel
except ImportError as error:
    raise ImportError(
        f"contextgap.mlflow needs {error.name}; pip install 'contextgap[mlflow]' brings it"
    ) from None

__all__ = ["PolicyModel", "load_policy", "log_policy"]

# MLflow runs this to load the model; an object would be pickled.
_CODE = (
    "from contextgap.mlflow import PolicyModel, mlflow\n\nmlflow.models.set_model(PolicyModel())\n"
)
_EXAMPLES = 5  # rows


class PolicyModel(PythonModel):  # type: ignore[misc]  # it has no types
    """A policy as MLflow serves it: contexts in; arms, statuses and certificates out.

    .. versionadded:: 0.3

    Examples
    --------
    >>> from contextgap.mlflow import log_policy, mlflow
    >>> with mlflow.start_run():
    ...     info = log_policy(policy)
    >>> model = mlflow.pyfunc.load_model(info.model_uri)
    >>> model.predict({"x": [0.5], "y": [0.0]}).arm.tolist()
    ['right']
    """

    policy: Policy
    """The policy, once the model was loaded."""

    def load_context(self, context: Any) -> None:
        self.policy = Policy.load(context.artifacts["policy"])

    def predict(self, context: Any, model_input: pandas.DataFrame, params: Any = None) -> Any:
        """Return a DataFrame with arm, status and regret bound of every row.

        Examples
        --------
        >>> from contextgap.mlflow import log_policy, mlflow
        >>> with mlflow.start_run():
        ...     model = mlflow.pyfunc.load_model(log_policy(policy).model_uri)
        >>> list(model.predict({"x": [0.5], "y": [0.0]}).columns)
        ['arm', 'status', 'regret_bound']
        """
        del context, params
        return _answers(self.policy, model_input)


def log_policy(
    policy: Policy,
    name: str = "policy",
    *,
    input_example: Any = None,
    registered_model_name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Log a policy to MLflow: signature, input example, card as metrics, provenance as metadata.

    .. versionadded:: 0.3

    Parameters
    ----------
    policy
        The policy.
    name
        The name of the model in the run.
    input_example
        Contexts like those it will be asked about; by default some that were observed, as numbers
        and text. Pass rows of your own DataFrame if it has whole numbers, truth values or dates,
        since the signature then asks for these types.
    registered_model_name
        A name in the registry, under which a new version is made.
    metadata
        More of it, beside the policy's version, date and data hash.

    Returns
    -------
    info
        MLflow's ``ModelInfo``; ``info.model_uri`` is what ``load_policy`` takes.

    See Also
    --------
    mlflow.load_policy : Reads it back.

    Examples
    --------
    >>> from contextgap.mlflow import log_policy, mlflow
    >>> with mlflow.start_run():
    ...     info = log_policy(policy)
    """
    checks.instance("policy", policy, Policy, "learner.freeze()")
    example = _observed(policy) if input_example is None else input_example
    if sum(policy.counts.values()) > 1:
        mlflow.log_metrics(card_metrics(policy))
    with tempfile.TemporaryDirectory() as folder:
        path, code = Path(folder, "policy.cgap"), Path(folder, "policy_model.py")
        policy.save(path)
        code.write_text(_CODE)
        return mlflow.pyfunc.log_model(
            name=name,
            python_model=str(code),
            artifacts={"policy": str(path)},
            signature=infer_signature(example, _answers(policy, example)),
            input_example=example,
            pip_requirements=[f"contextgap=={contextgap.__version__}", "pandas"],
            registered_model_name=registered_model_name,
            metadata={**policy.provenance.describe(), **(metadata or {})},
        )


def load_policy(model_uri: str) -> Policy:
    """Return the policy that ``log_policy`` logged.

    .. versionadded:: 0.3

    Parameters
    ----------
    model_uri
        Such as ``"models:/sensors/3"`` or ``"runs:/RUN/policy"``.

    Examples
    --------
    >>> from contextgap.mlflow import load_policy, log_policy, mlflow
    >>> with mlflow.start_run():
    ...     info = log_policy(policy)
    >>> load_policy(info.model_uri).arms
    ('left', 'right')
    """
    model = mlflow.pyfunc.load_model(model_uri).unwrap_python_model()
    if not isinstance(model, PolicyModel):
        raise TypeError(f"{model_uri} holds a {type(model).__name__}, and no policy")
    return model.policy


def card_metrics(policy: Policy) -> dict[str, float]:
    card = policy.card
    found = {"rewards": card.rewards, "explained": card.explained, "certificate": card.certificate}
    for name in ("value", "gain", "best_single", "logged", "direct", "weighted"):
        if (estimate := getattr(card, name)) is not None:
            found |= {name: estimate.value, f"{name}_error": estimate.error}
    return {f"card_{name}": float(number) for name, number in found.items()}


def _observed(policy: Policy) -> Any:
    rows = policy.state.schema.decode(policy.state.model.observed.contexts[:_EXAMPLES])
    return pandas.DataFrame(rows, columns=policy.columns)


def _answers(policy: Policy, contexts: Any) -> Any:
    given = contexts
    if policy.columns is None and hasattr(contexts, "to_numpy"):
        given = contexts.to_numpy(dtype=float)
    arms, status, _ = policy.answered(given, None, False)
    return pandas.DataFrame(
        {
            "arm": arms.tolist(),
            "status": [Status(each).name.lower() for each in status.tolist()],
            "regret_bound": policy.certificate(given).bound,
        },
        index=getattr(contexts, "index", None),
    )
