"""What in HQ differs from what the ACTIVE snapshot says. Pure."""

from __future__ import annotations

from typing import Final

from nanny.actions.activation import views_of
from nanny.actions.subject import Subject
from nanny.rollout.views import Stage
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import READY

_SHOWN: Final = 5


def differences(subject: Subject, content: Content) -> list[str]:
    """One line for each of the first few instances, and a count of the others; empty: all is as it should be."""
    stages = (Stage.UP, Stage.DOWN, Stage.SILENT)
    found = [_line(subject, content, view.key) for view in views_of(subject, content) if view.stage in stages]
    more = len(found) - _SHOWN
    return [*found[:_SHOWN], *([f"and {more} more instances"] if more > 0 else [])]


def _line(subject: Subject, content: Content, key: tuple[str, str]) -> str:
    location, name = key
    instance = subject.instances.get(key)
    if instance is None:
        return f"{name} ({location}) is not in HQ"
    ready = next((revision.id for revision in instance.spec.revision if revision.target == READY), "")
    if ready != content.id:
        return f"{name} ({location}) wants {ready or 'nothing'} READY, not {content.id}"
    return f"{name} ({location}) is not as snapshot {content.id} describes it"
