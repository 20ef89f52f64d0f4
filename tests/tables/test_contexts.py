"""Contexts in every form users have them, against the same numbers in a plain array."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import contextgap as cg
from contextgap.tables.contexts import ContextSchema

TABLE = np.array([[0.1, 1.0, -2.0], [0.4, -1.0, 3.0], [0.9, 2.0, 0.0], [-0.3, 0.5, 1.0]])
COLUMNS = ("speed", "heat", "tilt")


def read_only(array):
    view = array.copy()
    view.flags.writeable = False
    return view


def frame(columns=COLUMNS, kind=pd.DataFrame, **extra):
    columns_of = dict(zip(COLUMNS, TABLE.T.tolist(), strict=True)) | extra
    return kind({name: columns_of[name] for name in columns})


def trained(contexts=TABLE, **settings):
    """A learner of two arms that saw every context once."""
    learner = cg.Learner(["a", "b"], kernel=cg.Gaussian(1.0), ridge=0.1, seed=0, **settings)
    return learner.fit(contexts, ["a", "b", "a", "b"], [1.0, 2.0, -1.0, 0.5])


def beliefs(learner_or_policy, contexts):
    decisions = [learner_or_policy.decide(context) for context in contexts]
    return np.array([[d.mean, d.std, d.lower, d.upper, d.gap] for d in decisions])


def same_learner(one, other):
    """Whether two learners believe exactly the same at the test contexts."""
    return np.array_equal(beliefs(one, TABLE), beliefs(other, TABLE))


TABLES = {
    "array": TABLE,
    "fortran order": np.asfortranarray(TABLE),
    "columns of a wider array": np.hstack([TABLE, TABLE])[:, :3],
    "every other row": np.repeat(TABLE, 2, axis=0)[::2],
    "reversed twice": TABLE[::-1].copy()[::-1],
    "transposed": TABLE.T.copy().T,
    "read-only": read_only(TABLE),
    "big-endian": TABLE.astype(">f8"),
    "object": TABLE.astype(object),
    "matrix subclass": TABLE.view(np.recarray),
    "list of lists": TABLE.tolist(),
    "tuple of tuples": tuple(map(tuple, TABLE.tolist())),
    "list of arrays": list(TABLE),
    "pandas": frame(),
    "pandas with an index": frame().set_index(pd.Index([9, 7, 7, 1])),
    "pandas object": frame().astype(object),
    "pandas nullable": frame().astype("Float64"),
    "polars": frame(kind=pl.DataFrame),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_tables_are_read_as_the_same_numbers(table):
    intake = ContextSchema().read(table)
    assert np.array_equal(intake.rows, TABLE)
    assert intake.rows.dtype == np.float64
    assert intake.rows.flags.c_contiguous
    assert intake.schema.dimension == 3
    assert not intake.single
    assert same_learner(trained(table), trained())
    assert trained(table).ask(table).tolist() == trained().ask(TABLE).tolist()
    named = trained(columns=list(COLUMNS))
    assert named.recommend(table).tolist() == trained().recommend(TABLE).tolist()
    bound = named.freeze().certificate(table).bound
    assert np.array_equal(bound, trained().freeze().certificate(TABLE).bound)


ROWS = {
    "array": TABLE[1],
    "column of an array": TABLE.T.copy()[:, 1],
    "read-only": read_only(TABLE[1]),
    "list": TABLE[1].tolist(),
    "tuple": tuple(TABLE[1]),
    "dict": dict(zip(COLUMNS, TABLE[1], strict=True)),
    "pandas Series": frame().loc[1],
    "pandas Series without names": pd.Series(TABLE[1]),
    "polars Series": pl.Series(TABLE[1]),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_single_contexts_are_read_as_the_same_numbers(row):
    intake = ContextSchema().read(row)
    assert np.array_equal(intake.rows, TABLE[1:2])
    assert intake.single
    learner, plain = trained(columns=list(COLUMNS)), trained()
    assert learner.decide(row).arm == plain.decide(TABLE[1]).arm
    assert learner.recommend(row) == plain.recommend(TABLE[1])
    arm = learner.ask(row)
    assert arm == plain.ask(TABLE[1])
    learner.tell(row, arm, 0.25)
    plain.tell(TABLE[1], arm, 0.25)
    assert same_learner(learner, plain)
    assert learner.pending == plain.pending == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint16, bool])
def test_other_number_types_are_converted_exactly(dtype):
    narrow = (TABLE > 0).astype(dtype) if dtype is bool else np.abs(TABLE).astype(dtype)
    assert np.array_equal(ContextSchema().read(narrow).rows, narrow.astype(float))
    assert same_learner(trained(narrow), trained(narrow.astype(np.float64)))


def test_scalars_are_contexts_of_one_number():
    for scalar in [0.5, np.float32(0.5), np.array(0.5)]:
        intake = ContextSchema().read(scalar)
        assert intake.single
        assert np.array_equal(intake.rows, [[0.5]])
    learner = cg.Learner(2)
    learner.tell(2, learner.ask(2), 1.0)
    assert learner.pending == 0
    assert learner.recommend(2) == learner.recommend([2.0])


def test_one_row_table_is_a_table():
    learner = trained(columns=list(COLUMNS))
    assert learner.ask(TABLE[:1]).shape == (1,)
    assert learner.recommend(frame().iloc[:1]).shape == (1,)
    assert isinstance(learner.ask(TABLE[0]), str)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
class TestNames:
    """Columns by name."""

    def test_remembered(self, kind):
        learner = trained(frame(kind=kind))
        assert learner.freeze().columns == COLUMNS
        assert learner.freeze().dimension == 3

    def test_reordered(self, kind):
        learner = trained(frame(kind=kind))
        shuffled = frame(("tilt", "speed", "heat"), kind)
        assert learner.recommend(shuffled).tolist() == learner.recommend(TABLE).tolist()
        assert same_learner(
            trained().fit(TABLE, ["b"] * 4, [3.0] * 4),
            learner.fit(shuffled, ["b"] * 4, [3.0] * 4),
        )

    def test_surplus_ignored(self, kind):
        learner = trained(frame(kind=kind))
        wide = frame(("note", "tilt", "heat", "speed"), kind, note=["x"] * 4)
        assert learner.recommend(wide).tolist() == learner.recommend(TABLE).tolist()
        assert learner.freeze().columns == COLUMNS

    def test_missing_is_named(self, kind):
        learner = trained(frame(kind=kind))
        narrow = frame(("speed", "tilt"), kind)
        calls = [learner.ask, learner.recommend, learner.freeze().recommend]
        for call in [*calls, learner.freeze().certificate]:
            with pytest.raises(ValueError, match=r"lack the column 'heat'.*speed.*tilt"):
                call(narrow)
        with pytest.raises(ValueError, match="lack the column 'heat'"):
            learner.tell(narrow, ["a"] * 4, [0.0] * 4)

    def test_arrays_are_still_read_by_position(self, kind):
        learner = trained(frame(kind=kind))
        assert learner.recommend(TABLE).tolist() == trained().recommend(TABLE).tolist()
        assert learner.ask(TABLE[0]) == trained().ask(TABLE[0])
        assert learner.freeze().columns == COLUMNS

    def test_names_may_not_come_after_arrays(self, kind):
        learner = trained()
        for call in (learner.ask, learner.recommend, learner.freeze().recommend):
            with pytest.raises(ValueError, match=r"by name, \['speed', 'heat', 'tilt'\], but"):
                call(frame(kind=kind))
        assert learner.freeze().columns is None

    def test_dictionaries_and_rows_match_the_names(self, kind):
        learner = trained(frame(kind=kind))
        shuffled = {"tilt": -2.0, "note": "x", "heat": 1.0, "speed": 0.1}
        assert np.array_equal(beliefs(learner, [shuffled]), beliefs(learner, TABLE[:1]))
        series = pd.Series({"tilt": -2.0, "heat": 1.0, "more": 5.0, "speed": 0.1})
        assert np.array_equal(beliefs(learner, [series]), beliefs(learner, TABLE[:1]))
        for short in [{"tilt": -2.0, "speed": 0.1}, pd.Series({"tilt": -2.0, "speed": 0.1})]:
            with pytest.raises(ValueError, match="lack the column 'heat'"):
                learner.ask(short)

    def test_bad_columns_are_named(self, kind):
        learner = trained(frame(kind=kind))
        text = frame(kind=kind, heat=["x", "y", "z", "z"])
        with pytest.raises(TypeError, match="'x' in row 0, column 'heat'"):
            learner.ask(text)
        digits = frame(kind=kind, heat=["1", "2", "3", "4"])
        with pytest.raises(TypeError, match="'1' in row 0, column 'heat'"):
            learner.ask(digits)
        for hole in [None, float("nan")]:
            with pytest.raises(ValueError, match="finite, got nan in row 2, column 'heat'"):
                learner.ask(frame(kind=kind, heat=[1.0, 2.0, hole, 4.0]))


def test_names_by_dictionary_are_remembered():
    learner = cg.Learner(2)
    learner.ask({"x": 1.0, "y": 2.0})
    learner.tell({"y": 2.0, "x": 1.0}, 0, 1.0)
    assert learner.freeze().columns == ("x", "y")
    assert learner.pending == 0


INTEGER_NAMES = {
    "frame": pd.DataFrame(TABLE),
    "reversed frame": pd.DataFrame(TABLE)[[2, 1, 0]],
    "numpy names": pd.DataFrame(TABLE, columns=np.arange(3, dtype=np.int8)),
    "names as text": pd.DataFrame(TABLE, columns=["0", "1", "2"]),
}


@pytest.mark.parametrize("table", INTEGER_NAMES.values(), ids=INTEGER_NAMES.keys())
def test_integer_column_names(table):
    learner = trained(pd.DataFrame(TABLE))
    assert learner.freeze().columns == ("0", "1", "2")
    assert learner.recommend(table).tolist() == trained().recommend(TABLE).tolist()
    assert np.array_equal(beliefs(learner, [table.iloc[0]]), beliefs(learner, TABLE[:1]))


def test_integer_keys():
    learner = trained(pd.DataFrame(TABLE))
    assert np.array_equal(
        beliefs(learner, [dict(enumerate(TABLE[0]))]), beliefs(learner, TABLE[:1])
    )
    row = {2: -2.0, 0: 0.1, 1: 1.0}
    assert np.array_equal(ContextSchema().read(row).rows, [[-2.0, 0.1, 1.0]])


@pytest.mark.parametrize(
    "ambiguous",
    [
        pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "y", "x"]),
        pd.DataFrame([[1.0, 2.0]], columns=[1, "1"]),
        pd.Series([1.0, 2.0], index=["x", "x"]),
        {1: 1.0, "1": 2.0},
    ],
    ids=["frame", "frame of 1 and '1'", "series", "dict of 1 and '1'"],
)
def test_ambiguous_names_are_refused(ambiguous):
    with pytest.raises(ValueError, match=r"contexts .*'(x|1)' twice"):
        ContextSchema().read(ambiguous)


def test_dictionary_of_columns_is_never_read_sideways():
    columns = {"x": [1.0, 2.0], "y": [3.0, 4.0]}
    with pytest.raises((TypeError, ValueError), match=r"contexts .*'x'"):
        ContextSchema().read(columns)


@pytest.mark.parametrize("arms", [2, ["a", "b"], [(1, 2), (3, 4)]], ids=str)
@pytest.mark.parametrize(
    "nothing",
    [np.empty((0, 3)), frame().iloc[:0], frame(kind=pl.DataFrame).head(0), np.empty((0, 3), int)],
    ids=["array", "pandas", "polars", "ints"],
)
def test_empty_batches(nothing, arms):
    learner = cg.Learner(arms, seed=0, columns=list(COLUMNS))
    learner.fit(TABLE, [learner.arms[0]] * 4, [1.0, 2.0, 3.0, 4.0])
    counts = learner.counts
    answers = [
        learner.ask(nothing),
        learner.recommend(nothing),
        learner.freeze().recommend(nothing),
    ]
    for answer in answers:
        assert answer.shape == (0,)
        assert answer.dtype == learner.recommend(TABLE).dtype
    assert learner.freeze().certificate(nothing).bound.shape == (0,)
    assert learner.fit(nothing, [], []) is learner
    learner.tell(nothing, np.array([]), np.array([]))
    assert learner.counts == counts
    assert learner.pending == 0


@pytest.mark.parametrize("nothing", [[], [[]], np.empty((0, 0)), {}, pd.DataFrame(), np.empty(0)])
def test_contexts_without_numbers_are_refused(nothing):
    told = cg.Learner(2)
    told.tell([0.5], 0, 1.0)
    for call in (cg.Learner(2).ask, told.recommend, told.freeze().certificate):
        with pytest.raises(ValueError, match="contexts must have at least one number each"):
            call(nothing)


def test_a_vector_where_contexts_have_one_number_gets_a_hint():
    learner = cg.Learner(2)
    learner.tell([0.5], 0, 1.0)
    with pytest.raises(ValueError, match=r"got 3; for 3 contexts pass .* shape \(3, 1\)"):
        learner.recommend([0.1, 0.2, 0.3])


@pytest.mark.parametrize("batch", [False, True])
def test_users_may_reuse_their_arrays(batch):
    mine = np.array([[0.1, 0.2], [0.3, 0.4]]) if batch else np.array([0.1, 0.2])
    once = mine.copy()
    learner, other = cg.Learner(2, seed=0), cg.Learner(2, seed=0)
    arms = learner.ask(mine)
    other.ask(once)
    mine[:] = 9.0
    assert beliefs(learner, [[0.1, 0.2]]).tolist() == beliefs(other, [[0.1, 0.2]]).tolist()
    learner.tell(once, arms, [1.0, 2.0] if batch else 1.0)
    assert learner.pending == 0


def test_contexts_are_never_written_to():
    mine = TABLE.copy()
    learner = trained(mine)
    learner.tell(mine, learner.ask(mine), [0.0] * 4)
    learner.freeze().certificate(mine)
    assert np.array_equal(mine, TABLE)


def test_arms_and_rewards_in_series():
    plain = trained()
    for kind in (pd.Series, pl.Series):
        learner = cg.Learner(["a", "b"], kernel=cg.Gaussian(1.0), ridge=0.1, seed=0)
        learner.tell(TABLE, kind(["a", "b", "a", "b"]), kind([1.0, 2.0, -1.0, 0.5]))
        assert same_learner(learner, plain)
    arrays = cg.Learner(["a", "b"], kernel=cg.Gaussian(1.0), ridge=0.1, seed=0)
    arrays.tell(TABLE, np.array(["a", "b", "a", "b"]), np.array([1.0, 2.0, -1.0, 0.5]))
    assert same_learner(arrays, plain)


def test_row_numbers_of_a_series_are_not_names():
    learner = cg.Learner(2)
    learner.tell(pd.Series([0.1, 0.2]), 0, 1.0)
    assert learner.freeze().columns is None
    with pytest.raises(ValueError, match="no names to match them with"):
        learner.tell(pd.DataFrame({"x": [0.3], "y": [0.4]}), [1], [0.5])


def test_a_first_table_of_rows_by_name_has_the_same_columns_throughout():
    rows = [{"a": 1.0, "c": "x"}, {"a": 2.0, "c": "y", "b": 3.0}]
    with pytest.raises(ValueError, match="the column 'b' in row 1 but not in row 0"):
        ContextSchema().read(rows, learning=True)
    with pytest.raises(ValueError, match="lack the column 'b' in row 1"):
        ContextSchema().read(rows[::-1], learning=True)
    known = ContextSchema().read(rows[:1], learning=True).schema
    assert len(known.read(rows).rows) == 2  # what is not wanted is passed over


@pytest.mark.parametrize("unit", ["ns", "us", "D"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_times_and_durations_are_no_numbers(kind, unit):
    times = np.array([[1, 2], [3, 4]], dtype=f"{kind}[{unit}]")
    for contexts in (times, pd.DataFrame(times, columns=["x", "y"])):
        with pytest.raises(TypeError, match="contexts must be numbers"):
            ContextSchema(2, ("x", "y")).read(contexts)
