"""The weight of instances during steps of a roll-out: a share of what it is otherwise. Pure.

The instance says so itself, in an annotation with the share and the weight that it has otherwise. So whoever ends the
roll-out can put it back, also another process, and a weight that somebody else gave it is no surprise.
"""

from __future__ import annotations

import re
from typing import Final

from control.waves import FULL_WEIGHT
from hqpb.v1 import instance_pb2

SHARE: Final = "nanny.v1/weight"
"""`5% of 100`: the annotation of instances that have a share of their weight."""
_USUAL: Final = 100
_WRITTEN: Final = re.compile(r"(0|[1-9][0-9]?)% of (0|[1-9][0-9]{0,3})")


def share_of(instance: instance_pb2.Instance) -> int:
    """The percentage of its weight that it has now."""
    return _parse(instance)[0]


def set_share(wanted: instance_pb2.Instance, held: instance_pb2.Instance | None, percent: int | None) -> None:
    """Give an instance this share; None: the one that it has.

    Args:
        wanted: what it shall be, with the weight of its description, if that gives one.
        held: as HQ holds it.
    """
    now, base = _parse(held) if held is not None else (FULL_WEIGHT, _weight(wanted))
    if held is not None and (SHARE not in held.meta.annotations or _weight(wanted) != _weight(held)):
        base = _weight(wanted)
    percent = now if percent is None else percent
    if percent != FULL_WEIGHT:
        wanted.spec.weight = _scale_weight(base, percent)
        wanted.meta.annotations[SHARE] = f"{percent}% of {base}"
    elif SHARE in wanted.meta.annotations:
        wanted.spec.weight = base
        del wanted.meta.annotations[SHARE]


def weighed_instance(held: instance_pb2.Instance, percent: int) -> instance_pb2.Instance | None:
    """The instance with this share of its weight and nothing else changed; None: it has that share.

    A weight that somebody else wrote meanwhile is replaced: while it has a share, the roll-out says what its weight is.
    """
    now, base = _parse(held)
    if now == percent and (SHARE not in held.meta.annotations or _weight(held) == _scale_weight(base, now)):
        return None
    wanted = instance_pb2.Instance()
    wanted.CopyFrom(held)
    set_share(wanted, held, percent)
    return wanted


def _parse(instance: instance_pb2.Instance) -> tuple[int, int]:
    """The share, and the weight that it is a share of. An annotation that cannot be read is no share."""
    found = _WRITTEN.fullmatch(instance.meta.annotations.get(SHARE, ""))
    return (int(found[1]), int(found[2])) if found else (FULL_WEIGHT, _weight(instance))


def _weight(instance: instance_pb2.Instance) -> int:
    return instance.spec.weight if instance.spec.HasField("weight") else _USUAL


def _scale_weight(base: int, percent: int) -> int:
    """Rounded to the nearest, but not to 0, which would take it out of traffic."""
    return max(1, (base * percent + 50) // 100) if base and percent else 0
