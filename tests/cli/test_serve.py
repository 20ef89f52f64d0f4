"""contextgap serve, and its tokens."""

import json
import subprocess
import sys
from itertools import takewhile

import pytest

from contextgap.team.campaign.database import Database
from contextgap.team.service.access import hash_of, read_tokens
from tests.cli.test_policies import call


@pytest.fixture
def database(tmp_path):
    return tmp_path / "bench.db"


def test_tokens_are_shown_once_listed_and_revoked(database):
    how = ["--database", database]
    made = call("serve", "token", "create", "--name", "bench 3", "--scopes", "explore,read", *how)
    secret = made.stdout.strip()
    assert secret.startswith("cgap_")
    assert len(secret) > 40
    (token,) = read_tokens(Database(database)).values()
    assert token.scopes == ("read", "explore")
    assert token.good
    assert hash_of(secret) in read_tokens(Database(database))
    more = ["--campaign", "sensors", "--days", "90", "--json"]
    create = ["serve", "token", "create", "--scopes", "admin", "--name"]
    other = json.loads(call(*create, "other", *more, *how).stdout)
    assert other["name"] == "other"
    shown = call("serve", "token", "list", *how).stdout
    assert "bench 3" in shown
    assert secret not in shown
    call("serve", "token", "revoke", "bench 3", *how)
    listed = {
        each["name"]: each
        for each in json.loads(call("serve", "token", "list", "--json", *how).stdout)
    }
    assert listed["bench 3"]["revoked"] is not None
    assert listed["other"]["campaign"] == "sensors"
    assert listed["other"]["until"] > listed["other"]["created"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["token", "create", "--name", "x", "--scopes", "fly"], "scopes must be among"),
        (["token", "create", "--name", "", "--scopes", "read"], "name must be"),
        (
            ["token", "create", "--name", "x", "--scopes", "read", "--days", "-1"],
            "days must be positive",
        ),
        (["token", "revoke", "x"], "there is no token 'x'"),
        (["--tokens", "maybe"], "tokens must be one of"),
        (["--log", "loud"], "log must be json or text"),
        (["--rate", "0"], "rate must be positive"),
    ],
)
def test_mistakes_are_said_in_one_line(database, words, said):
    done = call("serve", *words, "--database", database, code=2)
    assert said in " ".join(done.stderr.split())


def test_two_tokens_of_one_name(database):
    words = ["serve", "token", "create", "--name", "x", "--scopes", "read", "--database", database]
    call(*words)
    assert "there is a token 'x' already" in " ".join(call(*words, code=2).stderr.split())


def test_a_file_that_is_no_database_is_said_at_once(tmp_path):
    (tmp_path / "junk.db").write_text("no database, but long enough to look like one" * 100)
    done = call("serve", "--database", tmp_path / "junk.db", code=2)
    assert "junk.db is not a database" in " ".join(done.stderr.split())


def test_tokens_may_be_good_for_longer_than_dates_can_say(database):
    how = ["--name", "old", "--scopes", "read", "--days", "1e12"]
    call("serve", "token", "create", *how, "--database", database)
    assert read_tokens(Database(database))


@pytest.mark.parametrize("open_to_all", [True, False])
def test_the_address_is_json_if_asked(database, open_to_all):
    how = ["--port", "0", "--json", *["--no-tokens"] * open_to_all, "--database", str(database)]
    command = [sys.executable, "-m", "contextgap", "serve", *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        try:
            said = json.loads(b"".join(takewhile(lambda line: line != b"}\n", child.stdout)) + b"}")
        finally:
            child.terminate()
    assert said["address"].startswith("http://127.0.0.1:")
    assert said["database"] == str(database)
    assert (said["token"] is None) == open_to_all
