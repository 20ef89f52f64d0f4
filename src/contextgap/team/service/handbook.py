"""The OpenAPI document, and a page that shows it: plain HTML, without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse

from contextgap.team.service.routing import StrictRequest, describe, guarded_router, json_answer

router = guarded_router()
_ABOUT = (
    "Every change takes a key, in the body or as the header Idempotency-Key: sent again with the "
    "same key, it happens once and gets the same answer. Errors are problem documents (RFC 9457)."
)
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Made by contextgap serve token create.",
}
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem}
summary{cursor:pointer;padding:.35rem 0}code,pre{font:14px/1.45 ui-monospace,monospace}
pre{background:#8881;padding:.7rem;overflow-x:auto}table{border-collapse:collapse}
td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
.method{display:inline-block;width:3.4rem;font-weight:600}.scope{opacity:.65}
:root{color-scheme:light dark}
"""


@router.get("/openapi.json", **describe(None, "This document"))
async def openapi(request: StrictRequest) -> Response:
    """Return the OpenAPI document."""
    return json_answer(document(request.app))


@router.get("/docs", **describe(None, "This document, for people"))
async def docs(request: StrictRequest) -> Response:
    """Return all routes as a page."""
    allowed = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    content = handbook(document(request.app))
    return HTMLResponse(content, headers={"Content-Security-Policy": allowed})


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=_ABOUT,
            routes=app.routes,
        )
        made.setdefault("components", {})["securitySchemes"] = {"token": _TOKEN}
        app.openapi_schema = made
    return app.openapi_schema


def handbook(document: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI document."""
    info, routes = document["info"], "".join(_routes(document))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])}</title>"
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{escape(info['description'])}</p>"
        "<p>The same for machines: <a href=openapi.json>openapi.json</a>.</p>"
        f"{routes}</html>"
    )


def _routes(document: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            yield _route(document, path, method.upper(), route)


def _route(document: Mapping[str, Any], path: str, method: str, route: Mapping[str, Any]) -> str:
    security = route.get("security", [])
    scope = f"scope {security[0]['token'][0]}" if security else "for everybody"
    rows = [*_parameters(route), *_fields(document, route)]
    table = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(about)}</tr>" for name, about in rows
    )
    return (
        f"<details><summary><span class=method>{method}</span><code>{escape(path)}</code> "
        f"{escape(route.get('summary', ''))} <span class=scope>({scope})</span></summary>"
        f"<p>{escape(route.get('description', ''))}</p><table>{table}</table>"
        f"{''.join(_answers(route))}</details>"
    )


def _parameters(route: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in route.get("parameters", ()):
        yield f"{each['name']} ({each['in']})", each.get("description", "")


def _fields(document: Mapping[str, Any], route: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content = route.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        about = field.get("description", "")
        yield f"{name} (body{', required' if name in required else ''})", about


def _answers(route: Mapping[str, Any]) -> Iterator[str]:
    for status, said in route["responses"].items():
        example = said.get("content", {}).get("application/json", {}).get("example")
        shown = "" if example is None else f"<pre>{escape(json.dumps(example, indent=1))}</pre>"
        yield f"<p><b>{escape(status)}</b> {escape(said.get('description', ''))}</p>{shown}"
