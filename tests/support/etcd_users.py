"""Users and passwords in an etcd, as an administrator sets them up; over its JSON gateway."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

USER, PASSWORD = "root", "a secret"


def require_password(endpoint: str) -> None:
    """From now on etcd lets nobody in but USER with PASSWORD."""
    _call(endpoint, "auth/user/add", {"name": USER, "password": PASSWORD})
    _call(endpoint, "auth/role/add", {"name": "root"})
    _call(endpoint, "auth/user/grant", {"user": USER, "role": "root"})
    require_password_again(endpoint)


def require_password_again(endpoint: str) -> None:
    """After `forget_users`: the user is known still."""
    _call(endpoint, "auth/enable", {})


def forget_tokens(endpoint: str) -> None:
    """Make every token of the user invalid, as their expiry does: setting the password does that, even to itself."""
    token = str(_call(endpoint, "auth/authenticate", {"name": USER, "password": PASSWORD})["token"])
    _call(endpoint, "auth/user/changepw", {"name": USER, "password": PASSWORD}, token)


def forget_users(endpoint: str) -> None:
    """From now on etcd lets everybody in again."""
    token = str(_call(endpoint, "auth/authenticate", {"name": USER, "password": PASSWORD})["token"])
    _call(endpoint, "auth/disable", {}, token)


def _call(endpoint: str, path: str, request: dict[str, str], token: str = "") -> dict[str, Any]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    headers = {"Authorization": token} if token else {}
    body = urllib.request.Request(f"http://{endpoint}/v3/{path}", json.dumps(request).encode(), headers)
    with direct.open(body, timeout=5) as answer:
        return dict(json.load(answer))
