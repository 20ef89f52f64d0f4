"""The side of a learner that deploys: what it would recommend, how good that is, when to stop."""

from __future__ import annotations

import warnings
from dataclasses import replace
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label
from contextgap.base.seeds import seed_after
from contextgap.base.turns import in_turn
from contextgap.learner.stopping import ReferenceWatch, StoppingRule
from contextgap.models import Model, larger_model
from contextgap.policy.card import Card
from contextgap.policy.known import Known
from contextgap.policy.policy import Policy
from contextgap.policy.ranking import Ranked
from contextgap.policy.state import PolicyState
from contextgap.tables.doubts import level_of_user

_NOTHING = "no reward was told yet, so nothing is known about any arm"
_FEWEST = 40  # rewards before exploring may stop, where scales are learnt from them


class Deploying(Known):
    """What can be done with the model as it is now; nothing of it changes what was learnt."""

    _policy_seed: int
    _next_tune: int | None
    _watches: WeakKeyDictionary[StoppingRule, ReferenceWatch]
    _lock: RLock

    @in_turn
    def recommend(self, contexts: Any, *, arms: Any = None) -> Any:
        """Return the arm to deploy, given what is known now; changes nothing.

        Before the first reward it warns that nothing is known.

        Parameters
        ----------
        contexts
            One context (1-D) or many (2-D or a DataFrame).
        arms
            The eligible arms, all by default, as for ``ask``.

        Returns
        -------
        arm
            A label for one context; an array of labels, one per row, for many.
        """
        return self._deployed().recommend(contexts, arms=arms)

    @in_turn
    def rank(self, context: Any, *, arms: Any = None) -> tuple[Ranked, ...]:
        """Return all eligible arms at one context, best to deploy first, as ``Policy.rank`` does.

        Parameters
        ----------
        context
            One context.
        arms
            The labels of the eligible arms, all by default.
        """
        return self._deployed().rank(context, arms=arms)

    @in_turn
    def score(
        self,
        propensities: Any = None,
        *,
        fallback: Label | None = None,
        tolerance: float | None = None,
        rows: int | None = None,
    ) -> Card:
        """Return how good deploying now would be, estimated from the rewards told so far.

        Every reward is left out of what predicts it and decides at its context, among the arms that
        were eligible there; ``Card`` says what is reported. Of a long log, the default leaves out
        as many rewards, evenly spread, as take about 10 seconds. It counts operations and not
        seconds, so that the same log has the same card on every machine. Averages of all rows stand
        in for the rest, and the standard errors say how well.

        Parameters
        ----------
        propensities
            The probability with which each logged arm was chosen, in the order in which
            the rewards were told. With them the estimate of the policy's value does not depend on
            the model being right. By default those logged with the picks, if every reward was
            asked for and its arm drawn with a known probability, as by ``"proportional-response"``.
        fallback, tolerance
            Those of the policy to be frozen, as for ``freeze``.
        rows
            How many rewards to predict leave-one-out at most.
        """
        policy = self._policy(self._model, None, fallback, tolerance)
        return policy.score(propensities, rows=rows)

    @in_turn
    def freeze(
        self,
        card: Card | None = None,
        *,
        fallback: Label | None = None,
        tolerance: float | None = None,
        points: int | None = None,
    ) -> Policy:
        """Return the current decision rule; the learner may continue to learn.

        At least one reward must have been told, unless there is a fallback to answer.

        Parameters
        ----------
        card
            A card that ``score`` returned, for the policy to carry; by default it makes its own.
        fallback
            A safe arm, which the policy answers where the certificate exceeds the tolerance, and at
            contexts outside what was seen; ``Policy.with_fallback`` says what that means.
        tolerance
            The largest bound with which the recommended arm is answered; None for any.
        points
            Where observations are represented by support points, the policy may have so many of
            them, such as 2048. All observations are then gone through once more, if that brings the
            policy closer to exact beliefs.
        """
        if not len(self._model) and fallback is None:
            raise ValueError(f"{_NOTHING}; tell rewards first (ask returns arms to try)")
        if card is not None:
            checks.instance("card", card, Card, "learner.score()")
        if points is None:
            model = self._model.snapshot()
        else:
            model = larger_model(self._model, checks.whole("points", points, least=1))
        return self._policy(model, card, fallback, tolerance)

    @in_turn
    def settled(self, rule: StoppingRule) -> float:
        """Return the share of a rule's reference contexts that is certified within its tolerance.

        It may fall when scales are learnt anew: certificates that rested on the old ones are
        replaced by others, which may be wider.

        Parameters
        ----------
        rule
            What is wanted. Asking after every ``tell`` costs one small update each time.
        """
        bound = self._bounds_at(rule)
        return rule.settled(bound)

    def _bounds_at(self, rule: StoppingRule) -> FloatArray:
        """Return the certificate at every reference context of a rule."""
        checks.instance("rule", rule, StoppingRule, "StoppingRule(0.1, reference=contexts)")
        reference, eligible = rule.contexts_for(self._schema), rule.eligible(self.arms)
        watch = self._watches.get(rule)
        # Levels of categories that were unknown when the rule was first asked for may be known now.
        same = watch is not None and np.array_equal(watch.contexts, reference)
        if watch is None or watch.model is not self._model or not same:
            watch = ReferenceWatch(self._model, reference, self.method.recommender, self.width)
            self._watches[rule] = watch
        seed = seed_after(self._policy_seed, len(self._model))
        return watch.bound(self._active, self._rules.burn_in, seed, eligible)

    @in_turn
    def done(self, rule: StoppingRule) -> bool:
        """Return whether exploring may stop.

        Every arm that is eligible at a reference context must have had its burn-in, and the rule's
        share of reference contexts a certificate within its tolerance, or, if the rule says so,
        their mean certificate must be within it. Where scales are learnt, 40
        rewards are needed too: fewer may happen to be alike, and make certificates far too narrow.
        The answer may change back when scales are learnt anew, as ``settled`` may fall.

        Parameters
        ----------
        rule
            What is wanted.
        """
        bound = self._bounds_at(rule)
        enough = rule.met(bound)
        eligible, used = rule.eligible(self.arms), np.array(self._active)
        used = used if eligible is None else used[eligible.any(axis=0)]
        enough = enough and (self._next_tune is None or len(self._model) >= _FEWEST)
        return enough and min(map(self._model.observed.count, used)) >= self._rules.burn_in

    def _deployed(self) -> Policy:
        if not len(self._model):
            warnings.warn(
                f"{_NOTHING}; the answer is the first of equals", stacklevel=level_of_user()
            )
        return self._policy(self._model)

    def _policy(
        self,
        model: Model,
        card: Card | None = None,
        fallback: Label | None = None,
        tolerance: float | None = None,
    ) -> Policy:
        state = PolicyState(
            model=model,
            labels=self._labels,
            active=self._active,
            rules=self._rules,
            schema=self._schema.told_only(),
            seed=seed_after(self._policy_seed, len(self._model)),
            card=card,
        )
        policy = Policy(state)
        if fallback is not None:
            safe = policy.with_fallback(fallback, tolerance=tolerance)
            return Policy(replace(safe.state, card=card))
        if tolerance is not None:
            raise TypeError(f"tolerance needs a fallback to answer, got tolerance={tolerance!r}")
        return policy
