"""Options that take lists, on every command there is."""

import ast
from pathlib import Path

import pytest
import typer

import contextgap as cg
import contextgap.cli
from contextgap.cli.app import app
from contextgap.cli.terminal import names_in
from tests.cli.test_policies import call, rows

CLI = Path(contextgap.cli.__file__).parent


def commands(command, words=()):
    """Yield every command with the words that call it."""
    for name, each in getattr(command, "commands", {}).items():
        yield (*words, name), each
        yield from commands(each, (*words, name))


ALL = dict(commands(typer.main.get_command(app)))
# What is known of a cell's name, such as temperature=1,5, may have commas of its own.
NOT_SPLIT = {(("campaign", "tell"), "context")}
LISTS = [
    pytest.param(command, option, id=f"{' '.join(words)} {option.opts[0]}")
    for words, command in ALL.items()
    for option in command.params
    if option.param_type_name == "option" and option.multiple
    if (words, option.name) not in NOT_SPLIT
]


def parsed(command, option, *values):
    """What a command gets for an option, whatever else it needs."""
    context = typer.Context(command)
    return option.handle_parse_result(context, {option.name: values}, [])[0]


@pytest.mark.parametrize(("command", "option"), LISTS)
def test_lists_given_twice_add_up_beside_commas(command, option):
    wanted = ["a", "b", "c=d+e"]
    assert parsed(command, option, "a", "b,c=d+e") == wanted
    assert parsed(command, option, "a, b", "c=d+e") == wanted
    assert parsed(command, option, "a,b,c=d+e") == wanted


def test_all_that_takes_a_list_is_among_them():
    names = {(option.values[0], option.values[1].name) for option in LISTS}
    found = {(command.name, name) for command, name in names}
    for command in ("run", "compare", "tune"):
        assert {(command, name) for name in ("exclude", "category", "cyclic", "rewards")} <= found
    for option in ("exclude", "category", "cyclic", "missing", "eligible", "context"):
        assert ("learn", option) in found
    for option in ("arms", "category", "cyclic", "missing"):
        assert ("create", option) in found
    assert {("recommend", "eligible"), ("ask", "among"), ("create", "scopes")} <= found


def test_only_the_shared_option_splits_at_commas():
    """A command that splits at commas by itself would take the last of two lists."""
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "split":
                commas = [each for each in node.args if getattr(each, "value", None) == ","]
                assert not commas or path.name == "terminal.py", f"{path.name}:{node.lineno}"


def test_help_that_speaks_of_several_is_of_a_list():
    listed = {id(option.values[1]) for option in LISTS}
    for words, command in ALL.items():
        for option in command.params:
            text = getattr(option, "help", None) or ""
            if option.param_type_name == "option" and ("comma-separated" in text or "a,b" in text):
                assert id(option) in listed, (words, option.name)


def test_names_without_text_are_none():
    assert names_in(None) is None
    assert names_in(["a,, b ", ""]) == ["a", "b"]


def test_two_columns_of_eligible_arms_are_one_set(tmp_path):
    lines = [f"{x / 40},{'ab'[x % 2]},{x % 2},{'ab'[x % 2]},c" for x in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(["x,arm,reward,first,second", *lines]))
    how = ["--arm", "arm", "--reward", "reward", "--bandwidth", "1"]
    both = ["--eligible", "first", "--eligible", "second"]
    call("learn", tmp_path / "log.csv", *how, *both, "-o", tmp_path / "p.cgap")
    (tmp_path / "new.csv").write_text("x,first,second\n0.5,a,b\n0.5,a,\n0.5,,b\n")
    for given in (both, ["--eligible", "first,second"]):
        shown = call("recommend", tmp_path / "p.cgap", tmp_path / "new.csv", *given)
        assert [row["arm"] for row in rows(shown.stdout)] == ["b", "a", "b"]


def test_columns_named_twice_are_both_left_out(tmp_path):
    lines = [f"{x},{x % 7},{x % 5},{'ab'[x % 2]},{x % 2}" for x in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(["id,x,code,arm,reward", *lines]))
    how = ["--arm", "arm", "--reward", "reward", "--json"]
    twice = ["--exclude", "id", "--exclude", "code"]
    shown = call("learn", tmp_path / "log.csv", *how, *twice, "-o", tmp_path / "p.cgap").stdout
    assert '"columns": [\n  "x"\n ]' in shown


def test_options_may_be_given_by_their_old_names(tmp_path):
    (tmp_path / "log.csv").write_text("arm,x,reward\n" + "a,1,1\nb,2,0\n" * 3)
    how = ["--arm", "arm", "--reward", "reward", "-o", tmp_path / "p.cgap"]
    said = call("learn", tmp_path / "log.csv", *how, "--gaps", "x").stderr
    assert "--gaps is deprecated and now called --missing" in said
    assert cg.Policy.load(tmp_path / "p.cgap").kinds["x"].missing
