"""Kinds at Wall-E: projects."""

from __future__ import annotations

from typing import Final

from hqkinds.kind import Column, Kind
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as pb


def switch_state(switch: ppb.Switch) -> str:
    """`on` or `off`."""
    return "off" if switch.off else "on"


PROJECT: Final = Kind(
    "project",
    "projects",
    "walle",
    pb.ListProjectsRequest,
    lambda answer: sorted(answer.projects, key=lambda shown: shown.project.id),
    (
        Column("PROJECT", lambda shown: shown.project.id),
        Column("HOSTS", lambda shown: str(shown.hosts)),
        Column("HEALING", lambda shown: switch_state(shown.fuse.healing)),
        Column("DNS", lambda shown: switch_state(shown.fuse.dns)),
        Column("OWNERS", lambda shown: ",".join(shown.project.owners), is_wide=True),
        Column("CMS", lambda shown: ",".join(cms.url for cms in shown.project.cms), is_wide=True),
    ),
)
