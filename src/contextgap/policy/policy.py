"""Policy: the frozen, immutable decision rule."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module  # exports are built on policies, and found by name
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from contextgap.base import checks, display, files
from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.base.checks import Label, Mask, label_array, read_eligible
from contextgap.base.components import completed
from contextgap.beliefs import Decision
from contextgap.methods.recommenders.rules import ModelEvidence
from contextgap.policy.answers import (
    AllRows,
    Answered,
    Beliefs,
    Certificate,
    Chooser,
    Explanation,
    Ranked,
    expected_regret,
    explain,
    own_std,
    regret_bounds,
    score,
)
from contextgap.policy.rules import Rules, grow_rules
from contextgap.policy.state import (
    LATER_FIELDS,
    Answer,
    Card,
    Fallback,
    PolicyState,
    Provenance,
    State,
    Stateful,
    Status,
    answer,
    read_range,
    read_seed,
    read_spending,
)
from contextgap.tables.columns import Columns

if TYPE_CHECKING:
    from contextgap.export.c import CExport
    from contextgap.export.compression import CompressionReport
    from contextgap.export.onnx import OnnxFile
    from contextgap.insight.watch import Watch


class Policy(Stateful):
    """A decision rule that never changes; made by ``Learner.freeze`` or ``Policy.load``.

    All methods may be called from several threads at once.

    See Also
    --------
    Learner.freeze : Makes a policy.
    Learner.resume : Explores on from a policy.

    Examples
    --------
    >>> policy.arms
    ('left', 'right')
    >>> policy.recommend([[0.5, 0.0], [-0.5, 0.0]])
    array(['right', 'left'], dtype=object)
    """

    state: PolicyState

    def __init__(self, state: PolicyState) -> None:
        self.state = state
        columns = tuple(range(len(state.active)))
        self.chooser = Chooser(state.model, state.active, columns, state.rules, state.seed)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "chooser"):
            raise AttributeError(f"a policy is immutable; cannot set {name!r}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a policy is immutable; cannot delete {name!r}")

    def _repr_html_(self) -> str:
        about = f"Policy by {self.method.name}, bounds "
        about += "heuristic" if self.probability is None else f"with p = {self.probability:g}"
        if self.state.provenance.version is not None:
            about += f", by contextgap {self.state.provenance.version}"
        found = display.table(about, ["arm", "rewards"], list(self.counts.items()))
        return found + ("" if self.state.card is None else self.state.card._repr_html_())

    @property
    def probability(self) -> float | None:
        """The probability with which all certificates hold at once; None if they are heuristic.

        There is no guarantee if hyperparameters were learnt from the rewards, if the prior mean
        follows them (``"auto"``), if rewards have known noise or are censored, or if inducing
        points replaced observations (``Learner(points=None)`` prevents that). The guarantee of
        ``NonadaptiveWidth`` needs picks that do not depend on rewards, and covers as many contexts
        as the width was made for.
        """
        model = self.state.model
        if model.prior_mean == "auto" or model.approximate or model.observed.has_noise:
            return None
        return self.state.rules.probability

    @property
    def card(self) -> Card:
        """An estimate of how good the policy is, from the rewards it was learnt from.

        It is computed at the first access, which takes up to about 10 seconds, and then saved with
        the policy. A compressed policy has the card of the policy it was made from.

        .. versionadded:: 0.2
        """
        if self.state.card is None:
            vars(self)["state"] = replace(self.state, card=self.score())
        return cast(Card, self.state.card)

    @property
    def provenance(self) -> Provenance:
        """The release that froze the policy, when, and a hash of the data it was learnt from.

        .. versionadded:: 0.3
        """
        known, card = self.state.provenance, self.state.card
        if known.data is None and (card is None or card.rewards <= len(self.state.model.observed)):
            known = replace(known, data=self.state.data_hash())
            vars(self)["state"] = replace(self.state, provenance=known)
        return known

    def score(self, propensities: Any = None, *, rows: int | None = None) -> Card:
        """Return a new score card, as ``Learner.score`` does; ``card`` does not change.

        .. versionadded:: 0.3

        Parameters
        ----------
        propensities, rows
            As for ``Learner.score``. The file of a policy with many rewards holds a sample of them;
            once it is loaded, use its ``card``, or score its learner.

        See Also
        --------
        card : The card that is saved with the policy.

        Examples
        --------
        >>> policy.score().best_single_arm
        'right'
        """
        card = self.state.card
        if card is not None and card.rewards > (kept := len(self.state.model)):
            raise ValueError(
                f"score needs all rewards, and this compressed policy keeps {kept} of "
                f"{card.rewards}; score the policy it was made from, or use its card"
            )
        return self.scored(propensities, rows)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the context's columns, if they came with names."""
        return self.state.schema.columns

    @completed
    def kinds(self) -> Columns | None:
        """What each column of a context holds; None if columns have no names.

        .. versionadded:: 0.2
        """
        return self.state.schema.kinds

    @property
    def compression(self) -> CompressionReport | None:
        """What compression cost, for a policy that ``compress`` returned; files do not keep it."""
        return self.state.compression

    @property
    def dimension(self) -> int | None:
        """How many numbers a context has; None if the policy never saw one."""
        return self.state.schema.dimension

    @property
    def fallback(self) -> Fallback | None:
        """The safe arm, and when the policy returns it; None if there is none.

        .. versionadded:: 0.2
        """
        return self.state.fallback

    def recommend(self, contexts: Any, *, arms: Any = None) -> Any:
        """Return the arm to deploy: the recommended one, or the fallback where bounds are large.

        A learner recommends by the rewards observed so far, and warns that nothing is known before
        the first.

        Parameters
        ----------
        contexts
            One context (1-D) or many (2-D or a DataFrame), even millions: memory stays bounded.
        arms
            The eligible arms, all by default: labels in any order; for many contexts also one
            collection of labels per row, or a boolean array of shape (rows, arms) in the order of
            the policy's ``arms``. All other arms are then ignored there.

        Returns
        -------
        arm
            A label for one context; an array of labels, one per row, for many.

        See Also
        --------
        Policy.decide : One context, with the reason.
        beliefs : Means and intervals of all arms.
        rank : All arms, best first.
        Policy.certificate : Regret bounds.
        Policy.status : Where the fallback is answered.

        Examples
        --------
        >>> policy.recommend([0.5, 0.0])
        'right'
        >>> policy.recommend([[0.5, 0.0], [-0.5, 0.0]])
        array(['right', 'left'], dtype=object)
        >>> policy.recommend([0.5, 0.0], arms=["left"])
        'left'
        """
        rows, eligible, single = self._read(contexts, arms)
        if self.state.fallback is None:
            column = np.empty(len(rows), dtype=np.intp)
            for places, chooser in self.chooser.groups(eligible):
                column[places] = np.array(chooser.columns)[chooser.pick(rows[places])]
        else:
            column = self._answer(rows, eligible).arm
        return self.arms[int(column[0])] if single else label_array(self.arms, column)

    def decide(self, context: Any, *, arms: Any = None) -> Decision:
        """Return the arm to deploy at one context, with means and intervals of all arms.

        Intervals and gaps are those that the rule compares. They are not clipped to the range of
        rewards with two values; ``rank`` and ``beliefs`` clip them.

        Parameters
        ----------
        context
            One context.
        arms
            The labels of the eligible arms, all by default; the decision is about them alone.

        See Also
        --------
        recommend : The arm alone, for many contexts.
        explain : The trials and columns that make the difference.

        Examples
        --------
        >>> print(policy.decide([0.5, 0.0]).reason)
        deployed by HighestMean
        """
        rows, eligible = self._read_one("decide explains", context, arms)
        ((_, chooser),) = self.chooser.groups(eligible)
        ((_, choice, evidence),) = chooser.decisions(rows)
        found = answer(self.state.fallback, choice, evidence)
        reason = f"deployed by {self.state.rules.deployment}"
        if self.state.fallback is not None and found.status[0]:
            why = self.state.fallback.why(rows[0], float(choice.gap[0]), self.state.schema)
            if found.status[0] == Status.NO_FALLBACK:
                reason = f"{reason}: the fallback is not eligible, but {why}"
            else:
                reason = f"fallback: {why}"
        labels = tuple(self.arms[column] for column in chooser.columns)
        belief = evidence.belief.row(0)
        return Decision.of(belief, labels, int(found.arm[0]), reason, self.state.rules.sign)

    def rank(self, context: Any, *, arms: Any = None) -> tuple[Ranked, ...]:
        """Return all eligible arms at one context, best first, with means, intervals and bounds.

        The first arm is the one that ``recommend`` returns. The second is the one it would return
        if the first were not eligible, and so on.

        .. versionadded:: 0.2

        Parameters
        ----------
        context
            One context.
        arms
            The labels of the eligible arms, all by default.

        See Also
        --------
        recommend : The first of them, for many contexts.

        Examples
        --------
        >>> for ranked in policy.rank([0.5, 0.0]):
        ...     print(ranked.arm, round(ranked.mean, 1))
        right 0.5
        left -0.5
        """
        rows, eligible = self._read_one("rank orders the arms at", context, arms)
        left = np.ones((1, len(self.arms)), dtype=bool) if eligible is None else eligible.copy()
        answers: list[tuple[Answer, ModelEvidence]] = []
        while left.any():
            ((_, found, evidence),) = self.answers(rows, left)
            answers.append((found, evidence))
            left[0, evidence.columns[int(found.arm[0])]] = False
        best, among_all = answers[0]
        belief, columns = among_all.belief.row(0), list(among_all.columns)
        gap = belief.gap.copy()
        gap[best.arm[0]] = best.gap[0]  # a look-back's is that of an earlier step
        bounds = regret_bounds(gap, self.state.largest_regret)
        order = [evidence.columns[int(found.arm[0])] for found, evidence in answers]
        told = (*self.state.told(belief), bounds)
        return tuple(
            Ranked(self.arms[column], *(float(each[columns.index(column)]) for each in told))
            for column in order
        )

    def beliefs(self, contexts: Any) -> Beliefs:
        """Return means, standard deviations and intervals of every arm at every context.

        Where rewards have two values, means and bounds are clipped to the range between them.

        .. versionadded:: 0.3

        Parameters
        ----------
        contexts
            One context (1-D) or many (2-D or a DataFrame, whose index is kept).

        See Also
        --------
        means : The means alone, faster.
        Policy.decide : One context, with gaps.
        rank : One context, arms in order.

        Examples
        --------
        >>> beliefs = policy.beliefs([[0.5, 0.0], [-0.5, 0.0]])
        >>> beliefs.mean.round(1)
        array([[-0.5,  0.5],
               [ 0.5, -0.5]])
        """
        rows, single = self.state.read(contexts)
        found = np.empty((4, len(rows), len(self.arms)))
        for block in self.chooser.blocks(len(rows)):
            belief = self.chooser.evidence(rows[block], among=len(rows)).belief
            found[:, block] = self.state.told(belief)
        mean, std, lower, upper = frozen(found[:, 0] if single else found)
        index = None if single else getattr(contexts, "index", None)
        index = index if hasattr(index, "tolist") else None  # a list has a method of that name
        return Beliefs(self.arms, mean, std, lower, upper, index)

    def means(self, contexts: Any) -> FloatArray:
        """Return the expected reward of every arm, rows by arms: faster than ``beliefs``.

        .. versionadded:: 0.3

        Parameters
        ----------
        contexts
            One context or many, as for ``beliefs``.

        See Also
        --------
        beliefs : With standard deviations and intervals.

        Examples
        --------
        >>> policy.means([0.5, 0.0]).round(1)
        array([-0.5,  0.5])
        """
        rows, single = self.state.read(contexts)
        found = self.state.within(self.raw_means(rows))
        return frozen(found[0] if single else found)

    def raw_means(self, rows: FloatArray) -> FloatArray:
        """Return means by which arms are compared, of encoded contexts: not clipped."""
        found = np.empty((len(rows), len(self.arms)))
        for block in self.chooser.blocks(len(rows)):
            cheap = self.chooser.predictor.means(rows[block])
            mean = self.chooser.evidence(rows[block]).belief.mean if cheap is None else cheap[0]
            found[block] = self.state.rules.sign * mean
        return found

    def explain(
        self, context: Any, against: Label | None = None, *, arm: Label | None = None, most: int = 5
    ) -> Explanation:
        """Return which trials and columns make one arm's expected reward higher than another's.

        .. versionadded:: 0.2

        Parameters
        ----------
        context
            One context.
        against
            The other arm; by default the best of the remaining ones.
        arm
            The first arm; by default the recommended one.
        most
            How many trials to name.

        See Also
        --------
        plot.explanation : Draws it.

        Examples
        --------
        >>> explanation = policy.explain([0.5, 0.0])
        >>> explanation.arm, explanation.against
        ('right', 'left')
        >>> max(explanation.columns, key=explanation.columns.get)
        'x'
        """
        rows, _ = self._read_one("explain compares two arms at", context, None)
        if len(self.arms) < 2:
            raise ValueError(f"explain compares two arms, and there is only {self.arms[0]!r}")
        order = [each.arm for each in self.rank(context)]
        first = order[0] if arm is None else arm
        others = [each for each in order if each != first]
        second = others[0] if against is None else against
        for label in (first, second):
            if label not in order:
                raise ValueError(f"there is no arm {label!r}; there are {list(self.arms)}")
        if first == second:
            raise ValueError(f"explain compares two arms, got {first!r} twice")
        pair = self.state.labels.index(first), self.state.labels.index(second)
        count = checks.whole("most", most, least=0)
        return explain(self.state, rows, pair, count)

    def rules(self, depth: int = 3, contexts: Any = None) -> Rules:
        """Return a short rule over raw columns that imitates the policy; print it.

        The tree minimises the expected regret of wrong arms, as the policy estimates it. The result
        says how many decisions it keeps, what it loses, and whether so short a rule is good enough.
        It can be written as text, SQL and C, and recommends arms itself; ``to_onnx`` exports the
        policy, not the rule. The tree does not split on dates: add a column such as the month if
        that matters.

        .. versionadded:: 0.3

        Parameters
        ----------
        depth
            The depth of the tree: the largest number of questions before an arm.
        contexts
            A sample of contexts like those to deploy on; the observed ones by default.

        See Also
        --------
        plot.rules : Draws the tree.
        to_c : The policy itself as C.

        Examples
        --------
        >>> rules = policy.rules(depth=1)
        >>> rules.tree.question, rules.tree.yes.arm, rules.tree.no.arm
        ('x <= 0.03', 'left', 'right')
        """
        return grow_rules(self, depth, contexts)

    def watch(
        self,
        failure_probability: float = 0.05,
        *,
        block: int = 1,
        baseline: Any = None,
        reward_range: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> Watch:
        """Return a watch over the deployed policy, which detects changes; print it.

        .. versionadded:: 0.3

        Parameters
        ----------
        failure_probability, block, baseline, reward_range, seed
            As for ``insight.Watch``.

        See Also
        --------
        insight.Watch : What it returns.
        plot.watch : Draws it.

        Examples
        --------
        >>> watch = policy.watch()
        >>> watch.see([[0.5, 0.0], [-0.5, 0.0]])
        array(['right', 'left'], dtype=object)
        >>> watch.alarm is None
        True
        """
        found: Watch = import_module("contextgap.insight.watch").Watch(
            self,
            failure_probability,
            block=block,
            baseline=baseline,
            reward_range=reward_range,
            seed=seed,
        )
        return found

    def certificate(self, contexts: Any, *, arms: Any = None) -> Certificate:
        """Return a bound on the simple regret of every recommendation.

        The bound is max(0, gap of the recommended arm). It holds where the intervals hold. Where
        the policy returns the fallback, it is the gap of the fallback, which is usually large.
        Regret is against the best of the eligible arms. Where rewards have two values, no bound
        exceeds their difference.

        Parameters
        ----------
        contexts, arms
            As for ``recommend``.

        See Also
        --------
        expected_regret : What is lost on average.
        probability : With which probability certificates hold.

        Examples
        --------
        >>> certificate = policy.certificate([[0.5, 0.0], [-0.5, 0.0]])
        >>> certificate.bound.round(2), certificate.probability
        (array([0., 0.]), None)
        """
        rows, eligible, _ = self._read(contexts, arms)
        return self._certificate(self._answer(rows, eligible).gap)

    def status(self, contexts: Any, *, arms: Any = None) -> Any:
        """Return why each arm is returned: a ``Status``, or its number for every row.

        0: the recommended arm. 1: the fallback, because the recommended arm's bound exceeds the
        tolerance. 2: the fallback, because the context lies outside the observed range. 3: the
        recommended arm, because the fallback would be returned but is not eligible.

        .. versionadded:: 0.2

        Parameters
        ----------
        contexts, arms
            As for ``recommend``.

        See Also
        --------
        with_fallback : Set the safe arm.

        Examples
        --------
        >>> safe = policy.with_fallback("left")
        >>> safe.status([[0.5, 0.0], [9.0, 0.0]])
        array([0, 2])
        """
        rows, eligible, single = self._read(contexts, arms)
        if self.state.fallback is None:
            status = np.zeros(len(rows), dtype=np.intp)
        else:
            status = self._answer(rows, eligible).status
        return Status(int(status[0])) if single else status

    def with_fallback(self, arm: Label, *, tolerance: float | None = None) -> Policy:
        """Return the same policy with a safe arm for contexts where bounds are too large.

        The policy returns the safe arm where the recommended arm's certificate exceeds the
        tolerance, and where the context lies outside the observed range. That is, one of its
        numbers is below the lowest or above the highest observed one by more than a tenth of their
        range, or a category has a level that was never observed. A compressed policy knows only
        the points it kept, so set the fallback before compressing.

        .. versionadded:: 0.2

        Parameters
        ----------
        arm
            The label of the safe arm.
        tolerance
            The largest accepted bound; None for any, so that only the observed range counts.

        See Also
        --------
        status : Where the fallback is answered, and why.
        Learner.freeze : Sets a fallback, too.

        Examples
        --------
        >>> safe = policy.with_fallback("left", tolerance=0.5)
        >>> safe.recommend([9.0, 0.0])
        'left'
        """
        card, seen = self.state.card, self.state.model.observed.contexts
        if card is not None and card.rewards > len(self.state.model):
            raise ValueError(
                f"a fallback must be put on before compressing: of {card.rewards} contexts seen, "
                f"this policy knows {len(seen)}"
            )
        return Policy(self.state.with_fallback(arm, tolerance, seen))

    def with_columns(self, names: Sequence[str]) -> Policy:
        """Return the same policy with names for the columns of contexts.

        A policy that was learnt from arrays knows columns by their order only, and refuses tables
        with named columns. The returned policy takes both.

        .. versionadded:: 0.3

        Parameters
        ----------
        names
            One name for each number of a context, in the order learnt.

        Examples
        --------
        >>> unnamed = cg.Learner(2, kernel=cg.Gaussian(1.0)).fit([[0.0], [1.0]], [0, 1], [1.0, 2.0])
        >>> unnamed.freeze().with_columns(["x"]).recommend({"x": 0.9})
        1
        """
        return Policy(replace(self.state, schema=self.state.schema.named(names)))

    def expected_regret(self, contexts: Any, *, arms: Any = None) -> FloatArray:
        """Return the expected simple regret of every recommendation, under the posterior.

        It is the expected reward of the truly best arm minus that of the recommended one. Arms
        count as independent except for what all of them share. If the model is right, it is the
        average regret of recommendations; ``certificate`` bounds the regret of each.

        .. versionadded:: 0.2

        Parameters
        ----------
        contexts, arms
            As for ``recommend``.

        See Also
        --------
        certificate : A bound on the regret of each answer.

        Examples
        --------
        >>> policy.expected_regret([[0.5, 0.0]]).round(3)
        array([0.])
        """
        rows, eligible, _ = self._read(contexts, arms)
        regret = np.empty(len(rows))
        for where, found, evidence in self.answers(rows, eligible):
            belief = evidence.belief
            regret[where] = expected_regret(belief.mean, own_std(belief), found.arm)
        return frozen(np.minimum(regret, self.state.largest_regret))

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

        Points are chosen one by one among an arm's observed contexts, and their rewards refitted,
        so that decisions change least at reference contexts. The result's ``compression`` says what
        was lost. It is an ordinary policy, but its rewards were never observed:

        - It deploys by ``HighestMean``, which needs no widths and so has room for many more points,
          or by its original rule (``SmallestGap`` for a look-back), if that agrees better.
        - Only differences between its arms' means are the original's, or between the upper bounds
          of a policy that deploys the highest of these.
        - Its intervals and certificates are those of the points left: wider, and with
          ``probability`` None. ``compression.added_regret_bound`` plus the original's certificates
          bounds the regret where the original's intervals hold, on average over contexts like the
          reference.
        - It keeps the fallback, its tolerance and the range of contexts seen. Wider intervals
          exceed the tolerance more often. Agreement and regret are those of what is answered.

        Parameters
        ----------
        points
            Points that each arm may keep at most; exactly one of this and the next two is given.
        bytes
            Bytes that the constants of the C export may take at most.
        agreement
            Smallest share of decisions that must stay the same, such as 0.99, at held-out contexts
            and at those fitted to. Since these contexts choose the number of points, the agreement
            reported is slightly better than that at other contexts.
        contexts
            A sample of contexts like those to deploy on; every fourth is held out to measure
            agreement. By default the observed ones and as many copies, each moved a little.
            Contexts in time order are held out between their neighbours, so the agreement says
            little about days unlike those.
        float32
            Whether bytes are counted for ``float`` or for ``double``. Agreement is that of the
            policy itself, which computes in ``double``.
        seed
            Makes everything random repeatable.

        See Also
        --------
        compression : What it cost.
        to_c : Write the result as C.

        Examples
        --------
        >>> small = policy.compress(points=5)
        >>> small.compression.points
        (3, 3)
        >>> small.recommend([0.5, 0.0])
        'right'
        """
        card = self.card if len(self.state.model) > 1 else None  # fewer points cannot tell any more
        provenance = self.provenance
        compression = import_module("contextgap.export.compression")
        smaller, report = compression.compress(
            self,
            points=points,
            bytes=bytes,
            agreement=agreement,
            contexts=contexts,
            float32=float32,
            seed=seed,
        )
        return Policy(replace(smaller.state, compression=report, card=card, provenance=provenance))

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        *,
        float32: bool = False,
        explain: bool = False,
        eligible: bool = False,
    ) -> OnnxFile:
        """Write the policy as an ONNX graph; needs the extra ``onnx``.

        The graph goes from ``contexts`` (batch, d) to ``arm`` (batch,), an index. The metadata
        holds labels of arms, names of columns, recommender, kernel and ``probability``.

        A table with typed columns has one number per column, in the table's order: a number, days
        since 1970, the code of a category's level, NaN if missing. The metadata then also holds
        ``table``, with each column's kind and levels; a level's code is its place, from 0. Any
        other code is a level never observed. ``GraphPolicy`` reads raw tables.

        A row that holds infinity, or NaN where no value may be missing, or numbers so large that
        means or bounds overflow, gets the arm −1, NaN for everything believed and an infinite
        certificate.

        A policy with a fallback has one more output, ``status`` (batch,), as the method ``status``
        returns it; −1 where there is no answer. The metadata holds ``fallback``.

        Intervals need a triangular matrix for each arm, some n²/2 numbers for n observations; a
        policy that deploys by ``HighestMean`` is written without, unless ``explain`` asks for them
        or a fallback has a tolerance. ``SmallestGapInHistory`` holds every arm's bounds after each
        observation, and tables of (steps looked back on) × batch numbers while it runs: run it in
        blocks of contexts, as ``GraphPolicy`` does.

        Parameters
        ----------
        path
            Where to write; an older file is replaced once the new one is complete.
        float32
            Compute in single precision: half the size, for hardware without doubles. A std below
            about 1e-3·√k(x, x) is then no different from zero, and errors of means are the larger
            the smaller the ridge.
        explain
            Also put out ``mean``, ``std``, ``lower``, ``upper``, ``gap`` (batch, arms) after the
            last step, and ``certificate`` (batch,), the regret bound of the arm answered.
        eligible
            Take a second input, ``eligible`` (batch, arms), of truth values: which arms may be
            chosen. Other arms count for nothing in a row, but their means and bounds are put out;
            their gaps are NaN. A row without eligible arms gets no answer. Rules that look back
            cannot be written so.

        See Also
        --------
        to_c : Write C.
        export.onnx.GraphPolicy : Runs the graph.

        Examples
        --------
        >>> file = policy.to_onnx("policy.onnx")
        >>> graph = cg.export.onnx.GraphPolicy("policy.onnx")
        >>> graph.recommend([[0.5, 0.0], [-0.5, 0.0]]).tolist()
        [1, 0]
        """
        written: OnnxFile = import_module("contextgap.export.onnx").write_onnx(
            self, path, float32=float32, explain=explain, eligible=eligible
        )
        return written

    def to_c(
        self,
        directory: str | os.PathLike[str],
        *,
        float32: bool = False,
        certificates: bool = False,
        contexts: Any = None,
        prefix: str = "contextgap",
        eligible: bool = False,
        watch: Watch | None = None,
    ) -> CExport:
        """Write the policy as C99: a header, a source and a program that tests them on the target.

        Raises ``ExportError`` for what cannot be expressed: rules that draw at random, kernels
        other than the library's own, numbers beyond the range of ``float``.

        Of a table with typed columns the code takes one number per column, as ``to_onnx`` says; the
        header has a constant for every level and functions that return a text's code.

        Parameters
        ----------
        directory
            Where to write; made if missing. Files of an earlier export are replaced.
        float32
            Compute in ``float``; the header says what that costs in precision.
        certificates
            Whether a policy that deploys the highest mean includes widths, gaps and certificates.
            They take n²/2 numbers for an arm's n observations; without them it needs its observed
            contexts and n numbers. Other rules need widths anyway and always have them.
        contexts
            Contexts for the self-test: those that the policy will meet. By default 200 are made
            around the observed ones.
        prefix
            Begins the names of files, functions and, in capitals, macros; two policies in one
            program need different ones.
        eligible
            Include ``contextgap_decide_among``, too, which is told what arms may be chosen and
            decides as if there were no others. Rules that look back cannot.
        watch
            An unused result of ``policy.watch``: include a watch that does the same.

        See Also
        --------
        to_onnx : Write an ONNX graph.
        compress : Make it smaller before.

        Examples
        --------
        >>> export = policy.to_c("flight", float32=True)
        >>> export.header.name, export.source.name
        ('contextgap_policy.h', 'contextgap_policy.c')
        """
        written: CExport = import_module("contextgap.export.c").write_c(
            self,
            directory,
            float32=float32,
            certificates=certificates,
            contexts=contexts,
            prefix=prefix,
            eligible=eligible,
            watch=watch,
        )
        return written

    def _save(self, path: files.File) -> None:
        provenance, model = self.provenance, self.state.model.deployed()
        if model is not self.state.model and len(model) > 1:
            self.card  # noqa: B018  # computed while there are all rewards to compute it from
        state = replace(self.state, model=model)
        header = {
            **state.describe(),
            "seed": state.seed,
            # Earlier releases refuse cards with fields that they do not know.
            "card": state.card and replace(state.card, **LATER_FIELDS).describe(),
            "provenance": provenance.describe(),
        }
        if state.reward_range is not None:
            header["reward_range"] = list(state.reward_range)
        if state.spending is not None:
            header["spending"] = list(state.spending)
        if state.fallback is not None:
            header["fallback"] = state.fallback.describe()
        version = state.file_version(newer=state.fallback is not None)
        files.write(path, "policy", header, model.arrays(), version)

    @classmethod
    def _load(cls, path: files.File) -> Self:
        header, arrays = files.read(path, "policy")
        with files.making_sense_of(path):
            known = State.restored(header, arrays)
            fallback = None
            if "fallback" in header:
                dimension = known.schema.dimension
                fallback = Fallback.restored(header["fallback"], known.arms, dimension)
            state = PolicyState(
                **vars(known),
                seed=read_seed(header["seed"]),
                fallback=fallback,
                provenance=Provenance.restored(header.get("provenance")),
                reward_range=read_range(header.get("reward_range")),
                spending=read_spending(header.get("spending")),
            )
            if (card := header.get("card")) is not None:  # files of release 0.1 have none
                state = replace(state, card=state.noted(Card.restored(card)))
            return cls(state)

    def answered(self, contexts: Any, arms: Any, bounds: bool) -> Answered:
        """Return arms, statuses and certificates at a table of contexts, computed at once."""
        if not bounds and self.state.fallback is None:
            found = self.recommend(contexts, arms=arms)
            return Answered(found, np.zeros(len(found), dtype=np.intp), None)
        rows, eligible, _ = self._read(contexts, arms)
        whole = self._answer(rows, eligible)
        certificate = self._certificate(whole.gap) if bounds else None
        return Answered(label_array(self.arms, whole.arm), whole.status, certificate)

    def _answer(self, rows: FloatArray, eligible: Mask | None) -> Answer:
        arm, status = np.zeros((2, len(rows)), dtype=np.intp)
        gap = np.empty(len(rows))
        for where, found, evidence in self.answers(rows, eligible):
            arm[where] = np.array(evidence.columns)[found.arm]
            gap[where], status[where] = found.gap, found.status
        return Answer(arm, gap, status)

    def _certificate(self, gap: FloatArray) -> Certificate:
        covered = self.width.covers(len(gap))
        bound = frozen(regret_bounds(gap, self.state.largest_regret))
        return Certificate(bound, self.probability if covered else None)

    def _read(self, contexts: Any, arms: Any) -> tuple[FloatArray, Mask | None, bool]:
        rows, single = self.state.read(contexts)
        return rows, read_eligible(arms, self.arms, len(rows), single=single), single

    def _read_one(self, purpose: str, context: Any, arms: Any) -> tuple[FloatArray, Mask | None]:
        rows, eligible, single = self._read(context, arms)
        if not single:
            raise ValueError(
                f"{purpose} one context: a 1-D array, a dictionary or table.iloc[0]; "
                "beliefs and recommend take many rows"
            )
        return rows, eligible

    def scored(
        self,
        propensities: Any,
        rows: int | None = None,
        known: AllRows | None = None,
        picks: IntArray | None = None,
    ) -> Card:
        """Return the score card, given what is known of rows that the model does not keep.

        Given picks, as places in ``arms``, it is the card of whatever picked these arms at the
        logged contexts.
        """
        about = self.state.fallback, self.probability, propensities, rows, known, picks
        # Its leave-one-out predictions do not depend on what is left out in any way.
        learnt, own = self.state.model.learnt(), self.chooser
        own = (
            own if learnt is self.state.model else Policy(replace(self.state, model=learnt)).chooser
        )
        card = score(own, self.arms, *about)
        card = card.of_costs() if self.state.rules.costs else card
        certificate = min(card.certificate, self.state.largest_regret)
        return self.state.noted(replace(card, certificate=certificate))

    def answers(
        self, rows: FloatArray, eligible: Mask | None = None
    ) -> Iterator[tuple[IntArray, Answer, ModelEvidence]]:
        """Yield places of rows, what is answered there, and what it rests on.

        Arms answered are places in the evidence's columns.
        """
        everywhere = np.arange(len(rows))
        for places, chooser in self.chooser.groups(eligible):
            where = everywhere[places]
            for block, choice, evidence in chooser.decisions(rows[places]):
                yield where[block], answer(self.state.fallback, choice, evidence), evidence
