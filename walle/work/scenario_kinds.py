"""The differences between the kinds of planned work: one engine does them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wallepb.v1.host_pb2 import (
    HOST_STATE_FREE,
    HOST_STATE_UNSPECIFIED,
    OPERATION_KIND_DEACTIVATE,
    OPERATION_KIND_PROFILE,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_TEMPORARY_UNREACHABLE,
    HostState,
    OperationKind,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_DECOMMISSION,
    SCENARIO_KIND_PROFILE,
    SCENARIO_KIND_REBOOT,
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    ScenarioKind,
)


@dataclass(frozen=True, slots=True)
class ScenarioTraits:
    """One kind of planned work.

    Attributes:
        operation: what the CMSs are asked for.
        in_waves: Wall-E does the work, a few hosts at a time; else people do, on all hosts of a place at once.
        is_verified: a host has to come back after it.
        state_after: of a host; unspecified: as it was.
    """

    operation: OperationKind
    in_waves: bool = True
    is_verified: bool = True
    state_after: HostState = HOST_STATE_UNSPECIFIED


SCENARIO_KINDS: Final[Mapping[ScenarioKind, ScenarioTraits]] = {
    SCENARIO_KIND_SWITCH_MAINTENANCE: ScenarioTraits(OPERATION_KIND_TEMPORARY_UNREACHABLE, in_waves=False),
    SCENARIO_KIND_REBOOT: ScenarioTraits(OPERATION_KIND_REBOOT),
    SCENARIO_KIND_PROFILE: ScenarioTraits(OPERATION_KIND_PROFILE),
    SCENARIO_KIND_DECOMMISSION: ScenarioTraits(
        OPERATION_KIND_DEACTIVATE, is_verified=False, state_after=HOST_STATE_FREE
    ),
}


def kind_traits(kind: ScenarioKind) -> ScenarioTraits:
    """Raises KeyError: this version does not know it."""
    return SCENARIO_KINDS[kind]
