"""Chooses the kind of model: a constant per arm, a linear one, or a smooth one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Constant, Gaussian, Kernel, Linear, Matern
from contextgap.kernels.categories import Spread, deviations
from contextgap.models import Ageing, Alike, Features
from contextgap.models.tuning.criteria import (
    CRITERIA,
    MOST_OPERATIONS,
    Data,
    Limits,
    correlations,
    distinct,
    heavy_tails,
    noise_of,
    part_of,
)
from contextgap.models.tuning.descent import Evaluation, Steps, finished
from contextgap.models.tuning.exclusive import implied
from contextgap.models.tuning.report import Candidate, Tuning
from contextgap.models.tuning.search import (
    MOST_SHARED,
    Hyperparameters,
    Search,
    Shared,
    Terms,
    shared,
)
from contextgap.tables.columns import Layout

# Candidates are compared on as many observations as cost this much, if that is clearly less than
# all; then on all, from where they ended if rewards are explained well.
_MIDDLE = 2 * 180**3
_MOSTLY = 0.9
_CLEAR = 0.3  # the share explained from which that is done
# Starting points are tried on so many; the best continues.
_ROUGH = 3 * 60**3
_ROUGH_STEPS, _STEPS = 6, 40
_AGAIN = 6  # steps from where another search ended
# By how many nats a model with a trend must be better than the same without.
_MARGIN = 1.0
# By how many nats a linear model must be better than the smooth ones, which can be nearly linear.
_LINEAR_MARGIN = 2.0
# By how many nats arms that share must be better than arms that have nothing in common, unless
# they have features: who describes arms expects that similar ones do alike.
_SHARED_MARGIN = 3.0
# Ratios of noise and weights of the arms' levels that the cautious model chooses from.
_CAUTIOUS = tuple((math.exp(x), max(0.0, x - 2.0)) for x in range(-1, 7))
# Rewards per arm, and in all, needed to conclude that contexts do not matter. After that
# conclusion an explorer tries two arms only.
_PER_ARM, _IN_ALL = 10, 40

# By how many nats a candidate must have been behind to stay where the last search left it.
_BEHIND = 8.0
# By how much the share explained must fall for a search to start from many points again.
_WORSE = 0.05

# Half lives that are tried, in octaves of the number of rewards; the steps that the best one is
# followed for; and by how many nats it must be better than no ageing.
_HALF_LIVES, _AGEING_STEPS, _AGEING_MARGIN = (-5, -4, -3, -2, -1, 0, 1, 3), 15, 6.0

_SMOOTH = ("gaussian", "matern")
_EXCLUSIVE = (
    "where one arm pays, the others are taken not to: rewards left out are predicted better so, by "
    "{:.1f} nats"
)
_AGEING = (
    "the {} model with rewards that age, by a half in {:.0f} rewards, is {:.1f} nats more probable "
    "than with rewards that do not"
)
_WARPED = "columns on a logarithmic scale because they are skewed: {}"
_BEYOND = (
    "a few far rewards carry most of the variance, so bandwidths were learnt as if none were more "
    "than {:.3g} away from the others' average"
)


def learn(
    contexts: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    kernel: Kernel | None = None,
    criterion: str = "evidence",
    **settings: Any,
) -> tuple[Hyperparameters, Tuning]:
    """Return what ``search`` finds, at once."""
    return finished(search(contexts, rewards, kernel, criterion, **settings))


def search(
    contexts: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    kernel: Kernel | None = None,
    criterion: str = "evidence",
    *,
    alone: bool = False,
    features: Features | None = None,
    layout: Layout | None = None,
    last: Tuning | None = None,
    noise: Sequence[FloatArray] | None = None,
    times: Sequence[IntArray] | None = None,
    half_life: float | str = "auto",
) -> Steps[tuple[Hyperparameters, Tuning]]:
    """Return the hyperparameters that explain the observations best, and a report of the search.

    Contexts and rewards are arrays by arm, empty for arms without observations. Of a given kernel,
    bandwidths and weights of its terms are learnt; without one, its kind is chosen too. ``alone``
    takes for granted that arms have nothing in common; ``features`` are those of all arms, and
    ``layout`` says which numbers of a context share a bandwidth or are codes of categories. The
    search starts where the ``last`` one ended, or from many points: without a last one, with twice
    as many rewards as when that was last done, and where predictions got worse. ``noise`` has the
    variances of noise that rewards have besides the ridge, by arm. Rewards may age if ``times``
    says when each was observed; the half life is a number, or learnt.
    """
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {sorted(CRITERIA)}, got {criterion!r}")
    tried = [arm for arm, own in enumerate(rewards) if len(own)]
    warped = kernel is None and len(np.unique(np.concatenate(rewards))) == 2
    spread = Spread.of([contexts[arm] for arm in tried], layout, warped=warped)
    columns = [spread.columns(contexts[arm]) for arm in tried]
    limits = heavy_tails([rewards[arm] for arm in tried])
    told = [rewards, *([] if noise is None else [noise])]
    data: Data = (columns, *([each[arm] for arm in tried] for each in told))
    if times is not None:
        when = [times[arm].astype(np.float64) for arm in tried]
        data = (*data, when) if len(data) == 3 else (*data, [], when)
    everything = distinct(data)
    ageing = None if times is None or isinstance(half_life, str) else Ageing(half_life)
    count = sum(map(len, rewards))
    fit = _Fit(everything, criterion, spread, limits, ageing)
    given = None if kernel is None else Terms.of(spread.of_columns(kernel), spread.tied)
    searched = count
    if last is not None and last.criterion != criterion:
        last = None
    known: Mapping[str, tuple[float, ...]] = {}
    if last is not None and (count < 2 * last.searched or _far_ahead(last)):
        searched, known = last.searched, last.ends
        found, fitted = yield from _fitted(fit.after(last.ends, last.candidates), given)
        if _worse(_compared(fitted, fit.data[1]), last):
            searched, known = count, {}
    if not known:
        if fit.middle is not fit.data:
            found, fitted = yield from _fitted(fit.on_middle(), given)
            compared = _compared(fitted, fit.middle[1]).values()
            # Where little is explained, the part may show too little of it.
            if max(each.explained for each in compared) > _CLEAR:
                ends = {name: tuple(each.theta.tolist()) for name, each in found.items()}
                fit = fit.after(ends, compared)
        found, fitted = yield from _fitted(fit, given)
    used = fit.data[1]
    candidates = _compared(fitted, used)
    enough = count >= max(_IN_ALL, _PER_ARM * len(rewards))
    if kernel is None and enough and not _predicts(candidates, _contextual_one(candidates)):
        fitted["cautious"] = yield from _cautious(fit)
        candidates = _compared(fitted, used)
    chosen, reason = _chosen(candidates, enough)
    ends = {name: tuple(each.theta.tolist()) for name, each in found.items()}
    if not alone and len(tried) > 1 and count <= MOST_SHARED:
        own = None if features is None else features.of(tried)
        margin = _SHARED_MARGIN if features is None else 0.0
        for base in _bases(candidates):
            start = None if last is None else last.ends.get(f"shared {base}")
            if last is not None and known and start is None and last.chosen != "shared":
                continue  # it was no better when last compared
            each = found[base]
            joint = yield from shared(
                each.search.terms, each.theta, start, everything, criterion, own, limits
            )
            if joint is None:
                continue
            ends[f"shared {base}"] = joint.end
            if not _better_shared(candidates, base, joint):
                continue
            fitted["shared"] = _of_all_arms(joint.found, features)
            if _clearly_shared(candidates, margin):
                chosen, reason = "shared", _why_shared(base, fitted["shared"], joint.gain)
        if chosen not in ("shared", "constant") and "shared" in candidates:
            reason += _why_not_shared(candidates, chosen, margin)
    if kernel is None and features is None and not alone and len(tried) == len(rewards):
        base = _smooth_one(candidates).name
        starts = {name: (found[name].search, found[name].theta) for name in (base, "linear")}
        together = yield from implied(starts, everything, len(rewards), known)
        if together is not None:
            name, point = together.end
            ends[f"exclusive {name}"] = tuple(map(float, point))
            share = explained(together.found.errors, together.rewards)
            ahead = candidates[base].advantage + together.gain
            candidates["exclusive"] = Candidate("exclusive", ahead, share)
            if _predicts(candidates, candidates["exclusive"]):
                fitted["exclusive"] = together.found
                chosen, reason = "exclusive", _EXCLUSIVE.format(together.gain)
    if times is not None and ageing is None:
        base = "given" if kernel is not None else _contextual_one(candidates).name
        aged, half_life, gain = yield from _aged(fit, found[base], count)
        ahead = candidates[base].advantage + gain
        rivals = [each.advantage for name, each in candidates.items() if name != "cautious"]
        candidates["ageing"] = Candidate("ageing", ahead, explained(aged.errors, used))
        clear = ahead >= max(rivals) + _AGEING_MARGIN
        if clear and _predicts(candidates, candidates["ageing"]):
            fitted["ageing"] = aged
            chosen, reason = "ageing", _AGEING.format(base, half_life, gain)
    if spread.warp is not None:
        reason += f"; {_WARPED.format(np.count_nonzero(spread.warp.unit))}"
    if limits is not None:
        reason += f"; {_BEYOND.format((limits[1] - limits[0]) / 2)}"
    best = replace(fitted[chosen], kernel=spread.of_codes(fitted[chosen].kernel))
    best = best if ageing is None else replace(best, alike=ageing)
    report = criterion, count, sum(map(len, used)), tuple(candidates.values()), chosen, reason
    return best, Tuning(*report, searched, ends)


def explained(errors: Sequence[FloatArray], rewards: Sequence[FloatArray]) -> float:
    """Return the share of the squared error of the arms' averages that a model removes."""
    # Every reward is predicted from the other rewards of its arm, by the model and by their
    # average; ``errors`` are the model's errors, one array per arm.
    overall = float(np.concatenate(rewards).mean())
    plain = sum(float(np.square(errors_of_averages(y, overall)).sum()) for y in rewards)
    left = sum(float(np.square(error).sum()) for error in errors)
    return 1.0 - left / plain if plain > 0 else 0.0


def errors_of_averages(rewards: FloatArray, overall: float) -> FloatArray:
    """Return each reward minus the average of the arm's others, or ``overall`` if it has none."""
    count = len(rewards)
    if count == 1:
        return rewards - overall
    return np.asarray((rewards - rewards.mean()) * (count / (count - 1)))


class _Found(NamedTuple):
    """The result of one search."""

    search: Search
    theta: FloatArray
    loss: float


class _Fit:
    """Fits kernels to the same observations, or to parts of them.

    Starts are tried on a ``rough`` part, candidates are first compared on a ``middle`` one.
    ``ends`` says where the last search of each candidate ended, for this one to start there, and
    those that were ``hopeless`` stay there.
    """

    def __init__(
        self,
        everything: Data,
        criterion: str,
        spread: Spread,
        limits: Limits | None,
        ageing: Ageing | None,
    ) -> None:
        self.data = part_of(everything, MOST_OPERATIONS)
        self.middle, self.rough = part_of(everything, _MIDDLE), part_of(everything, _ROUGH)
        if sum(map(len, self.middle[1])) > _MOSTLY * sum(map(len, self.data[1])):
            self.middle = self.data
        self.criterion, self.spread, self.limits = criterion, spread, limits
        self.ageing = ageing
        self.ends: Mapping[str, tuple[float, ...]] = {}
        self.hopeless: frozenset[str] = frozenset()

    def after(self, ends: Mapping[str, tuple[float, ...]], candidates: Iterable[Candidate]) -> _Fit:
        """Return the fit that starts where another one ended."""
        other = copy(self)
        other.ends, compared = ends, list(candidates)
        # More rewards hardly change that a candidate is so improbable.
        least = max(each.advantage for each in compared) - _BEHIND
        other.hopeless = frozenset(each.name for each in compared if each.advantage < least)
        return other

    def on_middle(self) -> _Fit:
        """Return the fit of the middle part alone."""
        other = copy(self)
        other.data = self.middle
        return other

    def aged(self, half_life: float) -> _Fit:
        """Return the fit with rewards that age."""
        other = copy(self)
        other.ageing = Ageing(half_life)
        return other

    def search(self, terms: Terms, part: Data | None = None, *, clipped: bool = True) -> Search:
        """Return the search for a kernel's hyperparameters, in a part of the data or all."""
        data = self.data if part is None else part
        limits = self.limits if clipped else None
        known = noise_of(data), correlations(data, self.ageing)
        return Search(terms, data[0], data[1], self.criterion, None, limits, *known)

    def best(self, name: str, terms: Terms) -> Steps[_Found]:
        """Return a candidate's best hyperparameters, searched for from several points or one."""
        search = self.search(terms)
        starts = search.starts()
        if len(end := self.ends.get(name, ())) == len(starts[0]):
            return (yield from self.followed(name, search, np.array(end)))
        if len(terms.bandwidths):
            rough = self.search(terms, self.rough)
            rough.shortest = search.shortest
            for start in rough.starts():
                starts += [(yield from rough.descend(start, _ROUGH_STEPS))[1]]
        return (yield from self.followed(name, search, (yield from search.lowest(starts))))

    def followed(self, name: str, search: Search, start: FloatArray) -> Steps[_Found]:
        """Return the best point found from one start."""
        if name in self.hopeless:
            return _Found(search, start, math.inf)
        loss, theta = yield from search.descend(start, _AGAIN if self.ends else _STEPS)
        return _Found(search, theta, loss)

    def unit(self, *, far: bool = False) -> tuple[float, ...]:
        """Return what each column is divided by: the bandwidths of the prior."""
        # A linear trend goes on through values far beyond all others, which then count: ``far``.
        tied = self.spread.tied
        found = deviations(np.vstack(self.data[0]), tied, far=far)
        return tuple((found if tied is None else found[np.asarray(tied)]).tolist())


def _fitted(
    fit: _Fit, given: Terms | None
) -> Steps[tuple[dict[str, _Found], dict[str, Hyperparameters]]]:
    """Return the candidates, and their hyperparameters."""
    constant = Terms(Constant(), tied=fit.spread.tied)
    found = {"constant": (yield from fit.best("constant", constant))}
    if given is None:
        found |= yield from _contextual(fit)
    else:
        found["given"] = yield from fit.best("given", given)
    fitted = {}
    for name, each in found.items():
        fitted[name] = yield from each.search.hyperparameters(each.theta)
    return found, fitted


def _contextual(fit: _Fit) -> Steps[dict[str, _Found]]:
    """Return the best linear, Gaussian and Matérn models, the last two with a trend if it helps."""
    sample = np.vstack(fit.data[0])
    unit, tied = fit.unit(), fit.spread.tied
    trend = Linear(unit=fit.unit(far=True), centre=tuple(fit.spread.centre(sample).tolist()))
    linear = yield from fit.best("linear", Terms(trend, offset=1.0, tied=tied))
    terms = Terms(Gaussian(unit), trend, offset=1.0, tied=tied)
    bare, end = replace(terms, trend=None), fit.ends.get("gaussian", ())
    if len(end) == len(bare.bandwidths) + 2:  # of the last search, which needed no trend
        gaussian = yield from fit.best("gaussian", bare)
    else:
        gaussian = yield from fit.best("gaussian", terms)
        simpler = gaussian.search.with_terms(bare)
        start = np.delete(gaussian.theta, -3)  # slope, offset and ratio come last
        if (
            "gaussian" not in fit.hopeless
            and (yield from simpler.loss_at(start)) < gaussian.loss + _MARGIN
        ):
            gaussian = yield from fit.followed("gaussian", simpler, start)
    rougher = gaussian.search.with_terms(replace(gaussian.search.terms, main=Matern(unit, 2.5)))
    end = fit.ends.get("matern", ())
    start = np.array(end) if len(end) == len(gaussian.theta) else gaussian.theta
    matern = yield from fit.followed("matern", rougher, start)
    return {"linear": linear, "gaussian": gaussian, "matern": matern}


def _cautious(fit: _Fit) -> Steps[Hyperparameters]:
    """Return a Gaussian model with the bandwidths of the prior and its noise by leave-one-out."""
    # More noise comes with more weight of the arms' levels, so that contexts matter less and levels
    # as much as before; at the end of the scan hardly anything but the levels is left.
    terms = Terms(Gaussian(fit.unit()), offset=1.0, tied=fit.spread.tied)
    search = fit.search(terms, clipped=False)
    thetas = [search.start(0.0, ratio, offset) for ratio, offset in _CAUTIOUS]
    tried: list[Hyperparameters] = []
    for theta in thetas:
        tried += [(yield from search.hyperparameters(theta))]
    shares = [explained(each.errors, fit.data[1]) for each in tried]
    best = int(np.argmax(shares))
    # Its loss is compared with those of models that were searched for within the limits.
    loss = yield from fit.search(terms).loss_at(thetas[best])
    return replace(tried[best], loss=loss)


def _far_ahead(last: Tuning) -> bool:
    """Whether arms that share were so far ahead that all others would stay where they were."""
    rivals = [each.advantage for each in last.candidates if each.name != "shared"]
    mine = next((each.advantage for each in last.candidates if each.name == last.chosen), 0.0)
    return last.chosen == "shared" and mine > max(rivals) + _BEHIND


def _aged(fit: _Fit, base: _Found, count: int) -> Steps[tuple[Hyperparameters, float, float]]:
    """Return a candidate with the best half life, this, and how many nats it is better by."""
    # Half lives are compared on the middle part; the best of them is then followed on all.
    middle, losses = fit.on_middle(), []
    for octaves in _HALF_LIVES:
        search = middle.aged(count * 2.0**octaves).search(base.search.terms)
        losses += [(yield from search.descend(base.theta, _AGAIN))[0]]
    half_life = count * 2.0 ** _HALF_LIVES[int(np.argmin(losses))]
    search = fit.aged(half_life).search(base.search.terms)
    loss, theta = yield from search.descend(base.theta, _AGEING_STEPS)
    plain = base.loss
    if not math.isfinite(plain):  # it had been far behind another, and was not followed
        plain = yield from base.search.loss_at(base.theta)
    aged = yield from search.hyperparameters(theta)
    return replace(aged, alike=Ageing(half_life)), half_life, plain - loss


def _worse(candidates: dict[str, Candidate], last: Tuning) -> bool:
    """Whether the candidates predict held-out rewards clearly worse than they did last."""
    then = max(each.explained for each in last.candidates if each.name in candidates)
    return max(each.explained for each in candidates.values()) < then - _WORSE


def _bases(candidates: dict[str, Candidate]) -> list[str]:
    """Return the kernels to try with arms that share: the most probable, and a smooth one."""
    # Together the arms may show what one arm's rewards are too few for.
    if "given" in candidates:
        return ["given"]
    found = [_contextual_one(candidates), _smooth_one(candidates)]
    return list(dict.fromkeys(each.name for each in found))


def _of_all_arms(found: Hyperparameters, features: Features | None) -> Hyperparameters:
    """Return what was learnt from the arms observed, with the features of all arms."""
    if features is None or not isinstance(found.alike, Alike):
        return found
    rows = tuple(map(tuple, features.rows.tolist()))
    return replace(found, alike=replace(found.alike, features=rows))


def _clearly_shared(candidates: dict[str, Candidate], margin: float) -> bool:
    """Whether arms that share are more probable by a margin than others, and predict well."""
    together = candidates["shared"]
    others = [each for name, each in candidates.items() if name not in ("shared", "cautious")]
    rival = max(each.advantage for each in others)
    return _predicts(candidates, together) and together.advantage >= rival + margin


def _better_shared(candidates: dict[str, Candidate], base: str, joint: Shared) -> bool:
    """Add a fit of arms that share to the candidates, unless one there is more probable."""
    advantage = candidates[base].advantage + joint.gain
    if "shared" in candidates and advantage < candidates["shared"].advantage:
        return False
    share = explained(joint.found.errors, joint.rewards)
    candidates["shared"] = Candidate("shared", advantage, share)
    return True


def _why_not_shared(candidates: dict[str, Candidate], chosen: str, margin: float) -> str:
    ahead = candidates["shared"].advantage - candidates[chosen].advantage
    if ahead <= 0:
        return ""
    return (
        f"; sharing is {ahead:.1f} nats more probable, and is chosen if it is so by "
        f"{margin:g} nats over all others and predicts better than averages do"
    )


def _why_shared(base: str, found: Hyperparameters, gain: float) -> str:
    sharing = found.alike.sharing if isinstance(found.alike, Alike) else 0.0
    return (
        f"the {base} model with arms that share what they learn, correlation {sharing:.2f}, is "
        f"{gain:.1f} nats more probable than with arms that have nothing in common"
    )


def _compared(
    fitted: dict[str, Hyperparameters], rewards: Sequence[FloatArray]
) -> dict[str, Candidate]:
    constant = fitted["constant"].loss
    return {
        name: Candidate(name, constant - each.loss, explained(each.errors, rewards))
        for name, each in fitted.items()
    }


def _smooth_one(candidates: dict[str, Candidate]) -> Candidate:
    """Return the most probable smooth model."""
    return max((candidates[name] for name in _SMOOTH), key=lambda each: each.advantage)


def _contextual_one(candidates: dict[str, Candidate]) -> Candidate:
    """Return the most probable smooth model, or the linear one where that is clearly better."""
    smooth, linear = _smooth_one(candidates), candidates["linear"]
    return linear if linear.advantage > smooth.advantage + _LINEAR_MARGIN else smooth


def _why_contextual(candidates: dict[str, Candidate], chosen: Candidate) -> str:
    """Return by what rule ``_contextual_one`` chose."""
    linear, smooth = candidates["linear"].advantage, _smooth_one(candidates).advantage
    if chosen.name == "linear":
        ahead = f"{linear - smooth:.1f} nats more probable than the best smooth model"
        return f"{ahead}, and linear is chosen from {_LINEAR_MARGIN:g} nats on"
    if linear <= smooth:
        return "the most probable"
    return (
        f"the most probable smooth model; linear is {linear - smooth:.1f} nats more probable, but "
        f"is chosen from {_LINEAR_MARGIN:g} nats on, since smooth models can be nearly linear"
    )


def _predicts(candidates: dict[str, Candidate], one: Candidate) -> bool:
    """Whether one of the models predicts held-out rewards better than the arms' averages."""
    # The constant model shrinks the averages towards each other, which may be slightly better.
    return one.explained > max(0.0, candidates["constant"].explained)


def _chosen(candidates: dict[str, Candidate], enough: bool) -> tuple[str, str]:
    """Return the name of the candidate to use, and why."""
    if "given" in candidates:
        return "given", "only the hyperparameters of the kernel given were learnt"
    if not enough:
        return _smooth_one(candidates).name, (
            "there are too few rewards yet to do without a smooth model"
        )
    best = _contextual_one(candidates)
    if _predicts(candidates, best):
        rule = _why_contextual(candidates, best)
        return best.name, f"{rule}; it predicts held-out rewards better than averages do"
    if best.advantage > _MARGIN and _predicts(candidates, candidates["cautious"]):
        return "cautious", (
            f"the {best.name} model is more probable, but predicts held-out rewards worse than the "
            "arms' averages do; this one, with usual bandwidths and more noise, predicts better"
        )
    return "constant", (
        "no model of the contexts is probable and predicts held-out rewards better than averages "
        "do, so the best single arm is deployed"
    )


class AmortisedSearch:
    """A search for hyperparameters that goes on where it stopped.

    It takes the arguments of ``search``, and how many rewards of the log are not among them. What
    it finds depends on them alone: how far it has come is a cache, which several states of a
    learner may share.
    """

    def __init__(self, *given: Any, left_out: int = 0, **settings: Any) -> None:
        self._left_out = left_out
        self._given, self._settings = given, settings
        self._answers: list[FloatArray] = []
        self._restart()

    def _restart(self) -> None:
        self._waiting: tuple[Steps[tuple[Hyperparameters, Tuning]], Evaluation] | None = None
        self._place, self._used = 0, 0.0  # how many answers were used, and what they cost
        self._found: tuple[Hyperparameters, Tuning] | None = None
        self._needed = math.inf

    def __getstate__(self) -> dict[str, Any]:
        names = ("_given", "_settings", "_answers", "_left_out")  # a generator cannot be pickled
        return {name: vars(self)[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._restart()

    @property
    def rewards(self) -> int:
        """How many rewards of the log are searched, those left out included."""
        return self._left_out + sum(map(len, self._given[1]))

    def result(self, operations: float = math.inf) -> tuple[Hyperparameters, Tuning] | None:
        """Return what was found, or None if that takes more operations in all."""
        try:
            while self._found is None and self._used < operations:
                self._step()
        except BaseException:
            self._restart()  # a generator that was interrupted cannot go on
            raise
        return self._found if self._needed < operations else None

    def _step(self) -> None:
        """Make the next evaluation, or take its answer from those that are known."""
        if self._waiting is None:
            steps = search(*self._given, **self._settings)
            self._waiting = steps, next(steps)
        steps, evaluation = self._waiting
        place, before = self._place, self._used
        if place == len(self._answers):
            self._answers.append(evaluation.run())
        self._place, self._used = place + 1, before + evaluation.cost
        try:
            self._waiting = steps, steps.send(self._answers[place])
        except StopIteration as end:
            found, tuning = end.value
            tuning = replace(tuning, rewards=tuning.rewards + self._left_out)
            self._found, self._needed = (found, tuning), before
