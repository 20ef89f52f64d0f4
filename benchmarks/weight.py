"""Print what the core weighs: wheel, installed size, and processor time of imports.

Each checkout is installed from its wheel into an empty environment, with numpy and scipy alone::

    python benchmarks/weight.py              # this checkout
    python benchmarks/weight.py . v0.2.0     # and a commit, or another folder, beside it

Times are the least of ten, each in a new process. ``--imports`` prints those of this interpreter.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
import venv
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
BOTH = "import numpy, scipy.linalg"
IMPORTS = ("import numpy", BOTH, "import contextgap", "from contextgap import Learner, Policy")


def output(*command: str | Path) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=HERE).stdout


def seconds(code: str) -> float:
    script = f"{code}\nimport time; print(time.process_time())"
    command = [sys.executable, "-I", "-c", script]
    return min(float(subprocess.check_output(command)) for _ in range(10))


def print_imports() -> None:
    print(f"  numpy {version('numpy')}, scipy {version('scipy')}")
    nothing = seconds("pass")
    took = {code: seconds(code) - nothing for code in IMPORTS}
    for code, time in took.items():
        print(f"  {code}: {time:.2f} s")
    print(f"  the last over numpy and scipy.linalg: {took[IMPORTS[-1]] - took[BOTH]:.2f} s")


def kilobytes(folder: Path, *names: str) -> int:
    files = (file for name in names for top in folder.glob(name) for file in top.rglob("*"))
    return sum(file.stat().st_size for file in files if file.is_file()) // 1000


def weigh(which: str, work: Path) -> None:
    source = Path(which).resolve()
    if not source.is_dir():
        source = work / "source"
        with tarfile.open(fileobj=io.BytesIO(output("git", "archive", which))) as archive:
            archive.extractall(source, filter="data")
    venv.create(work / "env", with_pip=True)
    python = work / "env" / "bin" / "python"
    output(python, "-m", "pip", "wheel", "-qq", "--no-deps", "-w", work, source)
    (wheel,) = work.glob("*.whl")
    output(python, "-m", "pip", "install", "-qq", wheel)
    (site,) = (work / "env" / "lib").glob("python*/site-packages")
    print(f"{which}: {wheel.name}")
    print(f"  wheel: {wheel.stat().st_size // 1000} kB")
    print(f"  installed, with compiled modules: {kilobytes(site, 'contextgap')} kB")
    whole = kilobytes(site, "contextgap", "numpy*", "scipy*")
    print(f"  installed, with numpy and scipy: {whole} kB")
    print(output(python, Path(__file__).resolve(), "--imports").decode(), end="", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("which", nargs="*", default=[str(HERE)], help="folders, or commits")
    parser.add_argument("--imports", action="store_true", help="of this interpreter alone")
    given = parser.parse_args()
    if given.imports:
        return print_imports()
    for which in given.which:
        with tempfile.TemporaryDirectory() as work:
            weigh(which, Path(work))
    return None


if __name__ == "__main__":
    main()
