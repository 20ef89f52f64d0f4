"""All that a learner knows at one moment, also in files, and what explorers see of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple, Self

import numpy as np

from contextgap.base import checks, files
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label, Mask
from contextgap.beliefs import Belief, PosteriorWidth, Width
from contextgap.kernels import Gaussian, Kernel
from contextgap.learner.arguments import (
    ArmFeatures,
    read_chances,
    read_cost,
    read_features,
    read_known_costs,
    read_points,
    spending,
)
from contextgap.methods.explorers import LookAhead, Moment, Pool, check_reference
from contextgap.methods.explorers.base import as_numbers
from contextgap.methods.method import read_method
from contextgap.methods.recommenders.rules import check_history
from contextgap.models import (
    Ageing,
    Alike,
    Batch,
    Eligible,
    Features,
    Follower,
    Model,
    Observations,
    Posterior,
    Relation,
    check_floats,
    new_model,
    refitted_model,
    settled_model,
)
from contextgap.models.tuning import AmortisedSearch, Hyperparameters, Tuning
from contextgap.policy.state import (
    PolicyState,
    Rules,
    State,
    read_costs,
    read_prior_mean,
    read_seed,
    read_truth,
    two_values,
)
from contextgap.tables.contexts import ContextSchema, read_columns


def random_sources(seed: int | None) -> tuple[np.random.Generator, int]:
    """Return the generator for exploration and the seed for policies frozen during it."""
    if seed is not None:
        seed = checks.whole("seed", seed, least=0)
    sequence = np.random.SeedSequence(seed)
    return np.random.default_rng(sequence), int(sequence.generate_state(1, np.uint64)[0])


def seed_after(policy_seed: int, observations: int) -> int:
    """Return the seed of a policy frozen after this many observations."""
    return (policy_seed + observations) % 2**64


_DECIMALS = 3  # a number with fewer is not taken for another one, rounded


class Asked(NamedTuple):
    eligible: Eligible = None  # the arms among which it was made; None for all
    propensity: float | None = None  # if it is known
    number: int | None = None  # of its trial, if it is one


@dataclass
class Pending:
    """Contexts picked without a reward so far, by arm, oldest first, and how each was asked."""

    by_arm: dict[int, list[FloatArray]] = field(default_factory=dict)
    asked: dict[int, list[Asked]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum([len(waiting) for waiting in self.by_arm.values()])

    def copy(self) -> Pending:
        return Pending(
            {arm: list(waiting) for arm, waiting in self.by_arm.items()},
            {arm: list(asked) for arm, asked in self.asked.items()},
        )

    def changed(self, change: Callable[[FloatArray], FloatArray]) -> Pending:
        by_arm = {arm: list(map(change, waiting)) for arm, waiting in self.by_arm.items()}
        return Pending(by_arm, self.asked)

    def count(self, arm: int) -> int:
        return len(self.by_arm.get(arm, ()))

    def add(self, context: FloatArray, arm: int, asked: Asked) -> None:
        self.asked.setdefault(arm, []).append(asked)
        self.by_arm.setdefault(arm, []).append(context)

    def number(self, arm: int, number: int) -> None:
        """Make the latest pick of an arm a trial."""
        self.asked[arm][-1] = self.asked[arm][-1]._replace(number=number)

    def trials(self) -> list[tuple[int, int, FloatArray]]:
        pairs = ((arm, *each) for arm in self.by_arm for each in self._of(arm))
        return sorted(
            ((asked.number, arm, x) for arm, x, asked in pairs if asked.number is not None),
            key=lambda each: each[0],
        )

    def bring_forward(self, number: int) -> tuple[int, FloatArray] | None:
        """Make a trial the oldest pick of its arm at its context, which ``find`` then finds."""
        for arm in self.by_arm:
            for place, (context, asked) in enumerate(self._of(arm)):
                if asked.number == number:
                    first, own = self.find(context, arm), self.asked[arm]
                    if first is not None:
                        own[first], own[place] = own[place], own[first]
                    return arm, context
        return None

    def _of(self, arm: int) -> Iterator[tuple[FloatArray, Asked]]:
        return zip(self.by_arm[arm], self.asked[arm], strict=True)

    def find(self, context: FloatArray, arm: int) -> int | None:
        given = context.tolist()  # as short as contexts are, the fastest way
        for place, candidate in enumerate(self.by_arm.get(arm, ())):
            if candidate.tolist() == given:
                return place
        return None

    def find_rounded(self, context: FloatArray, arm: int) -> int | None:
        """Return the place of the oldest waiting pick that equals a context but for rounding."""
        waiting = np.array(self.by_arm.get(arm, []))
        if not len(waiting):
            return None
        same = np.isclose(waiting, context, rtol=1e-6, atol=0.0)  # as single precision would be
        decimals = max(-int(Decimal(repr(each)).as_tuple().exponent) for each in context.tolist())
        if decimals >= _DECIMALS:
            same |= np.round(waiting, decimals) == context
        places = np.flatnonzero(same.all(axis=1))
        return int(places[0]) if len(places) else None

    def answer(self, rows: FloatArray, places: IntArray) -> tuple[list[Asked], int]:
        """Forget the picks answered; return how they were made, and how many only when rounded."""
        asked, rounded, unanswered = [Asked()] * len(rows), 0, []
        if not self.by_arm:
            return asked, rounded
        for row, (context, arm) in enumerate(zip(rows, map(int, places), strict=True)):
            found = self.find(context, arm)
            if found is None:
                unanswered.append(row)
            else:
                asked[row] = self.take(arm, found)
        for row in unanswered:  # exact answers first, so that no pick is taken from them
            arm = int(places[row])
            found = self.find_rounded(rows[row], arm)
            if found is not None:
                asked[row] = self.take(arm, found)
                rounded += 1
        return asked, rounded

    def take(self, arm: int, place: int) -> Asked:
        waiting = self.by_arm[arm]
        del waiting[place]
        asked = self.asked[arm].pop(place)
        if not waiting:  # files keep no empty lists; the order of arms must not differ
            del self.by_arm[arm], self.asked[arm]
        return asked


@dataclass
class View:
    """A model together with the picks whose rewards are still to come."""

    model: Model
    pending: Pending
    active: tuple[int, ...]  # the model's indices of the arms to choose from
    width: Width
    rng: np.random.Generator
    follower: Callable[[], Follower]  # keeps the posterior at reference points up to date
    read: Callable[[Any], FloatArray] = as_numbers  # of contexts that an explorer was given
    costs: Callable[[FloatArray, Sequence[int]], FloatArray | None] = lambda _rows, _arms: None
    batch: Batch | None = None  # the posterior at many contexts that are picked for in order

    def among(self, eligible: Mask) -> View:
        """Return a view of some of the arms only; the mask has one entry for each arm."""
        return replace(self, active=tuple(np.array(self.active)[eligible].tolist()))

    def pulls(self) -> list[int]:
        return [self.model.observed.count(i) + self.pending.count(i) for i in self.active]

    def moment(self, context: FloatArray, row: int = 0) -> Moment:
        """Return what an explorer sees at one context, which is so many rows into the batch."""
        own = self._own_posterior if self.model.implies else None
        return Moment(
            believe=lambda: Belief(self._posterior(context, row), self.width),
            pulls=self.pulls(),
            step=len(self.model) + len(self.pending) + 1,
            rng=self.rng,
            seen=len(self.model),
            look_ahead=lambda reference: self._look_ahead(context, row, reference),
            ridge=self.model.ridge,
            shares=self.model.related,
            read=self.read,
            kernel_at=lambda reference: self._kernel_at(context, reference),
            costs=None if (costs := self._costs(context[None])) is None else costs[0],
            believe_own=None if own is None else lambda: Belief(own(context, row), self.width),
        )

    def pool(self, contexts: FloatArray) -> Pool:
        pooled = self.model.pooled(contexts, self.active, self.pending.by_arm)
        return Pool(
            contexts=contexts,
            believe=lambda: Belief(pooled.posterior, self.width),
            moves=pooled.moves,
            means=pooled.means,
            ridge=self.model.ridge,
            shares=self.model.related,
            rng=self.rng,
            read=self.read,
            costs=self._costs(contexts),
        )

    def _costs(self, contexts: FloatArray) -> FloatArray | None:
        """Return what arms cost at contexts, None if all cost the same."""
        costs = self.costs(contexts, self.active)
        return None if costs is None or (costs == costs.flat[0]).all() else costs

    def told(self, context: FloatArray) -> Belief:
        """Return what the rewards told so far say at one context, pending picks left out."""
        return Belief(self.model.posterior(context, self.active), self.width)

    def _kernel_at(self, context: FloatArray, reference: IntArray | FloatArray) -> FloatArray:
        check_reference(reference, len(context))
        given = reference if reference.ndim == 2 else self.model.observed.contexts[reference]
        points = np.vstack([np.reshape(given, (-1, len(context))), context])
        return self.model.kernel(points, points)

    def _posterior(self, context: FloatArray, row: int) -> Posterior:
        if self.batch is not None:
            return self.batch.posterior(row, self.active)
        return self.model.posterior(context, self.active, self.pending.by_arm)

    def _own_posterior(self, context: FloatArray, row: int) -> Posterior:
        if self.batch is not None:
            return self.batch.own.posterior(row, self.active)
        own = self.model.of_own_rewards()
        return own.posterior(context, self.active, self.pending.by_arm)

    def _look_ahead(
        self, context: FloatArray, row: int, reference: IntArray | FloatArray
    ) -> LookAhead:
        check_reference(reference, len(context))
        if self.batch is not None and not self.model.shares:
            return self.batch.look_ahead(row, self.active, reference)
        return self.follower().look_ahead(context, self.active, reference, self.pending.by_arm)


# How many times as many rewards as last time there are when hyperparameters are learnt anew. Each
# time costs up to the cube of their number, and all together some 1.6 times the last one.
_GROWTH = {"growing": 1.4, "doubling": 2.0}
_RETUNE = (*_GROWTH, "never")
_ALIKE = 0.9  # how alike arms with the same features are, if nothing is said
_FEW = 10  # rewards, of all arms together, from which hyperparameters are first learnt
_MOST_GROWTH = 1e6  # of rewards between two tunings; more is no setting


class Searching(NamedTuple):
    search: AmortisedSearch
    operations: float  # that it may have taken by now


class Running(NamedTuple):
    """Where a run that is saved began."""

    first: int  # the number of its first trial
    rewards: int  # how many had been told before


@dataclass(frozen=True)
class LearnerState(State):
    """All that a learner knows at one moment.

    The model grows with every reward; ``mark`` says where it stood, so that ``Learner.restore`` can
    return to it. Everything else is never changed in place.
    """

    random: Mapping[str, Any]  # the state of the random source
    policy_seed: int  # from which policies have their seeds
    next_tune: int | None  # how many rewards there must be for the next tuning; None for never
    growth: float  # by which factor rewards grow between two tunings
    kernel_given: bool  # whether tuning keeps the kind of the kernel
    alone: bool  # whether tuning is to take for granted that arms have nothing in common
    points: int | None  # how many inducing points there may be; None for exact beliefs for ever
    half_life: float | str | None = None  # after which rewards count half; "auto" if it is learnt
    features: ArmFeatures | None = None
    tuning: Tuning | None = None  # the report of the last one
    searching: Searching | None = None  # for hyperparameters that are to replace these
    pending: Pending = field(default_factory=Pending)
    trials: int = 0  # how many were made, pending ones included
    running: Running | None = None  # the run that is being saved
    costs: tuple[float, ...] | None = None  # known, of a trial of each arm
    cutoff: float | None = None  # the longest that a run may take
    spent_before: float = 0.0  # on trials whose rewards are not kept
    mark: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mark", self.model.mark())

    @property
    def priced(self) -> bool:
        return self.costs is not None or self.model.observed.has_costs

    @property
    def spent(self) -> float:
        log = self.model.observed
        gone = log.forgotten_by_arm * (1.0 if self.costs is None else np.array(self.costs))
        return float(spending(log, self.costs).sum() + gone.sum()) + self.spent_before

    def policy(self) -> PolicyState:
        by_features = self.features is not None and self.model.shares
        return PolicyState(
            model=self.model,
            labels=self.labels,
            active=self.active,
            rules=replace(self.rules, method=self.rules.method.suited(by_features)),
            schema=self.schema.told_only(),
            seed=seed_after(self.policy_seed, len(self.model)),
            reward_range=two_values(self.model.observed, self.rules.sign),
        )

    def deployed(self) -> PolicyState:
        """Return the same with the model that policies rest on."""
        return replace(self.policy(), model=self.model.for_deployment())

    def adopting(self, schema: ContextSchema) -> Self:
        """Return the state with a schema that knows more, as if it had always known."""
        if schema is self.schema:
            return self
        change = schema.refilling(self.schema)
        if change is None:
            return replace(self, schema=schema)
        model = self.model
        if len(model):
            log, alike = model.observed.changed(change), getattr(model, "alike", None)
            model = refitted_model(
                log, model.kernel, model.ridge, model.prior_mean, alike, self.points
            )
        pending = self.pending.changed(change)
        return replace(self, schema=schema, pending=pending, model=model, searching=None)

    def search(
        self,
        log: Observations,
        criterion: str = "evidence",
        *,
        last: Tuning | None = None,
        first: int | None = None,
    ) -> AmortisedSearch:
        """Return a search for hyperparameters in the first observations of a log, or all.

        It starts from what the ``last`` one found.
        """
        settings: dict[str, Any] = {}
        if self.half_life is not None:
            settings = {"times": log.places_by_arm(first), "half_life": self.half_life}
        contexts, rewards = log.by_arm(first)
        noise, most = log.noise_by_arm(first), len(log) if first is None else first
        if noise is not None and len(log.censored):
            # An arm of which every run was cut off says next to nothing about hyperparameters.
            known = np.isnan(log.limits[:most])
            used = [known[own[own < most]].any() for own in map(log.places, range(log.n_arms))]
            for arm in np.flatnonzero(~np.array(used)) if any(used) else ():
                for told in (contexts, rewards, noise):
                    told[arm] = told[arm][:0]
        return AmortisedSearch(
            contexts,
            rewards,
            self.model.kernel if self.kernel_given else None,
            criterion,
            alone=self.alone,
            features=None if self.features is None else self.features.numbers,
            layout=self.schema.layout,
            last=last,
            noise=noise,
            left_out=most - sum(map(len, rewards)),
            **settings,
        )

    def tuned(self, log: Observations, found: Hyperparameters, tuning: Tuning) -> Self:
        """Return the state with other hyperparameters, and the posterior of a log with them."""
        following = self.next_tune
        if following is not None:
            following = max(following, math.ceil(self.growth * tuning.rewards))
        return replace(
            self,
            model=settled_model(
                log, found.kernel, found.ridge, found.prior_mean, found.alike, self.points
            ),
            rules=replace(self.rules, tuned_on_rewards=True),
            tuning=tuning,
            next_tune=following,
            searching=None,
        )

    def since(self, first: int) -> Self:
        """Return the state as if nothing had been told before an observation."""
        kept = self.model.observed.since(first)
        before = _spent_before(self.spent, kept, self.costs)
        state = replace(self, searching=None, spent_before=before).settled(kept)
        if self.next_tune is None:
            return state
        following = max(_FEW, math.ceil(self.growth * len(state.model)))
        return replace(state, next_tune=min(self.next_tune, following))

    def settled(self, log: Observations | None = None) -> Self:
        """Return the state with stand-ins for censored rewards, of a log or its own, to suit it."""
        model = self.model
        log, alike = log or model.observed.snapshot(), getattr(model, "alike", None)
        known = model.kernel, model.ridge, model.prior_mean
        return replace(self, model=settled_model(log, *known, alike, self.points))

    def write(self, path: files.File) -> None:
        contexts = [context for own in self.pending.by_arm.values() for context in own]
        arms = [arm for arm, own in self.pending.by_arm.items() for _ in own]
        asked = [each for arm in self.pending.by_arm for each in self.pending.asked[arm]]
        header = {
            **self.describe(),
            "random_state": self.random,
            "policy_seed": self.policy_seed,
            "pending": arms,
            "next_tune": self.next_tune,
            "growth": self.growth,
            "kernel_given": self.kernel_given,
            "alone": self.alone,
            "points": self.points,
            **({"features": None} if self.features is None else self.features.describe()),
            "tuning": None if self.tuning is None else self.tuning.describe(),
        }
        said = any(each.eligible is not None for each in asked)
        drawn = any(each.propensity is not None for each in asked)
        sometimes = {
            "pending_eligible": [each.eligible for each in asked] if said else None,
            "pending_propensities": [each.propensity for each in asked] if drawn else None,
            "trials": self.trials or None,
            "pending_numbers": [each.number for each in asked] if self.trials else None,
            "running": self.running,
            "known_costs": self.costs,
            "cutoff": self.cutoff,
            "spent_before": self.spent_before or None,
            "half_life": self.half_life,
        }
        header |= {name: value for name, value in sometimes.items() if value is not None}
        newer = said or drawn or self.priced or self.half_life is not None
        rows = np.array(contexts).reshape(len(arms), self.schema.dimension or 0)
        arrays = {**self.model.arrays(), "pending": rows}
        if self.searching is not None:
            search, operations = self.searching
            header["searching"] = {"rewards": search.rewards, "operations": operations}
        files.write(path, "learner", header, arrays, self.file_version(newer=newer))

    @classmethod
    def read(cls, path: files.File) -> Self:
        """Return the state in a file, checked as strictly as user input."""
        header, arrays = files.read(path, "learner")
        with files.making_sense_of(path):
            known = State.restored(header, arrays)
            kernel_given = read_truth("kernel_given", header["kernel_given"])
            tuning = header.get("tuning")  # files of release 0.1 have none
            # Until release 0.2 there was always one tuning per doubling.
            growth = checks.at_least("growth", header.get("growth", 2.0), 1.0)
            if growth > _MOST_GROWTH:
                raise ValueError(f"growth must be at most {_MOST_GROWTH}, got {growth}")
            due, running = header["next_tune"], header.get("running")
            costs = header.get("known_costs")
            if costs is not None:
                costs = dict(zip(known.labels, costs, strict=True))
            state = cls(
                **vars(known),
                random=random_source(header["random_state"]).bit_generator.state,
                policy_seed=read_seed(header["policy_seed"]),
                next_tune=None if due is None else checks.whole("next_tune", due, least=1),
                growth=growth,
                kernel_given=kernel_given,
                # Files of release 0.1 know nothing about arms that share.
                alone=read_truth("alone", header.get("alone", kernel_given)),
                # Learners of earlier files stay exact.
                points=read_points(header.get("points"), known.rules.method.recommender),
                half_life=_read_half_life(header.get("half_life")),
                features=_read_features(header, known),
                tuning=None if tuning is None else Tuning.restored(tuning),
                pending=_read_pending(header, arrays["pending"], known),
                trials=checks.whole("trials", header.get("trials", 0), least=0),
                running=running
                and Running(*(checks.whole("running", each, least=0) for each in running)),
                costs=read_known_costs(costs, known.labels),
                cutoff=_read_cutoff(header.get("cutoff"), known.rules),
                spent_before=checks.at_least("spent_before", header.get("spent_before", 0.0), 0.0),
            )
            if (searching := header.get("searching")) is None:
                return state
            return replace(state, searching=_read_searching(searching, state))


def new_state(
    labels: tuple[Label, ...],
    *,
    kernel: Any,
    ridge: Any,
    method: Any,
    width: Any,
    burn_in: Any,
    prior_mean: Any,
    seed: int | None,
    retune: Any,
    sharing: Any,
    features: Any,
    columns: Any,
    reward: Any,
    points: Any,
    half_life: Any,
    costs: Any,
    cutoff: Any,
) -> LearnerState:
    described = read_features(features, labels)
    numbers = None if described is None else described.numbers
    burn_in = checks.whole("burn_in", burn_in, least=0)
    if ridge is not None:
        ridge = checks.positive("ridge", ridge, "0.01 to 1 suits rewards of unit spread")
    if prior_mean is not None:
        prior_mean = read_prior_mean(prior_mean)
    unscaled, half_life = kernel is None, _read_half_life(half_life)
    if isinstance(half_life, float):
        if sharing or numbers is not None:
            raise ValueError(
                f"half_life must be left out where arms share, got half_life={half_life!r}; "
                "arms have nothing in common with sharing=0 and without features"
            )
        sharing = 0
    alone = sharing == 0 or (sharing is None and numbers is None and not unscaled)
    if numbers is not None and alone:
        raise ValueError("sharing must be above 0 where arms have features, got 0")
    if unscaled and sharing:
        raise ValueError(
            f"sharing is learnt where no kernel is given, got sharing={sharing!r}; "
            "give a kernel too, leave it out, or give 0 for arms that have nothing in common"
        )
    if unscaled:
        for name, value in (("ridge", ridge), ("prior_mean", prior_mean)):
            if value is not None:
                raise ValueError(
                    f"{name} is learnt where no kernel is given, got {name}={value!r}; "
                    "give a kernel too, or leave it out"
                )
        kernel, prior_mean = Gaussian(1.0), "auto"
        # Arms with features teach each other, so that one pull of each is enough to begin with.
        burn_in = max(burn_in, 2 if numbers is None else 1, -(-_FEW // len(labels)))
    checks.instance("kernel", kernel, Kernel, "Gaussian(1.0)")
    alike: Relation | None = None if alone or unscaled else _alike(sharing, numbers)
    alike = Ageing(half_life) if isinstance(half_life, float) else alike
    if width is None:
        width = PosteriorWidth(2.0 if unscaled else 1.0)
    checks.instance("width", width, Width, "PosteriorWidth(1.0)")
    retune = _read_retune(("growing" if unscaled else "never") if retune is None else retune)
    if half_life == "auto" and retune == "never":
        raise ValueError(
            'half_life="auto" is learnt with the other hyperparameters; leave the kernel out, give '
            'retune="growing" too, or give a number of rewards'
        )
    chosen = read_method(method)
    suited = width.suited(adaptive=chosen.adaptive)
    rules = Rules(chosen, suited, burn_in, costs=read_costs(reward))
    mean = 0.0 if prior_mean is None else prior_mean
    mean = mean if isinstance(mean, str) else rules.sign * mean
    model = new_model(kernel, 0.05 if ridge is None else ridge, len(labels), mean, alike)
    check_history(chosen.recommender, model)
    rng, policy_seed = random_sources(seed)
    return LearnerState(
        model=model,
        labels=labels,
        active=tuple(range(len(labels))),
        rules=rules,
        schema=read_columns(columns),
        random=rng.bit_generator.state,
        policy_seed=policy_seed,
        next_tune=None if retune == "never" else max(_FEW, burn_in * len(labels)),
        growth=_GROWTH.get(retune, 2.0),
        kernel_given=not unscaled,
        alone=alone,
        points=read_points(points, chosen.recommender),
        half_life=half_life,
        features=described,
        costs=read_known_costs(costs, labels),
        cutoff=_read_cutoff(cutoff, rules),
    )


def resumed_state(
    known: PolicyState, *, seed: Any, retune: Any, points: Any, costs: Any, cutoff: Any
) -> LearnerState:
    model, rules, data = known.model, known.rules, known.provenance.data
    # Files do not say that a policy is compressed, but what it was learnt from.
    whole = data is None or model.observed.forgotten or data == known.data_hash()
    if known.compression is not None or not whole:
        raise ValueError(
            "policy must be one as it was frozen, got a compressed one, which does not hold what "
            "was observed; resume the policy that was compressed"
        )
    alike, learnt = getattr(model, "alike", None), rules.tuned_on_rewards
    described = isinstance(alike, Alike) and alike.features is not None
    # A policy knows the features of arms as numbers, which new hyperparameters would need by name.
    usual = "growing" if learnt and not described else "never"
    retune = _read_retune(usual if retune is None else retune)
    if described and retune != "never":
        raise ValueError(f'retune must be "never" where arms have features, got {retune!r}')
    growth, rng, policy_seed = _GROWTH.get(retune, 2.0), *random_sources(seed)
    log, points = model.observed.since(0), read_points(points, rules.method.recommender)
    if len(log):
        hyperparameters = model.kernel, model.ridge, model.prior_mean
        model = settled_model(log, *hyperparameters, alike, points)
    half_life = alike.half_life if isinstance(alike, Ageing) else None
    costs = read_known_costs(costs, known.labels)
    spent = 0.0 if known.spending is None else known.spending[0]
    return LearnerState(
        model=model.snapshot(),
        labels=known.labels,
        active=known.active,
        rules=rules,
        schema=known.schema,
        random=rng.bit_generator.state,
        policy_seed=policy_seed,
        next_tune=None if retune == "never" else max(_FEW, math.ceil(growth * len(log))),
        growth=growth,
        kernel_given=not learnt,
        alone=half_life is not None or (not learnt and alike is None),
        points=points,
        half_life=half_life,
        costs=costs,
        cutoff=_read_cutoff(cutoff, rules),
        spent_before=_spent_before(spent, log, costs),
    )


def _spent_before(total: float, log: Observations, costs: tuple[float, ...] | None) -> float:
    return max(0.0, total - float(spending(log, costs).sum()))


def _read_retune(retune: Any) -> Any:
    if retune not in _RETUNE:
        raise ValueError(f"retune must be one of {_RETUNE}, got {retune!r}")
    return retune


def _alike(sharing: float | None, features: Features | None) -> Alike:
    sharing = _ALIKE if sharing is None else sharing
    if features is None:
        return Alike(sharing)
    rows = tuple(map(tuple, features.rows.tolist()))
    return Alike(sharing, rows, tuple(features.usual_bandwidths.tolist()), features.categories)


def random_source(state: Mapping[str, Any]) -> np.random.Generator:
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    if rng.bit_generator.state != state:
        raise ValueError("the random state is invalid")
    return rng


def _read_half_life(value: Any) -> float | str | None:
    if value is None or (isinstance(value, str) and value == "auto"):
        return value
    if isinstance(value, str):
        raise ValueError(f'half_life must be a number of rewards or "auto", got {value!r}')
    return Ageing(value).half_life


def _read_cutoff(cutoff: Any, rules: Rules) -> float | None:
    if cutoff is None:
        return None
    if not rules.costs:
        raise ValueError(f'cutoff is about times to be kept low; give reward="minimize", {cutoff=}')
    return read_cost("cutoff", cutoff)


def _read_searching(values: dict[str, Any], state: LearnerState) -> Searching:
    log = state.model.observed
    rewards = checks.whole("rewards", values["rewards"], least=2)
    if rewards > len(log):
        raise ValueError("the search for hyperparameters rests on more rewards than there are")
    search = state.search(log, last=state.tuning, first=rewards)
    return Searching(search, checks.at_least("operations", values["operations"], 0.0))


def _read_features(header: dict[str, Any], known: State) -> ArmFeatures | None:
    features = ArmFeatures.restored(header, known.labels)
    told = known.model.settings().get("features", header.get("features"))
    if told != header.get("features"):
        raise ValueError("the features of the arms are not those that the model has")
    return features


def _read_pending(header: dict[str, Any], contexts: FloatArray, known: State) -> Pending:
    arms = [checks.whole("pending", arm, least=0) for arm in header["pending"]]
    check_floats(contexts, (len(arms), known.schema.dimension or 0))
    if arms and max(arms) >= len(known.labels):
        raise ValueError("a pending pick names an arm that does not exist")
    eligible = header.get("pending_eligible", [None] * len(arms))
    chances = read_chances(header.get("pending_propensities"), len(arms))
    numbers = [
        None if each is None else checks.whole("pending_numbers", each, least=0)
        for each in header.get("pending_numbers", [None] * len(arms))
    ]
    pending = Pending()
    rows = zip(contexts, arms, eligible, chances, numbers, strict=True)
    for context, arm, among, chance, number in rows:
        own = Asked(_read_among(among, arm, len(known.labels)), chance, number)
        pending.add(context, arm, own)
    return pending


def _read_among(among: Sequence[Any] | None, arm: int, n_arms: int) -> Eligible:
    if among is None:
        return None
    arms = tuple(checks.whole("pending_eligible", each, least=0) for each in among)
    if sorted(set(arms)) != list(arms) or arm not in arms or arms[-1] >= n_arms:
        raise ValueError("the eligible arms of a pending pick do not match the arms")
    return arms
