"""Streams do not keep a service from stopping."""

import time

import httpx

from tests.service.page.conftest import running


def test_a_service_with_listeners_stops_soon(local):
    local.create().close()
    with httpx.Client(timeout=20) as client:
        with running(local.database) as address:
            request = client.build_request("GET", f"{address}/page/campaigns/{local.name}/events")
            stream = client.send(request, stream=True)
            lines = stream.iter_lines()
            while next(lines) != 'data: {"event": 1}':
                pass
            start = time.monotonic()
        assert time.monotonic() - start < 10  # and not the 30 s of grace
        assert list(lines)[-1] == ""  # it was ended, not cut off
        stream.close()
