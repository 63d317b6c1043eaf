"""A project with its fuse and the global one, and automatic actions on hosts, on a clock that tests move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from walle.fuses.admission import AutomaticAction, Fuses, admit
from walle.fuses.fuse import Automation, Moment, counters_of, switch_of, switch_on
from walle.fuses.limits import DNS_FIXES, parse_limit
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, OPERATION_KIND_DNS_FIX, OPERATION_KIND_REBOOT
from wallepb.v1.project_pb2 import Credit, Fuse, Limit

HOUR, DAY = 3600, 86400


class Panel:
    """Both fuses. Actions return whether they passed.

    Attributes:
        tripped: ids of the fuses that went out, in order.
    """

    def __init__(
        self,
        limits: Mapping[str, Sequence[str]] | None = None,
        global_limits: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        plenty = {
            name: parse_limit(["1d:1000"]) for name in ("max_rebooted_hosts", "max_dns_fixes", "max_disk_changes")
        }
        self.limits: dict[str, Limit] = {name: parse_limit(pairs) for name, pairs in (limits or {}).items()}
        self.global_limits = plenty | {name: parse_limit(pairs) for name, pairs in (global_limits or {}).items()}
        self.project, self.everywhere = Fuse(id="web"), Fuse(id="global")
        self.now_s, self.wall_s = 1_000_000, 1_700_000_000
        self.tripped: list[str] = []

    @classmethod
    def like(cls, other: Panel) -> Panel:
        copy = cls()
        copy.limits, copy.global_limits = dict(other.limits), dict(other.global_limits)
        copy.project.CopyFrom(other.project)
        copy.everywhere.CopyFrom(other.everywhere)
        copy.now_s, copy.wall_s = other.now_s, other.wall_s
        return copy

    @property
    def now(self) -> Moment:
        return Moment(self.now_s * 1000, Timestamp(seconds=self.wall_s))

    def fuses(self) -> Fuses:
        return Fuses(self.project, self.limits, self.everywhere, self.global_limits)

    def advance(self, seconds: int) -> None:
        self.now_s += seconds
        self.wall_s += seconds

    def wall_jumps(self, seconds: int) -> None:
        self.wall_s += seconds

    def act(self, action: AutomaticAction) -> bool:
        admission = admit(self.fuses(), action, self.now)
        self.project, self.everywhere = admission.project, admission.everywhere
        self.tripped += [admission.tripped] if admission.tripped else []
        return admission.is_allowed

    def reboot(self, host: str, check: str = "UNREACHABLE", state: int = HOST_STATE_ASSIGNED) -> bool:
        return self.act(AutomaticAction(host, check, OPERATION_KIND_REBOOT, state))  # type: ignore[arg-type]

    def fix_dns(self, host: str) -> bool:
        return self.act(AutomaticAction(host, "dns", OPERATION_KIND_DNS_FIX, HOST_STATE_ASSIGNED))

    def die(self, host: str) -> bool:
        return self.act(AutomaticAction(host, "UNREACHABLE", None, HOST_STATE_ASSIGNED))

    def trip_healing(self) -> None:
        while self.reboot(f"trip{self.now_s}-{len(self.project.mark)}"):
            pass

    def trip_dns(self) -> None:
        while self.fix_dns(f"trip{self.now_s}-{len(self.project.mark)}"):
            pass

    def is_off(self, automation: Automation) -> bool:
        return switch_of(self.project, automation).off

    def switch_on(
        self,
        automation: Automation = Automation.HEALING,
        by: str = "owner",
        reason: str = "looked at it",
        credits_: Mapping[str, int] | None = None,
        credit_s: int = 0,
    ) -> None:
        until = (self.now_s + credit_s) * 1000
        given = [Credit(counter=name, left=left, until_ms=until) for name, left in (credits_ or {}).items()]
        mine = counters_of(self.project, automation, DNS_FIXES)
        self.project = switch_on(self.project, automation, mine, by, reason, self.now, given)
