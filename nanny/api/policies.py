"""Rules of a service's attributes: checked when they are written, every fault with its field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from google.protobuf.field_mask_pb2 import FieldMask

from control.amounts import Amount
from control.waves import find_step_faults
from nanny.api.orders import LONGEST_WORDS
from nanny.records.services import parse_weight, steps_of
from nanny.rollout.policy import DEADLINE_S
from nannypb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest, Violation

_MOST_SECONDS: Final = 7 * 86_400
_MOST_STEPS: Final = 50
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")


def check_info(
    info: pb.InfoAttributes,
    locations: Collection[str],
    prometheus: Collection[str] = (),
    before: pb.InfoAttributes | None = None,
) -> None:
    """Raises InvalidRequest with every fault.

    Args:
        prometheus: names of those that checks may ask.
        before: the attributes that are changed: a fault that they had already is not reported.
    """
    faults = _faults(info, locations, prometheus)
    if before is not None:
        known = _faults(before, locations, prometheus)
        faults = [fault for fault in faults if fault not in known]
    if faults:
        raise InvalidRequest(*faults)


def merge_info(info: pb.InfoAttributes, changes: pb.InfoAttributes, fields: FieldMask) -> pb.InfoAttributes:
    """The attributes with those that the mask names replaced; all of them, if it names none."""
    if not fields.paths:
        return changes
    merged, given = pb.InfoAttributes(), pb.InfoAttributes()
    merged.CopyFrom(info)
    given.CopyFrom(changes)
    given.rollout.SetInParent()  # else fields at their defaults would be passed over
    fields.MergeMessage(given, merged, replace_message_field=True, replace_repeated_field=True)
    return merged


def _faults(info: pb.InfoAttributes, locations: Collection[str], prometheus: Collection[str]) -> list[Violation]:
    policy = info.rollout
    faults = [*_amount_faults("info.rollout", policy, "max_unavailable", "max_failures")]
    if policy.max_unavailable in ("0", "0%"):
        faults.append(Violation("info.rollout.max_unavailable", "is 0: no instance could ever be switched"))
    faults += [*_time_faults(policy), *_check_faults(policy, prometheus), *_step_faults(policy)]
    faults += [
        Violation(f"info.rollout.{field}[{number}]", f"unknown location {name}; known: {', '.join(sorted(locations))}")
        for field, names in (("location", policy.location), ("leave_out", policy.leave_out))
        for number, name in enumerate(names)
        if name not in locations
    ]
    faults += [
        Violation(f"info.rollout.{field}", "names a location twice")
        for field, names in (("location", policy.location), ("leave_out", policy.leave_out))
        if len(set(names)) < len(names)
    ]
    if len(info.description) > LONGEST_WORDS:
        faults.append(Violation("info.description", f"is longer than {LONGEST_WORDS} characters"))
    return faults


def _amount_faults(
    field: str, message: Any, *names: str, parse: Callable[[str], object] = Amount.parse
) -> Iterator[Violation]:
    for name in names:
        try:
            parse(getattr(message, name) or "10%")
        except ValueError as error:
            yield Violation(f"{field}.{name}", str(error))


def _time_faults(policy: pb.RolloutPolicy) -> Iterator[Violation]:
    for name in ("progress_deadline_s", "min_ready_s", "soak_s"):
        if getattr(policy, name) > _MOST_SECONDS:
            yield Violation(f"info.rollout.{name}", f"is over {_MOST_SECONDS} seconds")
    deadline_s = policy.progress_deadline_s or int(DEADLINE_S)
    for name in ("min_ready_s", "soak_s"):
        if getattr(policy, name) >= deadline_s:
            yield Violation(
                f"info.rollout.{name}",
                f"is {getattr(policy, name)} s, which is not below progress_deadline_s ({deadline_s} s): good "
                "roll-outs would fail; raise the deadline or lower this",
            )


def _step_faults(policy: pb.RolloutPolicy) -> Iterator[Violation]:
    if len(policy.step) > _MOST_STEPS:
        yield Violation("info.rollout.step", f"has more than {_MOST_STEPS} steps")
        return
    single: list[Violation] = []
    for number, step in enumerate(policy.step):
        field = f"info.rollout.step[{number}]"
        single += _amount_faults(field, step, "instances")
        single += _amount_faults(field, step, "weight", parse=parse_weight)
        if step.hold_s > _MOST_SECONDS:
            single.append(Violation(f"{field}.hold_s", f"is over {_MOST_SECONDS} seconds"))
    yield from single
    if not single:
        names = [check.name for check in policy.check[:_MOST_STEPS]]
        for number, name, fault in find_step_faults(steps_of(policy.step), names):
            yield Violation(".".join(filter(None, (f"info.rollout.step[{number}]", name))), fault)


def _check_faults(policy: pb.RolloutPolicy, prometheus: Collection[str]) -> Iterator[Violation]:
    if len(policy.check) > _MOST_STEPS:
        yield Violation("info.rollout.check", f"has more than {_MOST_STEPS} checks")
        return
    seen: set[str] = set()
    for number, check in enumerate(policy.check):
        field = f"info.rollout.check[{number}]"
        if not _NAME.fullmatch(check.name):
            yield Violation(f"{field}.name", f"{check.name[:40]!r} is malformed: use letters, digits and -")
        if check.name in seen:
            yield Violation(f"{field}.name", f"{check.name} is there twice")
        seen.add(check.name)
        yield from _question_faults(field, check, prometheus)


def _question_faults(field: str, check: pb.RolloutCheck, prometheus: Collection[str]) -> Iterator[Violation]:
    if check.prometheus not in prometheus:
        known = ", ".join(sorted(prometheus)) or "none: start `nanny serve` with --prometheus"
        yield Violation(f"{field}.prometheus", f"Nanny knows no Prometheus {check.prometheus[:40]!r}; it knows {known}")
    if not check.query.strip() or len(check.query) > LONGEST_WORDS:
        yield Violation(f"{field}.query", f"write PromQL, at most {LONGEST_WORDS} characters")
    if check.duration_s > _MOST_SECONDS:
        yield Violation(f"{field}.duration_s", f"is over {_MOST_SECONDS} seconds")
    yield from _bound_faults(field, check)


def _bound_faults(field: str, check: pb.RolloutCheck) -> Iterator[Violation]:
    if check.HasField("below") + check.HasField("above") != 1:
        yield Violation(field, "write one bound: below or above")
    for name in ("below", "above"):
        if not math.isfinite(getattr(check, name)):
            yield Violation(f"{field}.{name}", f"{getattr(check, name)} bounds nothing: write a number")
    if check.no_data not in pb.NoData.values():
        yield Violation(f"{field}.no_data", f"{check.no_data} has no meaning: write wait, fail or pass")
