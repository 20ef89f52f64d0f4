"""Gives the events of a log to a learner.

Hyperparameters are facts, as picks are. An event that told rewards has those that were learnt from
them as ``"learnt"``, None if none were; so has a ``tune``. After a retraction or a correction they
are learnt anew from the changed reward on. Its event has the number of the event that told this
reward, ``"from"``, and the sets learnt, by event: they replace those of all events between. In logs
of releases before 0.3 events have none, and whoever replays them learns anew.
"""

from __future__ import annotations

import base64
import io
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from contextgap.base.labels import decode_label
from contextgap.learner.replayed import ReplayedLearner
from contextgap.team.campaign.calls import check_time
from contextgap.team.campaign.codec import (
    NOTHING,
    Event,
    Pick,
    as_json,
    decode_contexts,
    decode_eligible,
    is_table,
    some_rows,
)
from contextgap.team.campaign.values import AlteredError

Changes = Mapping[int, float | None]
"""The rewards of trials that were corrected, None for those that were retracted."""

_Said = Mapping[str, Any]  # a request, or its result
_NO_CHANGES: Changes = {}
_ANEW = "anew"  # instead of hyperparameters: the learner learns them when its own rule says so
_LEARNING = ("tell", "record", "tune")  # events upon which hyperparameters may be learnt
_REWOUND = ("number", "hash", "at", "sound", "seconds", "since_snapshot", "next_due")
_LEAST_TUNED = 2  # rewards


def loaded(file: IO[bytes]) -> ReplayedLearner:
    """Return the learner of a ``.cgap`` file."""
    learner = ReplayedLearner.load(file)
    learner.check = check_time
    return learner


def changes_in(events: list[Event]) -> dict[int, float | None]:
    """Return what the retractions and corrections among events make of earlier rewards."""
    return {
        event.request["trial"]: event.request.get("reward")
        for event in events
        if event.kind in ("retract", "correct")
    }


def _learnt_at(event: Event, edits: Sequence[Event]) -> Any:
    """Return what was learnt at an event, after the retractions and corrections given."""
    for edit in reversed(edits):
        found = edit.result.get("learnt", {"from": 0, "sets": None})
        if found["from"] <= event.number < edit.number:
            sets = found["sets"]
            return _ANEW if sets is None else sets.get(str(event.number))
    return event.result.get("learnt", _ANEW)


def _about(request: _Said) -> dict[str, Any]:
    """Return what was said of rewards; it does not hold for those that were corrected since."""
    return {name: request[name] for name in ("noise", "censored") if name in request}


def _cost(request: _Said) -> dict[str, Any]:
    """Return what trials cost, if that was said; a reward that is corrected cost the same."""
    return {"cost": request["cost"]} if "cost" in request else {}


class Replay:
    """The learner of a log up to an event."""

    def __init__(
        self,
        find: Callable[[int], Pick],
        learner: ReplayedLearner | None = None,
        number: int = 0,
        hash: str = NOTHING,  # noqa: A002  # the word for it
        at: str = "",
    ) -> None:
        self._learner = learner
        self.number, self.hash = number, hash
        self.sound = True  # not while an event is taken in
        self.seconds = 0.0  # that a replay since the last snapshot would take, about
        self.since_snapshot = 0
        self.next_due: str | None = None  # when a lease runs out next, or before that
        self.at = at
        self.learnt: dict[str, Any] = {}  # hyperparameters learnt anew, by the event's number
        self._picks: dict[int, Pick] = {}
        self._find = find

    @property
    def learner(self) -> ReplayedLearner:
        """The learner after the last event given."""
        if self._learner is None:
            raise RuntimeError("the log has not begun")
        return self._learner

    def pick(self, trial: int) -> Pick:
        """Return the pick of a trial."""
        return self._picks.get(trial) or self._find(trial)

    def apply(
        self,
        event: Event,
        changes: Changes = _NO_CHANGES,
        edits: Sequence[Event] = (),
        *,
        anew: bool = False,
    ) -> None:
        """Take in the next event, given later edits; ``anew`` ignores what the log has learnt."""
        if event.number != self.number + 1:
            raise RuntimeError(f"event {event.number} cannot follow event {self.number}")
        if not event.follows(self.hash):
            raise AlteredError(
                f"event {event.number} of the campaign was altered, or one before it: its hash is "
                "not that of the log"
            )
        if not hasattr(self, f"_on_{event.kind}"):
            raise ValueError(
                f"event {event.number} is a {event.kind!r}, unknown to this release: use the "
                "contextgap release that wrote it"
            )
        check_time()
        start, self.sound = time.perf_counter(), False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there was to say was said when it came
            learnt = _ANEW if anew else _learnt_at(event, edits)
            self._step(event.kind, event.request, event.result, changes, learnt)
        self._went_on(event, start)

    def append(
        self, kind: str, key: str | None, request: Any, result: _Said, *, at: str, by: str | None
    ) -> Event:
        """Take in what happens now, for an ask but its pick; return it as the next event."""
        start, self.sound = time.perf_counter(), False
        text = as_json(request)
        read = json.loads(text)  # the learner is only ever given what was read back from JSON
        if kind in _LEARNING:
            learnt = self._step(kind, read, result, _NO_CHANGES, _ANEW)
            result = {**result, "learnt": learnt}
        elif kind != "ask":
            self._step(kind, read, result, _NO_CHANGES, None)
        parts = (self.number + 1, at, kind, key, text, as_json(result))
        event = Event.following(self.hash, parts, by)
        vars(event)["request"] = read
        if kind == "ask":
            vars(event)["result"] = result  # plain values, which read back as the same
        self._went_on(event, start)
        return event

    def mark(self) -> tuple[Any, ...]:
        """Return what ``rewind`` needs to return to this event."""
        return self.learner.state, dict(self._picks), {n: vars(self)[n] for n in _REWOUND}

    def rewind(self, mark: tuple[Any, ...]) -> None:
        """Forget all events since ``mark``; none of them may have added or removed an arm."""
        state, self._picks, rest = mark
        self.learner.restore(state)
        vars(self).update(rest)

    def _step(self, kind: str, request: _Said, result: _Said, changes: Changes, learnt: Any) -> Any:
        """Give what happened to the learner; return the hyperparameters learnt."""
        step = getattr(self, f"_on_{kind}")
        if kind not in _LEARNING:
            step(request, result, changes)
            return None
        if learnt != _ANEW:
            if not (kind == "tune" and learnt is None):
                with self.learner.using(learnt):
                    step(request, result, changes)
            return learnt
        self.learner.learnt = None
        step(request, result, changes)
        if (found := self.learner.learnt) is not None:
            self.learnt[str(self.number + 1)] = found
        return found

    def _went_on(self, event: Event, start: float) -> None:
        if event.kind == "ask":
            result = event.result
            self._picks |= dict(zip(result["trials"], event.picks, strict=True))
            if result["until"] is not None:
                self.next_due = min(result["until"], self.next_due or result["until"])
        elif event.kind in ("tell", "cancel", "expire"):  # a late reward finds it in the database
            self._picks.pop(event.request["trial"], None)
        self.number, self.hash, self.at = event.number, event.hash, event.at
        self.sound = True
        self.seconds += time.perf_counter() - start
        self.since_snapshot += 1

    def _on_create(self, request: _Said, _: _Said, __: Changes) -> None:
        self._learner = loaded(io.BytesIO(base64.b64decode(request["learner"])))

    def _on_ask(self, request: _Said, result: _Said, _: Changes) -> None:
        if "pool" in result:
            self.learner.learn_columns(decode_contexts(result["pool"]))
        contexts = result.get("context") or request["contexts"]
        arms: Any = [decode_label(label) for label in result["arms"]]
        self.learner.add_pending(
            decode_contexts(contexts),
            arms if is_table(contexts) else arms[0],
            eligible=decode_eligible(request["arms"]),
            propensities=result.get("propensities"),
        )
        if "random" in result:
            self.learner.set_random(result["random"])

    def _on_tell(self, request: _Said, result: _Said, changes: Changes) -> None:
        trial = request["trial"]
        pick, reward = self.pick(trial), changes.get(trial, request["reward"])
        context = decode_contexts(pick.context)
        if reward is None:
            if not result["late"]:
                self.learner.forget_pick(context, pick.arm)
            return
        if result["late"]:  # so that it does not answer for another pick of the same kind
            self.learner.add_pending(context, pick.arm, eligible=pick.eligible)
        about = {} if trial in changes else _about(request)
        about |= _cost(request)
        self.learner.tell(context, pick.arm, reward, eligible=pick.eligible, **about)

    def _on_record(self, request: _Said, result: _Said, changes: Changes) -> None:
        contexts = request["contexts"]
        told = zip(result["trials"], request["rewards"], strict=True)
        rewards = [changes.get(trial, reward) for trial, reward in told]
        left = [place for place, reward in enumerate(rewards) if reward is not None]
        if len(left) < len(rewards):
            self.learner.learn_columns(decode_contexts(contexts))
        if not left:
            return
        arms: Any = [decode_label(request["arms"][place]) for place in left]
        values: Any = [rewards[place] for place in left]
        eligible = decode_eligible(request["eligible"])
        about = {name: [said[place] for place in left] for name, said in _about(request).items()}
        for row, place in enumerate(left):
            if result["trials"][place] in changes:
                about |= {name: [*said[:row], 0, *said[row + 1 :]] for name, said in about.items()}
        about |= {name: [said[place] for place in left] for name, said in _cost(request).items()}
        if "censored" in about:
            about["censored"] = [bool(each) for each in about["censored"]]
        if is_table(contexts):
            contexts = some_rows(contexts, left)
            if eligible is not None and isinstance(request["eligible"][0], list):
                eligible = [eligible[place] for place in left]
        else:
            arms, values = arms[0], values[0]
            about = {name: said[0] for name, said in about.items()}
        rows = decode_contexts(contexts)
        self.learner.add_pending(rows, arms, eligible=eligible)
        self.learner.tell(rows, arms, values, eligible=eligible, **about)

    def _on_cancel(self, request: _Said, _: _Said, __: Changes) -> None:
        pick = self.pick(request["trial"])
        self.learner.forget_pick(decode_contexts(pick.context), pick.arm)

    def _on_tune(self, request: _Said, _: _Said, changes: Changes) -> None:
        if changes and len(self.learner.state.model) < _LEAST_TUNED:
            return  # there were more, before some were retracted
        self.learner.tune(request["criterion"])

    def _on_add_arm(self, request: _Said, _: _Said, __: Changes) -> None:
        features = request["features"]
        known = None if features is None else decode_contexts(features)
        label, cost = decode_label(request["arm"]), request.get("cost")
        self.learner.add_recorded_arm(label, known, cost)

    def _on_remove_arm(self, request: _Said, _: _Said, __: Changes) -> None:
        self.learner.remove_arm(decode_label(request["arm"]))

    def _on_freeze(self, _: _Said, __: _Said, ___: Changes) -> None:
        """Change how earlier events are read, or nothing at all."""

    _on_expire = _on_cancel
    _on_retract = _on_correct = _on_progress = _on_freeze
