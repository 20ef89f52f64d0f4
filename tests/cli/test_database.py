"""contextgap database: status, upgrade, backup, restore, verify; and who did what."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

import contextgap as cg
from contextgap.cli.app import app

OLD = Path(__file__).parents[1] / "team" / "campaign" / "data" / "schema-1.sqlite.sql.gz"


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words, code=0):
        result = CliRunner().invoke(app, [*map(str, words)])
        assert result.exit_code == code, result.output
        return result.output

    return run


def test_a_database_is_upgraded_backed_up_altered_and_restored(call, tmp_path):
    assert "there is no database" in call("database", "upgrade", code=2)
    with closing(sqlite3.connect("contextgap.db")) as made:
        made.executescript(gzip.decompress(OLD.read_bytes()).decode())
    status = json.loads(call("database", "status", "--json", code=1))
    assert (status["version"], status["campaigns"]) == (1, 2)
    assert call("database", "upgrade") == "upgraded\n"
    assert call("database", "upgrade", "contextgap.db") == "nothing to upgrade\n"
    assert "yes" in call("database", "status")
    assert call("database", "verify") == "nothing was altered\n"
    assert call("database", "backup", "copy.db") == "wrote copy.db\n"
    assert "such a file already" in call("database", "backup", "copy.db", code=2)
    with closing(sqlite3.connect("contextgap.db")) as made, made:
        made.execute("UPDATE contextgap_trials SET reward = 5 WHERE id = 4 AND campaign = 1")
    assert "trial 4 is not as in the log: reward is 5.0" in call(
        "database", "verify", "contextgap.db", code=1
    )
    assert len(json.loads(call("database", "verify", "--json", code=1))["problems"]) == 1
    with cg.Campaign.open("contextgap.db", "given"):
        refused = call("database", "restore", "copy.db", "--yes", code=2)
        assert "others are connected" in refused
    assert call("database", "restore", "copy.db", "--yes") == "restored copy.db\n"
    assert call("database", "verify") == "nothing was altered\n"


def test_trials_show_who_did_it(call, monkeypatch):
    call("campaign", "create", "c", "--arms", "a,b", "--by", "anna")
    call("campaign", "ask", 0.5, "--by", "ben")
    monkeypatch.setenv("CONTEXTGAP_BY", "bench-3")
    call("campaign", "tell", 1, 0.5)
    call("campaign", "ask", 0.25)
    assert json.loads(call("campaign", "cancel", 2, "--by", "carl", "--json"))["by"] == "carl"
    shown = call("campaign", "trials")
    assert "bench-3" in shown
    assert "carl" in shown
    call("campaign", "retract", 1, "typo", "--by", "anna")
    call("campaign", "correct", 1, 0.25, "typo", "--by", "ben")
    assert [trial["by"] for trial in json.loads(call("campaign", "trials", "--json"))] == [
        "ben",
        "carl",
    ]
