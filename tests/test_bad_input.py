"""Bad input: every error names the argument and the offending value, and nothing changes.

Each table row is the call, the error, and what its message must contain.
"""

import re
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.gaussian_process import kernels as sk

import contextgap as cg
from contextgap.kernels import Product, Scaled, Sum
from contextgap.methods import explorers

NAN, INF = float("nan"), float("inf")
HUGE = 10**400  # a number no float can hold


def table(rows):
    """Turn (id, call, error, *fragments) into parameters."""
    return pytest.mark.parametrize(
        ("call", "error", "fragments"),
        [pytest.param(call, error, parts, id=name) for name, call, error, *parts in rows],
    )


def check_refused(call, error, fragments, *arguments):
    with pytest.raises(error, match=re.escape(fragments[0])) as caught:
        call(*arguments)
    assert type(caught.value) in (ValueError, TypeError)
    for fragment in fragments[1:]:
        assert fragment in str(caught.value)


def numbers(make, argument, *, least=None, positive=False, below=None):
    """Rows for an argument that takes one real number."""
    types = {"text": "1", "None": None, "list": [1.0], "complex": 1j, "bool": True, "class": float}
    rows = [(name, value, TypeError) for name, value in types.items()]
    rows += [("NumPy bool", np.bool_(True), TypeError), ("Decimal", Decimal(1), TypeError)]
    rows += [("NaN", NAN, ValueError), ("inf", INF, ValueError), ("-inf", -INF, ValueError)]
    rows += [("huge", HUGE, ValueError), ("array of two", np.ones(2), TypeError)]
    if positive:
        rows += [("zero", 0, ValueError), ("negative", -1.5, ValueError)]
    if least is not None:
        rows += [("too low", least - 1, ValueError)]
    if below is not None:
        rows += [("too high", below + 1, ValueError)]
    return [
        (f"{argument}: {name}", lambda value=value: make(value), error, argument, repr(value))
        for name, value, error in rows
    ]


def wholes(make, argument, least):
    """Rows for an argument that takes one whole number."""
    bad = [1.0, 2.5, "1", True, NAN, [1], 1j, np.float64(1)]
    return [
        (
            f"{argument}: {value!r}",
            lambda value=value: make(value),
            TypeError,
            argument,
            repr(value),
        )
        for value in bad
    ] + [
        (f"{argument}: too low", lambda: make(least - 1), ValueError, argument, str(least - 1)),
        (f"{argument}: far too low", lambda: make(-99), ValueError, argument, "-99", str(least)),
    ]


def per_dimension(make, argument):
    """Rows for an argument that takes one positive number, or one per dimension."""
    return [
        *numbers_without_sequences(make, argument),
        (f"{argument}: empty", lambda: make([]), ValueError, argument, "[]"),
        (f"{argument}: 2-D", lambda: make([[1.0, 2.0]]), ValueError, argument, "[[1.0, 2.0]]"),
        (f"{argument}: ragged", lambda: make([[1.0], [1.0, 2.0]]), ValueError, argument),
        (f"{argument}: entry 0", lambda: make([1.0, 0]), ValueError, f"{argument}[1]", "got 0"),
        (f"{argument}: entry NaN", lambda: make((NAN, 1)), ValueError, f"{argument}[0]", "nan"),
        (f"{argument}: entry text", lambda: make(["a"]), TypeError, f"{argument}[0]", "'a'"),
        (f"{argument}: entry bool", lambda: make([True]), TypeError, f"{argument}[0]", "True"),
        (f"{argument}: entry None", lambda: make([1, None]), TypeError, f"{argument}[1]", "None"),
    ]


def numbers_without_sequences(make, argument):
    sequences = (f"{argument}: list", f"{argument}: array of two")
    return [row for row in numbers(make, argument, positive=True) if row[0] not in sequences]


class Strange:
    """Something that is none of the library's parts."""

    def __repr__(self):
        return "Strange()"


def parts(make, argument, kind, cls):
    """Rows for an argument that takes a part of the library."""
    return [
        (
            f"{argument}: class",
            lambda: make(cls),
            TypeError,
            argument,
            f"the class {cls.__name__}",
            "call it",
        ),
        (f"{argument}: None", lambda: make(None), TypeError, argument, kind, "None"),
        (f"{argument}: number", lambda: make(1.0), TypeError, argument, kind, "1.0"),
        (f"{argument}: stranger", lambda: make(Strange()), TypeError, argument, "Strange()"),
        (
            f"{argument}: another part",
            lambda: make(OTHER[kind]),
            TypeError,
            argument,
            kind,
            repr(OTHER[kind]),
        ),
    ]


def given(rows):
    """Rows for a setting that is learnt, or has a default, where it is None."""
    return [row for row in rows if not row[0].endswith(": None")]


OTHER = {
    "Kernel": cg.PosteriorWidth(),
    "Width": cg.Gaussian(1.0),
    "Method": cg.Linear(),
    "Explorer": cg.SmallestGap(),
    "Recommender": explorers.Uniform(),
}


@table(
    [
        *given(numbers(lambda v: cg.Learner(2, ridge=v), "ridge", positive=True)),
        (
            "ridge hint",
            lambda: cg.Learner(2, ridge=-1),
            ValueError,
            "ridge",
            "-1",
            "0.01 to 1 suits",
        ),
        *wholes(lambda v: cg.Learner(2, burn_in=v), "burn_in", 0),
        ("burn_in: None", lambda: cg.Learner(2, burn_in=None), TypeError, "burn_in", "None"),
        *wholes(lambda v: cg.Learner(2, seed=v), "seed", 0),
        (
            "seed: generator",
            lambda: cg.Learner(2, seed=np.random.default_rng(0)),
            TypeError,
            "seed",
        ),
        *(
            row
            for row in given(numbers(lambda v: cg.Learner(2, prior_mean=v), "prior_mean"))
            if row[0] != "prior_mean: text"
        ),
        (
            "prior_mean: text",
            lambda: cg.Learner(2, prior_mean="mean"),
            ValueError,
            "prior_mean",
            "'mean'",
            '"auto"',
        ),
        *given(parts(lambda v: cg.Learner(2, kernel=v), "kernel", "Kernel", cg.Gaussian)),
        *given(parts(lambda v: cg.Learner(2, width=v), "width", "Width", cg.PosteriorWidth)),
        (
            "ridge without a kernel",
            lambda: cg.Learner(2, ridge=0.1),
            ValueError,
            "ridge is learnt where no kernel is given",
            "ridge=0.1",
        ),
        (
            "prior_mean without a kernel",
            lambda: cg.Learner(2, prior_mean="auto"),
            ValueError,
            "prior_mean is learnt where no kernel is given",
            "prior_mean='auto'",
        ),
        (
            "retune: unknown",
            lambda: cg.Learner(2, retune="often"),
            ValueError,
            "retune must be one of ('growing', 'doubling', 'never')",
            "'often'",
        ),
        ("retune: number", lambda: cg.Learner(2, retune=2), ValueError, "retune", "2"),
        *parts(lambda v: cg.Learner(2, method=v), "method", "Method", cg.Method),
        ("kernel: text", lambda: cg.Learner(2, kernel="rbf"), TypeError, "kernel", "'rbf'"),
        ("kernel: theirs", lambda: cg.Learner(2, kernel=sk.RBF()), TypeError, "kernel", "RBF"),
        (
            "method: unknown",
            lambda: cg.Learner(2, method="ucb"),
            ValueError,
            "method",
            "'ucb'",
            "'kernel-ucb'",
        ),
        ("method: list", lambda: cg.Learner(2, method=["uniform"]), TypeError, "method", "uniform"),
        (
            "width: number",
            lambda: cg.Learner(2, width=2),
            TypeError,
            "width",
            "2",
            "PosteriorWidth(",
        ),
    ]
)
def test_learner_settings(call, error, fragments):
    check_refused(call, error, fragments)


@table(
    [
        ("empty", lambda: cg.Learner([]), ValueError, "arms", "at least one"),
        ("no arms", lambda: cg.Learner(0), ValueError, "arms", "0"),
        ("negative", lambda: cg.Learner(-3), ValueError, "arms", "-3"),
        ("bool", lambda: cg.Learner(True), TypeError, "arms", "True"),
        ("float", lambda: cg.Learner(3.0), TypeError, "arms", "3.0"),
        ("NaN", lambda: cg.Learner(NAN), TypeError, "arms", "nan"),
        ("complex", lambda: cg.Learner(1j), TypeError, "arms", "1j"),
        ("None", lambda: cg.Learner(None), TypeError, "arms", "None"),
        ("text", lambda: cg.Learner("abc"), TypeError, "arms", "'abc'"),
        ("bytes", lambda: cg.Learner(b"abc"), TypeError, "arms", "b'abc'"),
        ("0-D array", lambda: cg.Learner(np.array(3)), TypeError, "arms", "array(3)"),
        ("class", lambda: cg.Learner(list), TypeError, "arms", "list"),
        ("duplicate", lambda: cg.Learner(["a", "b", "a"]), ValueError, "arms", "'a' twice"),
        ("equal numbers", lambda: cg.Learner([1, 1.0]), ValueError, "arms", "1.0 twice"),
        ("1 and True", lambda: cg.Learner([1, True]), ValueError, "arms", "True twice"),
        ("list as label", lambda: cg.Learner(["a", ["b"]]), TypeError, "arms", "['b']", "hashable"),
        ("array as label", lambda: cg.Learner(np.eye(2)), TypeError, "arms", "hashable"),
        ("list in tuple", lambda: cg.Learner([("a", [])]), TypeError, "arms", "('a', [])"),
        ("NaN as label", lambda: cg.Learner([NAN, 1]), ValueError, "arms", "nan"),
        ("missing as label", lambda: cg.Learner(["a", pd.NA]), ValueError, "arms", "<NA>"),
        ("not a time", lambda: cg.Learner([np.datetime64("NaT")]), ValueError, "arms", "NaT"),
    ]
)
def test_learner_arms(call, error, fragments):
    check_refused(call, error, fragments)


@table(
    [
        *per_dimension(cg.Gaussian, "bandwidth"),
        *per_dimension(cg.Matern, "bandwidth"),
        *per_dimension(lambda v: cg.Periodic(v, 1.0), "period"),
        *per_dimension(lambda v: cg.Periodic(1.0, v), "bandwidth"),
        *(
            (
                f"smoothness: {v!r}",
                lambda v=v: cg.Matern(1.0, v),
                ValueError,
                "smoothness",
                repr(v),
                "0.5, 1.5 or 2.5",
            )
            for v in (2, 0, NAN, INF, "2.5", None, [2.5], np.array([0.5, 1.5]), True)
        ),
        *wholes(lambda v: cg.Polynomial(v, 1.0), "degree", 1),
        *numbers(lambda v: cg.Polynomial(2, v), "offset", least=0),
        *numbers(lambda v: Scaled(cg.Linear(), v), "factor", positive=True),
        ("times 0", lambda: 0 * cg.Linear(), ValueError, "factor", "0"),
        ("times NaN", lambda: cg.Linear() * NAN, ValueError, "factor", "nan"),
        ("times huge", lambda: cg.Linear() * HUGE, ValueError, "factor"),
        ("times True", lambda: True * cg.Linear(), TypeError, "True"),
        ("times text", lambda: cg.Linear() * "2", TypeError, "Linear"),
        ("plus 1", lambda: cg.Linear() + 1, TypeError, "Linear", "int"),
        ("plus class", lambda: cg.Linear() + cg.Linear, TypeError, "Linear"),
        *parts(lambda v: Sum(v, cg.Linear()), "kernel", "Kernel", cg.Gaussian),
        *parts(lambda v: Product(cg.Linear(), v), "kernel", "Kernel", cg.Gaussian),
        *parts(lambda v: Scaled(v, 1.0), "kernel", "Kernel", cg.Gaussian),
        ("theirs: class", lambda: cg.SklearnKernel(sk.RBF), TypeError, "kernel", "the class RBF"),
        ("theirs: ours", lambda: cg.SklearnKernel(cg.Linear()), TypeError, "kernel", "Linear("),
        ("theirs: None", lambda: cg.SklearnKernel(None), TypeError, "kernel", "None"),
        (
            "white noise",
            lambda: cg.SklearnKernel(sk.WhiteKernel()),
            ValueError,
            "WhiteKernel",
            "ridge",
        ),
        (
            "hidden noise",
            lambda: cg.SklearnKernel(2.0 * (sk.RBF() + sk.WhiteKernel()) ** 2),
            ValueError,
            "WhiteKernel",
            "ridge",
        ),
    ]
)
def test_kernels(call, error, fragments):
    check_refused(call, error, fragments)


@table(
    [
        *numbers(cg.PosteriorWidth, "scale", positive=True),
        *numbers(cg.RidgeWidth, "scale", positive=True),
        ("scale hint", lambda: cg.PosteriorWidth(0), ValueError, "scale", "0.1 to 2 are usual"),
        *numbers(explorers.EpsilonGreedy, "decay", least=0, below=1),
        *(
            (f"random: {v!r}", lambda v=v: explorers.Uniform(v), TypeError, "random", repr(v))
            for v in (1, 0, None, "yes", np.bool_(True))
        ),
        *wholes(cg.SmallestGapInHistory, "last", 1),
        *parts(
            lambda v: cg.Method(explorer=v, recommender=cg.SmallestGap()),
            "explorer",
            "Explorer",
            explorers.Uniform,
        ),
        *parts(
            lambda v: cg.Method(explorer=explorers.Uniform(), recommender=v),
            "recommender",
            "Recommender",
            cg.SmallestGap,
        ),
        (
            "by name",
            lambda: cg.Method(explorer="uniform", recommender=cg.SmallestGap()),
            TypeError,
            "explorer",
            "'uniform'",
        ),
        (
            "half a method",
            lambda: cg.Method(explorer=explorers.Uniform()),
            TypeError,
            "recommender",
        ),
        (
            "by position",
            lambda: cg.Method(explorers.Uniform(), cg.SmallestGap()),
            TypeError,
            "positional",
        ),
        ("learner by position", lambda: cg.Learner(2, cg.Linear()), TypeError, "positional"),
    ]
)
def test_widths_explorers_recommenders_methods(call, error, fragments):
    check_refused(call, error, fragments)


def named():
    """A learner of two arms and two named numbers, with history and a pick under way."""
    settings = {"kernel": cg.Gaussian((1.0, 2.0)), "ridge": 0.1, "method": "kernel-ts"}
    learner = cg.Learner(["a", "b", "gone"], **settings, seed=0)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(9, 2)), columns=["x", "y"])
    learner.fit(frame, ["a", "b", "gone"] * 3, rng.normal(size=9))
    learner.ask([[0.25, 0.5], [0.5, 0.5]])
    learner.remove_arm("gone")
    return learner


def fingerprint(learner, path):
    """Everything a learner is made of: settings, arrays, pending picks, names, random state."""
    learner.save(path)
    with zipfile.ZipFile(path) as container:
        return {name: container.read(name) for name in container.namelist()}


def check_unchanged(call, error, fragments, tmp_path):
    learner = named()
    before = fingerprint(learner, tmp_path / "before.cgap")
    check_refused(call, error, fragments, learner)
    assert fingerprint(learner, tmp_path / "after.cgap") == before
    assert learner.pending == 2
    assert learner.ask([0.1, 0.2]) == named().ask([0.1, 0.2])


GOOD = [0.25, 0.5]
BATCH = [[0.25, 0.5], [0.5, 0.5]]
PANDAS, POLARS = pd.DataFrame, pl.DataFrame

CONTEXTS = [
    ("NaN", [0.1, NAN], ValueError, "contexts", "nan", "column 'y'"),
    ("inf", [INF, 0.1], ValueError, "contexts", "inf", "column 'x'"),
    ("-inf", [0.1, -INF], ValueError, "contexts", "-inf", "column 'y'"),
    ("huge", [0.1, HUGE], ValueError, "contexts", "finite"),
    ("too long", [0.1, 0.2, 0.3], ValueError, "contexts", "2 numbers each", "got 3"),
    ("too short", [0.1], ValueError, "contexts", "2 numbers each", "got 1"),
    ("scalar", 0.1, ValueError, "contexts", "2 numbers each", "got 1"),
    ("empty", [], ValueError, "contexts", "at least one number"),
    ("3-D", np.zeros((1, 1, 2)), ValueError, "contexts", "1-D or 2-D", "(1, 1, 2)"),
    ("text", "abc", TypeError, "contexts", "'abc'"),
    ("bytes", b"abc", TypeError, "contexts", "b'abc'"),
    ("texts", ["a", "b"], TypeError, "contexts", "'a'"),
    ("digits", ["1", "2"], TypeError, "contexts", "'1'"),
    ("digits as objects", np.array([0.1, "2"], object), TypeError, "contexts", "'2'", "'y'"),
    ("one text", [0.1, "b"], TypeError, "contexts", "'b'"),
    ("complex", [0.1, 1j], TypeError, "contexts", "1j"),
    ("complex as objects", np.array([0.1, 1j], object), TypeError, "contexts", "1j"),
    ("None", None, (TypeError, ValueError), "contexts", "None"),
    ("a hole", [0.1, None], ValueError, "contexts", "nan", "'y'"),
    ("time", np.array(["2020", "2021"], "M8[Y]"), TypeError, "contexts", "2020"),
    ("set", {0.1, 0.2}, TypeError, "contexts", "0.1"),
    ("generator", iter([0.1, 0.2]), TypeError, "contexts", "iterator"),
    ("object", Strange(), TypeError, "contexts", "Strange()"),
    ("class", list, TypeError, "contexts", "list"),
    ("dict lacks", {"x": 1.0}, ValueError, "contexts", "'y'"),
    ("dict NaN", {"x": 1.0, "y": NAN}, ValueError, "contexts", "nan", "'y'"),
    ("dict text", {"x": 1.0, "y": "b"}, TypeError, "contexts", "'b'", "'y'"),
    ("series lacks", pd.Series({"y": 1.0, "z": 2.0}), ValueError, "contexts", "'x'", "'z'"),
    ("series text", pd.Series({"y": 1.0, "x": "b"}), TypeError, "contexts", "'b'", "'x'"),
]
BATCHES = [
    ("NaN", [[0.1, 0.2], [0.3, NAN]], ValueError, "contexts", "nan", "row 1, column 'y'"),
    ("inf", [[0.1, 0.2], [INF, 0.3]], ValueError, "contexts", "inf", "row 1, column 'x'"),
    ("too long", np.zeros((2, 3)), ValueError, "contexts", "2 numbers each", "got 3"),
    ("too short", np.zeros((2, 1)), ValueError, "contexts", "2 numbers each", "got 1"),
    ("no columns", np.zeros((2, 0)), ValueError, "contexts", "at least one number"),
    ("empty, too long", np.zeros((0, 3)), ValueError, "contexts", "2 numbers each", "got 3"),
    ("ragged", [[0.1, 0.2], [0.3]], (TypeError, ValueError), "contexts", "different lengths"),
    ("3-D", np.zeros((2, 2, 1)), ValueError, "contexts", "(2, 2, 1)"),
    ("texts", [["a", "b"], ["c", "d"]], TypeError, "contexts", "'a'"),
    ("complex", np.array(BATCH) * 1j, TypeError, "contexts", "j"),
    ("pandas lacks", PANDAS({"x": [1.0, 2.0]}), ValueError, "contexts", "'y'", "['x']"),
    ("polars lacks", POLARS({"y": [1.0, 2.0]}), ValueError, "contexts", "'x'", "['y']"),
    (
        "pandas text",
        PANDAS({"y": [1.0, 2.0], "x": [1, "q"]}),
        TypeError,
        "contexts",
        "'q'",
        "row 1, column 'x'",
    ),
    (
        "polars text",
        POLARS({"y": [1.0, 2.0], "x": ["p", "q"]}),
        TypeError,
        "contexts",
        "'p'",
        "row 0, column 'x'",
    ),
    (
        "pandas time",
        PANDAS({"x": pd.to_datetime(["2020", "2021"]), "y": [1, 2]}),
        TypeError,
        "contexts",
        "2020",
        "column 'x'",
    ),
    (
        "pandas only time",
        PANDAS(dict.fromkeys("xy", pd.to_datetime(["2020", "2021"]))),
        TypeError,
        "contexts",
        "2020",
        "column 'x'",
    ),
    ("pandas complex", PANDAS({"x": [1.0, 2.0], "y": [1j, 2]}), TypeError, "contexts", "column"),
    (
        "pandas null",
        PANDAS({"x": [1, 2], "y": pd.array([1, None], "Int64")}),
        (TypeError, ValueError),
        "contexts",
        "row 1, column 'y'",
    ),
    (
        "pandas None",
        PANDAS({"x": [1, 2], "y": np.array([1, None], object)}),
        ValueError,
        "contexts",
        "nan",
        "row 1, column 'y'",
    ),
    (
        "polars null",
        POLARS({"x": [1, 2], "y": [None, 1]}),
        ValueError,
        "contexts",
        "nan",
        "row 0, column 'y'",
    ),
]


def with_contexts(name, call, rows):
    return [
        (f"{name}: {label}", lambda learner, bad=bad: call(learner, bad), error, *fragments)
        for label, bad, error, *fragments in rows
    ]


CALLS = [
    *with_contexts("ask", lambda learner, x: learner.ask(x), CONTEXTS + BATCHES),
    *with_contexts("recommend", lambda learner, x: learner.recommend(x), CONTEXTS + BATCHES),
    *with_contexts("decide", lambda learner, x: learner.decide(x), CONTEXTS),
    *with_contexts("tell", lambda learner, x: learner.tell(x, "a", 1.0), CONTEXTS),
    *with_contexts(
        "tell batch", lambda learner, x: learner.tell(x, ["a", "b"], [1.0, 2.0]), BATCHES
    ),
    *with_contexts("fit", lambda learner, x: learner.fit(x, ["a", "b"], [1.0, 2.0]), BATCHES),
    *with_contexts("policy", lambda learner, x: learner.freeze().recommend(x), CONTEXTS + BATCHES),
    *with_contexts("certificate", lambda learner, x: learner.freeze().certificate(x), BATCHES),
    *with_contexts("policy decide", lambda learner, x: learner.freeze().decide(x), CONTEXTS),
]


@table(CALLS)
def test_contexts(call, error, fragments, tmp_path):
    check_unchanged(call, error, fragments, tmp_path)


REWARDS = [
    ("NaN", NAN, ValueError, "rewards", "nan"),
    ("inf", INF, ValueError, "rewards", "inf"),
    ("-inf", -INF, ValueError, "rewards", "-inf"),
    ("huge", HUGE, ValueError, "rewards"),
    ("text", "1", TypeError, "rewards", "'1'"),
    ("None", None, TypeError, "rewards", "None"),
    ("complex", 1j, TypeError, "rewards", "1j"),
    ("list", [1.0], TypeError, "rewards", "[1.0]"),
    ("array", np.array([1.0, 2.0]), TypeError, "rewards", "array("),
    ("object", Strange(), TypeError, "rewards", "Strange()"),
]
REWARD_LISTS = [
    ("NaN", [1.0, NAN], ValueError, "rewards", "nan", "row 1"),
    ("inf", [INF, 1.0], ValueError, "rewards", "inf", "row 0"),
    ("huge", [1.0, HUGE], ValueError, "rewards"),
    ("a hole", [1.0, None], (TypeError, ValueError), "rewards", "row 1"),
    ("a null", pd.Series([1, None], dtype="Int64"), (TypeError, ValueError), "rewards", "row 1"),
    ("polars null", pl.Series([1, None]), ValueError, "rewards", "row 1"),
    ("scalar", 1.0, TypeError, "rewards", "1.0", "one per context"),
    ("None", None, TypeError, "rewards", "None"),
    ("text", "12", TypeError, "rewards", "'12'"),
    ("texts", ["a", "b"], TypeError, "rewards", "'a'"),
    ("digits", ["1", "2"], TypeError, "rewards", "'1'"),
    ("digits in an array", np.array(["1", "2"]), TypeError, "rewards", "'1'"),
    ("digits in a series", pd.Series(["1", "2"]), TypeError, "rewards", "'1'"),
    ("complex", [1.0, 1j], TypeError, "rewards", "1j"),
    ("complex array", np.array([1j, 1.0]), TypeError, "rewards", "1j"),
    ("times", np.array(["2020", "2021"], "M8[Y]"), TypeError, "rewards", "2020"),
    ("2-D", [[1.0], [2.0]], ValueError, "rewards", "one-dimensional", "(2, 1)"),
    ("ragged", [[1.0], [1.0, 2.0]], (TypeError, ValueError), "rewards"),
    ("0-D", np.array(1.0), (TypeError, ValueError), "rewards"),
    ("generator", iter([1.0, 2.0]), TypeError, "rewards", "iterator"),
    ("set", {1.0, 2.0}, TypeError, "rewards", "{1.0, 2.0}"),
    ("too few", [1.0], ValueError, "2 contexts", "2 arms", "1 rewards"),
    ("too many", [1.0, 2.0, 3.0], ValueError, "2 contexts", "2 arms", "3 rewards"),
    ("none", [], ValueError, "2 contexts", "2 arms", "0 rewards"),
]
ARMS = [
    ("unknown", "z", ValueError, "arms", "'z'", "'a', 'b'"),
    ("index", 0, ValueError, "arms", "0", "'a', 'b'"),
    ("None", None, ValueError, "arms", "None"),
    ("NaN", NAN, ValueError, "arms", "nan"),
    ("unhashable", ["a"], (TypeError, ValueError), "arms", "['a']"),
    ("dict", {"a": 1}, (TypeError, ValueError), "arms", "{'a': 1}"),
    ("array", np.array(["a"]), (TypeError, ValueError), "arms", "array(['a']"),
    ("class", str, ValueError, "arms", "str"),
]
ARM_LISTS = [
    ("unknown", ["a", "z"], ValueError, "arms", "'z'", "'a', 'b'"),
    ("None", None, TypeError, "arms", "None"),
    ("one for all", "ab", TypeError, "arms", "'ab'", "one per context"),
    ("unhashable", ["a", ["b"]], (TypeError, ValueError), "arms", "['b']"),
    ("hole", ["a", None], ValueError, "arms", "None"),
    ("2-D", np.array([["a"], ["b"]]), (TypeError, ValueError), "arms", "['a']"),
    ("0-D", np.array("a"), (TypeError, ValueError), "arms"),
    ("set", {"a", "b"}, TypeError, "arms"),
    ("generator", iter(["a", "b"]), TypeError, "arms", "iterator"),
    ("number", 3, TypeError, "arms", "3"),
    ("too few", ["a"], ValueError, "2 contexts", "1 arms", "2 rewards"),
    ("too many", ["a", "b", "a"], ValueError, "2 contexts", "3 arms", "2 rewards"),
    ("frame", PANDAS({"arm": ["a", "b"]}), (TypeError, ValueError), "arms"),
]


@table(
    [
        *with_contexts("reward", lambda learner, r: learner.tell(GOOD, "a", r), REWARDS),
        *with_contexts(
            "rewards", lambda learner, r: learner.tell(BATCH, list("ab"), r), REWARD_LISTS
        ),
        *with_contexts(
            "fitted", lambda learner, r: learner.fit(BATCH, list("ab"), r), REWARD_LISTS
        ),
        *with_contexts("arm", lambda learner, arm: learner.tell(GOOD, arm, 1.0), ARMS),
        *with_contexts(
            "arms", lambda learner, arms: learner.tell(BATCH, arms, [1.0, 2.0]), ARM_LISTS
        ),
        *with_contexts(
            "fitted arms", lambda learner, a: learner.fit(BATCH, a, [1.0, 2.0]), ARM_LISTS
        ),
        (
            "fit one",
            lambda learner: learner.fit(GOOD, "a", 1.0),
            ValueError,
            "contexts",
            "2-D",
            "tell",
        ),
        (
            "fit numbers",
            lambda learner: learner.fit(GOOD, ["a", "b"], [1.0, 2.0]),
            ValueError,
            "2-D",
        ),
        (
            "lists for one",
            lambda learner: learner.tell(GOOD, ["a"], [1.0]),
            (TypeError, ValueError),
            "arms",
            "['a']",
        ),
    ]
)
def test_outcomes(call, error, fragments, tmp_path):
    check_unchanged(call, error, fragments, tmp_path)


@table(
    [
        *with_contexts("remove_arm", lambda learner, arm: learner.remove_arm(arm), ARMS),
        (
            "remove twice",
            lambda learner: learner.remove_arm("gone"),
            ValueError,
            "'gone'",
            "already",
        ),
        ("add again", lambda learner: learner.add_arm("a"), ValueError, "'a'", "is there already"),
        (
            "add removed",
            lambda learner: learner.add_arm("gone"),
            ValueError,
            "'gone'",
            "was removed",
        ),
        ("add list", lambda learner: learner.add_arm(["c"]), TypeError, "['c']", "hashable"),
        ("add NaN", lambda learner: learner.add_arm(NAN), ValueError, "nan"),
        ("add missing", lambda learner: learner.add_arm(pd.NA), ValueError, "<NA>"),
        ("decide table", lambda learner: learner.decide(BATCH), ValueError, "decide", "1-D"),
        ("decide row", lambda learner: learner.decide(BATCH[:1]), ValueError, "decide", "1-D"),
        ("policy", lambda learner: learner.freeze().decide(BATCH), ValueError, "decide", "1-D"),
    ]
)
def test_arms_and_decisions(call, error, fragments, tmp_path):
    check_unchanged(call, error, fragments, tmp_path)


ELIGIBLE = [
    ("text", "a", TypeError, "arms", "labels", "'a'"),
    ("number", 1.5, TypeError, "arms", "labels", "1.5"),
    ("truth", True, TypeError, "arms", "labels", "True"),
    ("mapping", {"a": True}, TypeError, "arms", "labels", "{'a': True}"),
    ("frame", PANDAS({"a": [True]}), TypeError, "arms", "labels"),
    ("class", list, TypeError, "arms", "labels", "list"),
    ("empty", [], ValueError, "arms", "at least one arm", "none"),
    ("unknown", ["a", "z"], ValueError, "arms", "['a', 'b']", "'z'"),
    ("retired", ["a", "gone"], ValueError, "arms", "['a', 'b']", "'gone'"),
    ("NaN", ["a", NAN], ValueError, "arms", "nan"),
    ("missing", ["a", pd.NA], ValueError, "arms", "<NA>"),
    ("not hashable", ["a", {}], ValueError, "arms", "{}"),
    ("truths", [True, False], (TypeError, ValueError), "arms", "True"),
    ("shape", np.ones(3, dtype=bool), ValueError, "arms", "(2,)", "(3,)"),
    ("3-D", np.ones((1, 2, 2), dtype=bool), ValueError, "arms", "(2,)", "(1, 2, 2)"),
    ("nothing", np.zeros(2, dtype=bool), ValueError, "arms", "at least one arm"),
]
PER_ROW = [
    ("too few", [["a"]], ValueError, "arms", "2 contexts", "got 1"),
    ("unknown", [["a"], ["z"]], ValueError, "arms", "'z'", "row 1"),
    ("none in a row", [["a"], []], ValueError, "arms", "row 1"),
    ("mask of too few", np.ones((1, 2), dtype=bool), ValueError, "arms", "(2, 2)", "(1, 2)"),
]


@table(
    [
        *with_contexts("ask", lambda learner, arms: learner.ask(GOOD, arms=arms), ELIGIBLE),
        *with_contexts(
            "batch", lambda learner, arms: learner.ask(BATCH, arms=arms), ELIGIBLE + PER_ROW
        ),
        *with_contexts("pool", lambda learner, arms: learner.ask(pool=BATCH, arms=arms), ELIGIBLE),
        *with_contexts("decide", lambda learner, arms: learner.decide(GOOD, arms=arms), ELIGIBLE),
        *with_contexts(
            "recommend", lambda learner, arms: learner.recommend(BATCH, arms=arms), PER_ROW
        ),
        *with_contexts(
            "policy",
            lambda learner, arms: learner.freeze().recommend(BATCH, arms=arms),
            ELIGIBLE + PER_ROW,
        ),
        *with_contexts("rank", lambda learner, arms: learner.rank(GOOD, arms=arms), ELIGIBLE),
        *with_contexts(
            "certificate",
            lambda learner, arms: learner.freeze().certificate(GOOD, arms=arms),
            ELIGIBLE,
        ),
        (
            "tell without the arm tried",
            lambda learner: learner.tell(GOOD, "a", 1.0, eligible=["b"]),
            ValueError,
            "eligible must hold the arm that was tried",
            "'a'",
            "['b']",
        ),
        (
            "tell an unknown arm",
            lambda learner: learner.tell(GOOD, "a", 1.0, eligible=["a", "z"]),
            ValueError,
            "eligible must be among",
            "'z'",
        ),
        ("rank a table", lambda learner: learner.rank(BATCH), ValueError, "rank", "1-D"),
        (
            "unknown fallback",
            lambda learner: learner.freeze(fallback="z"),
            ValueError,
            "fallback must be among ['a', 'b']",
            "'z'",
        ),
        (
            "retired fallback",
            lambda learner: learner.freeze(fallback="gone"),
            ValueError,
            "fallback must be among ['a', 'b']",
            "'gone'",
        ),
        (
            "tolerance alone",
            lambda learner: learner.freeze(tolerance=0.1),
            TypeError,
            "tolerance needs a fallback",
            "0.1",
        ),
    ]
)
def test_eligible_arms_and_fallbacks(call, error, fragments, tmp_path):
    check_unchanged(call, error, fragments, tmp_path)


@table(given(numbers(lambda v: named().freeze(fallback="a", tolerance=v), "tolerance", least=0)))
def test_tolerances(call, error, fragments):
    check_refused(call, error, fragments)


def test_the_last_arm_stays():
    learner = cg.Learner(["a", "b"])
    learner.remove_arm("a")
    with pytest.raises(ValueError, match="'b' is the only one left; add another first"):
        learner.remove_arm("b")
    assert learner.arms == ("b",)


@pytest.mark.parametrize(
    ("kernel", "argument"),
    [
        (cg.Gaussian((1.0, 2.0)), "bandwidth"),
        (cg.Periodic((1.0, 2.0), 1.0), "period"),
        (cg.Linear() + 2 * cg.Matern((1.0, 2.0)), "bandwidth"),
        (cg.SklearnKernel(sk.RBF([1.0, 2.0])), "kernel"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["ask", "tell", "fit", "decide"])
def test_kernel_for_another_dimension(tmp_path, kernel, argument, name):
    learner = cg.Learner(2, kernel=kernel, seed=0)
    before = fingerprint(learner, tmp_path / "before.cgap")
    contexts = [[1.0, 2.0, 3.0]] if name == "fit" else [1.0, 2.0, 3.0]
    rest = {"tell": (0, 1.0), "fit": ([0], [1.0])}.get(name, ())
    with pytest.raises(ValueError, match=rf"(?i){argument}.*3"):
        getattr(learner, name)(contexts, *rest)
    assert fingerprint(learner, tmp_path / "after.cgap") == before
    learner.ask([1.0, 2.0])  # the refused contexts set no dimension


@pytest.mark.parametrize("kind", [cg.Learner, cg.Policy])
@pytest.mark.parametrize("path", [None, 3.5, ["x.cgap"], Strange()], ids=repr)
def test_paths(kind, path):
    with pytest.raises(TypeError):
        kind.load(path)
    thing = named() if kind is cg.Learner else named().freeze()
    with pytest.raises(TypeError):
        thing.save(path)


@pytest.mark.parametrize("name", ["_model", "_seed", "arms", "ridge", "new"])
def test_policies_cannot_be_changed(name):
    policy = named().freeze()
    for change in (lambda: setattr(policy, name, 1), lambda: delattr(policy, name)):
        with pytest.raises(AttributeError, match=rf"immutable.*'{name}'"):
            change()
    assert policy.arms == ("a", "b")
