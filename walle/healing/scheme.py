"""Which checks are acted on, and by which steps: a project's own scheme, and Wall-E's for other checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from walle.fuses.fuse import Automation
from walle.tables import NAMES, REPAIRS
from wallepb.v1.host_pb2 import (
    OPERATION_KIND_CHANGE_DISK,
    OPERATION_KIND_CHANGE_MEMORY,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_PROFILE,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OPERATION_KIND_REPAIR_LINK,
    OperationKind,
)
from wallepb.v1.project_pb2 import Project, Scheme

UNREACHABLE: Final = "UNREACHABLE"
SSH: Final = "ssh"
DNS: Final = "dns"
Steps = tuple[OperationKind, ...]

# In order of importance: of several failing checks the first one is acted on.
DEFAULT_SCHEME: Final[Mapping[str, Steps]] = {
    UNREACHABLE: (OPERATION_KIND_REBOOT, OPERATION_KIND_REDEPLOY),
    SSH: (OPERATION_KIND_REBOOT, OPERATION_KIND_REDEPLOY),
    "memory": (OPERATION_KIND_CHANGE_MEMORY,),
    "disk": (OPERATION_KIND_CHANGE_DISK, OPERATION_KIND_REDEPLOY),
    "link": (OPERATION_KIND_REPAIR_LINK,),
    "firmware": (OPERATION_KIND_PROFILE, OPERATION_KIND_REDEPLOY),
    DNS: (OPERATION_KIND_DNS_FIX,),
}


class BadScheme(ValueError):
    """A project's scheme cannot be followed; the message names the check."""


def scheme_of(project: Project) -> dict[str, Steps]:
    """The project's own checks in its order, then Wall-E's for those that it does not name."""
    own = {one.check: tuple(one.step) for one in project.scheme}
    return own | {check: steps for check, steps in DEFAULT_SCHEME.items() if check not in own}


def checks_in(scheme: Mapping[str, Steps], lane: Automation) -> dict[str, Steps]:
    """The checks that this lane handles, most important first."""
    is_dns = lane is Automation.DNS
    return {check: steps for check, steps in scheme.items() if (OPERATION_KIND_DNS_FIX in steps) == is_dns}


def check_scheme(schemes: Sequence[Scheme]) -> None:
    """Raises BadScheme."""
    seen: set[str] = set()
    for one in schemes:
        if not one.check or one.check in seen:
            raise BadScheme(f"scheme: check {one.check!r} is empty or named twice")
        seen.add(one.check)
        wrong = [NAMES.get(step, str(step)) for step in one.step if step not in REPAIRS]
        if wrong:
            raise BadScheme(f"scheme.{one.check}: {', '.join(wrong)} is not a repair")
        if OPERATION_KIND_DNS_FIX in one.step and len(one.step) > 1:
            raise BadScheme(f"scheme.{one.check}: dns-fix has its own automation and must be the only step")
