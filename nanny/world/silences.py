"""Who has reported lately: HQ calls a revision ready until its agent was silent for the whole timeout."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Final

import grpc

from hqclient import Client, HqApiError
from hqpb.v1 import service_pb2
from nanny.rollout.views import Key

log = logging.getLogger(__name__)

_INTERVALS: Final = 1.5


async def silent_instances(locations: Mapping[str, Client], service: str, keys: Collection[Key]) -> set[Key]:
    """Instances whose agents have not reported for one and a half report intervals, as far as is known."""
    silent: set[Key] = set()
    for location in {key[0] for key in keys}:
        asked = {key for key in keys if key[0] == location}
        try:
            silent |= asked - {(location, name) for name in await _heard_instances(locations[location], service)}
        except HqApiError as error:
            if error.code is grpc.StatusCode.UNIMPLEMENTED:
                continue  # an older HQ: its timeout has to do
            log.info("%s: %s does not say who has reported: %s", service, location, error.message)
            silent |= asked
    return silent


async def _heard_instances(client: Client, service: str) -> set[str]:
    heard: set[str] = set()
    async for page in client.silences(service_pb2.InstanceFilter(service_id=[service])):
        interval_ms = page.report_interval.ToMilliseconds()
        heard |= {one.instance_id for one in page.silences if is_heard(one, interval_ms)}
    return heard


def is_heard(silence: service_pb2.InstanceSilence, interval_ms: int) -> bool:
    """Whether its agents reported within one and a half of their intervals; `interval_ms`: for a spec that names none.

    An instance on a node where work is planned counts as heard.
    """
    limit_ms = (silence.report_interval_ms or interval_ms) * _INTERVALS
    return silence.node_suspended or (silence.HasField("silent_ms") and silence.silent_ms <= limit_ms)
