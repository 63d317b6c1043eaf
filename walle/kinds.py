"""Kinds of operations, and their names on the command line and in the CMS protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wallepb.v1.host_pb2 import (
    OPERATION_KIND_CHANGE_DISK,
    OPERATION_KIND_CHANGE_MEMORY,
    OPERATION_KIND_DEACTIVATE,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_POWER_OFF,
    OPERATION_KIND_PREPARE,
    OPERATION_KIND_PROFILE,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OPERATION_KIND_REPAIR_LINK,
    OPERATION_KIND_TEMPORARY_UNREACHABLE,
    OperationKind,
)

# As the CMS protocol and the command line write them.
NAMES: Final[Mapping[OperationKind, str]] = {
    OPERATION_KIND_PREPARE: "prepare",
    OPERATION_KIND_DEACTIVATE: "deactivate",
    OPERATION_KIND_POWER_OFF: "power-off",
    OPERATION_KIND_REBOOT: "reboot",
    OPERATION_KIND_PROFILE: "profile",
    OPERATION_KIND_REDEPLOY: "redeploy",
    OPERATION_KIND_REPAIR_LINK: "repair-link",
    OPERATION_KIND_CHANGE_DISK: "change-disk",
    OPERATION_KIND_CHANGE_MEMORY: "change-memory",
    OPERATION_KIND_TEMPORARY_UNREACHABLE: "temporary-unreachable",
    OPERATION_KIND_DNS_FIX: "dns-fix",
}
KINDS: Final[Mapping[str, OperationKind]] = {name: kind for kind, name in NAMES.items()}

# Steps that a check may ask for; the others are asked for by people and scenarios.
REPAIRS: Final = frozenset(
    {
        OPERATION_KIND_REBOOT,
        OPERATION_KIND_PROFILE,
        OPERATION_KIND_REDEPLOY,
        OPERATION_KIND_REPAIR_LINK,
        OPERATION_KIND_CHANGE_DISK,
        OPERATION_KIND_CHANGE_MEMORY,
        OPERATION_KIND_DNS_FIX,
    }
)
