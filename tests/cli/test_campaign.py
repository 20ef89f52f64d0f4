"""contextgap campaign, from create to freeze, and sheets to fill in."""

import csv
import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import contextgap as cg
from contextgap.cli.app import app


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words, code=0):
        result = CliRunner().invoke(app, ["campaign", *map(str, words)])
        assert result.exit_code == code, result.output
        return result.output if code == 0 else result.stderr

    def machine(*words):
        result = CliRunner().invoke(app, ["campaign", *map(str, words), "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    run.json = machine
    return run


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with a campaign that has begun."""
    folder = tmp_path_factory.mktemp("begun")
    table = "temperature,mode\n21,eco\n25,sport\n3,eco\n8,sport\n"
    (folder / "reference.csv").write_text(table)
    where = ("--reference", folder / "reference.csv", "--database", folder / "contextgap.db")
    words = ["campaign", "create", "sensors", "--arms", "hull,panel", *map(str, where)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def begun(call, template, tmp_path):
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return cg.Campaign.open(tmp_path / "contextgap.db", "sensors")


def test_a_campaign_from_create_to_freeze(call, begun, tmp_path):
    asked = call.json("ask", "temperature=-1.5", "mode=eco", "--key", "k")
    assert (asked["trial"], asked["state"]) == (1, "open")
    assert asked["context"] == {"temperature": -1.5, "mode": "eco"}
    assert call.json("ask", "temperature=-1.5", "mode=eco", "--key", "k") == asked
    assert "another ask" in call("ask", "temperature=2", "mode=eco", "--key", "k", code=2)
    assert "told, reward -0.5" in call("tell", 1, -0.5)
    outside = ("--arm", "panel", "--context", "temperature=2", "--context", "mode=sport")
    assert call.json("tell", 0.25, *outside)["reward"] == 0.25
    only = call.json("ask", "temperature=1", "mode=eco", "--among", "panel")
    assert (only["arm"], only["eligible"]) == ("panel", ["panel"])
    assert "cancelled" in call("cancel", only["trial"])
    assert "there is no folder" in call("freeze", "first", "-o", "nowhere/first.cgap", code=2)
    call("freeze", "first", "-o", "first.cgap", "--fallback", "hull")
    assert "policy first" in call("policy", "first", "-o", "again.cgap")
    assert (tmp_path / "again.cgap").read_bytes() == (tmp_path / "first.cgap").read_bytes()
    assert "there is no policy 'second'" in call("policy", "second", code=2)
    assert cg.Policy.load(tmp_path / "first.cgap").card.log == begun.policies()[0].log
    recall = call.json("retract", 2, "typo")
    (rests,) = recall["policies"]
    assert (recall["trial"], recall["retracted"]) == (2, True)
    assert rests == {"policy": "first", "contexts": 4, "changed": 0}
    assert "0 of 4" in call("correct", 2, -3, "units")
    status = call.json("status")
    assert status["trials"]["told"] == 2
    assert status["policies"][0]["recalled"] == [2]
    assert [each["reward"] for each in call.json("trials", "--state", "told")] == [-0.5, -3.0]
    shown = call("status") + call("trials")
    for text in ("settled", "first", "temperature=-1.5 mode=eco", "cancelled"):
        assert text in shown


def test_a_sheet_goes_out_and_comes_back(call, begun, tmp_path):
    written = call("sheet", "-n", 3)
    rows = list(csv.DictReader(written.splitlines()))
    assert [row["trial"] for row in rows] == ["1", "2", "3"]
    assert {row["mode"] for row in rows} <= {"eco", "sport"}
    assert call("sheet") == written  # those open
    for row, reward in zip(rows, ("0.1", "", "0.3"), strict=True):
        row["reward"] = reward
    _fill(tmp_path, rows)
    assert "2 rewards to tell" in call("sheet", "--import", "today.csv", "--dry-run")
    assert begun.status().trials["told"] == 0
    assert "told 2 rewards" in call("sheet", "--import", "today.csv")
    assert [trial.reward for trial in begun.find_trials()] == [0.1, None, 0.3]
    again = call.json("sheet", "--import", "today.csv")
    assert again == {"told": [], "told_before": [1, 3], "dry_run": False}


def _fill(folder, rows):
    with (folder / "today.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": "high"}, "line 2, column 'reward': a number is needed, got 'high'"),
        ({"reward": "nan"}, "line 2, column 'reward': a finite number is needed, got 'nan'"),
        ({"trial": "9" * 30}, "there is no trial 999"),
        ({"trial": "first"}, "line 2, column 'trial': must be a trial's number"),
        ({"trial": "2"}, "line 3: trial 2 was in line 2 already"),
        ({"trial": "9"}, "there is no trial 9"),
        ({"arm": "keel"}, "not of 'keel'"),
        ({"temperature": "999"}, "line 2, column 'temperature': trial 1 was asked for at "),
        ({"temperature": "999"}, "not at '999'; tell a reward at another context by"),
        ({"mode": "Eco"}, "line 2, column 'mode': trial 1 was asked for at "),
    ],
)
def test_a_sheet_with_a_slip_tells_nothing(call, begun, tmp_path, change, message):
    rows = list(csv.DictReader(call("sheet", "-n", 2).splitlines()))
    rows = [row | {"reward": "0.5"} for row in rows]
    if change.get("trial") == "2":
        change = rows[1]
    rows[0] |= change
    _fill(tmp_path, rows)
    assert message in call("sheet", "--import", "today.csv", code=2)
    assert begun.status().trials["told"] == 0


def test_a_reward_changed_in_a_sheet_is_no_correction(call, begun, tmp_path):
    rows = list(csv.DictReader(call("sheet", "-n", 1).splitlines()))
    begun.tell(1, 0.25)
    _fill(tmp_path, [rows[0] | {"reward": "0.5"}])
    assert "0.25 was told for trial 1, not 0.5" in call("sheet", "--import", "today.csv", code=2)


def test_a_sheet_with_decimal_commas_is_told_as_it_is_shown(call, begun, tmp_path):
    rows = list(csv.DictReader(call("sheet", "-n", 2).splitlines()))
    lines = [
        f"{row['trial']};{row['arm']};{reward}"
        for row, reward in zip(rows, ("0,6234567", "-2"), strict=True)
    ]
    (tmp_path / "today.csv").write_text("\n".join(["trial;arm;reward", *lines]))
    shown = call("sheet", "--import", "today.csv")
    assert "0.6234567" in shown
    assert "-2.0" in shown
    assert [trial.reward for trial in begun.find_trials()] == [0.6234567, -2.0]


def test_contexts_in_a_sheet_may_be_written_otherwise_or_be_missing(call, tmp_path):
    table = "temperature,mode\n21.123456789012,eco\n,eco\n3,sport\n"
    (tmp_path / "reference.csv").write_text(table)
    call("create", "gaps", "--arms", "hull,panel", "--reference", "reference.csv")
    call("sheet", "-n", 3, "--contexts", "reference.csv")
    begun = cg.Campaign.open(tmp_path / "contextgap.db", "gaps")
    lines = ["trial;temperature;reward", "1; 21,12345679;1", "2;NA;2", "3;;3"]
    (tmp_path / "today.csv").write_text("\n".join(lines))
    call("sheet", "--import", "today.csv")
    assert [trial.reward for trial in begun.find_trials()] == [1.0, 2.0, 3.0]
    (tmp_path / "today.csv").write_text("trial,temperature,reward\n2,5,2\n")
    assert "trial 2 was asked for at nan" in call("sheet", "--import", "today.csv", code=2)


@pytest.mark.parametrize("text", ['=HYPERLINK("http://x.example")', "+1+cmd|' /C x'!A0", "@SUM(1)"])
def test_sheets_have_no_formulas_and_are_read_back(call, tmp_path, text):
    campaign = cg.Campaign.create(tmp_path / "contextgap.db", "odd", [text, "'=x"], seed=0)
    campaign.ask({text: text, "number": -1.5})
    campaign.ask({text: "-5", "number": 2.0}, arms=["'=x"])
    rows = list(csv.reader(call("sheet").splitlines()))
    for cell in [cell for row in rows for cell in row]:
        assert cell[:1] not in ("=", "+", "@"), cell
    assert rows[0][1] == rows[1][1] == f"'{text}"
    assert [row[2] for row in rows[1:]] == ["-1.5", "2.0"]
    with (tmp_path / "today.csv").open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *([*row[:-1], "1"] for row in rows[1:])])
    assert "told 2 rewards" in call("sheet", "--import", "today.csv")


def test_contexts_from_files(call, tmp_path):
    call("create", "plain", "--arms", "1,2", "--bandwidth", 0.5, "--minimize")
    assert "give --contexts" in call("sheet", "-n", 2, code=2)
    (tmp_path / "x.csv").write_text("a,b\n0.5,1\n-2,3\n7,8\n")
    rows = list(csv.DictReader(call("sheet", "-n", 2, "--contexts", "x.csv").splitlines()))
    assert [(row["a"], row["b"]) for row in rows] == [("0.5", "1.0"), ("-2.0", "3.0")]
    assert len(call.json("sheet", "-n", 2, "--pool", "x.csv")) == 2
    assert "fewer than 9" in call("sheet", "-n", 9, "--contexts", "x.csv", code=2)
    assert "not both" in call("sheet", "-n", 1, "--contexts", "x.csv", "--pool", "x.csv", code=2)


def test_what_a_user_gets_wrong_is_one_line(call, begun, tmp_path):
    assert "there is none" in call("status", "-d", "other.db", code=2)
    assert not (tmp_path / "other.db").exists()
    call("create", "second", "--arms", "a,b")
    assert "there is sensors, second" in call("status", code=2)
    assert "no campaign 'third'" in call("status", "-c", "third", code=2)
    assert "a trial and its reward" in call("tell", "-c", "sensors", 1, code=2)
    assert "all name=value" in call("ask", "-c", "sensors", "temperature=1", "eco", code=2)
    (tmp_path / "text.db").write_text("this is no database, whatever its name may say " * 50)
    complaint = call("status", "-d", "text.db", code=2)
    assert "not a database" in complaint
    assert "Traceback" not in complaint


@pytest.mark.parametrize(
    "database", ["contextgap.db", "./contextgap.db", "sqlite:///contextgap.db"]
)
def test_no_policy_replaces_the_campaigns_own_database(call, begun, database):
    for context in ("temperature=1", "temperature=2"):
        call("tell", 0.5, "--arm", "hull", "--context", context, "--context", "mode=eco")
    where = ("-d", database, "-o", "contextgap.db")
    assert "is read here and would be replaced" in call("freeze", "first", *where, code=2)
    assert begun.policies() == ()
    call("freeze", "first")
    assert "is read here and would be replaced" in call("policy", "first", *where, code=2)
    assert call.json("status")["trials"]["told"] == 2


def test_what_is_asked_for_twice_or_about_nothing_is_refused(call, begun):
    twice = ("temperature=1", "temperature=2", "mode=eco")
    assert "name each column once, got 'temperature' twice" in call("ask", *twice, code=2)
    message = "--cyclic and --missing are about the contexts of --reference FILE"
    assert message in call("create", "other", "--arms", "a,b", "--share", 7, code=2)
    assert message in call("create", "other", "--arms", "a,b", "--tolerance", 0.5, code=2)


def test_numbers_beyond_those_of_the_database_are_trials_that_there_are_not(call, begun):
    large = 10**30
    assert f"there is no trial {large}" in call("tell", large, 1, code=2)
    assert f"there is no trial {large}" in call("cancel", large, code=2)
    assert begun.find_trials(after=large) == []


def test_mistyped_options_are_no_context(call, begun):
    for word in ("--kye=monday", "--kye", "-z"):
        found = call("ask", "temperature=1", "mode=eco", word, code=2)
        assert f"there is no option {word.partition('=')[0]}" in found
    assert call.json("ask", "temperature=-1", "mode=eco")["trial"] == 1


def test_levels_that_look_like_numbers_stay_as_they_are(call, tmp_path):
    (tmp_path / "shops.csv").write_text("shop,v\n02,1\n2,2\nA1,3\n")
    assert "(--category)" in call(
        "create", "c", "--arms", "x,y", "--reference", "shops.csv", code=2
    )
    call("create", "c", "--arms", "x,y", "--reference", "shops.csv", "--category", "shop")
    for shop in ("02", "1E3", "$5", "inf", "7"):
        assert call.json("ask", f"shop={shop}", "v=1")["context"] == {"shop": shop, "v": 1.0}
    told = call.json("tell", 3.5, "--arm", "x", "--context", "shop=02", "--context", "v=1")
    assert told["context"]["shop"] == "02"
    assert "about the contexts of --reference" in call(
        "create", "d", "--arms", "x,y", "--category", "shop", code=2
    )


def test_columns_of_a_campaign_may_be_cyclic_and_have_gaps_later(call, tmp_path):
    (tmp_path / "reference.csv").write_text("id,hour,age,code\n1,3,20,7\n2,15,30,8\n3,23,40,7\n")
    given = ["--exclude", "id", "--cyclic", "hour=24", "--missing", "age", "--category", "code"]
    call("create", "c", "--arms", "x,y", "--reference", "reference.csv", *given)
    with cg.Campaign.open(tmp_path / "contextgap.db", "c") as campaign:
        kinds = dict(campaign.learner().columns)
    assert kinds == {
        "hour": cg.Cyclic(24),
        "age": cg.Number(missing=True),
        "code": cg.Category(),
    }
    asked = call.json("ask", "hour=4", "age=", "code=7")
    assert asked["context"] == {"hour": 4.0, "age": None, "code": "7"}
    call("tell", asked["trial"], 0.5)
    said = call("ask", "hour=", "age=3", "code=7", code=2)
    assert "or contextgap campaign create --missing hour on the command line" in said
    said = call("create", "d", "--arms", "x,y", "--cyclic", "hour=24", code=2)
    assert "--cyclic and --missing are about the contexts of --reference FILE" in said


def test_hints_of_sheets_name_the_command_that_has_the_option(call, tmp_path):
    call("create", "c", "--arms", "x,y")
    (tmp_path / "contexts.csv").write_text("shop,v\n02,1\n2,2\nA1,3\n")
    said = call("sheet", "-n", 2, "--contexts", "contexts.csv", code=2)
    assert "is it a category (contextgap campaign create --category)?" in said
    (tmp_path / "contexts.csv").write_text("shop,v\n,1\n,2\n")
    said = call("create", "d", "--arms", "x,y", "--reference", "contexts.csv", code=2)
    assert "every cell is empty; leave it out (--exclude)" in said


def test_telling_twice_names_the_command_that_changes_a_reward(call, begun):
    call("ask", "temperature=1", "mode=eco")
    call("tell", 1, 0.5)
    said = call("tell", 1, 0.7, code=2)
    assert "contextgap campaign correct changes it" in said
    assert "correct(" not in said
    assert "must be a number, such as 1 for yes, got 'yes'" in call("tell", 1, "yes", code=2)


def test_a_sheet_with_columns_of_prefixed_names_comes_back(call, tmp_path):
    """A column may be called as another one is in a sheet."""
    call("create", "c", "--arms", "x,y")
    call.json("ask", "arm=1", "context.arm=2", "reward=3")
    (line,) = csv.DictReader(call("sheet").splitlines())
    assert (line["context.context.arm"], line["context.arm"], line["context.reward"]) == (
        "1.0",
        "2.0",
        "3.0",
    )
    with (tmp_path / "sheet.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(line))
        writer.writeheader()
        writer.writerow({**line, "reward": 0.5})
    call("sheet", "--import", "sheet.csv")
    assert call.json("trials")[0]["reward"] == 0.5
    (tmp_path / "sheet.csv").write_text("trial,context.arm,reward\n1,1,0.5\n")
    assert "column 'context.arm': trial 1 was asked for at 2.0" in call(
        "sheet", "--import", "sheet.csv", code=2
    )


def test_a_level_never_met_is_said(call, begun, tmp_path):
    for number, mode in enumerate(("eco", "sport", "eco"), start=1):
        assert "new level" not in call("ask", "temperature=3", f"mode={mode}")
        call("tell", number, 0.5)
    assert "warning: new level 'turbo' of mode" in call("ask", "temperature=3", "mode=turbo")
    assert "new level" not in call("ask", "temperature=3", "mode=turbo")  # by now it was met
    (tmp_path / "c.csv").write_text("temperature,mode\n1,eco\n2,boost\n")
    assert "warning: new level 'boost' of mode" in call("sheet", "-n", 2, "--contexts", "c.csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", 2, "--contexts", "c.csv", "--dry-run"], "--dry-run and --yes are about --import"),
        (["--contexts", "c.csv"], "--contexts, --pool and --once need -n"),
        (["-n", 2, "--import", "c.csv"], "--import tells rewards"),
    ],
)
def test_options_of_sheets_that_say_nothing_are_refused(call, begun, tmp_path, words, message):
    (tmp_path / "c.csv").write_text("temperature,mode\n1,eco\n2,eco\n")
    assert message in call("sheet", *words, code=2)
    assert begun.find_trials() == []


def test_sheets_name_the_line_and_take_empty_arms(call, begun, tmp_path):
    call("ask", "temperature=1", "mode=eco")
    (tmp_path / "filled.csv").write_text("trial,arm,reward\n1,,0.5\n")
    assert "told 1 rewards" in call("sheet", "--import", "filled.csv")
    (tmp_path / "filled.csv").write_text("trial,arm,reward\n99,hull,0.5\n")
    assert "filled.csv, line 2: there is no trial 99" in call(
        "sheet", "--import", "filled.csv", code=2
    )


def test_rewards_may_be_censored_or_have_a_known_error(call, begun):
    outside = ("--arm", "panel", "--context", "temperature=2", "--context", "mode=sport")
    call("tell", 0.75, "--censored", *outside)
    call("tell", 0.75, "--noise", 0.5, *outside)
    log = begun.learner().state.model.observed
    assert log.limits[-2:].tolist() == pytest.approx([0.75, np.nan], nan_ok=True)
    assert log.noise[-1] == 0.25
    assert "censored" in call("tell", 0.75, "--censored", "--noise", 0.5, *outside, code=2)


def test_trials_may_have_a_cost(call, begun):
    outside = ("--arm", "panel", "--context", "temperature=2", "--context", "mode=sport")
    before = begun.learner().spent
    call("tell", 0.75, "--cost", 12.5, *outside)
    call("tell", 0.25, *outside)
    assert begun.learner().spent == before + 13.5
    assert "spent" in call("status")
