"""Agents: each reports one revision through the client library, mostly heartbeats, now and then a change."""

from __future__ import annotations

import asyncio
import random
from functools import partial

from hqclient.client import Client
from hqclient.errors import HqApiError
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.checker.history import Write
from tests.checker.marks import mark_report
from tests.rig.recording import Log

_STOP = frozenset(("NOT_FOUND", "WRONG_UID", "WRONG_NODE", "UNKNOWN_REVISION", "FENCED", "OUTDATED_REPORT"))


class RigAgent:
    """Reports the revision r1 of one instance for as long as it lives; begins anew when told to stop.

    `changes` is the share of reports that say something new.
    """

    def __init__(
        self, name: str, client: Client, log: Log, instance_id: str, node: str, rng: random.Random, changes: float
    ) -> None:
        self._name, self._client, self._log, self._rng, self._changes = name, client, log, rng, changes
        self._instance_id, self._node = instance_id, node
        self._begun: pb.BeginReportingResponse | None = None
        self._sequence = 0
        self._marker = ""
        self._unsettled = False

    async def run(self, pause_s: float) -> None:
        """Report for ever."""
        while True:
            try:
                await self.report()
            except HqApiError as error:
                if error.reason in _STOP:
                    self._begun = None
                    await asyncio.sleep(self._rng.uniform(0, 0.5))
            await asyncio.sleep(self._rng.uniform(0, 2 * pause_s))

    async def report(self) -> None:
        """Report once. Raises HqApiError."""
        if self._begun is None:
            begin = partial(self._client.begin_reporting, self._instance_id, "r1", node=self._node)
            self._begun, self._sequence, self._marker, self._unsettled = await begin(), 0, "", False
        changed = not self._marker or self._rng.random() < self._changes
        if changed:
            self._marker = f"{self._rng.getrandbits(48):012x}"
        self._sequence += 1
        status = model.RevisionStatus(id="r1", incarnation=self._begun.incarnation, sequence=self._sequence)
        status.installed.status = status.ready.status = model.CONDITION_STATUS_TRUE
        mark_report(status, self._marker)
        unsettled, marker = self._unsettled, self._marker
        send = partial(
            self._client.report, self._instance_id, status, uid=self._begun.uid, node=self._node, unsettled=unsettled
        )
        # Until it is answered, nobody knows whether the new content is stored.
        self._unsettled = True
        op = "report" if changed or unsettled else "heartbeat"
        await self._log.call(
            self._name, op, send, self._instance_id, lambda _answer, _error: Write(marker, revision_id="r1")
        )
        self._unsettled = False
