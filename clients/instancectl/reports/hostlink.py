"""Statuses to the host agent of this node, which tells HQ."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from clients.instancectl.clock import Clock
from clients.instancectl.lines import Line, connect
from clients.instancectl.reports.sink import Stopped
from clients.instancectl.reports.subject import SubjectId
from hqpb.v1.instance_pb2 import RevisionStatus

_RECONNECT_S = 1.0

log = logging.getLogger(__name__)


class HostLink:
    """Says everything again whenever the agent is back. The agent forgets us when the connection ends."""

    def __init__(self, path: Path, clock: Clock, stopped: Stopped) -> None:
        self._path = path
        self._clock = clock
        self._stopped = stopped
        self._said: dict[SubjectId, RevisionStatus] = {}
        self._line: Line | None = None
        self._flushed = asyncio.Event()
        self._trouble = ""

    def say(self, subject: SubjectId, status: RevisionStatus) -> None:
        if self._said.get(subject) != status:
            self._said[subject] = status
            self._send("say", subject, status)

    def forget(self, subject: SubjectId) -> None:
        if self._said.pop(subject, None) is not None:
            self._send("forget", subject)

    def resume(self) -> None:
        if self._line is not None:
            self._line.send({"kind": "resume"})

    def describe(self) -> dict[str, Any]:
        state = "connected" if self._line else "away"
        return {"to": f"the host agent at {self._path} ({state})"}

    async def flush(self, timeout_s: float) -> None:
        self._flushed.clear()
        if self._line is not None:
            self._line.send({"kind": "flush"})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._flushed.wait(), timeout_s)

    async def run(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                await self._talk()
            await self._clock.sleep(_RECONNECT_S)

    async def _talk(self) -> None:
        line = await connect(self._path)
        self._line = line
        try:
            for subject, status in self._said.items():
                self._send("say", subject, status)
            while (message := await line.receive()) is not None:
                try:
                    self._received(message)
                except (KeyError, TypeError) as error:
                    self._complain(f"{self._path} is no host agent, or one of another version: {error!r}")
                    return
        finally:
            self._line = None
            await line.close()

    def _complain(self, trouble: str) -> None:
        if trouble != self._trouble:
            log.warning("%s", trouble)
        self._trouble = trouble

    def _received(self, message: dict[str, Any]) -> None:
        match message["kind"]:
            case "stopped":
                self._stopped(SubjectId(*message["subject"]), message["reason"], message["message"])
            case "flushed":
                self._flushed.set()

    def _send(self, kind: str, subject: SubjectId, status: RevisionStatus | None = None) -> None:
        if self._line is None:
            return
        message: dict[str, Any] = {"kind": kind, "subject": [subject.instance_id, subject.node, subject.revision_id]}
        if status is not None:
            message["status"] = json_format.MessageToDict(status)
        self._line.send(message)
