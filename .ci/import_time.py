"""Print how long an import takes, in processor time: the least of ten, each in a new process."""

import subprocess
import sys


def seconds(code: str) -> float:
    """Return how long some code takes to run in a new process."""
    script = f"{code}\nimport time; print(time.process_time())"
    command = [sys.executable, "-c", script]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(10)]
    return min(float(run.stdout) for run in runs)


nothing = seconds("pass")
whole = seconds("import contextgap") - nothing
numpy = seconds("import numpy") - nothing
both = seconds("import numpy, scipy.linalg") - nothing
print(
    f"import contextgap takes {whole:.2f} s, of which numpy {numpy:.2f} s "
    f"and scipy.linalg {both - numpy:.2f} s"
)
