"""Logs of other tools, line by line, as records: JSON lines, and the formats of Vowpal Wabbit.

Vowpal Wabbit's logs say which action was taken, with which probability and at what cost, in text
(``cb``, and ``cb_adf`` with the features of every action) or in JSON (``dsjson``). Their records
have ``arm``, ``reward``, which is minus the cost, ``propensity`` and, where actions are listed,
``eligible``, such as ``a|b``; all else is context.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from contextgap.base.checks import no_name_twice

Record: TypeAlias = dict[str, Any]
OUTCOME = ("arm", "reward", "propensity", "eligible")
"""What records of Vowpal Wabbit's logs hold beside the context."""

JSON_LINES = (".jsonl", ".ndjson")
VOWPAL = (".vw", ".dsjson")
_LABEL = re.compile(r"(\d+)(?::([^:\s]*):([^:\s]*))?")


class Line(NamedTuple):
    """A record, and the line that it begins in."""

    number: int
    record: Record


class _Action(NamedTuple):
    """A line of an event in Vowpal Wabbit's text."""

    name: str  # what its features say, in one word if there is one
    cost: float | None = None
    chance: float | None = None


def suffix_of(path: Path) -> str:
    """Return the suffix of a file, that before .gz if it is compressed, in lower case."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def opened(path: Path, *, text: bool = True) -> IO[Any]:
    """Return a file that is open for reading, compressed or not."""
    how: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""} if text else {}
    found: Any = gzip.open if path.suffix.lower() == ".gz" else open
    file: IO[Any] = found(path, "rt" if text else "rb", **how)
    return file


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the records of a log by its suffix; an error names the line."""
    readers = {".vw": _vw, ".dsjson": _dsjson}
    with opened(path) as file:
        number = 0
        try:
            for line in readers.get(suffix_of(path), _json_lines)(file):
                number = line.number
                yield line
        except (KeyError, IndexError, TypeError, ValueError, EOFError, OSError) as error:
            said = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            after = f"after line {number}" if number else "at the beginning"
            raise ValueError(
                f"{path}, {after}: not what {suffix_of(path)} holds ({said})"
            ) from None


def columns_in(lines: Iterable[Line], *, sparse: bool) -> dict[str, Any]:
    """Return the names of columns, and what an absent value is: 0 if sparse numbers are left out.

    In a column with text, it is missing.
    """
    found: dict[str, Any] = {}
    for line in lines:
        for name, value in line.record.items():
            if not sparse or name in OUTCOME or isinstance(value, str):
                found[name] = None
            else:
                found.setdefault(name, 0.0)
    return found


def _json_lines(lines: Iterable[str]) -> Iterator[Line]:
    for number, text in enumerate(lines, start=1):
        if text.strip():
            yield Line(number, dict(_flat(_loads(text, number))))


def _loads(text: str, number: int) -> Mapping[str, Any]:
    found = json.loads(text, object_pairs_hook=no_name_twice)
    if not isinstance(found, dict):
        raise ValueError(f"line {number} is no object in braces")
    return found


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the cells of nested objects and lists, by names such as ``user.age``."""
    for name, value in values.items():
        if isinstance(value, list):
            value = {str(place): each for place, each in enumerate(value)}
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{before}{name}", None
        else:
            yield f"{before}{name}", value


def _dsjson(lines: Iterable[str]) -> Iterator[Line]:
    kept = None
    for number, text in enumerate(lines, start=1):
        if not text.startswith("{"):  # such as the service's checkpoints; Vowpal Wabbit skips them
            continue
        event = _loads(text, number)
        if "_outcomes" in event or "_label_ca" in event or "_slots" in event.get("c", ()):
            raise ValueError(f"line {number} has slots or a continuous action, not one choice")
        if "_label_cost" not in event or event.get("_skipLearn"):
            continue  # an observation that came late, or an event that was not to be learnt from
        kept = event.get("pdrop", 0.0) if kept is None else kept
        if event.get("pdrop", 0.0) != kept:
            raise ValueError(
                f"line {number} has pdrop {event.get('pdrop', 0.0)} after {kept}: events that were "
                "dropped at different rates would need weights"
            )
        context = event["c"]
        actions = [_tagged(each) for each in context["_multi"]]
        taken = int(event["_label_Action"]) - 1
        if not 0 <= taken < len(actions):
            raise ValueError(f"line {number} takes action {taken + 1} of {len(actions)}")
        if event.get("_labelIndex", taken) != taken:
            raise ValueError(
                f"line {number} has _labelIndex {event['_labelIndex']} for action {taken + 1}"
            )
        shown = dict(_flat(_public(context)))
        outcome = _outcome(
            actions[taken], event["_label_cost"], event["_label_probability"], actions
        )
        yield Line(number, {**_renamed(shown), **outcome})


def _tagged(action: Mapping[str, Any]) -> str:
    """Return the tag of an action, which is its name, or what its features say."""
    return str(action["_tag"]) if "_tag" in action else _named(dict(_flat(_public(action))))


def _public(values: Any) -> Any:
    """Return what are features: names with an underscore are none; one object in a list is bare."""
    if isinstance(values, list):
        found = [_public(each) for each in values]
        return found[0] if len(found) == 1 and isinstance(found[0], dict) else found
    if isinstance(values, dict):
        return {name: _public(each) for name, each in values.items() if name[:1] != "_"}
    return values


def _vw(lines: Iterable[str]) -> Iterator[Line]:
    """Yield events: of one line each or, if the first line is no labelled one, up to a blank."""
    event, first, alone = list[str](), 0, None
    for number, text in enumerate(lines, start=1):
        if text.strip():
            alone = _is_cb(text) if alone is None else alone
            first = first if event else number
            event.append(text.strip())
        if event and (alone or not text.strip()):
            yield from _event(event, first, alone)
            event = []
    if event:
        yield from _event(event, first, alone)


def _is_cb(text: str) -> bool:
    """Whether a first line is a whole event, and not the first of several actions."""
    label = text.partition("|")[0].split()
    return bool(label) and label[0] != "shared" and not label[0].startswith("0:")


def _event(lines: Sequence[str], number: int, alone: bool | None) -> Iterator[Line]:
    if alone:
        label = lines[0].partition("|")[0]
        found = [match for match in map(_LABEL.fullmatch, label.split()) if match]
        taken = [match for match in found if match[2]]
        if len(taken) == 1:
            context = _features(lines[0])
            listed = [match[1] for match in found] if len(found) > 1 else None
            arm, cost, chance = taken[0].groups()
            yield Line(number, {**_renamed(context), **_outcome(arm, cost, chance, listed)})
        return
    shared = _features(lines[0]) if lines[0].startswith("shared") else {}
    actions = [_action(text) for text in lines if not text.startswith("shared")]
    taken_ones = [each for each in actions if each.cost is not None]
    if len(taken_ones) == 1:
        own = taken_ones[0]
        names = [each.name for each in actions]
        yield Line(number, {**_renamed(shared), **_outcome(own.name, own.cost, own.chance, names)})


def _action(text: str) -> _Action:
    label = text.partition("|")[0].split()
    found = _LABEL.fullmatch(label[0]) if label else None
    name = _named({each.rpartition(".")[2]: value for each, value in _features(text).items()})
    if found is None or not found[2]:
        return _Action(name)
    return _Action(name, float(found[2]), float(found[3]))


def _features(text: str) -> Record:
    """Return the features of a line: numbers, or text for what is written ``name=text``."""
    found: Record = {}
    for part in text.split("|")[1:]:
        words = part.split()
        space, scale = "", 1.0
        if words and not part[0].isspace():
            space, _, factor = words.pop(0).partition(":")
            scale = float(factor) if factor else 1.0
        for place, word in enumerate(words):
            name, _, value = word.partition(":")
            name, equals, level = (name or str(place)).partition("=")
            column = f"{space}.{name}" if space else name
            found[column] = level if equals else scale * (float(value) if value else 1.0)
    return found


def _named(features: Mapping[str, Any]) -> str:
    """Return an action in one word, or all that its features say."""
    if len(features) == 1:
        ((name, value),) = features.items()
        return str(value) if isinstance(value, str) else _feature(name, value)
    if not features:
        raise ValueError("an action has no features, so that it cannot be named")
    return " ".join(_feature(name, value) for name, value in features.items())


def _feature(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f"{name}={value}"
    return name if value == 1.0 else f"{name}:{value:g}"


def _renamed(context: Record) -> Record:
    """Return a context none of whose columns is called as an outcome is."""
    return {f"{name}_" if name in OUTCOME else name: value for name, value in context.items()}


def _outcome(arm: str, cost: Any, chance: Any, eligible: Sequence[str] | None) -> Record:
    found: Record = {"arm": arm, "reward": -float(cost) + 0.0, "propensity": float(chance)}
    if eligible is not None:
        found["eligible"] = "|".join(each.replace("|", "/") for each in eligible)
    return found
