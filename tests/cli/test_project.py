"""contextgap init, --quiet, completion, and --json everywhere."""

import json
import os
import subprocess
import sys
import types

import pytest
from typer.main import get_command

import contextgap as cg
from contextgap.cli.app import app
from tests.cli.test_policies import call


@pytest.fixture
def project(tmp_path):
    call("init", tmp_path / "cooling")
    return tmp_path / "cooling"


def test_the_project_runs(project):
    assert {path.name for path in project.iterdir()} == {
        "trials.csv",
        "explore.py",
        "explore.ipynb",
    }
    done = subprocess.run(
        [sys.executable, "explore.py"], cwd=project, capture_output=True, text=True, check=True
    )
    assert "score card" in done.stdout
    assert "decisions kept" in done.stdout
    assert cg.Policy.load(project / "policy.cgap").arms == ("air", "fan", "water")
    call("learn", project / "trials.csv", "-o", project / "other.cgap")


def test_the_notebook_is_the_script(project, monkeypatch, capsys):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(project / "explore.ipynb", as_version=4)
    nbformat.validate(notebook)
    monkeypatch.chdir(project)
    module = types.ModuleType("notebook")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(cell.source, vars(module))
    assert "score card" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "line"),
    [("a b", "next: cd 'a b' && python explore.py"), (None, "next: python explore.py")],
)
def test_it_says_what_to_do_next(folder, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = call("init", *([] if folder is None else [folder])).stdout
    assert said.splitlines()[-1] == line


def test_folders_with_files_are_left_alone(project, tmp_path):
    before = {path: path.read_bytes() for path in project.iterdir()}
    assert "is not empty" in call("init", project, code=2).stderr
    assert {path: path.read_bytes() for path in project.iterdir()} == before
    (tmp_path / "empty").mkdir()
    said = json.loads(call("init", tmp_path / "empty", "--json").stdout)
    assert len(said["written"]) == 3


@pytest.mark.parametrize("place", [0, 1, -1])
def test_quiet_prints_nothing_but_what_is_wrong(project, place):
    arguments = ["learn", project / "trials.csv", "-o", project / "p.cgap"]
    arguments.insert(len(arguments) if place == -1 else place, "--quiet")
    found = call(*arguments)
    assert (found.stdout, found.stderr) == ("", "")
    assert call("show", project / "p.cgap").stdout  # the next command is not quiet
    assert json.loads(call("--quiet", "show", project / "p.cgap", "--json").stdout)["arms"]
    assert "no such file" in call("learn", "gone.csv", "-o", "p.cgap", "--quiet", code=2).stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [("contextgap le", "learn"), ("contextgap learn --prop", "--propensity")],
)
def test_shells_complete(line, expected):
    words = line.split()
    code = "import sys; sys.argv = ['contextgap']; from contextgap.cli import main; main()"
    variables = {
        "_CONTEXTGAP_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables, "_TYPER_COMPLETE_ARGS": line},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [expected]


def commands(group, before=()):
    for name in group.commands:
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        if not hasattr(command, "commands") or command.invoke_without_command:
            yield (*before, name), command


def test_every_command_prints_json_if_asked():
    lacking = {
        names
        for names, command in commands(get_command(app))
        if not any("--json" in each.opts for each in command.params)
    }
    assert not lacking


def test_maintenance_says_in_json_what_it_did(tmp_path):
    database, backup = tmp_path / "c.db", tmp_path / "c.bak"
    call("campaign", "create", "bench", "--arms", "a,b", "--database", database)
    for arguments, expected in [
        (("database", "upgrade"), {"upgraded": False}),
        (("database", "backup", backup), {"backup": str(backup)}),
        (("database", "restore", backup, "--yes"), {"restored": str(backup)}),
    ]:
        said = call(*arguments, "--database", database, "--json").stdout
        assert json.loads(said) == expected
    token = ("serve", "token")
    call(*token, "create", "--name", "me", "--scopes", "read", "--database", database)
    said = call(*token, "revoke", "me", "--database", database, "--json").stdout
    assert json.loads(said) == {"revoked": "me"}
