"""Print the core's dependencies at the lowest versions that pyproject.toml allows, for pip."""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
for dependency in project["dependencies"]:
    name, _, version = dependency.partition(">=")
    print(f"{name}=={version}.*")  # the latest patch: the first ones of a series have known bugs
