"""Policies as files."""

from __future__ import annotations

import asyncio
import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from fastapi import Response

from contextgap.policy.policy import Policy

T = TypeVar("T")


async def download(name: str, ending: str, make: Callable[[T], bytes], thing: T) -> Response:
    """Answer with a file that is made in a thread."""
    content = await asyncio.to_thread(make, thing)
    how = f"attachment; filename*=UTF-8''{quote(name, safe='')}.{ending}"
    kind = "application/zip" if ending == "zip" else "application/octet-stream"
    return Response(content, media_type=kind, headers={"Content-Disposition": how})


def as_onnx(policy: Policy) -> bytes:
    """Return a policy as an ONNX graph."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.onnx"
        policy.to_onnx(path)
        return path.read_bytes()


def as_c(policy: Policy, *, float32: bool) -> bytes:
    """Return a policy as C source, all files in a zip file."""
    file = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(file, "w") as archive:
        policy.to_c(folder, float32=float32)
        for path in sorted(Path(folder).rglob("*")):
            archive.writestr(zipfile.ZipInfo(str(path.relative_to(folder))), path.read_bytes())
    return file.getvalue()
