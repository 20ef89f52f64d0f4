"""Who may do what: scopes at every route, tokens, hosts and origins."""

import itertools
import re
import time

import pytest

from contextgap.team.campaign.database import Database
from contextgap.team.client import Campaign
from contextgap.team.service import Settings, create_app
from contextgap.team.service.access import SCOPES, GuardedRoute, hash_of, read_tokens, revoke_token

from .conftest import serving

PUBLIC = {"/livez", "/readyz", "/openapi.json", "/docs", "/", "/page/assets/{name}"}
_names = itertools.count()


def routes(folder="unused"):
    """All routes of the application, as the framework has them."""
    return create_app(f"{folder}.db").routes


ROUTES = [
    (method, route.path, route.scope_needed)
    for route in routes()
    for method in sorted(route.methods)
]


def send(running, method, path, headers=None, body=None):
    path = path.replace("{trial}", "1").replace("{name}", "app.js")
    path = re.sub(r"\{\w+\}", "sensors", path)
    content = {"json": body or {}} if method == "POST" else {}
    return running.http.request(method, path, headers=headers, **content)


def test_every_route_is_guarded():
    found = routes()
    assert len(found) > 25
    assert all(isinstance(route, GuardedRoute) for route in found)
    assert {route.path for route in found if route.scope_needed is None} == PUBLIC
    with pytest.raises(TypeError, match="must say which scope it needs"):
        GuardedRoute("/new", lambda: None)


@pytest.fixture(scope="module")
def tokens(closed):
    """Headers of a token for each scope, and of one with all scopes but that."""
    alone = {scope: closed.token(f"only {scope}", scope) for scope in SCOPES}
    others = {
        scope: closed.token(f"all but {scope}", *(each for each in SCOPES if each != scope))
        for scope in SCOPES
    }
    return alone, others


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_a_token_without_the_scope_is_refused(closed, tokens, method, path, scope):
    if scope is None:
        assert send(closed, method, path).status_code == 200
        return
    alone, others = tokens
    nobody = send(closed, method, path)
    assert nobody.status_code == 401
    assert nobody.headers["www-authenticate"] == "Bearer"
    assert send(closed, method, path, {"Authorization": "Bearer made-up"}).status_code == 401
    refused = send(closed, method, path, others[scope])
    assert refused.status_code == 403
    assert f"needs the scope {scope}" in refused.json()["detail"]
    # With the scope something else may be wrong, such as that there is no such campaign.
    assert send(closed, method, path, alone[scope]).status_code not in (401, 403)


def test_the_secret_is_not_in_the_database(closed):
    headers = closed.token("secret", "read")
    secret = headers["Authorization"].partition(" ")[2]
    assert hash_of(secret) in read_tokens(Database(closed.database))
    assert secret.encode() not in b"".join(
        path.read_bytes() for path in closed.database.parent.glob("bench.db*")
    )
    assert secret not in closed.log.read_text()


def test_a_client_without_a_token_says_where_to_give_one(closed, monkeypatch):
    monkeypatch.delenv("CONTEXTGAP_TOKEN", raising=False)
    with pytest.raises(PermissionError, match=r"give token=, or set CONTEXTGAP_TOKEN in the env"):
        Campaign.names(closed.url)
    with pytest.raises(PermissionError, match=r"the token is unknown, revoked or too old$"):
        Campaign.names(closed.url, token="wrong")


def test_revoked_and_old_tokens_are_refused(closed):
    revoked, old = closed.token("gone", "read"), closed.token("old", "read", days=1e-9)
    assert closed.http.get("/v1/campaigns", headers=revoked).status_code == 200
    assert closed.http.get("/v1/campaigns", headers=old).status_code == 401
    revoke_token(Database(closed.database), "gone")
    deadline = time.monotonic() + 15
    while closed.http.get("/v1/campaigns", headers=revoked).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_token_for_one_campaign(closed):
    closed.create("mine")
    closed.create("yours")
    mine = closed.token("mine alone", *SCOPES, campaign="mine")
    http = closed.http
    assert http.get("/v1/campaigns", headers=mine).json() == {"campaigns": ["mine"]}
    assert http.get("/v1/campaigns/mine/arms", headers=mine).status_code == 200
    for path in ("/v1/campaigns/yours/arms", "/v1/campaigns/none/arms"):
        refused = http.get(path, headers=mine)
        assert refused.status_code == 403
        assert "for the campaign 'mine' alone" in refused.json()["detail"]
    made = http.post("/v1/campaigns", json={"name": "new", "arms": 2}, headers=mine)
    assert made.status_code == 403


def test_where_no_token_is_needed_one_given_must_be_good(service):
    assert service.http.get("/v1/campaigns").status_code == 200
    bad = service.http.get("/v1/campaigns", headers={"Authorization": "Bearer x"})
    assert bad.status_code == 401
    weak = service.token("weak", "read")
    made = service.http.post("/v1/campaigns", json={"name": "new", "arms": 2}, headers=weak)
    assert made.status_code == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "localhost:8000", "LOCALHOST"])
def test_names_of_this_machine(service, host):
    assert service.http.get("/v1/campaigns", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.0.2.1", "", "[", "@"]
)
def test_names_that_others_make_lead_here_are_refused(service, host):
    refused = service.http.get("/v1/campaigns", headers={"Host": host})
    assert refused.status_code in (400, 403)


def test_pages_of_others_are_refused(service):
    own = {"Origin": service.url}
    body = {"json": {"name": "from a page", "arms": 2}}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://["):
        refused = service.http.post("/v1/campaigns", headers={"Origin": origin}, **body)
        assert refused.status_code == 403, origin
    assert "from a page" not in service.http.get("/v1/campaigns").json()["campaigns"]
    form = service.http.post("/v1/campaigns", content=b"{}", headers={"Content-Type": "text/plain"})
    assert form.status_code == 415
    assert service.http.post("/v1/campaigns", headers=own, **body).status_code == 201


def test_tokens_are_needed_unless_said_otherwise(tmp_path):
    assert Settings().needs_tokens
    assert not Settings(tokens="none").needs_tokens
    with pytest.raises(ValueError, match="tokens must be one of"):
        Settings(tokens="maybe")
    with pytest.warns(DeprecationWarning, match="--no-tokens"):
        assert Settings(tokens="auto").needs_tokens
    with serving(tmp_path / "x.db", tmp_path / "log", "--allow-host", "bench.example") as running:
        named = {"Host": "bench.example:8000"}
        assert running.http.get("/v1/campaigns", headers=named).status_code == 200
        assert "EVERYBODY" in running.process.stdout.readline() + running.process.stdout.readline()


def test_the_first_start_makes_a_token_and_shows_it_once(tmp_path):
    where = tmp_path / "x.db", tmp_path / "log"
    with serving(*where, tokens=True) as running:
        said = [running.process.stdout.readline() for _ in range(3)]
        address = said[-1].strip()
        assert address.startswith(f"{running.url}/#token=cgap_")
        assert running.http.get("/v1/campaigns").status_code == 401
        with Campaign.create(address, "sensors", ["a", "b"], seed=0) as campaign:
            assert campaign.ask([0.0, 1.0]).arm in ("a", "b")
        secret = address.partition("=")[2]
    assert secret not in where[1].read_text()
    with serving(*where, tokens=True) as running:
        said = running.process.stdout.readline() + running.process.stdout.readline()
        assert "serve token create" in said
        good = {"Authorization": f"Bearer {secret}"}
        assert running.http.get("/v1/campaigns", headers=good).status_code == 200
