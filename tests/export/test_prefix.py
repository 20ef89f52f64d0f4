"""Names in exported C: of levels, and with another prefix so that policies can be linked."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextgap as cg
from contextgap.export.c import CompiledPolicy, write_c
from contextgap.export.c.text import category_names, declarations
from contextgap.export.rule import read_rows
from contextgap.tables.columns import Coding, TableSchema
from tests.export.compilers import COMPILERS, STRICT, run, self_test
from tests.export.tables import COLUMNS, learnt, table
from tests.export.test_c import around, explored

needs_c = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
LEVELS = st.text(max_size=90) | st.integers().map(str) | st.none()

MAIN = """\
#include "one_policy.h"
#include "two_policy.h"

#include <stdio.h>

int main(void)
{
    one_real first[ONE_DIMENSION];
    two_real second[TWO_DIMENSION];
    while (1) {
        for (int i = 0; i < ONE_DIMENSION; i++) {
            if (scanf("%lf", &first[i]) != 1) {
                return 0;
            }
        }
        for (int i = 0; i < TWO_DIMENSION; i++) {
            second[i] = 0;
        }
        second[0] = (two_real)two_encode_country("fr");
        second[TWO_DIMENSION - 1] = (two_real)TWO_CREW_2;
        printf("%d %d\\n", one_recommend(first), two_recommend(second));
    }
}
"""


@needs_c
@pytest.mark.parametrize("compiler", COMPILERS)
def test_two_policies_in_one_program(compiler, tmp_path):
    one, two = explored().freeze(), learnt("look-back").freeze()
    write_c(one, tmp_path, prefix="one")
    write_c(two, tmp_path, prefix="two", float32=True)
    (tmp_path / "main.c").write_text(MAIN)
    sources = [tmp_path / name for name in ("main.c", "one_policy.c", "two_policy.c")]
    program = tmp_path / "both"
    built = run(compiler, "-std=c99", *STRICT, *sources, "-o", program, "-lm")
    assert built.returncode == 0, built.stderr
    contexts = around(20)
    (tmp_path / "input").write_text("\n".join(f"{a!r} {b!r}" for a, b in contexts.tolist()))
    answers = run("sh", "-c", f"{program} < {tmp_path / 'input'}").stdout.split()
    table = two.state.schema.table
    codes = [coding.levels for coding in table.codings]
    row = np.zeros((1, len(COLUMNS)))
    row[0, 0], row[0, -1] = codes[0].index("fr"), codes[-1].index("2")
    other = CompiledPolicy(tmp_path, compiler, prefix="two").recommend(row)[0]
    wanted = [f"{one.arms.index(arm)} {other}" for arm in one.recommend(contexts)]
    assert [f"{a} {b}" for a, b in zip(answers[::2], answers[1::2], strict=True)] == wanted
    with pytest.raises(ValueError, match=r"several exports, \['one', 'two'\]"):
        CompiledPolicy(tmp_path)


@needs_c
@pytest.mark.parametrize("prefix", ["kernel", "spread", "real", "levels", "is", "numbers"])
def test_prefixes_like_names_of_the_source(prefix, tmp_path):
    export = write_c(learnt("gap", "trend").freeze(), tmp_path, prefix=prefix, self_test=5)
    assert self_test(export, COMPILERS[0]).returncode == 0


@needs_c
def test_another_prefix_changes_names_and_nothing_else(tmp_path):
    labels = ["contextgap_a", "CONTEXTGAP_B"]
    learner = cg.Learner(labels, kernel=cg.Gaussian(1.0), seed=0)
    for i, label in enumerate(labels):
        learner.tell({"contextgap_x": 0.1 * i}, label, 0.5 * i)
    policy = learner.freeze()
    export = write_c(policy, tmp_path, prefix="sensors", certificates=True)
    assert [path.name for path in (export.header, export.source, export.self_test)] == [
        *("sensors_policy.h", "sensors_policy.c", "sensors_selftest.c")
    ]
    library = CompiledPolicy(tmp_path)
    assert (library.prefix, library.labels) == ("sensors", tuple(labels))
    assert library.columns == ("contextgap_x",)
    assert self_test(export, COMPILERS[0]).returncode == 0
    for path in (export.header, export.source, export.self_test):
        code = re.sub(r'"[^"]*"|/\*.*?\*/', "", path.read_text(), flags=re.DOTALL)
        assert "contextgap" not in code.lower()


@pytest.mark.parametrize("prefix", ["", "2nd", "Sensors", "a-b", "x" * 21, "_a"])
def test_prefixes_that_are_none(prefix, tmp_path):
    with pytest.raises(ValueError, match="prefix must be at most 20 of a-z"):
        write_c(explored().freeze(), tmp_path / "c", prefix=prefix)
    assert not (tmp_path / "c").exists()


@needs_c
def test_texts_have_the_codes_that_python_gives(tmp_path):
    odd = ["Zürich", "zurich", "ZURICH", "*/ int evil;", "磁", "", 'say "hi"', "back\\", "?" * 3]
    columns = {
        "where": cg.Category(missing=True),
        "Where?": cg.Category(),
        "export": cg.Category(),
        "number": cg.Category(),
    }
    where = [*odd, None]
    frame = pd.DataFrame(
        {
            "where": where,
            "Where?": [True, False] * 5,
            "export": ["id", "ok"] * 5,
            "number": pd.Series([1, -1, 2.5, -2.5, 10] * 2, dtype=object),
        },
        dtype=object,
    )
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0, categories=4), columns=columns, ridge=0.1)
    policy = learner.fit(frame, [0, 1] * 5, np.arange(10.0)).freeze()
    export = write_c(policy, tmp_path)
    library = CompiledPolicy(tmp_path, COMPILERS[0], flags=("-O1", *STRICT))
    codings = {coding.name: coding for coding in policy.state.schema.table.codings}
    for text in where:
        assert library.encode("where", text) == codings["where"].levels.index(text)
    assert library.encode("where", "elsewhere") == -1
    assert library.encode("where_2", "true") == codings["Where?"].levels.index("true")
    assert library.encode("where_2", None) == -1
    assert library.encode("number", "-2.5") == codings["number"].levels.index("-2.5")
    header = export.header.read_text()
    for name in ("CONTEXTGAP_WHERE_GAP", "CONTEXTGAP_WHERE_ZURICH_3", "CONTEXTGAP_NUMBER_MINUS_1"):
        assert f" {name} = " in header
    assert "CONTEXTGAP_EXPORT_ID_2 = " in header
    for compiler in COMPILERS:
        assert self_test(export, compiler).returncode == 0


NAMED = st.tuples(st.text(max_size=90), st.lists(LEVELS, unique_by=repr))


@given(st.lists(NAMED, unique_by=lambda named: named[0], min_size=1))
def test_names_are_distinct_and_valid(columns):
    table = TableSchema(
        tuple(Coding(name, cg.Category(missing=True), tuple(levels)) for name, levels in columns)
    )
    names = category_names(table, "contextgap")
    words = [each.function for each in names] + [each.enum for each in names]
    words += [word for each in names for word in (each.count, *each.constants)]
    assert len(set(words)) == len(words)
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,80}", word) for word in words)
    text = declarations(names)
    assert text.count("/*") == text.count("*/")


@needs_c
def test_the_code_of_a_text_is_what_the_schema_reads(tmp_path):
    policy = learnt().freeze()
    library = CompiledPolicy(write_c(policy, tmp_path).source.parent)
    frame = table(50, seed=6, unseen=0.3)
    codes = read_rows(policy.state.schema.table, frame)[:, 0]
    texts = [None if pd.isna(text) else text for text in frame["country"]]
    assert [library.encode("country", text) for text in texts] == codes.tolist()
