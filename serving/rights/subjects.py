"""What a request is about, for the audit log."""

from __future__ import annotations

from typing import Any

_MOST = 10


def subject(request: Any) -> str:
    """The id of its instance, or the ids of the first few; a request of hq.v1 names them in one of five ways."""
    if hasattr(request, "instance_id"):
        return str(request.instance_id)
    if hasattr(request, "id"):
        return str(request.id)
    if hasattr(request, "begin"):
        return " ".join(item.instance_id for item in request.begin[:_MOST])
    instances = getattr(request, "instance", ())
    listed = [instances] if hasattr(instances, "meta") else list(instances)
    return " ".join(one.meta.id for one in listed[:_MOST])
