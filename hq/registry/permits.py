"""Permits: what the registry asks before it changes or hands out what is an instance's own."""

from __future__ import annotations

from collections.abc import Callable

from hq.memory.entry import Entry
from hq.registry.changes import Draft

Permit = Callable[[str, str, str], None]
"""Takes the id, service and node of an instance as it is, or as it would become; raises PermissionDenied."""


def anything(_id: str, _service: str, _node: str) -> None:
    """Permits everything."""


def check_entry(permit: Permit, entry: Entry) -> None:
    """Ask for an instance as it is in memory. What is written then compares its version: it is as it was asked for."""
    permit(entry.traits.id, entry.traits.service, entry.traits.node)


def check_draft(permit: Permit, draft: Draft) -> None:
    """Ask for an instance as it would become."""
    permit(draft.meta.id, draft.meta.service_id, draft.spec.node_name)
