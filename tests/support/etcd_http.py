"""A few calls to etcd over its JSON gateway: a second opinion that shares no code with HQ's own client."""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any

TIMEOUT_S = 5.0


def put(endpoint: str, key: str, value: str) -> int:
    """Return the revision of the write."""
    reply = call(endpoint, "kv/put", {"key": encoded(key), "value": encoded(value)})
    return int(reply["header"]["revision"])


def get(endpoint: str, key: str, timeout_s: float = TIMEOUT_S) -> str | None:
    """None if the key is not there; OSError (TimeoutError is one) if etcd does not answer."""
    reply = call(endpoint, "kv/range", {"key": encoded(key)}, timeout_s)
    return base64.b64decode(reply["kvs"][0].get("value", "")).decode() if reply.get("kvs") else None


def leader_of(endpoint: str) -> str | None:
    """The id of the member that leads, None without a leader."""
    leader = call(endpoint, "maintenance/status", {}).get("leader", "0")
    return None if leader == "0" else str(leader)


def member_id_of(endpoint: str) -> str:
    return str(call(endpoint, "maintenance/status", {})["header"]["member_id"])


def call(endpoint: str, path: str, request: dict[str, object], timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    url = f"http://{endpoint}/v3/{path}"
    with direct.open(url, data=json.dumps(request).encode(), timeout=timeout_s) as answer:
        return dict(json.load(answer))


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
