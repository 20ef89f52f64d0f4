"""The proxy configurations of docs/service.md, run before a service."""

import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from .conftest import ARMS, serving

PAGE = Path(__file__).parents[3] / "docs" / "service.md"
SECTION = PAGE.read_text("utf-8").partition("## Behind a proxy\n")[2].partition("\n## ")[0]
CONFIGURATIONS = re.findall(r"^```\w+\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
PROGRAMS = ["nginx", "nginx", "caddy", "haproxy"]  # of the configurations, in order
NGINX = """
{user}
worker_processes 1;
pid {folder}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {server}
}}
"""
CADDY = """
{{
    admin off
    auto_https disable_redirects
    default_bind 127.0.0.1
}}
{server}
"""
AROUND = {"nginx": NGINX, "caddy": CADDY, "haproxy": "{server}"}
COMMANDS = {
    "nginx": "nginx -p {folder} -e {folder}/errors -g 'daemon off;' -c {file}",
    "caddy": "caddy run --adapter caddyfile --config {file}",
    "haproxy": "haproxy -db -f {file}",
}


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    with serving(folder / "bench.db", folder / "log", tokens=True) as running:
        running.create("a/b")
        yield running


@contextmanager
def proxied(program, server, service, folder):
    """Run a proxy with a configuration; yield a client that trusts it."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    secure = "/etc/ssl/" in server
    if secure:
        make_certificate(folder)
    server = re.sub(r"(?<=listen )\d+|(?<=bind ):\d+", f"127.0.0.1:{port}", server)
    server = re.sub(r"^cg\.example\.org", f":{port}", server)
    server = re.sub(r"/etc/ssl/\S+\.(pem|key)", rf"{folder}/own.\1", server)
    server = server.replace("127.0.0.1:8000", service.url.removeprefix("http://"))
    user, file = "user root;" if os.geteuid() == 0 else "", folder / "configuration"
    file.write_text(AROUND[program].format(user=user, folder=folder, server=server))
    command = shlex.split(COMMANDS[program].format(folder=folder, file=file))
    own = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with open(folder / "output", "w") as output:
        process = subprocess.Popen(command, env=own, stdout=output, stderr=output)
    try:
        trusted = ssl.create_default_context(cafile=folder / "own.pem") if secure else False
        url = f"http{'s' * secure}://localhost:{port}"
        with httpx.Client(base_url=url, verify=trusted, timeout=60) as http:
            wait_for(http)
            yield http
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(http):
    deadline = time.monotonic() + 30
    while True:
        try:
            return http.get("/livez").raise_for_status()
        except httpx.TransportError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def make_certificate(folder):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    where = ["-keyout", folder / "own.key", "-out", folder / "own.pem"]
    names = ["-days", "2", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, *where, *names], check=True, capture_output=True)
    with open(folder / "own.pem", "a") as file:  # HAProxy reads both from one file
        file.write((folder / "own.key").read_text())


def test_there_are_configurations():
    assert len(CONFIGURATIONS) == len(PROGRAMS)


@pytest.mark.parametrize(
    ("program", "server"),
    list(zip(PROGRAMS, CONFIGURATIONS, strict=True)),
    ids=["nginx", "shortest", "caddy", "haproxy"],
)
def test_a_proxy_lets_nobody_in_without_a_token(program, server, closed, tmp_path):
    token = closed.token(f"proxied {tmp_path}", "read", "explore", "admin")
    with proxied(program, server, closed, tmp_path) as http:
        for host in ("cg.example.org", "localhost", "127.0.0.1"):
            named = {"Host": host}
            body = {"name": f"by {host}", "arms": ARMS}
            assert http.post("/v1/campaigns", json=body, headers=named).status_code == 401
            assert http.get("/v1/campaigns", headers=named).status_code == 401
            assert http.get("/metrics", headers=named).status_code == 401
        own = {**token, "Host": "cg.example.org", "Origin": "https://cg.example.org"}
        path = f"/v1/campaigns/{quote('a/b', safe='')}"
        asked = http.post(f"{path}/ask", json={"contexts": [0.0, 1.0]}, headers=own)
        assert asked.status_code == 200
        assert http.get("/", headers={"Host": "cg.example.org"}).status_code == 200
        events = f"{path.replace('v1', 'page')}/events"
        with http.stream("GET", events, headers=own) as stream:
            assert any(line.startswith("data: ") for line in stream.iter_lines())
