"""Tables as they are become numbers: distances are what the kinds of columns promise."""

import enum
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextgap as cg
from contextgap.base import components
from contextgap.tables.columns import MOST_LEVELS, TableSchema
from contextgap.tables.contexts import ContextSchema

FRAME = pandas.DataFrame(
    {
        "country": ["DE", "FR", "DE", None],
        "age": [1.0, np.nan, 3.0, 5.0],
        "new": [True, False, True, True],
        "day": pandas.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-03-01"]),
        "count": [1, 2, 3, 4],
    }
)


def read(table, schema=None):
    return (schema or ContextSchema()).read(table, learning=True)


def given_columns(**kinds):
    return ContextSchema.of(TableSchema.of(cg.Columns(**kinds)))


def test_the_first_table_says_what_columns_hold():
    kinds = read(FRAME).schema.kinds
    assert dict(kinds) == {
        "country": cg.Category(missing=True),
        "age": cg.Number(missing=True),
        "new": cg.Category(),
        "day": cg.Date(),
        "count": cg.Number(),
    }


def test_numbers_come_first_then_codes_by_frequency():
    rows = read(FRAME).rows
    days = (FRAME["day"] - pandas.Timestamp("1970-01-01")) / pandas.Timedelta(days=1)
    np.testing.assert_array_equal(rows[:, 0], [1, 3, 3, 5])  # the median where there is a gap
    np.testing.assert_array_equal(rows[:, 1], [0, 1, 0, 0])
    np.testing.assert_allclose(rows[:, 2], days)
    np.testing.assert_array_equal(rows[:, 3], FRAME["count"])
    np.testing.assert_array_equal(rows[:, 4], [0, 1, 0, 2])  # a gap is a level
    np.testing.assert_array_equal(rows[:, 5], [0, 1, 0, 0])


def test_numbers_alone_are_read_as_before():
    plain = FRAME[["count"]].assign(more=[0.5, 1.5, 2.5, 3.5])
    intake = read(plain)
    assert intake.schema.table is None
    np.testing.assert_array_equal(intake.rows, plain.to_numpy(dtype=float))
    assert dict(intake.schema.kinds) == {"count": cg.Number(), "more": cg.Number()}


@pytest.mark.parametrize(
    "same",
    [
        lambda frame: frame.assign(country=frame["country"].astype("category")),
        lambda frame: frame.assign(country=frame["country"].astype("string")),
        lambda frame: frame[["count", "day", "new", "age", "country"]],
        lambda frame: frame.assign(surplus="x"),
        lambda frame: frame.assign(count=frame["count"].astype("Int64")),
        lambda frame: polars.from_pandas(frame),
        lambda frame: polars.from_pandas(frame).with_columns(
            polars.col("country").cast(polars.Enum(["FR", "DE"]))
        ),
        lambda frame: [tuple(row) for row in frame.itertuples(index=False)],
        lambda frame: frame.to_numpy(dtype=object),
        lambda frame: frame.to_dict("records"),
        lambda frame: [dict(reversed(row.items())) for row in frame.to_dict("records")],
    ],
)
def test_every_way_to_write_a_table_gives_the_same_numbers(same):
    first = read(FRAME)
    np.testing.assert_array_equal(first.schema.read(same(FRAME)).rows, first.rows)


def test_rows_are_read_as_their_table_is():
    first = read(FRAME)
    for place in range(len(FRAME)):
        by_name = FRAME.iloc[place].to_dict()
        for row in (by_name, FRAME.iloc[place], list(by_name.values())):
            intake = first.schema.read(row)
            assert intake.single
            np.testing.assert_array_equal(intake.rows[0], first.rows[place])


class Colour(enum.Enum):
    RED = "red"


def test_what_is_written_in_different_ways_is_one_level():
    schema = read({"x": "0"}, given_columns(x="category")).schema
    ways = [["1", 1, 1.0, "1.0", np.int64(1)], [True, "true", "TRUE", np.bool_(True)]]
    ways += [[2.5, "2.5", Decimal("2.5")], ["red", Colour.RED], ["01"], ["True story"], ["1.0.0"]]
    codes = []
    for same in ways:
        schema = read({"x": same[0]}, schema).schema
        found = {schema.read({"x": each}).rows[0, 0] for each in same}
        assert len(found) == 1
        codes += found
    assert codes == [1, 2, 3, 4, 5, 6, 7]
    mixed = pandas.DataFrame({"x": pandas.Series([True, 1] * 3, dtype=object)})
    assert len(np.unique(read(mixed, given_columns(x="category")).rows)) == 2


def test_categories_of_pandas_are_categories_whatever_they_hold():
    for values in ([1, 2, 1], [True, False, True], ["2024-01-01", "2024-01-02", None]):
        column = pandas.Categorical(values)
        kinds = read(pandas.DataFrame({"x": column, "y": [1.0, 2.0, 3.0]})).schema.kinds
        assert isinstance(kinds["x"], cg.Category)


def test_rows_are_matched_by_names_that_are_no_text():
    frame = pandas.DataFrame({0: [0.1, 0.2], 1: [10.0, 20.0], 2: ["u", "v"]})
    first = read(frame)
    for order in ([0, 1, 2], [2, 0, 1]):
        row = frame[order].iloc[1]
        np.testing.assert_array_equal(first.schema.read(row).rows[0], first.rows[1])


@given(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)))
def test_every_way_to_write_a_time_gives_the_same_number(moment):
    ways = [moment, np.datetime64(moment), pandas.Timestamp(moment), moment.isoformat()]
    ways.append(pandas.Timestamp(moment).to_datetime64())
    rows = read([[each] for each in ways], given_columns(day="date")).rows
    assert len(np.unique(rows)) == 1


def test_a_gap_that_comes_first_is_filled_later():
    schema = read({"year": None}, given_columns(year=cg.Number(missing=True))).schema
    table = pandas.DataFrame({"year": [1990.0, 2000.0, 2020.0, np.nan]})
    np.testing.assert_array_equal(read(table, schema).rows[:, 0], [1990, 2000, 2020, 2000])


def test_unknown_levels_are_like_no_other_and_are_kept_while_learning():
    schema = read(FRAME).schema
    row = {**FRAME.iloc[0].to_dict(), "country": "IT"}
    assert schema.read(row).rows[0, 4] == -1
    assert schema.read(row).schema is schema
    grown = read(row, schema)
    assert grown.rows[0, 4] == 3
    assert grown.schema.read(row).rows[0, 4] == 3
    again = grown.schema.read(FRAME)
    np.testing.assert_array_equal(again.rows, read(FRAME).rows)


def test_rare_levels_are_one_level_where_there_are_hundreds():
    often = [f"often {place}" for place in range(MOST_LEVELS)]
    table = pandas.DataFrame({"x": [*often, *often, "rare", "rarer"]})
    intake = read(table)
    np.testing.assert_array_equal(intake.rows[-2:, 0], MOST_LEVELS)
    assert len(np.unique(intake.rows)) == MOST_LEVELS + 1
    assert intake.schema.read({"x": "never"}).rows[0, 0] == MOST_LEVELS


@given(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4), st.integers(-3, 3))
def test_cycles_come_back_to_where_they_began(left, right, turns):
    schema = given_columns(hour=cg.Cyclic(24))
    rows = read([[left], [right], [left + 24 * turns]], schema).rows
    chord = 2 * abs(math.sin(math.pi * (left - right) / 24))
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(chord, abs=1e-9)
    np.testing.assert_allclose(rows[2], rows[0], atol=1e-9)


def test_a_gap_in_a_cycle_is_as_far_from_all_of_it():
    schema = given_columns(hour=cg.Cyclic(24, missing=True))
    rows = read([[0.0], [5.0], [12.0], [None]], schema).rows
    np.testing.assert_allclose(np.linalg.norm(rows[:3, :2] - rows[3, :2], axis=1), 1.0)
    np.testing.assert_array_equal(rows[:, 2], [0, 0, 0, 1])


def test_dates_are_days_with_the_cycles_asked_for():
    schema = given_columns(day=cg.Date(("day", "week")))
    noon = datetime(2024, 5, 1, 12)
    utc = noon.replace(tzinfo=UTC)
    elsewhere = utc.astimezone(timezone(timedelta(hours=5)))
    ways = [noon, "2024-05-01T12:00", np.datetime64(noon), pandas.Timestamp(noon)]
    zoned = [utc, elsewhere, "2024-05-01T12:00Z", pandas.Timestamp(elsewhere)]
    tables = [pandas.Series([elsewhere]).to_frame("day"), polars.DataFrame({"day": [elsewhere]})]
    parts = [read([[each] for each in same], schema).rows for same in (ways, zoned)]
    rows = np.vstack(parts + [read(table, schema).rows for table in tables])
    np.testing.assert_allclose(rows, np.tile(rows[0], (len(rows), 1)), atol=1e-9)
    assert rows.shape[1] == 5
    np.testing.assert_allclose(rows[0, 1:3], [-1, 0], atol=1e-9)  # half a day
    later = read([[noon + timedelta(weeks=3)]], schema).rows[0]
    assert later[0] - rows[0, 0] == pytest.approx(21)
    np.testing.assert_allclose(later[1:], rows[0, 1:], atol=1e-9)
    assert read([[date(1970, 1, 2)]], schema).rows[0, 0] == 1


NAIVE, ZONED = datetime(2024, 5, 1, 12), datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("pair", [(NAIVE, ZONED), (ZONED, "2024-05-01")])
def test_times_with_and_without_zones_are_not_mixed(pair):
    first, other = pair
    allowed = given_columns(day=cg.Date(missing=True))
    words = "have none" if other is ZONED else "without a zone where others have"
    for schema, table in (
        (allowed, [[None], [first], [other]]),
        (read([[None], [first]], allowed).schema, [[first], [first], [other]]),
        (read([[first]], given_columns(day="date")).schema, polars.DataFrame({"day": [other]})),
    ):
        with pytest.raises(ValueError, match="not mix times with and without") as error:
            schema.read(table, learning=True)
        assert words in str(error.value)
    kept = ContextSchema.of(TableSchema.restored(read([[first]], allowed).schema.table.describe()))
    with pytest.raises(ValueError, match="in column 'day', got"):
        kept.read({"day": other})


def test_levels_that_rewards_were_told_of_have_the_first_codes():
    schema = read(pandas.DataFrame({"x": [*"aabbc"], "y": 1.0, "z": [*"pqppp"]})).schema
    assert schema.told_only().table.codings[0].levels == ()
    rows = schema.read([["c", 1.0, "p"], ["b", 2.0, "p"]]).rows
    after, renaming = schema.telling(rows)
    assert after.table.codings[0].levels == ("b", "c", "a")
    assert after.told_only().table.codings[0].levels == ("b", "c")
    assert after.told_only().table.codings[2].levels == ("p",)
    np.testing.assert_array_equal(renaming(rows), after.read([["c", 1, "p"], ["b", 2, "p"]]).rows)
    np.testing.assert_array_equal(renaming(rows[1]), after.read(["b", 2, "p"]).rows[0])
    assert after.telling(renaming(rows)) == (after, None)
    assert ContextSchema.of(TableSchema.restored(after.table.describe())) == after


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3), max_size=6))
def test_codes_change_but_levels_do_not(told):
    schema, met, seen = given_columns(x="category"), np.empty((0, 1)), []
    for levels in told:
        table = pandas.DataFrame({"x": [*"fbd", *levels]})
        schema = read(table, schema).schema
        schema, renaming = schema.telling(schema.read(pandas.DataFrame({"x": levels})).rows)
        met = met if renaming is None else renaming(met)
        met, seen = np.vstack([met, schema.read(table).rows]), [*seen, *table["x"]]
        np.testing.assert_array_equal(schema.read(pandas.DataFrame({"x": seen})).rows, met)
    known = schema.table.told_only().codings[0].levels
    assert set(known) == {level for levels in told for level in levels}


def test_what_was_seen_is_said_in_the_words_of_the_table():
    table = read(FRAME.assign(hour=[1.0, 5.0, 23.0, 2.0]), None).schema.table
    kinds = {**table.kinds, "hour": cg.Cyclic(24)}
    intake = read(FRAME.assign(hour=[1.0, 5.0, 23.0, 2.0]), given_columns(**kinds))
    schema = intake.schema.table.all_told()
    seen = schema.seen(intake.rows.min(axis=0).tolist(), intake.rows.max(axis=0).tolist())
    assert seen == {
        "country": ["DE", "FR", None],
        "age": [1.0, 5.0],
        "new": ["true", "false"],
        "day": ["2024-01-01T00:00:00", "2024-03-01T00:00:00"],
        "count": [1.0, 4.0],
    }
    by_column = schema.by_column(range(schema.dimension))
    assert by_column["age"] == [0, 1]  # the number, and whether it is missing
    assert len(by_column["hour"]) == 1


def test_numbers_that_share_a_bandwidth_are_tied():
    schema = given_columns(
        arm="category", hour=cg.Cyclic(24, missing=True), x="number", day=cg.Date("year")
    )
    assert schema.layout.tied == (0, 0, 1, 2, 3, 4, 4, 5)
    assert schema.layout.categories == 1
    assert schema.dimension == 8


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.sampled_from(["a", "b", "c"])),
            st.one_of(st.none(), st.floats(-5, 5)),
            st.one_of(st.none(), st.floats(0, 24)),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_schemas_survive_files_and_rows_equal_tables(rows):
    kinds = {
        "a": cg.Category(missing=True),
        "b": cg.Number(missing=True),
        "c": cg.Cyclic(24, missing=True),
    }
    first = read(rows, given_columns(**kinds))
    restored = ContextSchema.of(TableSchema.restored(first.schema.table.describe()))
    assert restored == first.schema
    np.testing.assert_array_equal(restored.read(rows).rows, first.rows)
    for row, wanted in zip(rows, first.rows, strict=True):
        np.testing.assert_array_equal(restored.read(list(row)).rows[0], wanted)


BASE = FRAME.iloc[0].to_dict()


@pytest.mark.parametrize(
    ("bad", "kind", "text"),
    [
        ({**BASE, "age": "old"}, TypeError, "must have a number in column 'age', got 'old'"),
        ({**BASE, "age": math.inf}, ValueError, "must be finite, got inf in column 'age'"),
        ({**BASE, "count": 10**400}, ValueError, "must be finite, got inf in column 'count'"),
        ([{**BASE}, {"country": "DE"}], ValueError, "lack the column 'age' in row 1; write None"),
        (
            {**BASE, "count": None},
            ValueError,
            "no missing value in column 'count'; to allow",
        ),
        ({**BASE, "new": None}, ValueError, "'new': Category(missing=True)"),
        ({**BASE, "country": 1j}, TypeError, "in column 'country', got 1j"),
        ({**BASE, "day": "soon"}, TypeError, "must have a date in column 'day', got 'soon'"),
        ({"country": "DE"}, ValueError, "lack the column 'age'"),
        (["DE", 1.0], ValueError, "must have 5 cells each"),
        ([["DE", 1.0], ["FR"]], ValueError, "equal length"),
        ("DE", TypeError, "must be a table, a row or a mapping, got 'DE'"),
    ],
)
def test_what_does_not_fit_is_named(bad, kind, text):
    schema = read(FRAME).schema
    with pytest.raises(kind) as error:
        schema.read(bad)
    assert text in str(error.value)


def test_rows_are_named_in_tables():
    schema = read(FRAME).schema
    with pytest.raises(ValueError, match="in column 'count', row 2"):
        schema.read(FRAME.assign(count=[1, 2, None, 4]))


@pytest.mark.parametrize(
    ("table", "kind", "text"),
    [
        (
            pandas.DataFrame({"x": ["a"], "y": [None]}),
            ValueError,
            "nothing but missing values in the column",
        ),
        (pandas.DataFrame({"x": ["a", []]}), TypeError, "got [] in column 'x'"),
        ({"x": "a", "y": None}, ValueError, "nothing but missing values in the column 'y'"),
        (pandas.DataFrame({"x": [1.0, "2,0"]}), TypeError, "all numbers or all text in column 'x'"),
    ],
)
def test_tables_whose_kinds_cannot_be_told_are_refused(table, kind, text):
    with pytest.raises(kind) as error:
        read(table)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: cg.Columns(), ValueError, "at least one column"),
        (lambda: cg.Columns(x="numeric"), ValueError, "column 'x' must be one of"),
        (lambda: cg.Columns({1: "number"}), TypeError, "names that are text"),
        (lambda: cg.Cyclic(0), ValueError, "period must be positive"),
        (lambda: cg.Date("month"), ValueError, "cycles must be among"),
        (lambda: cg.Number(missing=1), TypeError, "missing must be True or False"),
        (lambda: cg.Learner(2, columns="x"), TypeError, "columns must be Columns"),
    ],
)
def test_columns_that_make_no_sense_are_refused(make, kind, text):
    with pytest.raises(kind) as error:
        make()
    assert text in str(error.value)


def test_truth_values_may_come_as_one_and_zero():
    schema = read(FRAME).schema
    same = FRAME.astype({"new": int})
    np.testing.assert_array_equal(read(FRAME, schema).rows, read(same, schema).rows)
    words = FRAME.assign(new=["1", "0", "TRUE", "1.0"])
    np.testing.assert_array_equal(read(FRAME, schema).rows, read(words, schema).rows)
    grades = read(pandas.DataFrame({"grade": ["1", "true", "2"]})).schema
    assert len(np.unique(read([{"grade": 1}, {"grade": True}], grades).rows)) == 2


def test_truth_values_as_such_and_as_text_are_one_column():
    kinds = read(pandas.DataFrame({"new": [True, "False", "true", False], "x": 1.0})).schema.kinds
    assert kinds["new"] == cg.Category()
    with pytest.raises(TypeError, match="got True and 'maybe'"):
        read(pandas.DataFrame({"new": [True, "maybe"]}))


def test_a_date_that_is_blank_is_a_gap():
    table = pandas.DataFrame({"day": ["2024-01-01", "", "2024-01-03", " "]})
    found = read(table)
    assert found.schema.kinds["day"] == cg.Date(missing=True)
    gaps = read(pandas.DataFrame({"day": ["2024-01-01", None, "2024-01-03", None]}))
    np.testing.assert_array_equal(found.rows, gaps.rows)
    full = read(pandas.DataFrame({"day": ["2024-01-01", "2024-01-03"]})).schema
    with pytest.raises(ValueError, match="must have no missing value in column 'day', row 1"):
        read(table, full)


def test_bins_and_times_may_be_categories():
    bins = pandas.cut(pandas.Series([0.1, 0.9, 0.2, 0.5]), 2)
    days = pandas.Series(pandas.to_datetime(["2024-01-01", "2024-01-02"] * 2)).astype("category")
    found = read(pandas.DataFrame({"bin": bins, "day": days}))
    assert dict(found.schema.kinds) == {"bin": cg.Category(), "day": cg.Category()}
    assert [len(np.unique(column)) for column in found.rows.T] == [2, 2]


def test_a_list_in_a_cell_is_named():
    with pytest.raises(TypeError, match="in column 'tags'"):
        read(pandas.DataFrame({"tags": [np.arange(2), np.arange(3)]}))


def test_polars_categories_are_categories_whatever_they_look_like():
    days = polars.Series(["2024-01-01", "2024-01-02"])
    table = polars.DataFrame(
        {"day": days.cast(polars.Categorical), "size": days.cast(polars.Enum(days))}
    )
    schema = ContextSchema().read(table, learning=True).schema
    assert [type(kind) for kind in schema.kinds.values()] == [cg.Category, cg.Category]


@pytest.mark.parametrize("others", [{}, {"x": [0.5, 1.5]}, {"x": ["a", "b"]}])
@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_durations_have_no_unit_of_their_own_and_are_refused(frame, others):
    table = frame({"age": [timedelta(hours=1), timedelta(hours=2)], **others})
    with pytest.raises(TypeError, match="durations in column 'age'; make them numbers"):
        ContextSchema().read(table, learning=True)


def test_times_may_be_levels_from_tables_and_from_rows():
    times = pandas.to_datetime(["2024-01-01 00:00", "2024-01-02 03:00"])
    learner = cg.Learner(2, columns={"when": "category"})
    learner.fit(pandas.DataFrame({"when": times}), [0, 1], [0.0, 1.0])
    learner.tell({"when": times[1]}, 0, 0.0)
    assert learner.columns["when"] == cg.Category()
    assert len(np.unique(learner.state.model.observed.contexts)) == 2


def test_old_names_of_missing_values_are_understood():
    old_name = {"gaps": True}
    with pytest.warns(DeprecationWarning, match="gaps= is now called missing="):
        old = cg.Cyclic(24, **old_name)
    assert old == cg.Cyclic(24, missing=True)
    with pytest.warns(DeprecationWarning, match="gaps is now called missing"):
        assert old.gaps
    with pytest.warns(DeprecationWarning, match="with_gaps is now called with_missing"):
        columns = cg.Columns(x="number", y="number").with_gaps(["y"])
    assert columns == cg.Columns(x="number", y=cg.Number(missing=True))
    assert old.describe() == {"type": "Cyclic", "gaps": True, "period": 24.0}
    assert components.build({"type": "Number", "missing": True}) == cg.Number(missing=True)
