"""Addresses of pages: each part encoded, so that no name can be more than a name."""

from __future__ import annotations

from urllib.parse import quote


def url(*parts: str, **query: str | int) -> str:
    """A path of these parts, with the parameters that are not empty (`class_` is `class`)."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    asked = "&".join(f"{name.rstrip('_')}={quote(str(value), safe='')}" for name, value in query.items() if value)
    return f"{path}?{asked}" if asked else path
