"""The host agent: one process that reports all instances of a node in one call, told by each instance's supervisor."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from clients.client import Client
from clients.instancectl.clock import Clock
from clients.instancectl.lines import Line, serve
from clients.instancectl.reports.reporter import Reporter
from clients.instancectl.reports.subject import SubjectId
from hqpb.v1.instance_pb2 import RevisionStatus

_FLUSH_S = 3.0

log = logging.getLogger(__name__)


class HostAgent:
    """Reports what supervisors say for as long as they are connected: a supervisor that died must fall silent."""

    def __init__(self, client: Client, path: Path, clock: Clock, rng: random.Random) -> None:
        self._path = path
        self._reporter = Reporter(client, clock, rng, self._stopped)
        self._owners: dict[SubjectId, Line] = {}
        self._outdone: set[tuple[SubjectId, Line]] = set()  # supervisors that a later one took the place of

    async def run(self) -> None:
        """Serve until cancelled. Raises OSError: the socket cannot be had."""
        server = await serve(self._path, self._talk)
        log.info("the host agent listens at %s", self._path)
        try:
            await self._reporter.run()
        finally:
            server.close()
            self._path.unlink(missing_ok=True)

    async def _talk(self, line: Line) -> None:
        try:
            while (message := await line.receive()) is not None:
                try:
                    await self._received(line, message)
                except (KeyError, TypeError, json_format.ParseError) as error:
                    log.warning("somebody at the socket makes no sense: %r", error)
                    return
        finally:
            self._outdone = {(subject, other) for subject, other in self._outdone if other is not line}
            for subject in [s for s, owner in self._owners.items() if owner is line]:
                del self._owners[subject]
                self._reporter.forget(subject)

    async def _received(self, line: Line, message: dict[str, Any]) -> None:
        match message["kind"]:
            case "say":
                self._say(line, _subject(message["subject"]), message["status"])
            case "forget":
                self._forget(line, _subject(message["subject"]))
            case "resume":
                self._reporter.resume()
            case "flush":
                await self._reporter.flush(_FLUSH_S)
                line.send({"kind": "flushed"})
            case "status":
                line.send(self._reporter.describe())
        await line.drained()

    def _say(self, line: Line, subject: SubjectId, status: dict[str, Any]) -> None:
        owner = self._owners.get(subject, line)
        if (subject, line) in self._outdone:
            return
        if owner is not line:
            self._outdone.add((subject, owner))
            self._stopped(subject, "FENCED", "another supervisor on this node took it over")
        self._owners[subject] = line
        self._reporter.say(subject, json_format.ParseDict(status, RevisionStatus()))

    def _forget(self, line: Line, subject: SubjectId) -> None:
        if self._owners.get(subject) is line:
            del self._owners[subject]
            self._reporter.forget(subject)

    def _stopped(self, subject: SubjectId, reason: str, message: str) -> None:
        owner = self._owners.get(subject)
        if owner is not None:
            told = [subject.instance_id, subject.node, subject.revision_id]
            owner.send({"kind": "stopped", "subject": told, "reason": reason, "message": message})


def _subject(words: Any) -> SubjectId:
    """Raises TypeError: these are no three words, and HQ could not be asked about them."""
    if not (isinstance(words, list) and all(isinstance(word, str) and word.isprintable() for word in words)):
        raise TypeError(f"{words!r} names no revision")
    return SubjectId(*words)
