"""Streams do not keep a service from stopping."""

import time

from tests.team.service.conftest import serving


def test_a_service_with_listeners_stops_soon(local, tmp_path):
    local.create().close()
    with serving(local.database, tmp_path / "log") as service:
        path = f"/page/campaigns/{local.name}/events"
        with service.http.stream("GET", path) as stream:
            lines = stream.iter_lines()
            while next(lines) != 'data: {"event": 1}':
                pass
            start = time.monotonic()
            service.process.terminate()
            assert list(lines)[-1] == ""  # it was ended, not cut off
        service.process.wait(timeout=60)
        assert time.monotonic() - start < 10  # and not the 30 s of grace
