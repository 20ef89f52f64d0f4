"""Short rules that imitate policies."""

import contextlib
import ctypes
import io
import itertools
import sqlite3
import subprocess

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import contextgap as cg
from contextgap.policy import Leaf, Rules, Split
from contextgap.policy.rules import _Condition, _Grower


def log(rows, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "temp'erature": rng.uniform(0, 40, rows),
            'lo"ad': rng.uniform(0, 1, rows),
            "mode": rng.choice(["eco", "it's", "fast"], rows),
        }
    )
    table.loc[rng.random(rows) < missing, "temp'erature"] = np.nan
    arm = rng.choice(["a", "b", "c"], rows)
    hot = table["temp'erature"] > 20
    best = np.where(hot, np.where(table["mode"] == "it's", "a", "b"), "c")
    return table, arm, (arm == best) + 0.2 * rng.normal(size=rows), best


@pytest.fixture(scope="module")
def learnt():
    table, arm, reward, _ = log(300, missing=0.1)
    return cg.Learner(["a", "b", "c"], seed=0).fit(table, arm, reward).freeze()


@pytest.fixture(scope="module")
def rules(learnt):
    return learnt.rules()


def test_a_tree_that_is_there_is_found(learnt, rules):
    table, _, _, best = log(2000, seed=1, missing=0.1)
    assert (rules.recommend(table) == learnt.recommend(table)).mean() > 0.93
    assert (rules.recommend(table) == best).mean() > 0.93
    assert rules.agreement > 0.93
    assert rules.kept > 0.95
    assert "The rule will do" in str(rules)
    assert "if temp'erature <= " in str(rules)


def test_shares_of_leaves_add_up_and_agree(learnt, rules):
    def leaves(node):
        return [node] if isinstance(node, Leaf) else [*leaves(node.yes), *leaves(node.no)]

    found = leaves(rules.tree)
    assert sum(leaf.share for leaf in found) == pytest.approx(1.0)
    seen = learnt.state.schema.decode(learnt.state.model.observed.contexts)
    same = (rules.recommend(seen) == learnt.recommend(seen)).mean()
    assert sum(leaf.share * leaf.agreement for leaf in found) == pytest.approx(same)


def test_depth_one_is_the_best_of_all_stumps(rng):
    """Every stump is tried by hand."""
    costs = rng.exponential(size=(40, 3))
    picks = rng.integers(3, size=40)
    costs[np.arange(40), picks] = 0.0
    masks = rng.random((20, 40)) < 0.5
    conditions = [_Condition(str(i), "<=", 0.0, mask) for i, mask in enumerate(masks)]
    tree = _Grower(conditions, costs, picks, (0, 1, 2)).grow(np.arange(40), 1)
    by_hand = {
        (i, one, two): costs[mask, one].sum() + costs[~mask, two].sum()
        for i, mask in enumerate(masks)
        for one, two in itertools.product(range(3), repeat=2)
    }
    best = min(by_hand, key=by_hand.get)
    assert (tree.column, tree.yes.arm, tree.no.arm) == (str(best[0]), *best[1:])


def test_questions_that_help_only_together_are_found(rng):
    """Whether two numbers have the same sign: no single question saves anything."""
    x = rng.uniform(-1, 1, (400, 2))
    same = x[:, 0] * x[:, 1] > 0
    arm = rng.integers(2, size=400)
    reward = np.where(same == (arm == 1), 1.0, 0.0)
    rules = cg.Learner(2, seed=0).fit(x, arm, reward).freeze().rules(depth=2)
    assert rules.agreement > 0.9
    assert rules.columns == ("x0", "x1")


def test_where_no_short_rule_will_do_it_says_so(rng):
    x = rng.uniform(0, 6, (300, 1))
    arm = rng.integers(2, size=300)
    reward = np.where(arm == 1, 1, -1) * np.sin(4 * x[:, 0])
    rules = cg.Learner(2, seed=0).fit(x, arm, reward).freeze().rules(depth=1)
    assert rules.kept < 0.6
    assert "No rule as short as this will do: it loses" in str(rules)
    assert "the policy answers otherwise at" in str(rules)


def test_where_arms_do_not_differ_no_rule_is_needed(rng):
    x, arm = rng.normal(size=(60, 1)), rng.integers(2, size=60)
    rules = cg.Learner(2, seed=0).fit(x, arm, arm + 0.01 * rng.normal(size=60)).freeze().rules()
    assert rules.tree == Leaf(1, 1.0, 1.0)
    assert "no rule is needed" in str(rules)
    assert rules.recommend(x).tolist() == [1] * 60


def test_costs_are_imitated_too(rng):
    x, arm = rng.normal(size=(200, 1)), rng.integers(2, size=200)
    cost = np.where(arm == 1, x[:, 0], -x[:, 0])
    learner = cg.Learner(2, seed=0, reward="minimize").fit(x, arm, cost)
    rules = learner.freeze().rules()
    assert rules.recommend([[-1.0], [1.0]]).tolist() == [1, 0]
    card = rules.score(x, arm, cost, np.full(200, 0.5))
    assert card.value.value == pytest.approx(-np.abs(x).mean(), abs=0.05)


def many_rows(rules):
    """10⁵ rows, some of them at thresholds, and missing values."""
    table, _, _, _ = log(100_000, seed=2, missing=0.05)
    stack = [rules.tree]
    cuts = []
    while stack:
        node = stack.pop()
        if isinstance(node, Split):
            stack += [node.yes, node.no]
            cuts += [node.value] if node.test == "<=" and "temp" in node.column else []
    assert cuts
    table.iloc[:1000, 0] = np.resize(cuts, 1000)
    table.iloc[1000:2000, 0] = np.nextafter(np.resize(cuts, 1000), np.inf)
    table.loc[rng_rows(len(table)), "mode"] = None
    return table


def rng_rows(rows):
    return np.random.default_rng(3).random(rows) < 0.02


def test_sqlite_answers_the_same(rules):
    table = many_rows(rules)
    database = sqlite3.connect(":memory:")
    table.to_sql("tri als", database, index=False)
    found = pd.read_sql_query(rules.to_sql("tri als", "answer"), database)
    database.close()
    assert len(found) == 100_000
    assert (found["answer"].to_numpy() == rules.recommend(table)).all()
    assert set(found["answer"]) == {"a", "b", "c"}


def test_duckdb_answers_the_same(rules):
    duckdb = pytest.importorskip("duckdb")
    table = many_rows(rules)
    with duckdb.connect() as database:
        database.register("seen", table)
        database.execute("CREATE TABLE trials AS SELECT * FROM seen")
        # pandas' NaN is a NaN there, and not NULL, unless it is said.
        database.execute("""UPDATE trials SET "temp'erature" = NULL WHERE isnan("temp'erature")""")
        found = database.execute(rules.to_sql("trials")).df()
    assert (found["arm"].to_numpy() == rules.recommend(table)).all()


def truths(rows, missing=0.0):
    """A table where what is best depends on a truth value, or a word that is not ASCII."""
    rng = np.random.default_rng(rows)
    on = rng.random(rows) < 0.5
    word = rng.choice(["no", '"\\?', "ünï", "😀"], rows)
    table = pd.DataFrame({"on": on, "word": word})
    if missing:
        table["on"] = table["on"].astype(object).where(rng.random(rows) > missing, None)
    return table, np.where(table["on"] == True, "a", np.where(word == "😀", "b", "c"))  # noqa: E712  # None


@pytest.fixture(scope="module")
def truth_rules():
    table, best = truths(300, missing=0.1)
    arm = np.random.default_rng(0).choice(["a", "b", "c"], 300)
    learner = cg.Learner(["a", "b", "c"], seed=0).fit(table, arm, (arm == best).astype(float))
    return learner.freeze().rules()


@pytest.mark.parametrize("written", [bool, str, str.upper])
def test_truth_values_are_the_same_in_databases(truth_rules, written):
    """SQLite has 0 and 1 for them, other databases a type of their own; files have words."""
    duckdb = pytest.importorskip("duckdb")
    table, best = truths(100_000, missing=0.1)
    answers = truth_rules.recommend(table)
    assert (answers == best).all()
    if written is not bool:
        own = str if written is str else lambda each: str(each).upper()
        table["on"] = [None if each is None else own(each) for each in table["on"]]
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        table.to_sql("trials", database, index=False)
        found = pd.read_sql_query(truth_rules.to_sql("trials"), database)["arm"]
    assert (found.to_numpy() == answers).all()
    with duckdb.connect() as database:
        database.register("trials", table)
        found = database.execute(truth_rules.to_sql("trials")).df()["arm"]
    assert (found.to_numpy() == answers).all()


def compiled(rules, folder):
    (folder / "rule.c").write_text(rules.to_c())
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", folder / "rule.so", folder / "rule.c"], check=True)
    return ctypes.CDLL(str(folder / "rule.so")).rule


def test_c_knows_text_of_any_kind(truth_rules, tmp_path):
    table, best = truths(200)
    rule = compiled(truth_rules, tmp_path)
    rule.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    found = [rule(str(on).lower().encode(), word.encode()) for on, word in table.to_numpy()]
    assert [truth_rules.arms[place] for place in found] == best.tolist()


def test_columns_of_dates_are_said_to_be_left_out(rng, tmp_path):
    table = pd.DataFrame({"x": rng.normal(size=100), "when": pd.date_range("2026", periods=100)})
    arm = rng.integers(2, size=100)
    reward = np.where(arm == 1, table["x"], -table["x"])
    rules = cg.Learner(2, seed=0).fit(table, arm, reward).freeze().rules(depth=1)
    assert "not split on, being dates: when\n" in str(rules)
    rules.save(tmp_path / "rules.cgap")
    assert Rules.load(tmp_path / "rules.cgap") == rules


def test_c_answers_the_same(rules, tmp_path):
    table = many_rows(rules).iloc[::20]
    rule = compiled(rules, tmp_path)
    rule.argtypes = [ctypes.c_double, ctypes.c_double, ctypes.c_char_p]
    answers = [
        rules.arms[rule(warm, load, None if mode is None or mode != mode else mode.encode())]
        for warm, load, mode in table.itertuples(index=False)
    ]
    assert answers == rules.recommend(table).tolist()


def test_files_hold_the_rule(rules, tmp_path):
    table, _, _, _ = log(50, seed=5)
    rules.save(tmp_path / "rule.cgap")
    loaded = Rules.load(tmp_path / "rule.cgap")
    assert loaded == rules
    assert loaded.recommend(table).tolist() == rules.recommend(table).tolist()
    with pytest.raises(cg.FileFormatError, match="holds a rules, not a policy"):
        cg.Policy.load(tmp_path / "rule.cgap")


def test_damaged_files_are_refused(rules):
    from contextgap.base import files

    file = io.BytesIO()
    rules.save(file)
    header, _ = files.read(file, "rules")
    for change in ({"tree": {"arm": "z"}}, {"tree": {"column": "no", "test": "<="}}, {"arms": 3}):
        damaged = io.BytesIO()
        files.write(damaged, "rules", header | change, {})
        with pytest.raises(cg.FileFormatError, match="damaged"):
            Rules.load(damaged)


def test_contexts_are_read_by_name(rules):
    table, _, _, _ = log(20, seed=6)
    expected = rules.recommend(table).tolist()
    assert rules.recommend(table[reversed(table.columns)]).tolist() == expected
    assert rules.recommend(table.to_dict("records")).tolist() == expected
    assert rules.recommend(table.iloc[3].to_dict()) == expected[3]
    assert rules.recommend(table.to_numpy()).tolist() == expected
    with pytest.raises(ValueError, match="contexts lack the column 'mode'"):
        rules.recommend(table.drop(columns="mode"))
    with pytest.raises(ValueError, match="must have the 3 columns"):
        rules.recommend([[1.0, 2.0]])


def test_the_figure_has_every_question_and_arm(rules):
    ax = cg.plot.rules(rules)
    texts = [text.get_text() for text in ax.texts]
    assert any(text.startswith("temp'erature <= ") for text in texts)
    for arm in "abc":
        assert any(text.startswith(f"{arm}\n") for text in texts)
    pyplot.close("all")


def test_arguments_are_checked(learnt):
    with pytest.raises(ValueError, match="depth"):
        learnt.rules(depth=0)
    with pytest.raises(ValueError, match="rules need at least 10 contexts, got 2"):
        learnt.rules(contexts=log(2)[0])
