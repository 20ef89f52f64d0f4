"""Run all benchmarks: ``make bench``."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

if __name__ == "__main__":
    for script in ("learner.py", "policy.py", "latency.py"):
        subprocess.run([sys.executable, str(HERE / script)], check=True)
