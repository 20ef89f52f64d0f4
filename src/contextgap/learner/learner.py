"""Learner: explore with ask and tell, recommend at any time, freeze a policy to deploy."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn, Self
from weakref import WeakKeyDictionary

import numpy as np

from contextgap.base import checks, html
from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.base.completed import completed
from contextgap.base.files import File
from contextgap.base.labels import Label, check_new_label, label_array, read_labels
from contextgap.base.seeds import random_sources
from contextgap.base.turns import in_turn
from contextgap.beliefs.belief import Decision
from contextgap.beliefs.widths import Width
from contextgap.kernels import Kernel
from contextgap.kernels.categories import check_categories
from contextgap.learner.deploying import Deploying
from contextgap.learner.features import read_features
from contextgap.learner.pending import Asked, Pending
from contextgap.learner.rewards import (
    check_sizes,
    read_chances,
    read_outcomes,
    read_told_eligible,
)
from contextgap.learner.settings import read_points, read_settings
from contextgap.learner.stopping import ReferenceWatch, StoppingRule
from contextgap.learner.storage import read_learner, write_learner
from contextgap.learner.view import View
from contextgap.methods.explorers import (
    Explorer,
    Moment,
    Pick,
    ReferenceReader,
    any_context,
    choose_context,
    explore,
)
from contextgap.methods.method import Method, read_method
from contextgap.methods.recommenders.rules import check_history
from contextgap.models import (
    MOST_REPLAYED,
    POINTS,
    Eligible,
    Follower,
    Observations,
    grown_model,
    new_model,
    refitted_model,
)
from contextgap.models.tuning import Hyperparameters, Tuning, learn
from contextgap.policy.state import Rules, read_costs
from contextgap.tables.columns import Columns
from contextgap.tables.contexts import ContextSchema, Intake, read_columns, row_of
from contextgap.tables.doubts import Usual, level_of_user, warn_of_arms, warn_of_doubts
from contextgap.tables.eligible import Mask, read_eligible


class _OfPolicies:
    """An attribute that learners do not have, and that users look for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, thing: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"a Learner has no {self._name!r}; a policy has it: learner.freeze().{self._name}"
        )


class Learner(Deploying):
    """Learns which arm is best at each context.

    ``ask`` and ``tell`` may come in any order and with any delay, and ``recommend`` at any time
    between them: exploration and deployment may alternate without notice. Calls from several
    threads take turns. An ``ask`` or ``tell`` that is interrupted, or fails, changes nothing.

    Parameters
    ----------
    arms
        Labels of any hashable kind; an int n means 0, 1, ..., n − 1. Files and campaigns hold
        text, numbers, truth values, None, and tuples of these.
    kernel
        Similarity of contexts. ``Gaussian.from_contexts`` fits one to a sample of contexts. If it
        is None, kernel, ridge and prior mean are learnt from the rewards, and contexts and rewards
        may have any unit.
    ridge
        Regularisation: the variance of the noise. With a given kernel, 0.05 by default.
    method
        A name from ``METHODS``, a ``Method``, an explorer alone (deployed by the highest mean), or
        one of your own as ``"package.module:name"``; ``"auto"`` for the best that we know, which is
        ``"gain-or-gap"``, and ``"contextual-gap"`` where arms have ``features``.
    width
        How standard deviations become confidence intervals. By default the half width is one
        standard deviation with a given kernel, as in the paper, and two with a learnt one.
    burn_in
        Pulls of every arm, in turn, before the method takes over. If the kernel is learnt, it is
        at least what the first tuning needs.
    prior_mean
        Mean reward where nothing was observed: a number, or ``"auto"`` for the average reward seen
        so far. With a given kernel, 0 by default.
    seed
        Makes everything random reproducible.
    retune
        When to ``tune``: ``"growing"`` whenever there are 1.4 times as many rewards as the last
        time, ``"doubling"`` twice as many, which takes less time, and ``"never"`` only when told
        to. By default ``"growing"`` if no kernel is given, else ``"never"``.
    sharing
        How much arms have in common: the correlation between the expected rewards of two arms at
        the same context, from 0, nothing, to below 1. A reward of one arm then teaches something
        about all others, at the price of a step that takes time in the square of all observations.
        If no kernel is given it is learnt with the other scales, and used where it is clearly
        better, up to 3000 rewards; 0 prevents that. With a given kernel, 0 by default.
    features
        What describes each arm, such as a dose or a material: a mapping from arms to rows, a
        DataFrame indexed by arm, or rows in the order of ``arms``. Text and truth values are
        categories, and cells may be missing, as in tables of contexts. Arms with similar
        features then share what they learn, ``sharing`` being the correlation of arms with the
        same features (0.9 by default where a kernel is given).
    columns
        What the columns of contexts hold, as ``Columns`` or a mapping; by default inferred from the
        first table. Columns that are not named are left out of contexts. A list of names says only
        how columns are called: contexts may then be arrays in that order as well as tables.
    reward
        ``"minimize"`` if what is told are costs, times or errors, to be kept low: what is believed
        is then said of them too, with their own sign. ``"maximize"`` by default.
    points
        Support points that take the place of observations when there are many: at most so many, for
        all arms together. A step then takes the same time however many rewards were told, and
        beliefs are close approximations, without a guarantee. It happens when an arm has twice as
        many observations as this, or earlier where few points explain all contexts. None keeps
        exact beliefs for ever, at the price of memory and time in the square of the number of
        observations. Arms that share, and rules that look back over all steps, stay exact.

    Examples
    --------
    >>> import numpy as np
    >>> learner = Learner(["left", "right"], seed=0)
    >>> for x in np.linspace(-1, 1, 40):
    ...     arm = learner.ask([x])
    ...     learner.tell([x], arm, -x if arm == "left" else x)
    >>> learner.recommend([[-0.5], [0.5]])
    array(['left', 'right'], dtype=object)
    """

    # A log that is replayed has hyperparameters of its own: ``learner.recorded``.
    _learn: Callable[..., tuple[Hyperparameters, Tuning]] = staticmethod(learn)

    def __init__(
        self,
        arms: Any,
        *,
        kernel: Kernel | None = None,
        ridge: float | None = None,
        method: str | Method | Explorer = "auto",
        width: Width | None = None,
        burn_in: int = 1,
        prior_mean: float | str | None = None,
        seed: int | None = None,
        retune: str | None = None,
        sharing: float | None = None,
        features: Any = None,
        columns: Columns | Mapping[str, Any] | Sequence[str] | None = None,
        reward: str = "maximize",
        points: int | None = POINTS,
    ) -> None:
        labels = read_labels(arms)
        self._features = read_features(features, labels)
        numbers = None if self._features is None else self._features.numbers
        start = read_settings(
            len(labels), kernel, ridge, prior_mean, width, burn_in, retune, sharing, numbers
        )
        chosen = read_method(method, features=numbers is not None)
        self._rules = Rules(
            chosen,
            start.width.suited(adaptive=chosen.adaptive),
            start.burn_in,
            costs=read_costs(reward),
        )
        self._model = new_model(
            start.kernel, start.ridge, len(labels), self._signed(start.prior_mean), start.alike
        )
        self._points = read_points(points, self._rules.method.recommender)
        self._alone = start.alone
        check_history(self._rules.method.recommender, self._model)
        self._followed: Follower | None = None
        self._references = ReferenceReader()
        self._kernel_given = kernel is not None
        self._next_tune, self._growth = start.first_tune, start.growth
        self._tuning: Tuning | None = None
        self._labels = labels
        self._active = tuple(range(len(labels)))
        self._places = {label: i for i, label in enumerate(labels)}
        self._schema = read_columns(columns)
        self._usual = Usual()
        self._pending = Pending()
        self._rng, self._policy_seed = random_sources(seed)
        self._watches: WeakKeyDictionary[StoppingRule, ReferenceWatch] = WeakKeyDictionary()
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        # Watches are a cache, and hold weak references, which cannot be pickled; nor can locks.
        with self._lock:
            left_out = ("_watches", "_lock")
            return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._watches = WeakKeyDictionary()
        self._lock = RLock()

    if not TYPE_CHECKING:  # a type checker finds missing attributes itself
        explain = _OfPolicies()
        certificate = _OfPolicies()

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # a copy that shared the model would change this one

    def _repr_html_(self) -> str:
        scales = "given" if self.tuning is None else f"learnt: {self.tuning.chosen}"
        title = f"Learner, {self.method.name}; {self.pending} picks pending; scales {scales}"
        return html.table(title, ["arm", "rewards"], list(self.counts.items()))

    @property
    def pending(self) -> int:
        """How many picks still wait for their reward."""
        return len(self._pending)

    @property
    def information_gain(self) -> dict[Label, float]:
        """½ ln det(I + K/ridge) of each arm: how much has been learnt about it.

        An upper bound on it where observations are represented by support points.
        """
        gains = self._model.information_gain(self._active)
        return dict(zip(self.arms, gains.tolist(), strict=True))

    @completed
    def columns(self) -> Columns | None:
        """What each column of a context holds; None before the first, and for arrays."""
        return self._schema.kinds

    @property
    def tuning(self) -> Tuning | None:
        """The report of the last tuning; None before the first."""
        return self._tuning

    @in_turn
    def ask(
        self,
        contexts: Any = None,
        *,
        pool: Any = None,
        arms: Any = None,
        once: bool = False,
        index: bool = False,
        **unknown: Any,
    ) -> Any:
        """Return the arm to try; from a pool, also the context to try it at.

        Picks whose reward was not told yet count as made: they shrink the variance where they
        were made, so a batch, or a slow experiment, does not try the same thing over and over.

        Parameters
        ----------
        contexts
            One context (1-D), or several to be tried as a batch (2-D or a DataFrame).
        pool
            Instead of ``contexts``: a table of contexts (2-D or a DataFrame) one of which may be
            chosen. Gap-based rules choose the one with the largest regret bound, the knowledge
            gradient the one with the highest expected gain over the pool, others one at random.
        arms
            The eligible arms, all by default: labels in any order; for several contexts also one
            collection of labels per row, or a boolean array of shape (rows, arms) in the order of
            ``learner.arms``. The pick is made, burn-in included, as if there were no other arms;
            its reward, once told, is logged with them.
        once
            With a pool: never return a context and an arm that were told before or are pending,
            for trials whose result is always the same.
        index
            With a pool: return the position of the row chosen in place of the row.
        unknown
            Any other name is an error.

        Returns
        -------
        arm
            A label for one context; an array of labels, one per row, for several. For a pool, the
            row chosen, as it was given, and a label.
        """
        if unknown:
            name = next(iter(unknown))
            hint = "; call ask(context) or ask(contexts=...)" if name == "context" else ""
            raise TypeError(f"ask has no argument {name!r}{hint}")
        if pool is not None:
            if contexts is not None:
                raise TypeError("contexts must be left out where pool= gives those to choose from")
            return self._ask_from(pool, arms, once, index)
        if once or index:
            raise TypeError("once= and index= are about a pool; give pool= too, or leave them out")
        if contexts is None:
            raise TypeError("contexts must be numbers, got None; or give pool= to choose one from")
        intake = self._read(contexts)
        check_sizes(self.kernel, intake.rows)
        eligible = self._eligible(arms, len(intake.rows), intake.single)
        picks = []
        with self._atomic():
            for row, context in enumerate(intake.rows):
                view = self._view(intake.schema, eligible, row)
                pick = self._pick(view.moment(context))
                picks.append(view.active[pick.arm])
                among = None if eligible is None else view.active
                self._pending.add(context, picks[-1], among, pick.propensity)
            self._adopt(intake.schema)
        if intake.single:
            return self._labels[picks[0]]
        return label_array(self.arms, np.searchsorted(self._active, picks))

    @in_turn
    def tell(self, contexts: Any, arms: Any, rewards: Any, *, eligible: Any = None) -> None:
        """Take in rewards of any trials, asked for or not, in any order and after any delay.

        Parameters
        ----------
        contexts
            One context, or several.
        arms
            The label of the arm tried, or one per context.
        rewards
            The reward, or one per context.
        eligible
            The arms that could have been tried, as ``ask`` takes them, for ``score`` to choose
            among; the arm tried must be one of them. By default those that ``ask`` was given for
            the same context and arm; all if it was given none or not asked.
        """
        self._tell(contexts, arms, rewards, eligible)

    def _tell(
        self, contexts: Any, arms: Any, rewards: Any, eligible: Any, *, log: bool = False
    ) -> None:
        self._check_order(contexts, arms)
        intake = self._read(contexts)
        places: Sequence[int] | IntArray
        if intake.single:
            places, values = [self._place(arms)], np.array([checks.reward("rewards", rewards)])
        else:
            places, values = read_outcomes(len(intake.rows), arms, rewards, self._place)
        said = read_told_eligible(
            eligible, self._labels, self._active, places, single=intake.single
        )
        if not len(values):
            return
        check_sizes(self.kernel, intake.rows, values)
        if not len(self._model) and not intake.single:
            guessed = self._schema.kinds is None
            named, numbers = intake.schema.columns, intake.rows
            warn_of_doubts(contexts, named, values, places, guessed=guessed, numbers=numbers)
            if log:  # arms may well be told one after the other
                warn_of_arms(self._labels, np.bincount(places, minlength=len(self._labels)))
        else:
            self._usual.check(intake.rows, self._model.observed.contexts, intake.schema)
        with self._atomic():
            self._take_in(intake, places, self._rules.sign * values, said)

    @in_turn
    def fit(self, contexts: Any, arms: Any, rewards: Any, *, eligible: Any = None) -> Self:
        """Take in logged data, in addition to what was told before.

        With a given kernel, the posterior is the same as after telling it row by row, but for
        support points, which are chosen knowing all rows. Where scales are learnt, they are learnt
        once, from all rows.

        Parameters
        ----------
        contexts
            Contexts, 2-D or a DataFrame.
        arms
            The label of the arm tried, one per context.
        rewards
            The rewards, one per context.
        eligible
            The arms that could have been tried, as for ``tell``.

        Returns
        -------
        learner
            The learner itself.
        """
        self._check_order(contexts, arms)
        if self._read(contexts).single:
            raise ValueError(
                "contexts must be a table (2-D), got one context (1-D); "
                "contexts of one number each are x[:, None], and tell takes a single context"
            )
        self._tell(contexts, arms, rewards, eligible, log=True)
        return self

    @in_turn
    def tune(self, criterion: str = "evidence") -> Self:
        """Learn bandwidths, ridge, prior mean and reward scale from the rewards told so far.

        Observations are kept, and the posterior is recomputed with the settings found. A kernel
        that was given keeps its kind. Without one, the kind of model is chosen too: a Gaussian or a
        Matérn kernel, with or without a linear trend, a linear model, or a constant for each arm if
        contexts seem to make no difference. ``tuning`` says what was chosen and why.

        Tuning looks at the rewards, so bounds are no longer guaranteed: certificates are heuristic
        from then on.

        Parameters
        ----------
        criterion
            ``"evidence"``: the settings under which the rewards are most probable (marginal
            likelihood); ``"loo"``: those which predict every reward best from the arm's others.

        Returns
        -------
        learner
            The learner itself.
        """
        return self._tune(self._model.observed, criterion)

    def _tune(self, log: Observations, criterion: str = "evidence") -> Self:
        count = len(log)
        if count < 2:
            raise ValueError(f"tune needs at least 2 rewards to learn from, got {count}")
        kernel = self.kernel if self._kernel_given else None
        found, self._tuning = self._learn(
            *log.by_arm(),
            kernel,
            criterion,
            alone=self._alone,
            features=None if self._features is None else self._features.numbers,
            layout=self._schema.layout,
        )
        self._model = refitted_model(
            log, found.kernel, found.ridge, found.prior_mean, found.alike, self._points
        )
        self._rules = replace(self._rules, hindsight=True)
        if self._next_tune is not None:
            self._next_tune = max(self._next_tune, math.ceil(self._growth * count))
        return self

    @in_turn
    def decide(self, context: Any, *, arms: Any = None) -> Decision:
        """Return what ``ask`` would pick and everything believed there; changes nothing.

        Intervals and gaps rest on the rewards told. Pending picks change which arm is picked;
        ``pending_std`` shows the standard deviations that the pick was made by.

        Parameters
        ----------
        context
            One context.
        arms
            The labels of the eligible arms, all by default; the decision is about them alone.
        """
        intake = self._read(context)
        if not intake.single:
            raise ValueError("decide explains one context; pass a 1-D context or one row")
        eligible = self._eligible(arms, 1, True)
        view = self._view(intake.schema, eligible)
        moment = view.moment(intake.rows[0])
        moment.rng = copy.deepcopy(self._rng)
        pick, reason, propensity = self._pick(moment)
        labels = tuple(self._labels[i] for i in view.active)
        decision = Decision.of(
            view.told(intake.rows[0]), labels, pick, reason, self._rules.sign, propensity
        )
        if not self._pending:
            return decision
        return replace(decision, pending=len(self._pending), pending_std=frozen(moment.belief.std))

    @in_turn
    def add_arm(self, label: Label, features: Any = None) -> None:
        """Add an arm; it gets its burn-in before the method takes over again.

        Parameters
        ----------
        label
            A new label.
        features
            Its features, where arms have them; it then starts from what similar arms taught.
        """
        check_new_label(label, self._labels)
        self._add_arm(label, features)

    def _add_arm(self, label: Label, features: Any) -> None:
        row = self._features_of(label, features)
        if label in self._places:
            state = "is there already" if label in self.arms else "was removed; its data are kept"
            raise ValueError(f"the arm {label!r} {state}; choose another label")
        self._places[label] = len(self._labels)
        self._active = (*self._active, len(self._labels))
        self._labels = (*self._labels, label)
        if self._features is None or row is None:
            self._model.add_arm()
        else:
            self._features.add(row)
            self._model.add_arm(row.tolist())

    @in_turn
    def remove_arm(self, label: Label) -> None:
        """Never choose an arm again; what was observed of it is kept.

        Parameters
        ----------
        label
            One of ``arms``.
        """
        place = self._place(label)
        if place not in self._active:
            raise ValueError(f"the arm {label!r} was removed already")
        if len(self._active) == 1:
            raise ValueError(f"the arm {label!r} is the only one left; add another first")
        self._active = tuple(i for i in self._active if i != place)

    @in_turn
    def expect(
        self, contexts: Any, arms: Any, *, eligible: Any = None, propensities: Any = None
    ) -> None:
        """Count picks as pending that were made elsewhere: by hand, or by another process.

        Parameters
        ----------
        contexts
            One context, or several.
        arms
            The label of the arm picked, or one per context.
        eligible
            The arms that could have been picked, as for ``tell``.
        propensities
            The probability with which each was picked, None where it is not known; their rewards,
            once told, are logged with them.
        """
        intake = self._read(contexts)
        places: Sequence[int] | IntArray
        if intake.single:
            places = [self._place(arms)]
        else:
            zeros = np.zeros(len(intake.rows))
            places, _ = read_outcomes(len(intake.rows), arms, zeros, self._place)
        said = read_told_eligible(
            eligible, self._labels, self._active, places, single=intake.single
        )
        check_sizes(self.kernel, intake.rows)
        chances = read_chances(propensities, len(intake.rows))
        with self._atomic():
            for row, place in enumerate(places):
                among = None if said is None else said[row]
                self._pending.add(intake.rows[row], int(place), among, chances[row])
            self._adopt(intake.schema)

    @in_turn
    def cancel(self, context: Any, arm: Label) -> None:
        """Forget the oldest pending pick of an arm at a context; its reward will never come.

        Parameters
        ----------
        context
            One context.
        arm
            The label of the arm picked there.
        """
        intake = self._read(context)
        if not intake.single:
            raise ValueError("cancel takes one context; pass a 1-D context or one row")
        place = self._place(arm)
        found = self._pending.find(intake.rows[0], place)
        if found is None:
            raise ValueError(f"there is no pending pick of the arm {arm!r} at the context")
        self._pending.take(place, found)

    @in_turn
    def drop_pending(self) -> None:
        """Forget all picks whose reward was not told; it will never come."""
        self._pending = Pending()

    @in_turn
    def save(self, path: File) -> None:
        """Write the learner to a ``.cgap`` file, atomically.

        Parameters
        ----------
        path
            Where to write, or a binary file that is open already.
        """
        write_learner(self, path)

    @classmethod
    def load(cls, path: File) -> Self:
        """Read a learner from a ``.cgap`` file; it continues exactly as the saved one would have.

        Parameters
        ----------
        path
            A file that ``save`` wrote, or a binary file that is open already.
        """
        return read_learner(cls, path)

    def _take_in(
        self,
        intake: Intake,
        places: Sequence[int] | IntArray,
        values: FloatArray,
        eligible: list[Eligible] | None,
    ) -> None:
        self._adopt(intake.schema)
        self._schema, renaming = self._schema.telling(intake.rows)
        rows = intake.rows if renaming is None else renaming(intake.rows)
        if renaming is not None:
            self._pending = self._pending.changed(renaming)
        asked = self._answered(rows, places)
        chances = [each.propensity for each in asked]
        sets = [each.eligible for each in asked] if eligible is None else eligible
        told, count = (rows, np.asarray(places), values), len(self._model)
        if self._is_time_to_tune(len(values)):
            # The model is about to be replaced: only the log needs to grow.
            log = self._model.observed.snapshot()
            log.extend(*told)
            log.note_eligible(count, sets)
            log.note_propensities(count, chances)
            self._tune(log)
        else:
            self._model = grown_model(self._model, *told, self._points)
            self._model.observed.note_eligible(count, sets)
            self._model.observed.note_propensities(count, chances)

    def _answered(self, rows: FloatArray, places: Sequence[int] | IntArray) -> list[Asked]:
        """Forget the picks that contexts and arms answer; return how they were made."""
        asked = [Asked()] * len(rows)
        unanswered = []
        for row, (context, arm) in enumerate(zip(rows, map(int, places), strict=True)):
            found = self._pending.find(context, arm)
            if found is None:
                unanswered.append(row)
            else:
                asked[row] = self._pending.take(arm, found)
        rounded = 0
        for row in unanswered:  # exact answers first, so that no pick is taken from them
            arm = int(places[row])
            found = self._pending.find_rounded(rows[row], arm)
            if found is not None:
                asked[row] = self._pending.take(arm, found)
                rounded += 1
        if rounded:
            warnings.warn(
                f"{rounded} of {len(rows)} contexts told equal that of a pending pick of the same "
                "arm only when rounded; they count as its answer. Tell contexts with all digits",
                stacklevel=level_of_user(),
            )
        return asked

    def _adopt(self, schema: ContextSchema) -> None:
        """Go on with a schema that knows more; what was taken in before is as if it had known."""
        change = schema.refilling(self._schema)
        self._schema = schema
        if change is None:
            return
        self._pending = self._pending.changed(change)
        model = self._model
        if len(model):
            log, alike = model.observed.changed(change), getattr(model, "alike", None)
            self._model = refitted_model(
                log, model.kernel, model.ridge, model.prior_mean, alike, self._points
            )
            self._followed = None

    def _is_time_to_tune(self, new: int) -> bool:
        """Return whether scales are to be learnt with so many new rewards.

        A single reward does not have a very long log gone through once more: by then, scales are
        known.
        """
        count = len(self._model) + new
        if self._next_tune is None or (new == 1 and count > MOST_REPLAYED):
            return False
        # However few, rewards that come in bulk may be all there will ever be.
        at_once = new > 1 and not (self._kernel_given or self._rules.hindsight)
        return at_once or count >= self._next_tune

    @contextmanager
    def _atomic(self) -> Iterator[None]:
        """Undo everything that was changed if an error or an interrupt ends the call."""
        state = self._checkpoint()
        try:
            yield
        except BaseException:
            self._restore(state)
            raise

    def _checkpoint(self) -> tuple[Any, ...]:
        """What ``_restore`` needs to undo asks and tells."""
        kept = {**vars(self), "_pending": self._pending.copy(), "_followed": None}
        return kept, self._model.mark(), self._rng.bit_generator.state

    def _restore(self, state: tuple[Any, ...]) -> None:
        kept, mark, random = state
        # What stands in for a method of the class does so for a while only.
        vars(self).update({n: value for n, value in kept.items() if not hasattr(Learner, n)})
        self._model.rewind(mark)
        self._rng.bit_generator.state = random

    def _read(self, contexts: Any, called: str = "contexts") -> Intake:
        intake = self._schema.read(contexts, called, learning=True)
        if intake.schema is not self._schema:
            self.kernel.check_dimension(intake.rows.shape[1])
            if self._kernel_given and intake.schema.layout is not None:
                check_categories(self.kernel, intake.schema.layout.categories)
            if (given := self._rules.method.explorer.given_contexts) is not None:
                self._references(given, intake.schema)
        return intake

    def _signed(self, prior_mean: float | str) -> float | str:
        return prior_mean if isinstance(prior_mean, str) else self._rules.sign * prior_mean

    def _check_order(self, contexts: Any, arms: Any) -> None:
        """Raise if the arm or arms were given in place of the contexts."""
        first = contexts[0] if isinstance(contexts, list | tuple) and contexts else contexts
        second = arms[0] if isinstance(arms, list | tuple) and arms else arms
        given = self._is_arm(contexts) or self._is_arm(first)
        if given and not (self._is_arm(arms) or self._is_arm(second)):
            raise TypeError(
                f"contexts must be contexts, got the arm {first!r}; "
                "the order is context, arm, reward"
            )

    def _is_arm(self, thing: Any) -> bool:
        try:
            return thing in self._places
        except TypeError:  # nothing hashable
            return False

    def _place(self, label: Any) -> int:
        try:
            return self._places[label]
        except (KeyError, TypeError):
            raise ValueError(f"arms must be among {list(self._places)}, got {label!r}") from None

    def _features_of(self, label: Label, features: Any) -> FloatArray | None:
        """Return the features of a new arm; None if arms have none."""
        if (features is None) != (self._features is None):
            told = "has none" if features is None else f"got {features!r}, but no other arm has any"
            raise ValueError(f"features must be given for all arms or for none; {label!r} {told}")
        if self._features is None:
            return None
        return self._features.row_of(features)

    def _ask_from(self, pool: Any, arms: Any, once: bool, index: bool) -> tuple[Any, Label]:
        intake = self._read(pool, called="pool")
        if intake.single or not len(intake.rows):
            raise ValueError("pool must be a table of contexts (2-D) with at least one row")
        check_sizes(self.kernel, intake.rows)
        eligible = self._eligible(arms, 1, True)
        view = self._view(intake.schema, eligible)
        left = self._left(intake.rows, view.active) if once else None
        rows = np.arange(len(intake.rows)) if left is None else np.flatnonzero(left.any(axis=1))
        if not len(rows):
            raise ValueError("every arm was tried at every context of the pool; none is left")
        pulls, explorer = view.pulls(), self._rules.method.explorer
        burning_in = min(pulls) < self._rules.burn_in
        if burning_in and left is not None:
            # A context where the arm whose turn it is was not tried, if there is one.
            open_to_it = np.flatnonzero(left[:, pulls.index(min(pulls))])
            rows = open_to_it if len(open_to_it) else rows
        with self._atomic():
            chosen = view.pool(intake.rows[rows])
            row = rows[any_context(chosen) if burning_in else choose_context(chosen, explorer)]
            there = view if left is None else view.among(left[row])
            pick = self._pick(there.moment(intake.rows[row]))
            place = there.active[pick.arm]
            among = None if eligible is None else view.active
            self._pending.add(intake.rows[row], place, among, pick.propensity)
            self._adopt(intake.schema)
        return int(row) if index else row_of(pool, row), self._labels[place]

    def _left(self, rows: FloatArray, active: Sequence[int]) -> Mask:
        """Return which arms were neither told nor picked at each of several contexts."""
        log = self._model.observed
        tried = {(x.tobytes(), arm) for x, arm in zip(log.contexts, log.arms.tolist(), strict=True)}
        tried |= {(x.tobytes(), arm) for arm, own in self._pending.by_arm.items() for x in own}
        return np.array([[(x.tobytes(), arm) not in tried for arm in active] for x in rows])

    def _eligible(self, arms: Any, rows: int, single: bool) -> Mask | None:
        return read_eligible(arms, self.arms, rows, single=single)

    def _view(self, schema: ContextSchema, eligible: Mask | None = None, row: int = 0) -> View:
        view = View(
            model=self._model,
            pending=self._pending,
            active=self._active,
            width=self._rules.width,
            rng=self._rng,
            follower=self._follower,
            read=lambda given: self._references(given, schema),
        )
        return view if eligible is None else view.among(eligible[row])

    def _follower(self) -> Follower:
        if self._followed is None or self._followed.model is not self._model:
            self._followed = self._model.follow()
        return self._followed

    def _pick(self, moment: Moment) -> Pick:
        return explore(moment, self._rules.method.explorer, self._rules.burn_in)
