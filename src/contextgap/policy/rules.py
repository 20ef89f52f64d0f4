"""Short rules for people: a shallow tree over raw columns that imitates a policy.

A tree answers an arm in each of its leaves. Answering arm a where the policy answers π costs the
expected reward of π minus that of a, so rows count by what the wrong arm would cost there. Splits
are found by a beam search over all thresholds and levels: the most promising ones are each followed
to the last level, and the tree with the lowest total cost is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks, files
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.checks import Label, decode_label, encode_label, label_array
from contextgap.policy.state import Card
from contextgap.tables.columns import Category, Date
from contextgap.tables.table import Table, level, number

if TYPE_CHECKING:
    from contextgap.policy.policy import Policy

_ROWS = 4096  # contexts that a tree is grown from, at most
_CUTS = 32  # thresholds of a column, or levels
_BEAM = {1: 1, 2: 16, 3: 8}  # splits followed, by the levels that are left; 3 if there are more
_SMALLEST = 0.01  # of the rows are in every leaf, at least
_WORTH = 0.005  # of what always the same arm costs must be saved by every question
_FOLDS = 5
_ENOUGH = 0.8  # of the policy's gain that a rule must keep to be called good
_TRUTHS = {"true": 1, "false": 0}


@dataclass(frozen=True)
class Leaf:
    """A leaf of the tree, with its arm.

    .. versionadded:: 0.3

    Parameters
    ----------
    arm
        The arm.
    share
        The share of contexts that end here.
    agreement
        The share of them at which the policy answers the same.

    Examples
    --------
    >>> tree = policy.rules(depth=1).tree
    >>> tree.yes.arm, tree.no.arm
    ('left', 'right')
    """

    arm: Label
    share: float = 0.0
    agreement: float = 1.0


@dataclass(frozen=True)
class Split:
    """A question about a column, and the branches for yes and no.

    .. versionadded:: 0.3

    Parameters
    ----------
    column
        Its name.
    test
        "<=" for a number, "=" for a level, "missing".
    value
        What it is compared with. A missing value is neither below it nor equal.
    yes, no
        What follows from the answer.

    Examples
    --------
    >>> policy.rules(depth=1).tree.question
    'x <= 0.03'
    """

    column: str
    test: str
    value: Any
    yes: Node
    no: Node

    @property
    def question(self) -> str:
        """The question in words."""
        if self.test == "missing":
            return f"{self.column} is missing"
        shown = f"{self.value:g}" if isinstance(self.value, float) else repr(self.value)
        return f"{self.column} {self.test} {shown}"


Node: TypeAlias = Leaf | Split


@dataclass(frozen=True)
class Rules:
    """A short rule that imitates a policy; print it.

    .. versionadded:: 0.3

    Parameters
    ----------
    columns
        The columns of a context, in the order of arrays.
    arms
        The arms of the policy.
    tree
        The rule.
    contexts
        How many contexts it was grown from.
    agreement
        The share of decisions kept, at contexts that the tree was not grown from (by
        cross-validation).
    lost
        The expected reward lost per decision, estimated in the same way; a cost where costs are
        told.
    gain
        The expected reward by which the policy beats the best single arm at these contexts.
    single
        That arm.
    minimize
        Whether rewards are costs.
    unasked
        Columns of dates, on which the tree does not split: all later dates are on one side.

    See Also
    --------
    Policy.rules : Grows one.

    Examples
    --------
    >>> rules = policy.rules(depth=1)
    >>> rules.agreement > 0.9, rules.single
    (True, 'right')
    """

    columns: tuple[str, ...]
    arms: tuple[Label, ...]
    tree: Node
    contexts: int
    agreement: float
    lost: float
    gain: float
    single: Label
    minimize: bool = False
    unasked: tuple[str, ...] = ()

    @property
    def kept(self) -> float:
        """The share of the policy's gain over the best single arm that the rule keeps."""
        return 1.0 - self.lost / self.gain if self.gain > 0 else 1.0

    @property
    def verdict(self) -> str:
        """Whether the rule is good enough, in a sentence."""
        if self.gain <= 0:
            return f"Always {self.single!r} does as well as the policy: no rule is needed."
        lost = f"it loses {100 * (1 - self.kept):.0f} % of what the policy gains over always "
        lost += f"{self.single!r} ({self.lost:.3g} of {self.gain:.3g} per decision)"
        if self.kept < _ENOUGH:
            return f"No rule as short as this will do: {lost}. Deploy the policy, or allow depth."
        return f"The rule will do: {lost}."

    def __str__(self) -> str:
        basis = f"rule for {len(self.arms)} arms, from {self.contexts} contexts"
        kept = f"decisions kept: {100 * self.agreement:.1f} %"
        dates = [f"not split on, being dates: {', '.join(self.unasked)}"] if self.unasked else []
        return "\n".join([basis, *_in_words(self.tree, ""), kept, *dates, self.verdict])

    def recommend(self, contexts: Any) -> Any:
        """Return the arm that the rule recommends.

        Parameters
        ----------
        contexts
            One context or many, with raw columns.

        Examples
        --------
        >>> policy.rules(depth=1).recommend({"x": 0.5, "y": 0.0})
        'right'
        """
        table = Table.of(contexts)
        names = list(table.names or self.columns)
        if missing := [name for name in self.columns if name not in names]:
            raise ValueError(f"contexts lack the column {missing[0]!r}; they have {names}")
        given = table.picked(self.columns) if table.names else table.cells
        if len(given) != len(self.columns):
            raise ValueError(
                f"contexts must have the {len(self.columns)} columns {list(self.columns)}, "
                f"got {len(given)}"
            )
        cells = [[cell] for cell in given] if table.single else given
        by_name = dict(zip(self.columns, cells, strict=True))
        places = np.zeros(len(table), dtype=np.intp)
        for leaf, rows in _routed(self.tree, np.arange(len(table)), by_name):
            places[rows] = self.arms.index(leaf.arm)
        return self.arms[int(places[0])] if table.single else label_array(self.arms, places)

    predict = recommend
    """The same, by the name that scikit-learn knows."""

    def score(self, contexts: Any, arms: Any, rewards: Any, propensities: Any = None) -> Card:
        """Return the score card of the rule, from a log of trials.

        Parameters
        ----------
        contexts
            The logged contexts.
        arms
            The arms tried there.
        rewards
            What they gave.
        propensities
            The probabilities with which they were chosen, if they are known.

        Examples
        --------
        >>> arms = ["left", "right"] * 6
        >>> rewards = [measure(*trial) for trial in zip(contexts, arms)]
        >>> policy.rules(depth=1).score(contexts[:12], arms, rewards).value.value > 0
        True
        """
        replayed = import_module("contextgap.learner.replayed")
        card: Card = replayed.score_of_picks(
            self.recommend(contexts), contexts, arms, rewards, propensities, minimize=self.minimize
        )
        return card

    def to_sql(self, table: str | None = None, name: str = "arm") -> str:
        """Return the rule in SQL: a CASE expression, or a query.

        A missing value is NULL. Where a database keeps the NaN of a DataFrame, as duckdb does, set
        it to NULL before.

        Parameters
        ----------
        table
            A table with the columns of contexts; the query returns it with one more column.
        name
            The name of that column.

        Examples
        --------
        >>> print(policy.rules(depth=1).to_sql())
        CASE WHEN "x" <= 0.03e0 THEN
          'left'
        ELSE
          'right'
        END
        """
        case = _sql(self.tree, "")
        if table is None:
            return case
        return f"SELECT *,\n{case} AS {_quoted(name)}\nFROM {_quoted(table)}"

    def to_c(self, name: str = "rule") -> str:
        """Return the rule as a C99 function, which returns the place of an arm in ``arms``.

        A column of numbers is a ``double``, NAN where it is missing; one of levels a ``const char
        *``, NULL where it is missing.

        Parameters
        ----------
        name
            The name of the function.

        See Also
        --------
        Policy.to_c : The policy itself.

        Examples
        --------
        >>> "int rule(" in policy.rules(depth=1).to_c()
        True
        """
        texts = {split.column for split in _splits(self.tree) if split.test == "="}
        kinds = {True: "const char *", False: "double "}
        names = [f"x{place}" for place in range(len(self.columns))]
        said = zip(self.columns, names, strict=True)
        taken = ", ".join(f"{kinds[column in texts]}{own}" for column, own in said)
        notes = [f" *   {own}: {each}" for own, each in zip(names, self.columns, strict=True)]
        notes += [f" *   {place}: {arm}" for place, arm in enumerate(self.arms)]
        unused = "".join(f" (void){own};" for own in names)
        body = _c(self, self.tree, dict(zip(self.columns, names, strict=True)), texts)
        head = "\n".join(["/* Columns and arms:", *(each.replace("*/", "* /") for each in notes)])
        includes = "#include <stddef.h>\n#include <string.h>"
        return (
            f"{includes}\n\n{head}\n */\nint {name}({taken})\n{{\n   {unused}\n"
            f"    return {body};\n}}\n"
        )

    def save(self, path: files.File) -> None:
        """Write the rule to a ``.cgap`` file.

        Parameters
        ----------
        path
            Where to write, or a binary file that is open already.

        Examples
        --------
        >>> policy.rules(depth=1).save("rules.cgap")
        """
        header = {
            **vars(self),
            "tree": _described(self.tree),
            "arms": [encode_label(arm) for arm in self.arms],
            "single": encode_label(self.single),
        }
        files.write(path, "rules", header, {})

    @classmethod
    def load(cls, path: files.File) -> Self:
        """Read a rule from a ``.cgap`` file.

        Parameters
        ----------
        path
            A file that ``save`` wrote, or a binary file that is open already.

        Examples
        --------
        >>> policy.rules(depth=1).save("rules.cgap")
        >>> cg.policy.Rules.load("rules.cgap").columns
        ('x', 'y')
        """
        header, _ = files.read(path, "rules")
        with files.making_sense_of(path):
            arms = tuple(decode_label(arm) for arm in header["arms"])
            columns = tuple(str(name) for name in header["columns"])
            named = ("agreement", "lost", "gain")
            numbers = {name: checks.real(name, header[name]) for name in named}
            return cls(
                columns=columns,
                arms=arms,
                tree=_restored(header["tree"], columns, arms),
                contexts=checks.whole("contexts", header["contexts"], least=1),
                single=decode_label(header["single"]),
                minimize=bool(header["minimize"]),
                unasked=tuple(map(str, header.get("unasked", ()))),
                **numbers,
            )


class _Condition(NamedTuple):
    column: str
    test: str
    value: Any
    holds: NDArray[np.bool_]


def grow_rules(policy: Policy, depth: int, contexts: Any) -> Rules:
    depth = checks.whole("depth", depth, least=1)
    schema, sign = policy.state.schema, policy.state.rules.sign
    if contexts is None:
        seen = policy.state.model.observed.contexts
    else:
        seen = policy.state.read(contexts)[0]
    if len(seen) < 2 * _FOLDS:
        raise ValueError(f"rules need at least {2 * _FOLDS} contexts, got {len(seen)}; pass more")
    rows = seen[evenly(np.arange(len(seen)), _ROWS)]
    given = schema.decode(rows)
    names = policy.columns or tuple(f"x{place}" for place in range(rows.shape[1]))
    columns = dict(zip(names, Table.of(given).cells, strict=True))
    encoded = rows if schema.table is None else given
    means = sign * policy.raw_means(policy.state.read(encoded)[0])
    arms = policy.arms
    answered = policy.recommend(encoded).tolist()
    places = {arm: place for place, arm in enumerate(arms)}
    picks = np.array([places[arm] for arm in answered], dtype=np.intp)
    costs = np.maximum(means[np.arange(len(rows)), picks][:, None] - means, 0.0)
    kinds: Mapping[str, Any] = policy.kinds or {}
    grower = _Grower(list(_conditions(columns, kinds)), costs, picks, arms)
    everywhere = np.arange(len(rows))
    tree = grower.grow(everywhere, depth)
    kept, lost = np.empty(len(rows), dtype=bool), np.empty(len(rows))
    for fold in range(_FOLDS):
        own = everywhere[fold::_FOLDS]
        other = grower.grow(np.setdiff1d(everywhere, own), depth)
        for leaf, where in _routed(other, own, columns):
            kept[where] = picks[where] == places[leaf.arm]
            lost[where] = costs[where, places[leaf.arm]]
    best = int(means.mean(axis=0).argmax())
    return Rules(
        columns=tuple(names),
        arms=arms,
        tree=_noted(tree, everywhere, columns, answered),
        contexts=len(rows),
        agreement=float(kept.mean()),
        lost=float(lost.mean()),
        gain=float(means[everywhere, picks].mean() - means[:, best].mean()),
        single=arms[best],
        minimize=bool(policy.state.rules.costs),
        unasked=tuple(name for name in names if isinstance(kinds.get(name), Date)),
    )


class _Grower:
    def __init__(
        self,
        conditions: Sequence[_Condition],
        costs: FloatArray,  # of answering each arm, rows by arms
        picks: IntArray,  # what the policy answers
        arms: tuple[Label, ...],
    ) -> None:
        self._conditions, self._picks, self._arms = conditions, picks, arms
        holds = np.array([each.holds for each in conditions], dtype=np.float64)
        self._holds = holds.reshape(len(conditions), len(picks))
        # Where several arms cost nothing, the policy's own is the answer.
        wrong = np.arange(len(arms)) != picks[:, None]
        costs = costs + wrong * (1e-6 * max(float(costs.mean()), 1e-300))
        # What the wrong arm costs at least says how much a row matters.
        second = np.where(wrong, costs, np.inf).min(axis=1) if len(arms) > 1 else costs[:, 0]
        self._costs, self._weight = costs, ~wrong * second[:, None]

    def grow(self, rows: IntArray, depth: int) -> Node:
        self._least = max(1, math.ceil(_SMALLEST * len(rows)))
        self._worth = _WORTH * float(self._costs[rows].sum(axis=0).min())
        return self._best(rows, depth)[0]

    def _best(self, rows: IntArray, depth: int) -> tuple[Node, float]:
        total = self._costs[rows].sum(axis=0)
        found: tuple[Node, float] = Leaf(self._arms[int(total.argmin())]), float(total.min())
        alike = (self._picks[rows] == self._picks[rows[0]]).all()
        for place in [] if not depth or alike else self._promising(rows, total, depth):
            condition = self._conditions[place]
            inner = condition.holds[rows]
            first, one = self._best(rows[inner], depth - 1)
            second, two = self._best(rows[~inner], depth - 1)
            # Questions count as what they must save.
            if one + two + self._worth < found[1] and first != second:
                split = Split(condition.column, condition.test, condition.value, first, second)
                found = split, one + two + self._worth
        return found

    def _promising(self, rows: IntArray, total: FloatArray, depth: int) -> list[int]:
        """Return the splits to follow: the cheapest at once, and the purest of what matters."""
        inside = self._holds[:, rows]
        count = inside.sum(axis=1)
        allowed = (count >= self._least) & (count <= len(rows) - self._least)
        if not allowed.any():
            return []
        yes = inside @ self._costs[rows]
        after = np.where(allowed, yes.min(axis=1) + (total - yes).min(axis=1), np.inf)
        beam = _BEAM.get(depth, 3)
        cheapest = np.argsort(after, kind="stable")[: max(1, beam // 2)]
        weight = self._weight[rows]
        matters = inside @ weight
        sides = matters, weight.sum(axis=0) - matters
        with np.errstate(invalid="ignore", divide="ignore"):
            pure = sum(np.nan_to_num(np.square(s).sum(axis=1) / s.sum(axis=1)) for s in sides)
        purest = np.argsort(np.where(allowed, -np.asarray(pure), np.inf), kind="stable")
        places = dict.fromkeys([*cheapest.tolist(), *purest.tolist()])
        return [place for place in places if allowed[place]][:beam]


def _conditions(
    columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Any]
) -> Iterator[_Condition]:
    for name, cells in columns.items():
        kind = kinds.get(name)
        if isinstance(kind, Date):
            continue
        if isinstance(kind, Category):
            levels = [level(cell) for cell in cells]
            known = [each for each in levels if each is not None]
            often = sorted(set(known), key=lambda each: (-known.count(each), each))
            for each in often[:_CUTS]:
                yield _Condition(name, "=", each, np.array([own == each for own in levels]))
            gone = np.array([own is None for own in levels])
        else:
            numbers = _numbers(cells)
            gone = np.isnan(numbers)
            for cut in _cuts(np.unique(numbers[~gone])):
                yield _Condition(name, "<=", cut, numbers <= cut)
        if gone.any():
            yield _Condition(name, "missing", None, gone)


def _cuts(values: FloatArray) -> list[float]:
    """Return thresholds between values, evenly spread over them, each as round as it can be."""
    between = evenly(np.arange(len(values) - 1), _CUTS)
    return list(dict.fromkeys(_roundest(*values[[i, i + 1]].tolist()) for i in between))


def _roundest(low: float, high: float) -> float:
    """Return a number in [low, high) with as few digits as there is one."""
    for digits in range(1, 16):
        middle = float(f"{low + (high - low) / 2:.{digits}g}")
        if low <= middle < high:
            return middle
    return low


def _numbers(cells: Any) -> FloatArray:
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
        return cells.astype(np.float64)
    return np.array([number(cell) for cell in cells], dtype=np.float64)


def _parted(
    split: Split, rows: IntArray, columns: Mapping[str, Any]
) -> Iterator[tuple[Node, IntArray]]:
    cells = columns[split.column]
    own = cells[rows] if isinstance(cells, np.ndarray) else [cells[row] for row in rows]
    if split.test == "<=":
        holds = _numbers(own) <= split.value  # never of a missing number
    else:  # a missing level is None, as is what "missing" asks for
        holds = np.array([level(cell) == split.value for cell in own], dtype=bool)
    yield split.yes, rows[holds]
    yield split.no, rows[~holds]


def _routed(
    node: Node, rows: IntArray, columns: Mapping[str, Any]
) -> Iterator[tuple[Leaf, IntArray]]:
    if isinstance(node, Leaf):
        yield node, rows
        return
    for branch, own in _parted(node, rows, columns):
        yield from _routed(branch, own, columns)


def _noted(node: Node, rows: IntArray, columns: Mapping[str, Any], answered: Any) -> Node:
    if isinstance(node, Leaf):
        right = [answered[row] == node.arm for row in rows]
        return Leaf(node.arm, len(rows) / len(answered), float(np.mean(right)) if right else 1.0)
    yes, no = (_noted(each, own, columns, answered) for each, own in _parted(node, rows, columns))
    return replace(node, yes=yes, no=no)


def _splits(node: Node) -> Iterator[Split]:
    if isinstance(node, Split):
        yield node
        yield from _splits(node.yes)
        yield from _splits(node.no)


def _in_words(node: Node, indent: str) -> list[str]:
    if isinstance(node, Leaf):
        said = f"{indent}{node.arm}   [{100 * node.share:.0f} % of contexts"
        if node.agreement < _ENOUGH:
            return [f"{said}; the policy answers otherwise at {100 - 100 * node.agreement:.0f} %]"]
        return [f"{said}]"]
    deeper = indent + "    "
    return [
        f"{indent}if {node.question}:",
        *_in_words(node.yes, deeper),
        f"{indent}else:",
        *_in_words(node.no, deeper),
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "'" + str(value).replace("'", "''") + "'"
    text = repr(value)
    # With an exponent it is a double, and not a decimal of some digits.
    return text if isinstance(value, int) or "e" in text else f"{text}e0"


def _sql(node: Node, indent: str) -> str:
    if isinstance(node, Leaf):
        return f"{indent}{_literal(node.arm)}"
    test = f"{_quoted(node.column)} {node.test} {_literal(node.value)}"
    if node.test == "missing":
        test = f"{_quoted(node.column)} IS NULL"
    elif node.test == "=" and node.value in _TRUTHS:  # text or, in SQLite, 0 and 1
        written = f"'{node.value}', '{_TRUTHS[node.value]}'"
        test = f"LOWER(CAST({_quoted(node.column)} AS VARCHAR)) IN ({written})"
    deeper = indent + "  "
    # A comparison with NULL is not true, so a missing value goes the way of ELSE.
    return (
        f"{indent}CASE WHEN {test} THEN\n{_sql(node.yes, deeper)}\n"
        f"{indent}ELSE\n{_sql(node.no, deeper)}\n{indent}END"
    )


def _c(rules: Rules, node: Node, names: Mapping[str, str], texts: set[str]) -> str:
    if isinstance(node, Leaf):
        return str(rules.arms.index(node.arm))
    own = names[node.column]
    if node.test == "=":
        held = f"{own} != NULL && strcmp({own}, {_c_text(node.value)}) == 0"
    elif node.test == "missing":
        held = f"{own} == NULL" if node.column in texts else f"{own} != {own}"
    else:
        held = f"{own} <= {node.value!r}"
    yes, no = (_c(rules, each, names, texts) for each in (node.yes, node.no))
    return f"({held} ? {yes} : {no})"


def _c_text(text: str) -> str:
    """Return text as a C string of its UTF-8 bytes; octal escapes end after three digits."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{"".join(plain)}"'


def _described(node: Node) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {**vars(node), "arm": encode_label(node.arm)}
    return {**vars(node), "yes": _described(node.yes), "no": _described(node.no)}


def _restored(values: Mapping[str, Any], columns: Sequence[str], arms: Sequence[Label]) -> Node:
    if "arm" in values:
        arm = decode_label(values["arm"])
        if arm not in arms:
            raise ValueError(f"a rule answers {arm!r}, which is no arm")
        shares = (checks.real(name, values[name]) for name in ("share", "agreement"))
        return Leaf(arm, *shares)
    column, test, value = values["column"], values["test"], values["value"]
    readers: dict[str, Callable[[Any], Any]] = {
        "<=": lambda given: checks.real("value", given),
        "=": str,
        "missing": lambda _: None,
    }
    if column not in columns or test not in readers:
        raise ValueError(f"a rule asks whether {column!r} {test!r}")
    yes, no = (_restored(values[name], columns, arms) for name in ("yes", "no"))
    return Split(column, test, readers[test](value), yes, no)
