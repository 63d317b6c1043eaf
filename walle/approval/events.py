"""An event for every call of a CMS, successful or not, named as the protocol says, so that its owners can watch it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

SERVICE: Final = "wall-e-cms-request"
PREFIX: Final = "wall-e.cms."


@dataclass(frozen=True, slots=True)
class CmsEvent:
    """One call.

    Attributes:
        host: names the CMS, made of its URL.
        is_ok: it answered in time and as the schema says.
        description: the failure, or what it answered.
    """

    host: str
    tags: tuple[str, ...]
    is_ok: bool
    description: str
    service: str = SERVICE


class Events(Protocol):
    """Where events go."""

    def send(self, event: CmsEvent, project: str) -> None:
        """Must not fail, and must not wait."""


def cms_name(url: str) -> str:
    """`http://cms.example.net/project/web` is `cms.example.net-project-web`."""
    parts = urlsplit(url)
    whole = f"{parts.netloc}{parts.path}".rstrip("/") if parts.netloc else url
    return re.sub(r"[^A-Za-z0-9._-]", "-", whole)


def event_of(action: str, project: str, url: str, version: str, *, failure: str = "", answer: str = "") -> CmsEvent:
    """`action` as `get_tasks`; `failure` empty: it went well."""
    name = cms_name(url)
    tags = (action, project, name, f"version.{version}")
    return CmsEvent(PREFIX + name, tuple(PREFIX + tag for tag in tags), not failure, failure or answer)
