"""Print constraints for pip: the lowest versions that pyproject.toml allows.

Of numpy and scipy, and of pandas and pyarrow, whose later releases need a later numpy without
always saying so.
"""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
study = project["optional-dependencies"]["study"]
for dependency in [*project["dependencies"], *study]:
    name, _, version = dependency.partition(">=")
    if dependency not in study or name in ("pandas", "pyarrow"):
        print(f"{name}=={version}.*")
