"""A host has two lanes: repairs, and DNS fixes, which take nothing down and so block nothing. Pure.

What this package does with operations it does in both lanes: for DNS it is given the host with its lanes swapped.
"""

from __future__ import annotations

from typing import Final

from walle.fuses.fuse import Moment
from walle.healing.operation import keep
from wallepb.v1.host_pb2 import OUTCOME_CANCELLED, Host

_PAIRS: Final = (("operation", "dns_operation"), ("last_repair", "last_dns_repair"))


def swap_lanes(host: Host) -> Host:
    """A copy with the lanes swapped; swapped twice it is the host again."""
    swapped = Host()
    swapped.CopyFrom(host)
    for repair, dns_fix in _PAIRS:
        _take_field(swapped, repair, host, dns_fix)
        _take_field(swapped, dns_fix, host, repair)
    return swapped


def _take_field(to: Host, field: str, source: Host, source_field: str) -> None:
    if source.HasField(source_field):
        getattr(to, field).CopyFrom(getattr(source, source_field))
    else:
        to.ClearField(field)


def end_dns_fix(host: Host, why: str, now: Moment) -> None:
    """Cancel a DNS fix, as the host moves, goes or is set up again: its record is nobody's to mend."""
    if not host.HasField("dns_operation"):
        return
    ended = host.dns_operation
    ended.outcome, ended.message = OUTCOME_CANCELLED, why
    keep(host, ended, now)
    host.ClearField("dns_operation")
