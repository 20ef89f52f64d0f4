"""What commands load before they do something: what they need, and no more."""

import subprocess
import sys

import pytest

from contextgap.cli import terminal

SLOW = {"fastapi", "httpx", "matplotlib", "pandas", "pyarrow", "rich", "sklearn", "uvicorn"}


@pytest.fixture
def loaded(tmp_path):
    """Call a command in a new process; return all modules that it loaded."""

    def call(*words):
        code = (
            "import sys\nfrom contextgap.cli import main\n"
            "try:\n    main()\n"
            "finally:\n    print('\\n'.join(sys.modules), file=sys.stderr)"
        )
        given = [sys.executable, "-c", code, *map(str, words)]
        done = subprocess.run(given, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return set(done.stderr.split())

    return call


def test_the_version_needs_no_numbers(loaded):
    found = loaded("--version")
    assert not found & {*SLOW, "numpy", "scipy", "sqlalchemy"}
    ours = {name for name in found if name.startswith("contextgap")}
    assert ours == {"contextgap", "contextgap.cli", "contextgap.cli.app"}


def test_campaigns_load_no_studies_and_no_tables_of_rich(loaded):
    loaded("campaign", "create", "bench", "--arms", "a,b")
    asked = loaded("campaign", "ask", 0.25, 0.5)
    told = loaded("campaign", "tell", 1, 0.5)
    for found in (asked, told):
        assert "sqlalchemy" in found
        assert not found & {*SLOW, "scipy.optimize", "scipy.spatial", "scipy.stats"}
        ours = {".".join(name.split(".")[:2]) for name in found if name.startswith("contextgap.")}
        assert not ours & {f"contextgap.{name}" for name in ("export", "insight", "studies")}
        assert not {"contextgap.tables.files", "contextgap.team.service"} & found


def test_ending_a_command_collects_nothing():
    code = (
        "import gc\nfrom contextgap.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print(len(gc.get_objects()), gc.get_freeze_count())"
    )
    given = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    left, frozen = map(int, done.stdout.split()[-2:])
    assert frozen > 10_000 > 10 * left


def test_progress_goes_to_logs_now_and_then(monkeypatch, capsys):
    seconds = iter(range(0, 7000, 7))
    monkeypatch.setattr(terminal.time, "perf_counter", lambda: next(seconds))
    with terminal.phases() as watch, terminal.phases(quiet=True) as quiet:
        for begin in (watch, quiet):
            tell = begin("exploring")
            for done in range(101):
                tell(done, 100)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "exploring: 1 of 100, about 1386 s left"
    assert 10 < len(said) < 30
    assert not any("100 of 100" in line for line in said)
