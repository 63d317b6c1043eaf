"""Which cluster a caller means: at a front the way to name a location, at a replica a check of the address."""

from __future__ import annotations

from typing import Final

from serving.calls.methods import Call
from serving.errors import invalid

CLUSTER_HEADER: Final = "x-hq-cluster"


def meant_cluster(call: Call) -> str:
    """What the header says; empty: nothing. Raises InvalidRequest: it names two clusters."""
    named = dict.fromkeys(call.all_headers(CLUSTER_HEADER))
    if len(named) > 1:
        raise invalid(
            CLUSTER_HEADER, f"it names both {' and '.join(name[:100] for name in [*named][:2])}: send only one"
        )
    return "".join(named)
