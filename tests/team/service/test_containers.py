"""The container files cannot be built in a test; what they say about us can be checked."""

import json
import re
from pathlib import Path

import yaml
from typer.main import get_command

from contextgap.cli.app import app
from contextgap.team.service import create_app

ROOT = Path(__file__).parents[3]


def options() -> set[str]:
    """The options of contextgap serve."""
    serve = get_command(app).commands["serve"]
    return {name for parameter in serve.params for name in parameter.opts}


def check_command(words):
    assert words[:2] == ["contextgap", "serve"]
    assert {word for word in words if word.startswith("--")} <= options()


def test_the_containerfile():
    text = (ROOT / "Containerfile").read_text()
    check_command(json.loads(re.search(r"^CMD (\[.*\])$", text, flags=re.MULTILINE)[1]))
    health = json.loads(re.search(r"^HEALTHCHECK CMD (\[.*\])$", text, flags=re.MULTILINE)[1])
    compile(health[2], "the health check", "exec")
    path = re.search(r":8000(/\w+)", health[2])[1]
    assert path in {route.path for route in create_app("unused.db").routes}
    for copied in re.findall(r"^COPY (.+) \S+$", text, flags=re.MULTILINE):
        for name in copied.split():
            assert (ROOT / name).exists()
    assert re.search(r"^USER (?!root)", text, flags=re.MULTILINE)
    extras = re.search(r"'\.\[([\w,]+)\]'", text)[1].split(",")
    project = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = ", project, flags=re.MULTILINE) for extra in extras)


def test_the_compose_file():
    text = (ROOT / "compose.yaml").read_text()
    composed = yaml.safe_load(text)
    service = composed["services"]["service"]
    check_command(service["command"])
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    assert service["environment"]["CONTEXTGAP_DATABASE"].startswith("postgresql://")
    assert "database" in service["depends_on"]
    said = re.search(r"exec service (.+)$", text, flags=re.MULTILINE)[1].split()
    token = get_command(app).commands["serve"].commands["token"].commands["create"]
    known = {name for parameter in token.params for name in parameter.opts}
    assert {word for word in said if word.startswith("--")} <= known
