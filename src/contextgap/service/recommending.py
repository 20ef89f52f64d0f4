"""Recommendations by frozen policies, from memory."""

from __future__ import annotations

import asyncio
import json

from fastapi import Request, Response

from contextgap.base.labels import encode_label
from contextgap.campaign.wire import read_contexts
from contextgap.policy.policy import Policy
from contextgap.service.bodies import Recommend
from contextgap.service.reading import check_rows, read_eligible_labels

_FEW = 16  # rows, up to which a thread would take longer to begin than the answer takes


async def recommend_by(request: Request) -> Response:
    """Answer a request for recommendations."""
    service, names = request.app.state.service, request.path_params
    body = Recommend.read(await request.json())
    policy = service.hosting.policy_in_memory(names["campaign"], names["policy"])
    if policy is None:
        policy = await service.hosting.policy(names["campaign"], names["policy"])
    if check_rows(body.contexts, service.settings.rows) <= _FEW:
        content = _answer(policy, body)
    else:
        content = await asyncio.to_thread(_answer, policy, body)
    return Response(content, media_type="application/json")


def _answer(policy: Policy, body: Recommend) -> bytes:
    contexts, arms = read_contexts(body.contexts), read_eligible_labels(body.arms)
    found = policy.recommend(contexts, arms=arms)
    if hasattr(found, "tolist"):
        return json.dumps({"arms": [encode_label(label) for label in found.tolist()]}).encode()
    return json.dumps({"arm": encode_label(found)}).encode()
