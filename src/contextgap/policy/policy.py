"""Policy: the frozen, immutable decision rule."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base import files
from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.base.columns import Columns
from contextgap.base.contexts import ContextSchema
from contextgap.base.labels import Label, label_array
from contextgap.belief import Decision
from contextgap.kernels import Kernel
from contextgap.methods import Method
from contextgap.models import Model
from contextgap.policy import shortcut
from contextgap.policy.card import Card
from contextgap.policy.expected import expected_regret, own_std
from contextgap.policy.scoring import score
from contextgap.policy.state import (
    Rules,
    describe_rules,
    describe_state,
    read_seed,
    restore_rules,
    restore_state,
)
from contextgap.recommenders.history import Choice
from contextgap.recommenders.rules import BoundedRule, ModelEvidence
from contextgap.widths import Width

if TYPE_CHECKING:
    from contextgap.compression import CompressionReport
    from contextgap.export.c import CExport
    from contextgap.export.onnx import OnnxFile

# Numbers in one block of kernel values; 2^22 of them are 32 MB.
_BLOCK = 2**22


@dataclass(frozen=True)
class Certificate:
    """A bound on the simple regret of each recommendation.

    Parameters
    ----------
    bound
        One per context, never negative.
    probability
        The probability with which all bounds hold at once; None where the width guarantees nothing
        and the bounds are heuristic.
    """

    bound: FloatArray
    probability: float | None


class Policy:
    """A decision rule that never changes; made by ``Learner.freeze`` or ``Policy.load``.

    All methods may be called from several threads at once.
    """

    def __init__(
        self,
        *,
        model: Model,
        labels: tuple[Label, ...],
        active: tuple[int, ...],
        rules: Rules,
        schema: ContextSchema,
        seed: int,
        compression: CompressionReport | None = None,
        card: Card | None = None,
    ) -> None:
        if card is not None:
            vars(self)["card"] = card  # in place of what the property would compute
        self._model = model
        self._labels = labels
        self._active = active
        self._rules = rules
        self._schema = schema
        self._compression = compression
        self._seed = seed

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_seed"):
            raise AttributeError(f"a policy is immutable; cannot set {name!r}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a policy is immutable; cannot delete {name!r}")

    def __repr__(self) -> str:
        return (
            f"Policy({len(self.arms)} arms, {self.method.name}, {self.kernel}, "
            f"{len(self._model)} observations)"
        )

    @property
    def arms(self) -> tuple[Label, ...]:
        """The arms to choose from."""
        return tuple(self._labels[i] for i in self._active)

    @property
    def method(self) -> Method:
        """The exploration and deployment rules."""
        return self._rules.method

    @property
    def kernel(self) -> Kernel:
        """The similarity of contexts."""
        return self._model.kernel

    @property
    def width(self) -> Width:
        """How standard deviations become intervals."""
        return self._rules.width

    @property
    def ridge(self) -> float:
        """The regularisation."""
        return self._model.ridge

    @property
    def prior_mean(self) -> float:
        """The mean reward believed where nothing was observed."""
        return self._model.prior()

    @property
    def probability(self) -> float | None:
        """The probability with which all certificates hold at once; None if they are heuristic.

        Scales learnt from the rewards, and a prior mean that follows them (``"auto"``), void the
        guarantee of any width.
        """
        after_the_fact = self._rules.hindsight or self._model.prior_mean == "auto"
        return None if after_the_fact else self._rules.width.probability

    @property
    def counts(self) -> dict[Label, int]:
        """The number of rewards of each arm that the policy was learnt from."""
        return {self._labels[i]: self._model.observed.count(i) for i in self._active}

    @cached_property
    def card(self) -> Card:
        """How good the policy is, estimated from the rewards it was learnt from.

        It is computed when first asked for, which takes a moment, and saved with the policy from
        then on. A compressed policy has the card of the policy it was made from.
        """
        return self._score(None)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the context's columns, if they came with names."""
        return self._schema.columns

    @property
    def kinds(self) -> Columns | None:
        """What each column of a context holds; None if columns have no names."""
        return self._schema.kinds

    @property
    def compression(self) -> CompressionReport | None:
        """What compression cost, for a policy that ``compress`` returned; files do not keep it."""
        return self._compression

    @property
    def dimension(self) -> int | None:
        """How many numbers a context has; None if the policy never saw one."""
        return self._schema.dimension

    def recommend(self, contexts: Any) -> Any:
        """Return the arm to deploy.

        Parameters
        ----------
        contexts
            One context (1-D) or many (2-D or a DataFrame), even millions: memory stays bounded.

        Returns
        -------
        arm
            A label for one context; an array of labels, one per row, for many.
        """
        rows, single = self._read(contexts)
        arm = self._pick(rows)
        return self.arms[int(arm[0])] if single else label_array(self.arms, arm)

    def decide(self, context: Any) -> Decision:
        """Return the arm to deploy at one context and everything believed there.

        Parameters
        ----------
        context
            One context.
        """
        rows, single = self._read(context)
        if not single:
            raise ValueError("decide explains one context; pass a 1-D context or one row")
        ((_, choice, evidence),) = self._decisions(rows)
        reason = f"deployed by {type(self._rules.method.recommender).__name__}"
        return Decision.of(evidence.belief.row(0), self.arms, int(choice.arm[0]), reason)

    def certificate(self, contexts: Any) -> Certificate:
        """Return a bound on the simple regret of every recommendation.

        The bound is max(0, gap of the recommended arm); where intervals hold, so does the bound.

        Parameters
        ----------
        contexts
            One context or many.
        """
        rows, _ = self._read(contexts)
        bound = np.maximum(self._choose(rows).gap, 0.0)
        bound[np.isnan(bound)] = np.inf  # what cannot be computed is not certified
        return Certificate(frozen(bound), self.probability)

    def expected_regret(self, contexts: Any) -> FloatArray:
        """Return the expected simple regret of every recommendation, as far as the policy knows.

        It is the expected reward of the best arm, whichever that turns out to be, minus that of the
        recommended one. Both are expectations under the posterior, in which arms are taken as
        independent but for what all of them share. As good as the model is, it is what
        recommendations miss on average; ``certificate`` says what one may miss.

        Parameters
        ----------
        contexts
            One context or many.
        """
        rows, _ = self._read(contexts)
        parts = [
            expected_regret(evidence.belief.mean, own_std(evidence.belief), choice.arm)
            for _, choice, evidence in self._decisions(rows)
        ]
        return frozen(np.concatenate([*parts, np.empty(0)]))

    def compress(
        self,
        *,
        points: int | None = None,
        bytes: int | None = None,  # noqa: A002  # the word users know it by
        agreement: float | None = None,
        contexts: Any = None,
        float32: bool = True,
        seed: int = 0,
    ) -> Policy:
        """Return a policy with fewer points that decides almost the same.

        Give one of ``points``, ``bytes`` and ``agreement``. The result's ``compression`` says what
        was lost; ``contextgap.compression.compress`` says what its beliefs still mean.

        Parameters
        ----------
        points
            Points that each arm may keep at most.
        bytes
            Bytes that the constants of the C export may take at most.
        agreement
            Share of decisions that must stay the same, such as 0.99.
        contexts
            A sample of contexts like those to deploy on; the observed ones by default.
        float32
            Whether bytes are counted for ``float`` or for ``double``.
        seed
            Makes everything random repeatable.
        """
        from contextgap.compression import compress

        card = self.card if len(self._model) > 1 else None  # fewer points cannot tell any more
        smaller, report = compress(
            self,
            points=points,
            bytes=bytes,
            agreement=agreement,
            contexts=contexts,
            float32=float32,
            seed=seed,
        )
        return Policy(
            model=smaller._model,
            labels=smaller._labels,
            active=smaller._active,
            rules=smaller._rules,
            schema=smaller._schema,
            seed=smaller._seed,
            compression=report,
            card=card,
        )

    def to_onnx(
        self, path: str | os.PathLike[str], *, float32: bool = False, explain: bool = False
    ) -> OnnxFile:
        """Write the policy as an ONNX graph; needs the extra ``onnx``.

        Parameters
        ----------
        path
            Where to write.
        float32
            Compute in single precision.
        explain
            Also put out means, bounds, gaps and certificates.
        """
        from contextgap.export.onnx import write_onnx

        return write_onnx(self, path, float32=float32, explain=explain)

    def to_c(
        self,
        directory: str | os.PathLike[str],
        *,
        float32: bool = False,
        certificates: bool = False,
        contexts: Any = None,
    ) -> CExport:
        """Write the policy as C99: a header, a source and a self-test.

        Parameters
        ----------
        directory
            Where to write; made if missing.
        float32
            Compute in ``float``.
        certificates
            Include widths, gaps and certificates also where the rule does not need them.
        contexts
            Contexts for the self-test; by default some are made around the observed ones.
        """
        from contextgap.export.c import write_c

        return write_c(
            self, directory, float32=float32, certificates=certificates, contexts=contexts
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a ``.cgap`` file, atomically.

        Parameters
        ----------
        path
            Where to write.
        """
        header = {
            **describe_rules(self._rules),
            **describe_state(self._model, self._labels, self._active, self._schema),
            "seed": self._seed,
            "card": self.card.describe() if "card" in vars(self) else None,
        }
        files.write(path, "policy", header, self._model.arrays(), self._model.file_version)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy from a ``.cgap`` file.

        Parameters
        ----------
        path
            A file that ``save`` wrote.
        """
        header, arrays = files.read(path, "policy")
        with files.making_sense_of(path):
            model, labels, active, schema = restore_state(header, arrays)
            card = header.get("card")  # files of release 0.1 have none
            return cls(
                model=model,
                labels=labels,
                active=active,
                rules=restore_rules(header),
                schema=schema,
                seed=read_seed(header["seed"]),
                card=None if card is None else Card.restored(card),
            )

    def _read(self, contexts: Any) -> tuple[FloatArray, bool]:
        intake = self._schema.read(contexts)
        self.kernel.check_dimension(intake.rows.shape[1])
        return intake.rows, intake.single

    def _score(self, propensities: Any) -> Card:
        return score(
            self._model,
            self._labels,
            self._active,
            self._rules,
            self._seed,
            self.probability,
            propensities,
        )

    def _evidence(self, rows: FloatArray) -> ModelEvidence:
        return ModelEvidence(
            model=self._model,
            contexts=rows,
            arms=self._active,
            width=self._rules.width,
            burn_in_end=self._rules.burn_in * len(self._active),
            seed=self._seed,
        )

    def _pick(self, rows: FloatArray) -> IntArray:
        """The arms that ``_choose`` chooses, without their gaps, which take longer to compute."""
        rule, model, active = self._rules.method.recommender, self._model, self._active
        if not isinstance(rule, BoundedRule) or not shortcut.pays(rule, model, active):
            return self._choose(rows).arm
        picks = np.empty(len(rows), dtype=np.intp)
        undecided: list[IntArray] = []
        for block in self._blocks(len(rows)):
            picks[block], left = shortcut.decided(
                rule, model, active, self._rules.width, rows[block]
            )
            undecided.append(block.start + left)
        if len(left := np.concatenate([*undecided, np.empty(0, dtype=np.intp)])):
            picks[left] = self._choose(rows[left]).arm
        return picks

    def _choose(self, rows: FloatArray) -> Choice:
        choices = [choice for _, choice, _ in self._decisions(rows)]
        if not choices:
            return Choice(np.empty(0, dtype=np.intp), np.empty(0))
        arms: list[IntArray] = [choice.arm for choice in choices]
        gaps: list[FloatArray] = [choice.gap for choice in choices]
        return Choice(np.concatenate(arms), np.concatenate(gaps))

    def _decisions(self, rows: FloatArray) -> Iterator[tuple[slice, Choice, ModelEvidence]]:
        """Blocks of rows, what is chosen there, and what it was chosen by."""
        for block in self._blocks(len(rows)):
            evidence = self._evidence(rows[block])
            yield block, self._rules.method.recommender.choose(evidence), evidence

    def _blocks(self, rows: int) -> Iterator[slice]:
        size = max(1, _BLOCK // max(1, len(self._model), len(self._active)))
        for first in range(0, rows, size):
            yield slice(first, first + size)
