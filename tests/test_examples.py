"""The examples run and print what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("sinusoids.py", "1000 steps: average regret 0.0"),
        ("own_csv.py", "runs paid for: 150 of 450"),
        ("late_rewards.py", "'left'"),
        pytest.param("noisy_clicks.py", "true value 0.27", marks=pytest.mark.slow),
        pytest.param("click_log.py", "without the discount: novelty", marks=pytest.mark.slow),
        ("campaign.py", "rebuilt from the log: the same card"),
    ],
)
def test_example(script, printed, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


def test_every_example_is_run():
    assert len(list(EXAMPLES.glob("*.py"))) == 6
